"""The map by task: limits of the suite, bins, and which differences are clear."""

from pathlib import Path

import pytest

from bench.evaluation.results import results as read_results
from bench.evaluation.significance.estimates import Sample
from bench.evaluation.significance.families import family
from leaderboard.site import heat
from leaderboard.site.boards import Board, boards
from tests.leaderboard.conftest import Publisher, values

NOISE = {"crop": 11, "bm25": 12, "msm": 13}


@pytest.fixture
def board(made: Publisher, results: Path) -> Board:
    """Three systems on two tasks: far better on one, about the same on the other; a fourth without the second task."""
    for label, a, b in (("crop", 0.8, 0.51), ("bm25", 0.4, 0.5), ("msm", 0.5, 0.3)):
        made(label, {"made/a": {"": values(a, len(label))}, "made/b": {"": values(b, NOISE[label])}})
    made("part", {"made/a": {"": values(0.7, 5)}})
    (found,) = boards(read_results(results))
    return found


def test_bins() -> None:
    """Seven of one width; the ends take what lies outside; symmetric."""
    scale = heat.Scale(0.35, 0.2, 0.9)
    assert [scale.difference(gap) for gap in (-1.0, -0.3, -0.2, -0.04, 0.0, 0.04, 0.2, 0.3, 1.0)] == [
        0, 0, 1, 3, 3, 3, 5, 6, 6,
    ]  # fmt: skip
    assert [scale.value(value) for value in (0.0, 0.2, 0.55, 0.9)] == [0, 0, 3, 6]


def test_the_baseline(board: Board) -> None:
    """BM25 where it is there; one limit for all settings, the smallest step that holds nine differences of ten."""
    base = heat.baseline(board)
    assert base is not None
    assert base.name == "bm25"
    assert heat.scale([board]) == heat.scale([board, board])
    assert heat.scale([board]).limit == 0.4


def test_one_system_has_no_baseline(made: Publisher, results: Path) -> None:
    """There is nothing to hold it against."""
    made("crop", {"made/a": {"": [0.5, 0.25]}})
    (found,) = boards(read_results(results))
    assert heat.baseline(found) is None
    assert heat.scale([found]).low < heat.scale([found]).high


def test_clear_differences_are_those_of_the_tests(board: Board) -> None:
    """Worked out again from the values: one family over all pairs on both tasks, the part without the second."""
    base = heat.baseline(board)
    assert base is not None
    told = {"crop": (0.8, 4, 0.51), "msm": (0.5, 3, 0.3), "part": (0.7, 5, None), "bm25": (0.4, 4, 0.5)}
    samples = {
        name: Sample({"a": values(a, seed)} | ({} if b is None else {"b": values(b, NOISE[name])}))
        for name, (a, seed, b) in told.items()
    }
    made = family(samples, {"a": {"a": 1.0}, "b": {"b": 1.0}})
    expected = {
        (name, f"made/{task}")
        for task in ("a", "b")
        for name in told
        if made.has(name, "bm25", task) and made.comparison(name, "bm25", task).decided
    }
    assert heat.significant(board, base) == expected
    assert ("part", "made/a") in expected
    assert ("crop", "made/b") not in expected
    rows = board.every
    digits = heat.bits(board, base, rows)
    assert len(digits) == len(rows) * 2
    assert digits.count("1") == len(expected)
