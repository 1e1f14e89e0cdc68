"""Other tasks: by hand, by scipy's ranks, and by every draw of three tasks."""

from collections.abc import Mapping
from itertools import product

import numpy as np
import pytest
from scipy.stats import rankdata

from bench.evaluation.significance.tasks import across_tasks

TASKS = ("x", "y", "z")
EQUAL = {(task, ""): 1 / 3 for task in TASKS}
VALUES = {"a": (0.9, 0.2, 0.5), "b": (0.4, 0.6, 0.5), "c": (0.1, 0.1, 0.1)}


def table(values: Mapping[str, tuple[float, ...]]) -> dict[str, dict[tuple[str, str], float]]:
    """Values by system and the only subset of a task."""
    return {name: dict(zip(EQUAL, row, strict=True)) for name, row in values.items()}


def test_three_tasks_by_hand() -> None:
    """A wins x, b wins y, they share z: rank (1 + 2 + 1.5) / 3 each; two tasks or one system say nothing."""
    result = across_tasks(table(VALUES), EQUAL)
    assert [system.rank for system in result.values()] == pytest.approx([1.5, 1.5, 3])
    assert [system.wins for system in result.values()] == pytest.approx([0.75, 0.75, 0])
    assert [system.places for system in result.values()] == [(1, 2), (1, 2), (3, 3)]
    assert (result["c"].kept, result["c"].first) == (1, 0)
    assert across_tasks(table(VALUES), {("x", ""): 0.5, ("y", ""): 0.5}) == {}
    assert across_tasks(table({"a": VALUES["a"]}), EQUAL) == {}


def test_shares_are_those_of_all_27_draws() -> None:
    """Enumerated: three tasks drawn with replacement, weights included."""
    weights = dict(zip(EQUAL, (0.5, 0.25, 0.25), strict=True))
    matrix, share = np.array([*VALUES.values()]), np.array([*weights.values()])
    expected_places = rankdata(-matrix @ share, method="min")
    places = []
    for draw in product(range(3), repeat=3):
        counts = np.bincount(draw, minlength=3) * share
        places.append(rankdata(-(matrix @ counts / counts.sum()).round(12), method="min"))
    result = across_tasks(table(VALUES), weights)
    assert [system.kept for system in result.values()] == pytest.approx(
        np.mean(places == expected_places, axis=0), abs=0.02
    )
    assert [system.first for system in result.values()] == pytest.approx(
        np.mean(np.array(places) == 1, axis=0), abs=0.02
    )


def test_shares_are_of_5000_draws() -> None:
    for system in across_tasks(table(VALUES), EQUAL).values():
        for share in (system.kept, system.first):
            assert 5_000 * share == pytest.approx(round(5_000 * share), abs=1e-6)
    assert across_tasks(table(VALUES), EQUAL)["a"].kept != 1


def test_subsets_are_drawn_with_their_task() -> None:
    """A task's two subsets count as their weighted mean: 0.9 = 0.75 · 1 + 0.25 · 0.6."""
    subsets = {("x", "ab"): 0.25, ("x", "ba"): 1 / 12, **dict(list(EQUAL.items())[1:])}
    split = {name: {("x", "ab"): row[0], ("x", "ba"): row[0], **table(VALUES)[name]} for name, row in VALUES.items()}
    split["a"] |= {("x", "ab"): 1.0, ("x", "ba"): 0.6}
    assert across_tasks(split, subsets) == across_tasks(table(VALUES), EQUAL)
