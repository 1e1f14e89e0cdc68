"""Would the order survive other tasks? Tasks (mostly languages) as a sample of those that could have been chosen.

Tests of a board speak of its tasks alone. Here tasks are drawn, with replacement: how often a system keeps its place,
how it ranks on the tasks one by one, how often it beats another one, and which places it has when one task is left out.
With few tasks this describes and proves nothing, so it is shown apart from the tests.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bench.evaluation.significance.estimates import FloatArray

DRAWS = 5_000
FEWEST = 3
"""Tasks below which there is nothing to draw."""
Subset = tuple[str, str]
"""A task and the name of a subset of it."""


@dataclass(frozen=True)
class AcrossTasks:
    """A system among others over draws of tasks.

    Args:
        kept: share of draws in which it has the place that it has on all tasks.
        first: share of draws in which it is first.
        rank: mean over tasks of its rank; equal values share the mean of their ranks.
        wins: share of others that it beats, mean over tasks; a tie counts half.
        places: best and worst place with any one task left out.
    """

    kept: float
    first: float
    rank: float
    wins: float
    places: tuple[int, int]


def across_tasks(
    values: Mapping[str, Mapping[Subset, float]], weights: Mapping[Subset, float]
) -> dict[str, AcrossTasks]:
    """Return what other tasks would do to an order.

    Args:
        values: fractions by system and subset.
        weights: of subsets in the mean that orders the systems; a task's subsets are resampled together.

    Returns:
        Statistics by system; empty for one system or fewer than `FEWEST` tasks.
    """
    from scipy.stats import rankdata

    tasks = sorted({task for task, _ in weights})
    if len(values) < 2 or len(tasks) < FEWEST:
        return {}
    subsets = np.array([[weights[subset] * (subset[0] == task) for task in tasks] for subset in weights])
    share = subsets.sum(axis=0)
    table = (
        np.array([[subset_values[subset] for subset in weights] for subset_values in values.values()]) @ subsets / share
    )
    counts = np.random.default_rng(0).multinomial(len(tasks), [1 / len(tasks)] * len(tasks), size=DRAWS)
    places = _places(table @ share)
    resampled_places = _places(table @ (counts * share).T / (counts @ share))
    without = 1.0 - np.eye(len(tasks))
    places_without = _places(table @ (without * share).T / (without @ share))
    ranks = rankdata(-table, axis=0)
    return {
        name: AcrossTasks(
            kept=float(np.mean(resampled_places[at] == places[at])),
            first=float(np.mean(resampled_places[at] == 1)),
            rank=float(ranks[at].mean()),
            wins=float(np.mean((len(table) - ranks[at]) / (len(table) - 1))),
            places=(int(places_without[at].min()), int(places_without[at].max())),
        )
        for at, name in enumerate(values)
    }


def _places(means: FloatArray) -> FloatArray:
    """Return places `[systems, …]` of means, the highest first; equal ones share the better place."""
    from scipy.stats import rankdata

    ranks: FloatArray = rankdata(-means.round(12), method="min", axis=0)
    return ranks
