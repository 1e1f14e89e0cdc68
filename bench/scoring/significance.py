"""Is one system better than another, and how sure is that: paired tests over queries, within tasks.

Conventions: values are per query, in the same order for both systems, and finite; differences are first minus second,
in the unit of the values (fractions). Over several tasks the statistic is the weighted mean of the tasks' mean
differences, by default unweighted, which is how the suites average; chance works within each task, so that a long task
is not more important than a short one. The queries are what is sampled: a new training run is not. Everything is
seeded, and the order in which tasks are given does not matter.

The randomisation test follows Fisher (1935) as Smucker, Allan and Carterette (CIKM 2007) recommend it for retrieval:
were both systems the same, the sign of every query's difference would be a coin flip.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from bench.errors import UsageError

FloatArray = npt.NDArray[np.float64]
Values = Sequence[float] | FloatArray

EXACT = 12
"""Up to so many differences that are not zero, all sign patterns are enumerated."""
FLIPS, RESAMPLES = 10_000, 2_000
COVERAGE = 0.95
_CELLS = 1 << 22  # entries of a random matrix that are held at a time (32 MiB)
_ROUNDING = 1e-10  # statistics that differ by less, relative to the sum of all |differences|, are the same number


@dataclass(frozen=True)
class Comparison:
    """Two systems on the same queries, first minus second.

    Args:
        difference: mean over tasks of the mean difference, in the unit of the values.
        low: lower end of the 95 % percentile bootstrap interval over queries; equal to `difference` where every task
            has one query only.
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


def paired(first: Values, second: Values, seed: int) -> Comparison:
    """Compare two systems on the queries of one task.

    Args:
        first: values [n] of one system.
        second: values [n] of the other, same queries in the same order.
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
        tasks: by task (or language), the values [n of the task] of the first and of the second system.
        seed: decides sign flips and resamples.
        weights: of the tasks in the mean, positive; None for the unweighted mean.

    Raises:
        UsageError: no task, tasks without a weight, and as for `paired`.
    """
    systems = {side: {task: values[side] for task, values in tasks.items()} for side in (0, 1)}
    return pairwise({"first": systems[0], "second": systems[1]}, seed, weights)["first", "second"]


def pairwise(
    systems: Mapping[str, Mapping[str, Values]], seed: int, weights: Mapping[str, float] | None = None
) -> dict[tuple[str, str], Comparison]:
    """Compare every two systems of a table; all pairs share the random numbers, which makes many pairs cheap.

    Args:
        systems: values by system and task; all have the same tasks with the same queries in the same order.
        seed: decides sign flips and resamples.
        weights: of the tasks in the mean, positive; None for the unweighted mean.

    Returns:
        By pair, in the order of `systems`.

    Raises:
        UsageError: tasks or numbers of queries that differ between systems, and as for `stratified`.
    """
    pairs = list(combinations(systems, 2))
    arrays = {name: _checked(name, tasks) for name, tasks in systems.items()}
    if not pairs:
        return {}
    first = next(iter(arrays.items()))
    names, share = _shares(first[1], weights)
    for other in arrays.items():
        _same_queries(first, other)
    found: dict[tuple[str, str], Comparison] = {}
    together = max(1, _CELLS // sum(map(len, first[1].values())))
    for start in range(0, len(pairs), together):
        some = pairs[start : start + together]
        strata = [np.stack([arrays[a][task] - arrays[b][task] for a, b in some], axis=1) for task in names]
        found |= zip(some, _comparisons(strata, share, seed), strict=True)
    return found


def interval(tasks: Mapping[str, Values], seed: int, weights: Mapping[str, float] | None = None) -> tuple[float, float]:
    """Return the 95 % percentile bootstrap interval of a system's mean; queries are resampled within each task.

    Args:
        tasks: values [n of the task] by task.
        seed: decides the resamples.
        weights: of the tasks in the mean, positive; None for the unweighted mean.

    Raises:
        UsageError: as for `stratified`.
    """
    arrays = _checked("the system", tasks)
    names, share = _shares(arrays, weights)
    low, high = bootstrap([arrays[task][:, None] for task in names], share, seed)
    return float(low[0]), float(high[0])


def randomisation(strata: Sequence[FloatArray], weights: Sequence[float], seed: int, flips: int = FLIPS) -> FloatArray:
    """Return two-sided p values [columns] of the paired randomisation test.

    Exact where at most `EXACT` differences of a column are not zero (a zero has no sign to flip). Otherwise from
    `flips` random sign patterns with the observed one counted among them: (1 + as extreme) / (1 + flips), which is
    never zero and never too small on average (Phipson and Smyth 2010).

    Args:
        strata: per-query differences [queries, columns] of each task; a column is a pair of systems.
        weights: of each task's mean, summing to one.
        seed: decides the sign patterns, which all columns share.
        flips: how many.
    """
    parts = np.concatenate([weight / len(block) * block for weight, block in zip(weights, strata, strict=True)])
    observed = np.abs(parts.sum(axis=0)) - _ROUNDING * np.abs(parts).sum(axis=0)
    chances = np.empty(parts.shape[1])
    few = np.count_nonzero(parts, axis=0) <= EXACT
    for column in np.flatnonzero(few):
        terms = parts[parts[:, column] != 0, column]
        signs = 1.0 - 2.0 * ((np.arange(1 << len(terms))[:, None] >> np.arange(len(terms))) & 1)
        chances[column] = np.mean(np.abs(signs @ terms) >= observed[column])
    if not few.all():
        extreme = _extreme(parts[:, ~few], observed[~few], np.random.default_rng(seed), flips)
        chances[~few] = (1 + extreme) / (1 + flips)
    return chances


def _extreme(parts: FloatArray, observed: FloatArray, chance: np.random.Generator, flips: int) -> npt.NDArray[np.int64]:
    """Count, a column, random sign patterns whose |sum| reaches what was observed."""
    rows, columns = parts.shape
    found = np.zeros(columns, np.int64)
    half = parts.sum(axis=0)
    for size in _chunks(flips, max(rows, columns)):
        coins = np.unpackbits(
            np.frombuffer(chance.bytes(size * math.ceil(rows / 8)), np.uint8).reshape(size, -1), axis=1
        )
        # Σ ±x is twice the sum of the terms that keep their sign, less the sum of all.
        sums = 2.0 * (coins[:, :rows].astype(np.float64) @ parts) - half
        found += np.count_nonzero(np.abs(sums) >= observed, axis=0)
    return found


def bootstrap(
    strata: Sequence[FloatArray], weights: Sequence[float], seed: int, resamples: int = RESAMPLES
) -> tuple[FloatArray, FloatArray]:
    """Return both ends [columns] of the percentile bootstrap interval of the weighted mean of the tasks' means.

    Args:
        strata: per-query values or differences [queries, columns] of each task.
        weights: of each task's mean, summing to one.
        seed: decides the resamples, which all columns share.
        resamples: how many.
    """
    chance = np.random.default_rng(seed)
    means = np.zeros((resamples, strata[0].shape[1]))
    for weight, block in zip(weights, strata, strict=True):
        rows, done = len(block), 0
        for size in _chunks(resamples, rows):
            drawn = chance.integers(rows, size=(size, rows)) + rows * np.arange(size)[:, None]
            times = np.bincount(drawn.ravel(), minlength=size * rows).reshape(size, rows)
            means[done : done + size] += weight / rows * (times.astype(np.float64) @ block)
            done += size
    low, high = np.quantile(means, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2], axis=0)
    return low, high


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


def points(value: float, *, sign: bool = False) -> str:
    """Print a fraction in points with one decimal and a true minus sign (U+2212); zero has no sign.

    Args:
        value: a fraction.
        sign: whether a gain has a plus.
    """
    text = f"{abs(100 * value):.1f}"
    if float(text) == 0:
        return text
    return ("−" if value < 0 else "+" if sign else "") + text


def chance_text(chance: float) -> str:
    """Print a p value with two significant digits, or `p < 0.001`."""
    return "p < 0.001" if chance < 0.001 else f"p = {chance:.2g}"


def _comparisons(strata: Sequence[FloatArray], weights: Sequence[float], seed: int) -> Iterator[Comparison]:
    """Yield the comparison of every column of differences [queries, columns]."""
    differences = _statistic(strata, weights)
    chances = randomisation(strata, weights, seed)
    low, high = bootstrap(strata, weights, seed)
    for column, difference in enumerate(differences):
        blocks = [block[:, column] for block in strata]
        every = np.concatenate(blocks)
        wins, losses = int(np.count_nonzero(every > 0)), int(np.count_nonzero(every < 0))
        p_t, effect = _student(blocks, weights)
        yield Comparison(
            difference=float(difference),
            low=float(low[column]),
            high=float(high[column]),
            p_randomisation=float(chances[column]),
            p_t=p_t,
            n=len(every),
            wins=wins,
            ties=len(every) - wins - losses,
            losses=losses,
            effect=effect,
        )


def _checked(name: str, tasks: Mapping[str, Values]) -> dict[str, FloatArray]:
    """Return the values as arrays [n], one at least a task, all finite."""
    arrays = {task: np.asarray(values, np.float64) for task, values in tasks.items()}
    if not arrays:
        raise UsageError(f"{name}: found no task, expected at least one")
    for task, array in arrays.items():
        where = f"{name}{', task ' + task if task else ''}"
        if array.ndim != 1 or not len(array):
            raise UsageError(f"{where}: found values of shape {list(array.shape)}, expected one for each query")
        if not np.isfinite(array).all():
            raise UsageError(f"{where}: found a value that is not finite, expected numbers only")
    return arrays


def _shares(tasks: Mapping[str, FloatArray], weights: Mapping[str, float] | None) -> tuple[list[str], list[float]]:
    """Return the tasks in the order of their names, and the weight of each, summing to one."""
    names = sorted(tasks)
    given = dict.fromkeys(names, 1.0) if weights is None else dict(weights)
    if sorted(given) != names or not all(0 < weight < math.inf for weight in given.values()):
        raise UsageError(f"found weights {given}, expected a positive number for each of {', '.join(names)}")
    total = math.fsum(given.values())
    return names, [given[name] / total for name in names]


def _same_queries(one: tuple[str, Mapping[str, FloatArray]], other: tuple[str, Mapping[str, FloatArray]]) -> None:
    """Refuse to pair what has other tasks or another number of queries."""
    sizes = [{task: len(array) for task, array in tasks.items()} for _, tasks in (one, other)]
    if sizes[0] != sizes[1]:
        raise UsageError(
            f"{one[0]} and {other[0]}: found {sizes[0]} and {sizes[1]} queries, expected the same queries on both sides"
        )


def _statistic(strata: Sequence[FloatArray], weights: Sequence[float]) -> FloatArray:
    """Return the weighted mean [columns] of the tasks' means."""
    means = np.stack([block.mean(axis=0) for block in strata])
    mean: FloatArray = np.asarray(weights, np.float64) @ means
    return mean


def _student(blocks: Sequence[FloatArray], weights: Sequence[float]) -> tuple[float | None, float | None]:
    """Return p of the t-test and the effect size, of one pair's differences [n] by task; None where undefined."""
    from scipy.special import stdtr

    largest = max(float(np.abs(block).max()) for block in blocks)
    if min(map(len, blocks)) < 2 or largest == 0:
        return None, None
    scaled = [block / largest for block in blocks]  # so that no square of a tiny number vanishes
    variances = np.array([block.var(ddof=1) for block in scaled])
    sizes, share = np.array([len(block) for block in blocks]), np.asarray(weights)
    scatter = math.sqrt(float(share @ variances))
    if scatter <= _ROUNDING:
        return None, None
    difference = float(share @ np.array([block.mean() for block in scaled]))
    errors = share**2 * variances / sizes
    freedom = float(errors.sum() ** 2 / (errors**2 / (sizes - 1)).sum())
    t = difference / math.sqrt(float(errors.sum()))
    return float(2 * stdtr(freedom, -abs(t))), difference / scatter


def _chunks(total: int, width: int) -> list[int]:
    """Cut `total` rows of `width` entries into blocks that fit into memory."""
    size = max(1, _CELLS // max(1, width))
    return [min(size, total - start) for start in range(0, total, size)]
