"""The tests of a board: those of the library, in both directions, and kept between builds only while true."""

from pathlib import Path

import numpy as np
import pytest

from bench.core.errors import StoreError
from bench.core.files import read_sealed, write_sealed
from bench.evaluation.results import results as read_results
from bench.evaluation.results.read import Result
from bench.evaluation.significance.estimates import Sample
from bench.evaluation.significance.families import family, intervals
from bench.testing import fields
from bench.types import Macro
from leaderboard.site import statistics as tested
from leaderboard.site.boards import boards
from tests.leaderboard.conftest import Publisher, values

NAMES = ("a", "b", "c")


@pytest.fixture
def three(publish_result: Publisher) -> dict[str, list[float]]:
    columns = {name: values(0.7 - 0.1 * place, place) for place, name in enumerate(NAMES)}
    for name, column in columns.items():
        publish_result(name, {"made/x": {"": column}})
    return columns


def test_pairs_are_those_of_the_library(three: dict[str, list[float]], results: Path) -> None:
    """Headline and task alike, for the task is all there is; turned round, signs turn."""
    (board,) = boards(read_results(results))
    samples = {name: Sample({"": values}) for name, values in three.items()}
    expected = family(samples, {"": {"": 1.0}})
    for pair in expected.pairs():
        comparison = expected.comparison(*pair)
        assert comparison.checkpoints
        assert board.tests.ranks.comparison(*pair) == comparison
        assert board.tests.cells.comparison(*pair, "made/x") == comparison
        assert board.tests.ranks.comparison(*pair[::-1]) == comparison.turned()
    assert board.tests.intervals["a"] == pytest.approx(intervals(samples, {"": 1.0})["a"])


def test_tasks_by_themselves_can_be_left_out(three: dict[str, list[float]], results: Path, tmp_path: Path) -> None:
    """The headline's tests stay as they are, and what is kept without those of tasks is not taken for all."""
    (without,) = boards(read_results(results), tmp_path, by_task=False)
    (whole,) = boards(read_results(results), tmp_path)
    assert without.rows == whole.rows
    assert without.best_against == whole.best_against
    assert [board.tests.cells.has("a", "b", "made/x") for board in (without, whole)] == [False, True]


def test_parallel_questions_and_trainings_reach_the_tests(publish_result: Publisher, results: Path) -> None:
    """The suite's word that queries of one id are one question widens intervals; three trainings speak of methods."""
    for place, name in enumerate(NAMES[:2]):
        for seed in range(3):
            shared = values(0.6 - 0.05 * place, 9 + place)
            tasks = {f"made/{task}": {"": [value * (1 - 0.01 * seed) for value in shared]} for task in ("x", "y")}
            publish_result(name, tasks, seed=seed, macros=(Macro("Avg.", ("made/x", "made/y")),))
    (unrelated,) = boards(read_results(results))
    for path in results.rglob("result.json"):
        content = read_sealed(path)
        content["suite"]["parallel"] = "tasks"
        write_sealed(path, content)
    (parallel,) = boards(read_results(results))
    narrow, wide = (board.tests.ranks.comparison("a", "b") for board in (unrelated, parallel))
    assert not wide.checkpoints
    assert narrow.p_uncorrected < wide.p_uncorrected
    assert parallel.tests.ranks.scatter[""].freedom == 4


def test_what_is_kept_is_not_read_again(
    three: dict[str, list[float]], results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second time no per-query file is opened, and the board is the same."""
    cache = tmp_path / "cache"
    (first,) = boards(read_results(results), cache)
    (cached,) = cache.iterdir()

    def never(*arguments: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(Result, "values", never)
    (second,) = boards(read_results(results), cache)
    assert second.rows == first.rows
    assert second.best_against == first.best_against
    cached.write_bytes(cached.read_bytes()[:100])
    with pytest.raises(AssertionError, match="read again"):
        boards(read_results(results), cache)


def test_other_values_or_code_are_tested_anew(
    publish_result: Publisher,
    three: dict[str, list[float]],
    results: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The name of what is kept is made of all that can change it."""
    cache = tmp_path / "cache"
    boards(read_results(results), cache)
    publish_result("a", {"made/x": {"": values(0.9, 9)}})
    (board,) = boards(read_results(results), cache)
    assert board.rows[0].score == pytest.approx(np.mean(values(0.9, 9)))
    assert len(list(cache.iterdir())) == 2
    monkeypatch.setattr(tested, "VERSION", tested.VERSION + 1)
    boards(read_results(results), cache)
    assert len(list(cache.iterdir())) == 3


def test_a_place_that_cannot_be_written_is_a_sentence(
    three: dict[str, list[float]], results: Path, tmp_path: Path
) -> None:
    """A file stands where the folder should be."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, check=fields(hint="--store")):
        boards(read_results(results), tmp_path / "file" / "cache")
