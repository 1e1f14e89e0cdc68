"""What a row cost: each training once, tuning with it, mean over seeds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from leaderboard.costs import Cost, cost
from leaderboard.read import Result
from leaderboard.read import results as read_results

Publisher = Callable[..., Path]


def told(result: Result, legs: dict[str, dict[str, Any]]) -> Result:
    """The same result with other facts and keys by task."""
    tasks = {
        task: {leg: one.model_copy(update=legs[task]) for leg, one in parts.items()}
        for task, parts in result.content.tasks.items()
    }
    return type(result)(result.path, result.content.model_copy(update={"tasks": tasks}))


@pytest.fixture
def result(made: Publisher, results: Path) -> Result:
    """A result of two tasks."""
    made("crop", {"made/a": {"": [0.5]}, "made/b": {"": [0.5]}})
    (found,) = read_results(results)
    return found


def facts(seconds: float, key: str, tuned: float, tune: str) -> dict[str, Any]:
    """Of a leg that was trained and tuned."""
    return {
        "facts": {"train": {"seconds": seconds, "tokens": 100}, "tune": {"seconds": tuned, "tokens": 10}, "search": {}},
        "keys": {"train": key, "tune": tune},
    }


def test_shared_training_counts_once(result: Result) -> None:
    """One pretraining, two tunings: 60 + 5 + 7 seconds, 100 + 10 + 10 tokens; operations are not told."""
    one = told(result, {"made/a": facts(60, "k", 5, "t1"), "made/b": facts(60, "k", 7, "t2")})
    assert cost([one]) == Cost(72.0, 120.0, None)


def test_mean_over_seeds(result: Result) -> None:
    """A seed that does not tell leaves nothing to average."""
    one = told(result, {task: facts(60, "k", 5, "t") for task in ("made/a", "made/b")})
    other = told(result, {task: facts(80, "l", 5, "u") for task in ("made/a", "made/b")})
    assert cost([one, other]).seconds == 75.0
    assert cost([one, result]) == Cost()


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -1, True, "60", None, [1]])
def test_what_is_no_number_of_seconds_is_not_told(result: Result, wrong: Any) -> None:
    """Results are other people's words."""
    legs = {task: {"facts": {"train": {"seconds": wrong}}, "keys": {"train": "k"}} for task in ("made/a", "made/b")}
    assert cost([told(result, legs)]).seconds is None
    none = {task: {"facts": {"train": "nonsense"}, "keys": {}} for task in ("made/a", "made/b")}
    assert cost([told(result, none)]) == Cost()
