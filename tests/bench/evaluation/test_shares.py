"""Weights of legs in an average: the weighted mean of the legs is the number in the table."""

import pytest

from bench.evaluation.results import averages, headline, shares
from bench.types import Macro

TASKS = {"mini/s/x": ("",), "mini/s/y": ("en", "fr"), "mini/s/z": ("",)}
VALUES = {("mini/s/x", ""): 0.1, ("mini/s/y", "en"): 0.4, ("mini/s/y", "fr"): 0.8, ("mini/s/z", ""): 0.7}


def content() -> dict[str, dict[str, dict[str, dict[str, float]]]]:
    """The legs as a result file holds them."""
    return {task: {leg: {"measures": {"P@1": VALUES[task, leg]}} for leg in legs} for task, legs in TASKS.items()}


@pytest.mark.parametrize(
    "members", [("s/x", "s/y", "s/z"), ("s/x", "s/y"), ("s/x", Macro("inner", ("s/y", "s/z"))), ("s/y:fr", "s/z")]
)
def test_the_weighted_legs_are_the_average(members: tuple[str | Macro, ...]) -> None:
    """As results compute it."""
    average = Macro("some", members)
    weights = shares(TASKS, average)
    (expected,) = (one["measures"]["P@1"] for one in averages(content(), [average]) if one["name"] == average.name)
    assert sum(weights.values()) == pytest.approx(1)
    assert sum(share * VALUES[stratum] for stratum, share in weights.items()) == pytest.approx(expected)


def test_without_an_average_tasks_count_alike() -> None:
    """Legs share their task's part."""
    weights = shares(TASKS)
    assert weights["mini/s/y", "en"] == pytest.approx(1 / 6)
    name, value = headline(content(), (), "P@1")
    assert name == "mean of 3 tasks"
    assert sum(share * VALUES[stratum] for stratum, share in weights.items()) == pytest.approx(value)
