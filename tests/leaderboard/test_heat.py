"""The map by task, and the languages of tasks."""

from pathlib import Path
from typing import Any

import pytest

from bench.evaluation.results import results as read_results
from bench.evaluation.significance.estimates import Sample
from bench.evaluation.significance.families import family
from bench.types import Macro
from leaderboard.site import heat
from leaderboard.site.boards import Board, boards
from leaderboard.site.languages import average, groups, split_by_pretraining
from tests.leaderboard.conftest import Build, Publisher, values

NOISE = {"crop": 11, "bm25": 12, "msm": 13}


@pytest.fixture
def board(publish_result: Publisher, results: Path) -> Board:
    """Three systems on two tasks: far better on one, about the same on the other; a fourth without the second task."""
    for label, a, b in (("crop", 0.8, 0.51), ("bm25", 0.4, 0.5), ("msm", 0.5, 0.3)):
        publish_result(label, {"made/a": {"": values(a, len(label))}, "made/b": {"": values(b, NOISE[label])}})
    publish_result("part", {"made/a": {"": values(0.7, 5)}})
    (board,) = boards(read_results(results))
    return board


def test_bins() -> None:
    """Seven of one width; the ends take what lies outside; symmetric."""
    scale = heat.Scale(0.35, 0.2, 0.9)
    assert [scale.difference(gap) for gap in (-1.0, -0.3, -0.2, -0.04, 0.0, 0.04, 0.2, 0.3, 1.0)] == [
        0, 0, 1, 3, 3, 3, 5, 6, 6,
    ]  # fmt: skip
    assert [scale.value(value) for value in (0.0, 0.2, 0.55, 0.9)] == [0, 0, 3, 6]


def test_the_baseline(board: Board, publish_result: Publisher, results: Path) -> None:
    """BM25 where it is there; one limit for all settings, the smallest step that holds nine differences of ten.

    One system has no baseline: there is nothing to compare it with.
    """
    publish_result("crop", {"single/a": {"": [0.5, 0.25]}}, suite="single")
    single = next(board for board in boards(read_results(results)) if board.suite == "single")
    assert heat.baseline(single) is None
    assert heat.scale([single]).low < heat.scale([single]).high
    base = heat.baseline(board)
    assert base is not None
    assert base.name == "bm25"
    assert heat.scale([board]) == heat.scale([board, board])
    assert heat.scale([board]).limit == 0.4


def test_clear_differences_are_those_of_the_tests(board: Board) -> None:
    """Worked out again from the values: one family over all pairs on both tasks, the part without the second."""
    base = heat.baseline(board)
    assert base is not None
    systems = {"crop": (0.8, 4, 0.51), "msm": (0.5, 3, 0.3), "part": (0.7, 5, None), "bm25": (0.4, 4, 0.5)}
    samples = {
        name: Sample({"a": values(a, seed)} | ({} if b is None else {"b": values(b, NOISE[name])}))
        for name, (a, seed, b) in systems.items()
    }
    tests = family(samples, {"a": {"a": 1.0}, "b": {"b": 1.0}})
    expected = {
        (name, f"made/{task}")
        for task in ("a", "b")
        for name in systems
        if tests.has(name, "bm25", task) and tests.comparison(name, "bm25", task).decided
    }
    assert heat.significant(board, base) == expected
    assert ("part", "made/a") in expected
    assert ("crop", "made/b") not in expected
    rows = board.all_rows
    digits = heat.bits(board, base, rows)
    assert len(digits) == len(rows) * 2
    assert digits.count("1") == len(expected)


MRTYDI = ("ar", "bn", "en", "fi", "id", "ja", "ko", "ru", "sw", "te", "th")


def test_groups_by_hand() -> None:
    """Scripts and families of two languages or more, others together; of a pair what is not English."""
    by_property = {(group.by, group.name): " ".join(group.tasks) for group in groups({name: name for name in MRTYDI})}
    assert by_property == {
        ("Script", "Latin"): "en fi id sw",
        ("Script", "other"): "ar bn ja ko ru te th",
        ("Resource class", "4–5"): "ar en fi ja ko ru",
        ("Resource class", "3"): "bn id th",
        ("Resource class", "0–2"): "sw te",
        ("Family", "Indo-European"): "bn en ru",
        ("Family", "other"): "ar fi id ja ko sw te th",
    }
    pairs = {name: name for name in ("eng-fra", "deu-eng", "eng-rus", "bul-eng")}
    counts = [("Cyrillic", 2), ("Latin", 2), ("3", 1), ("4–5", 3)]
    assert [(group.name, len(group.tasks)) for group in groups(pairs)] == counts
    assert groups({name: name for name in ("arguana", "fiqa", "nq", "quora")}) == []
    assert groups({name: name for name in ("de", "en", "fr")}) == [], "too few"
    assert average({"a": 0.5, "b": 0.25}, ("a", "b")) == 0.375
    assert average({"a": 0.5}, ("a", "b")) is None


def test_a_board_shows_its_groups(publish_result: Publisher, results: Path, site: Build) -> None:
    """Means of the tasks by hand; languages of the corpus are those that its preparation counted."""
    names = ("ar", "en", "fi", "ru")
    macros = (Macro("Avg.", tuple(f"made/{name}" for name in names)),)
    tasks = {f"made/{name}": {"": [0.1 * at + 0.1]} for at, name in enumerate(names)}
    facts: dict[str, Any] = {"facts": {"prepare": {"languages": {"ar": {}, "en": {}, "ja": {}}}}}
    publish_result("crop", tasks, macros=macros, system={"budget": 5}, leg=facts)
    publish_result("bm25", tasks, macros=macros)
    (board,) = boards(read_results(results))
    titles = {column.task: column.name for column in board.columns}
    assert split_by_pretraining(board.systems["crop"], titles) == ({"made/ar", "made/en"}, {"made/fi", "made/ru"})
    assert split_by_pretraining(board.systems["bm25"], titles) == (set(), set())
    page = site()["suites/made/unsupervised.html"].decode()
    row = page[page.index('id="languages"') :].partition('<th scope="row">crop</th>')[2].partition("</tr>")[0]
    cells = [cell.partition("<")[0].strip() for cell in row.split('<td class="n">')[1:]]
    assert cells == ["25.0", "25.0", "30.0", "20.0", "15.0", "35.0"], (
        "Latin, other; Indo-European, other; split_by_pretraining, not"
    )
