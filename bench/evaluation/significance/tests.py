"""Is one system better than another, and how sure is that: paired tests over queries, within tasks.

Conventions: values are per query, in the same order for both systems, and finite; differences are first minus second,
in the unit of the values (fractions). Over several tasks the statistic is the weighted mean of the tasks' mean
differences, by default unweighted, which is how the suites average; chance works within each task, so that a long task
is not more important than a short one. Everything is seeded, and the order in which tasks are given does not matter.

A system with several training runs gives its values as [seeds, queries]. Tests are then of the means over seeds: they
ask whether other queries would give the same answer. Intervals draw queries and seeds
(`bench.evaluation.significance.resampling`), and so ask the same of other trainings; of a system with one run they
cannot, and say nothing of training variation.

The randomisation test follows Fisher (1935) as Smucker, Allan and Carterette (CIKM 2007) recommend it for retrieval:
were both systems the same, the sign of every query's difference would be a coin flip.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from bench.core.errors import UsageError
from bench.evaluation.significance.power import detectable, student
from bench.evaluation.significance.resampling import CELLS, FloatArray, TrainingRuns, bootstrap, randomisation
from bench.evaluation.tables import chance_text, points

Values = Sequence[float] | Sequence[Sequence[float]] | FloatArray
"""Of a task: [queries], or [seeds, queries] of a system with several training runs."""
ENOUGH = 5
"""Training runs below which an interval over seeds is too short (measured in the tests of this module)."""


@dataclass(frozen=True)
class Comparison:
    """Two systems on the same queries, first minus second.

    Args:
        difference: mean over tasks of the mean difference, in the unit of the values.
        low: lower end of the 95 % percentile bootstrap interval over queries, and over the seeds of systems that have
            several; equal to `difference` where every task has one query only.
        high: its upper end.
        p_randomisation: two-sided, of the paired randomisation test.
        p_t: two-sided, of the paired t-test (several tasks: with Welch's and Satterthwaite's degrees of freedom); None
            where a task has one query only, or no difference varies.
        n: queries.
        wins: queries on which the first system is better.
        ties: queries on which both are equal.
        losses: queries on which the second is better.
        effect: difference in standard deviations of the per-query differences within tasks (Cohen's d_z); None as
            for `p_t`.
    """

    difference: float
    low: float
    high: float
    p_randomisation: float
    p_t: float | None
    n: int
    wins: int
    ties: int
    losses: int
    effect: float | None
    detectable: float | None = None
    seeds: tuple[int, int] = (1, 1)

    def turned(self) -> Comparison:
        """Return the same as second minus first."""
        return replace(
            self,
            difference=0.0 - self.difference,
            low=0.0 - self.high,
            high=0.0 - self.low,
            wins=self.losses,
            losses=self.wins,
            effect=None if self.effect is None else 0.0 - self.effect,
            seeds=self.seeds[::-1],
        )

    def as_json(self, corrected: float | None = None) -> dict[str, Any]:
        """Return it as `--json` prints it: fractions, None where a number is not defined.

        Args:
            corrected: p after correction; None leaves it out.
        """
        return {
            "difference": self.difference,
            "low": self.low,
            "high": self.high,
            "p": self.p_randomisation,
            "p_t": self.p_t,
            **({} if corrected is None else {"p_holm": corrected}),
            "effect": self.effect,
            "detectable": self.detectable,
            "wins": self.wins,
            "ties": self.ties,
            "losses": self.losses,
            "queries": self.n,
        }


def paired(first: Values, second: Values, seed: int) -> Comparison:
    """Compare two systems on the queries of one task.

    Args:
        first: values [n] or [seeds, n] of one system.
        second: values of the other, same queries in the same order.
        seed: decides sign flips and resamples.

    Raises:
        UsageError: different lengths, no query, or a value that is not finite.
    """
    return stratified({"": (first, second)}, seed)


def stratified(
    tasks: Mapping[str, tuple[Values, Values]], seed: int, weights: Mapping[str, float] | None = None
) -> Comparison:
    """Compare two systems on several tasks; signs are flipped and queries resampled within each task.

    Args:
        tasks: by task (or language), the values [n of the task] or [seeds, n] of the first and of the second system.
        seed: decides sign flips and resamples.
        weights: of the tasks in the mean, positive; None for the unweighted mean.

    Raises:
        UsageError: no task, tasks without a weight, and as for `paired`.
    """
    systems = {side: {task: values[side] for task, values in tasks.items()} for side in (0, 1)}
    return pairwise({"first": systems[0], "second": systems[1]}, seed, weights)["first", "second"]


def pairwise(
    systems: Mapping[str, Mapping[str, Values]],
    seed: int,
    weights: Mapping[str, float] | None = None,
    trainings: Mapping[str, str] | None = None,
) -> dict[tuple[str, str], Comparison]:
    """Compare every two systems of a table; all pairs share the random numbers, which makes many pairs cheap.

    Args:
        systems: values by system and task; all have the same tasks with the same queries in the same order. The number
            of seeds may differ between systems.
        seed: decides sign flips and resamples.
        weights: of the tasks in the mean, positive; None for the unweighted mean.
        trainings: by system, a name for its training runs. Systems with the same name come from the same runs, in the
            same order, and draw them together; a system without one has runs of its own.

    Returns:
        By pair, in the order of `systems`.

    Raises:
        UsageError: tasks or numbers of queries that differ between systems, numbers of seeds that differ between the
            tasks of a system or between systems from the same trainings, and as for `stratified`.
    """
    pairs = list(combinations(systems, 2))
    arrays = {name: _checked(name, tasks) for name, tasks in systems.items()}
    if not pairs:
        return {}
    first = next(iter(arrays.items()))
    names, share = _shares(first[1], weights)
    for other in arrays.items():
        _same_queries(first, other)
    runs = {name: (trainings or {}).get(name, name) for name in systems}
    _same_runs(arrays, runs)
    means = {name: {task: array.mean(axis=0) for task, array in tasks.items()} for name, tasks in arrays.items()}
    found: dict[tuple[str, str], Comparison] = {}
    together = max(1, CELLS // sum(map(len, means[first[0]].values())))
    for start in range(0, len(pairs), together):
        some = pairs[start : start + together]
        strata = [np.stack([means[a][task] - means[b][task] for a, b in some], axis=1) for task in names]
        for pair, one in zip(some, _comparisons(strata, share, seed, _trained(some, arrays, names, runs)), strict=True):
            found[pair] = replace(one, seeds=(_runs(arrays[pair[0]]), _runs(arrays[pair[1]])))
    return found


def _trained(
    pairs: Sequence[tuple[str, str]],
    arrays: Mapping[str, Mapping[str, FloatArray]],
    tasks: Sequence[str],
    runs: Mapping[str, str],
) -> list[TrainingRuns]:
    """Return the training runs of the systems that have several, each with the pairs that it is part of."""
    plus: dict[str, list[int]] = defaultdict(list)
    minus: dict[str, list[int]] = defaultdict(list)
    for column, (one, other) in enumerate(pairs):
        plus[one].append(column)
        minus[other].append(column)
    return [
        TrainingRuns(runs[name], [_deviations(arrays[name][task]) for task in tasks], plus[name], minus[name])
        for name in dict.fromkeys([*plus, *minus])
        if _runs(arrays[name]) > 1
    ]


def _deviations(values: FloatArray) -> FloatArray:
    """Return values [seeds, queries] minus their mean over seeds, as [queries, seeds]."""
    deviations: FloatArray = (values - values.mean(axis=0)).T
    return deviations


def _runs(tasks: Mapping[str, FloatArray]) -> int:
    """Return the number of training runs."""
    return len(next(iter(tasks.values())))


def interval(tasks: Mapping[str, Values], seed: int, weights: Mapping[str, float] | None = None) -> tuple[float, float]:
    """Return the 95 % percentile bootstrap interval of a system's mean over queries (within each task) and seeds.

    Args:
        tasks: values [n of the task] or [seeds, n] by task; with one seed training variation is not included.
        seed: decides the resamples.
        weights: of the tasks in the mean, positive; None for the unweighted mean.

    Raises:
        UsageError: as for `stratified`.
    """
    return intervals({"the system": tasks}, seed, weights)["the system"]


def intervals(
    systems: Mapping[str, Mapping[str, Values]], seed: int, weights: Mapping[str, float] | None = None
) -> dict[str, tuple[float, float]]:
    """Return the interval of every system of a table as `interval` does; they share the draws, which makes many cheap.

    Args:
        systems: values [n of the task] or [seeds, n] by system and task, as for `pairwise`.
        seed: decides the resamples.
        weights: of the tasks in the mean, positive; None for the unweighted mean.

    Raises:
        UsageError: as for `pairwise`.
    """
    arrays = {name: _checked(name, tasks) for name, tasks in systems.items()}
    if not arrays:
        return {}
    first = next(iter(arrays.items()))
    names, share = _shares(first[1], weights)
    for other in arrays.items():
        _same_queries(first, other)
    means = [np.stack([tasks[task].mean(axis=0) for tasks in arrays.values()], axis=1) for task in names]
    trained = [
        TrainingRuns(name, [_deviations(tasks[task]) for task in names], [column])
        for column, (name, tasks) in enumerate(arrays.items())
        if _runs(tasks) > 1
    ]
    low, high = bootstrap(means, share, seed, trained=trained)
    return {name: (float(low[column]), float(high[column])) for column, name in enumerate(arrays)}


def holm(chances: Sequence[float]) -> list[float]:
    """Return p values corrected for their number (Holm 1979), in the order given: compare them with the level as is."""
    count, highest = len(chances), 0.0
    corrected = [1.0] * count
    for rank, place in enumerate(sorted(range(count), key=lambda place: chances[place])):
        highest = max(highest, min(1.0, (count - rank) * chances[place]))
        corrected[place] = highest
    return corrected


def summary(first: str, second: str, measure: str, comparison: Comparison) -> str:
    """Say a comparison in a line: `crop − crop@init: +41.2 RR@100 points, 95 % [39.0, 43.4], p < 0.001 over …`.

    Args:
        first: name of the system whose values were given first.
        second: name of the other.
        measure: as tables print it; its values are fractions, a point is a hundredth.
        comparison: of the two.
    """
    low, high = points(comparison.low), points(comparison.high)
    return (
        f"{first} − {second}: {points(comparison.difference, sign=True)} {measure} points, 95 % [{low}, {high}], "
        f"{chance_text(comparison.p_randomisation)} over {comparison.n:,} queries"
    )


def _comparisons(
    strata: Sequence[FloatArray], weights: Sequence[float], seed: int, trained: Sequence[TrainingRuns]
) -> Iterator[Comparison]:
    """Yield the comparison of every column of differences [queries, columns]."""
    differences = np.asarray(weights, np.float64) @ np.stack([block.mean(axis=0) for block in strata])
    chances = randomisation(strata, weights, seed)
    low, high = bootstrap(strata, weights, seed, trained=trained)
    tests = student(strata, weights)
    smallest = detectable(tests)
    every = np.concatenate(strata)
    wins, losses = np.count_nonzero(every > 0, axis=0), np.count_nonzero(every < 0, axis=0)
    for column, difference in enumerate(differences):
        yield Comparison(
            difference=float(difference),
            low=float(low[column]),
            high=float(high[column]),
            p_randomisation=float(chances[column]),
            p_t=_defined(tests.p[column]),
            n=len(every),
            wins=int(wins[column]),
            ties=int(len(every) - wins[column] - losses[column]),
            losses=int(losses[column]),
            effect=_defined(tests.effect[column]),
            detectable=_defined(smallest[column]),
        )


def _defined(value: float) -> float | None:
    """Return a number, None for NaN."""
    return None if math.isnan(value) else float(value)


def _checked(name: str, tasks: Mapping[str, Values]) -> dict[str, FloatArray]:
    """Return the values as arrays [seeds, n], one query and one seed at least a task, all finite."""
    arrays = {task: np.asarray(values, np.float64) for task, values in tasks.items()}
    arrays = {task: array[None] if array.ndim == 1 else array for task, array in arrays.items()}
    if not arrays:
        raise UsageError(where=name, found="no task", expected="at least one")
    for task, array in arrays.items():
        where = f"{name}{', task ' + task if task else ''}"
        if array.ndim != 2 or not array.size:
            shape = list(np.shape(tasks[task]))
            raise UsageError(
                where=where, found=f"values of shape {shape}", expected="one for each query, or seed and query"
            )
        if len(array) != _runs(arrays):
            raise UsageError(f"{where}: found {len(array)} seeds, elsewhere {_runs(arrays)}; expected the same number")
        if not np.isfinite(array).all():
            raise UsageError(where=where, found="a value that is not finite", expected="numbers only")
    return arrays


def _shares(tasks: Mapping[str, FloatArray], weights: Mapping[str, float] | None) -> tuple[list[str], list[float]]:
    """Return the tasks in the order of their names, and the weight of each, summing to one."""
    names = sorted(tasks)
    given = dict.fromkeys(names, 1.0) if weights is None else dict(weights)
    if sorted(given) != names or not all(0 < weight < math.inf for weight in given.values()):
        raise UsageError(found=f"weights {given}", expected=f"a positive number for each of {', '.join(names)}")
    total = math.fsum(given.values())
    return names, [given[name] / total for name in names]


def _same_queries(one: tuple[str, Mapping[str, FloatArray]], other: tuple[str, Mapping[str, FloatArray]]) -> None:
    """Refuse to pair what has other tasks or another number of queries."""
    sizes = [{task: array.shape[1] for task, array in tasks.items()} for _, tasks in (one, other)]
    if sizes[0] != sizes[1]:
        raise UsageError(
            where=f"{one[0]} and {other[0]}",
            found=f"{sizes[0]} and {sizes[1]} queries",
            expected="the same queries on both sides",
        )


def _same_runs(arrays: Mapping[str, Mapping[str, FloatArray]], runs: Mapping[str, str]) -> None:
    """Refuse systems that are said to come from the same trainings and have not as many."""
    counted: dict[str, tuple[str, int]] = {}
    for name, tasks in arrays.items():
        one, count = counted.setdefault(runs[name], (name, _runs(tasks)))
        if count != _runs(tasks):
            raise UsageError(
                where=f"{one} and {name}",
                found=f"{count} and {_runs(tasks)} seeds",
                expected="the same for the same trainings",
            )
