"""The tests of a board: those of `bench.scoring`, in both directions, and kept between builds only while true."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.core.errors import StoreError
from bench.evaluation.results import results as read_results
from bench.evaluation.results.read import Result
from bench.evaluation.significance.tests import holm, interval, pairwise
from bench.testing import fields
from leaderboard.site import statistics as tested
from leaderboard.site.boards import boards
from tests.leaderboard.conftest import Publisher, values

NAMES = ("a", "b", "c")


@pytest.fixture
def three(made: Publisher) -> dict[str, list[float]]:
    """Three systems on one task."""
    told = {name: values(0.7 - 0.1 * place, place) for place, name in enumerate(NAMES)}
    for name, column in told.items():
        made(name, {"made/x": {"": column}})
    return told


def test_pairs_are_those_of_the_library(three: dict[str, list[float]], results: Path) -> None:
    """Headline and task alike, for the task is all there is; turned round, signs turn."""
    (board,) = boards(read_results(results))
    expected = pairwise({name: {"": values} for name, values in three.items()}, tested.SEED)
    chances = dict(zip(expected, holm([one.p_randomisation for one in expected.values()]), strict=True))
    for pair, one in expected.items():
        assert board.tests.whole.comparison(*pair) == one
        assert board.tests.tasks["made/x"].comparison(*pair) == one
        back = board.tests.whole.comparison(*pair[::-1])
        assert (back.difference, back.low, back.high) == (-one.difference, -one.high, -one.low)
        assert (back.wins, back.losses) == (one.losses, one.wins)
        assert board.tests.whole.corrected[pair] == board.tests.whole.corrected[pair[::-1]] == chances[pair]
    assert board.tests.intervals["a"] == pytest.approx(interval({"": three["a"]}, tested.SEED))
    assert board.tests.detectable == pytest.approx(np.median([one.detectable for one in expected.values()]))


def test_what_is_kept_is_not_read_again(
    three: dict[str, list[float]], results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second time no per-query file is opened, and the board is the same."""
    cache = tmp_path / "cache"
    (first,) = boards(read_results(results), cache)
    (kept,) = cache.iterdir()

    def never(*given: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(Result, "values", never)
    (second,) = boards(read_results(results), cache)
    assert second.rows == first.rows
    assert second.best_against == first.best_against
    kept.write_bytes(kept.read_bytes()[:100])
    with pytest.raises(AssertionError, match="read again"):
        boards(read_results(results), cache)


def test_other_values_or_code_are_tested_anew(
    made: Publisher, three: dict[str, list[float]], results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of what is kept is made of all that can change it."""
    cache = tmp_path / "cache"
    boards(read_results(results), cache)
    made("a", {"made/x": {"": values(0.9, 9)}})
    (board,) = boards(read_results(results), cache)
    assert board.rows[0].score == pytest.approx(np.mean(values(0.9, 9)))
    assert len(list(cache.iterdir())) == 2
    monkeypatch.setattr(tested, "VERSION", tested.VERSION + 1)
    tested._code.cache_clear()
    boards(read_results(results), cache)
    assert len(list(cache.iterdir())) == 3
    tested._code.cache_clear()


def test_a_place_that_cannot_be_written_is_a_sentence(
    three: dict[str, list[float]], results: Path, tmp_path: Path
) -> None:
    """A file stands where the folder should be."""
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, check=fields(hint="--store")):
        boards(read_results(results), tmp_path / "file" / "cache")
