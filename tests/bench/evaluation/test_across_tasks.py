"""Other tasks: by hand, by scipy's ranks, and by every draw of three tasks."""

from collections.abc import Mapping
from itertools import product

import numpy as np
import pytest
from scipy.stats import rankdata

from bench.evaluation.significance.tasks import across_tasks

TASKS = ("x", "y", "z")
EQUAL = dict.fromkeys(TASKS, 1 / 3)
VALUES = {"a": (0.9, 0.2, 0.5), "b": (0.4, 0.6, 0.5), "c": (0.1, 0.1, 0.1)}


def table(values: Mapping[str, tuple[float, ...]]) -> dict[str, dict[str, float]]:
    """Values by system and task."""
    return {name: dict(zip(TASKS, own, strict=True)) for name, own in values.items()}


def test_three_tasks_by_hand() -> None:
    """A wins x, b wins y, they share z: rank (1 + 2 + 1.5) / 3 each; two tasks or one system say nothing."""
    found = across_tasks(table(VALUES), EQUAL)
    assert [one.rank for one in found.values()] == pytest.approx([1.5, 1.5, 3])
    assert [one.wins for one in found.values()] == pytest.approx([0.75, 0.75, 0])
    assert [one.places for one in found.values()] == [(1, 2), (1, 2), (3, 3)]
    assert (found["c"].kept, found["c"].first) == (1, 0)
    assert across_tasks(table(VALUES), {"x": 0.5, "y": 0.5}) == {}
    assert across_tasks(table({"a": VALUES["a"]}), EQUAL) == {}


def test_shares_are_those_of_all_27_draws() -> None:
    """Enumerated: three tasks drawn with replacement, weights included."""
    weights = {"x": 0.5, "y": 0.25, "z": 0.25}
    matrix, share = np.array([*VALUES.values()]), np.array([*weights.values()])
    whole = rankdata(-matrix @ share, method="min")
    places = []
    for drawn in product(range(3), repeat=3):
        counts = np.bincount(drawn, minlength=3) * share
        places.append(rankdata(-(matrix @ counts / counts.sum()).round(12), method="min"))
    found = across_tasks(table(VALUES), weights)
    assert [one.kept for one in found.values()] == pytest.approx(np.mean(places == whole, axis=0), abs=0.02)
    assert [one.first for one in found.values()] == pytest.approx(np.mean(np.array(places) == 1, axis=0), abs=0.02)
