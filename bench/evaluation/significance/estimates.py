"""Differences of systems with their errors, over questions and trainings.

An estimand is a weighted mean of strata's means: the headline of a suite or a task. A stratum is a task or a subset of
one. Two things are random.

Questions: a question is what `bench.evaluation.significance.questions` takes for one. Its contribution to a difference
is the weighted sum of its queries' deviations from their strata's means; strata that share questions are one block, and
the variance is the sum over blocks of n / (n − 1) times the sum of squared contributions (with one query a question and
one stratum that is the variance of the paired t-test; with several strata that of Welch).

Trainings: the headline of a method scatters with its seed. The variance of one training is pooled over all systems with
several; what questions add to the scatter of trainings is taken off it (two-way analysis of variance), for the first
part holds that already. That the variances are equal is tested (Bartlett 1937); where it is rejected, a system whose
own variance is larger counts with its own. Two systems from the same trainings (an encoder, and the same encoder tuned)
are compared training by training. Below `TRAININGS` trainings a system counts as it is: what is found of it holds for
these checkpoints and not for its method.

Degrees of freedom are Welch's and Satterthwaite's over all parts.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from bench.core.errors import UsageError

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Values = Sequence[float] | Sequence[Sequence[float]] | FloatArray
"""Of a stratum: `[queries]`, or `[trainings, queries]`."""
Weights = Mapping[str, float]
"""Of strata in an estimand, positive."""

TRAININGS = 3
"""From so many on, a result is about a method; below, about these checkpoints."""
CELLS = 1 << 22
"""Entries of a matrix that are held at a time (32 MiB)."""
ROUNDING = 1e-10
"""Errors below this part of the largest contribution are none."""
_EQUAL = 0.05


@dataclass(frozen=True)
class Sample:
    """The values of a system.

    Args:
        values: by stratum.
        deterministic: every training would give these values.
        trainings: name of its trainings, shared by systems that come from the same ones, seed by seed; empty for
            trainings of its own.
    """

    values: Mapping[str, Values]
    deterministic: bool = False
    trainings: str = ""


@dataclass(frozen=True)
class Scatter:
    """The scatter of trainings, pooled over systems.

    Args:
        deviation: standard deviation of one training's value, without what questions add; NaN where no system has
            several trainings.
        freedom: degrees of freedom.
        equal: p of the hypothesis that all systems scatter alike; NaN for fewer than two that can say.
    """

    deviation: float
    freedom: int
    equal: float


@dataclass
class Estimand:
    """Systems on one estimand, ready for pairs.

    Args:
        names: of the systems.
        means: of each `[systems]`.
        parts: each question's contribution `[questions, systems]`, scaled so that squares sum to the variance; rows are
            sorted by block.
        blocks: first row of each block.
        ids: of each row's question, the same number in every estimand of a family.
        queries: values of all queries, means over trainings `[queries, systems]`, sorted by stratum.
        strata: first row of each stratum in `queries`.
        shares: weight of each stratum, summing to one.
        runs: number of trainings `[systems]`.
        random: whether a system's trainings count as drawn `[systems]`.
        deterministic: whether every training would give the same values `[systems]`.
        residuals: deviation of each training's value from their mean, by system; empty where there is one.
        groups: name of the trainings by system.
        added: what questions add to the variance of one training's value `[systems]`.
        scatter: of all trainings.
        variance: of one training that each system counts with `[systems]`.
    """

    names: tuple[str, ...]
    means: FloatArray
    parts: FloatArray
    blocks: IntArray
    ids: IntArray
    queries: FloatArray
    strata: IntArray
    shares: FloatArray
    runs: IntArray
    random: npt.NDArray[np.bool_]
    deterministic: npt.NDArray[np.bool_]
    residuals: list[FloatArray]
    groups: list[str]
    added: FloatArray
    scatter: Scatter = field(default_factory=lambda: Scatter(math.nan, 0, math.nan))
    variance: FloatArray = field(default_factory=lambda: np.empty(0))

    @property
    def share(self) -> FloatArray:
        """Variance of each system's mean over trainings, in variances of one training `[systems]`."""
        return self.random / self.runs

    @property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """The first and the second system of every pair, in the order of `itertools.combinations`."""
        first, second = np.triu_indices(len(self.names), 1)
        return first.astype(np.int64), second.astype(np.int64)

    def together(self, first: IntArray, second: IntArray) -> Iterator[int]:
        """Yield the places of the pairs of systems that come from the same trainings."""
        if len(set(self.groups)) < len(self.groups):
            for at in np.flatnonzero(self.random[first] & self.random[second]):
                if self.groups[first[at]] == self.groups[second[at]]:
                    yield int(at)

    def loading(self, at: int) -> FloatArray:
        """Return how each training of a system moves its mean, in multiples of a standard normal `[trainings]`."""
        residuals = self.residuals[at]
        loadings: FloatArray = residuals * math.sqrt(self.variance[at] / self.runs[at] / float(residuals @ residuals))
        return loadings


def estimands(
    systems: Mapping[str, Sample], weights_by_estimand: Mapping[str, Weights], questions: Mapping[str, Sequence[str]]
) -> dict[str, Estimand]:
    """Prepare every estimand, of the systems that have all its strata.

    Args:
        systems: values by name, `[queries]` or `[trainings, queries]` of each stratum.
        weights_by_estimand: positive weights of strata, by estimand.
        questions: name of the question that each query asks, by stratum; default: each query asks its own.

    Raises:
        UsageError: values that are not finite or have other queries than another system's, numbers of trainings that
            differ between strata or between systems from the same trainings, weights that are not positive.
    """
    arrays = {name: _checked(name, sample) for name, sample in systems.items()}
    sizes: dict[str, tuple[str, int]] = {}
    runs: dict[str, tuple[str, int]] = {}  # by trainings, those that systems share once
    for name, strata in arrays.items():
        count = len(next(iter(strata.values())))
        first_name, expected = runs.setdefault(systems[name].trainings or name, (name, count))
        if count != expected:
            raise UsageError(
                where=f"{first_name} and {name}",
                found=f"{expected} and {count} seeds",
                expected="the same for the same trainings",
            )
        for stratum, array in strata.items():
            first_name, size = sizes.setdefault(stratum, (name, array.shape[1]))
            if size != array.shape[1]:
                raise UsageError(
                    where=f"{first_name} and {name}",
                    found=f"{size} and {array.shape[1]} queries of {stratum}",
                    expected="the same queries on both sides",
                )
    numbers: dict[str, int] = {}
    codes: dict[str, IntArray] = {}
    for stratum, (_, size) in sorted(sizes.items()):
        question_names = questions.get(stratum, [f"{stratum}\t{place}" for place in range(size)])
        codes[stratum] = np.array([numbers.setdefault(question, len(numbers)) for question in question_names], np.int64)
        if len(question_names) != size:
            raise UsageError(
                where=stratum, found=f"{len(question_names)} questions", expected=f"one for each of {size} queries"
            )
    prepared = {}
    for name, weights in weights_by_estimand.items():
        if not weights or not all(0 < weight < math.inf for weight in weights.values()):
            raise UsageError(found=f"weights {dict(weights)}", expected="a positive number for each stratum")
        complete = [system for system, strata in arrays.items() if weights.keys() <= strata.keys()]
        prepared[name] = _estimand({system: arrays[system] for system in complete}, systems, weights, codes)
    return prepared


def _estimand(
    arrays: Mapping[str, Mapping[str, FloatArray]],
    systems: Mapping[str, Sample],
    weights: Weights,
    codes: Mapping[str, IntArray],
) -> Estimand:
    """Prepare one estimand."""
    strata = sorted(weights)
    shares = np.array([weights[stratum] for stratum in strata]) / math.fsum(weights.values())
    blocks = _blocks([codes[stratum] for stratum in strata])
    ids, places = np.unique(np.concatenate([codes[stratum] for stratum in strata]), return_inverse=True)
    block = np.empty(len(ids), np.int64)
    block[places] = np.concatenate([np.full(len(codes[s]), number) for s, number in zip(strata, blocks, strict=True)])
    order = np.argsort(block, kind="stable")
    starts = np.flatnonzero(np.diff(block[order], prepend=-1))
    rows = np.empty(len(ids), np.int64)
    rows[order] = np.arange(len(ids))
    sizes = np.diff(np.append(starts, len(ids)))
    scale = np.repeat(np.sqrt(sizes / np.where(sizes > 1, sizes - 1.0, np.nan)), sizes)
    lengths = [len(codes[stratum]) for stratum in strata]
    begins = np.append(0, np.cumsum(lengths)).astype(np.int64)
    per_query = np.repeat(shares / lengths, lengths)[:, None]

    def parts(values: FloatArray) -> FloatArray:
        """Contributions of questions, of values `[queries, columns]`."""
        contributions: FloatArray = np.zeros((len(ids), values.shape[1]))
        centred = np.concatenate([part - part.mean(axis=0) for part in np.split(values, begins[1:-1])])
        np.add.at(contributions, rows[places], per_query * centred)
        contributions *= scale[:, None]
        return contributions

    runs, residuals, added, columns = [], [], [], []
    for tasks in arrays.values():
        runs_by_query = np.concatenate([tasks[stratum] for stratum in strata], axis=1)
        columns.append(runs_by_query.mean(axis=0))
        runs.append(len(runs_by_query))
        single = runs_by_query @ per_query[:, 0]
        residuals.append(single - single.mean() if len(runs_by_query) > 1 else np.empty(0))
        between = parts(runs_by_query.T) if len(runs_by_query) > 1 else np.zeros((0, 1))
        added.append(
            float(np.sum((between - between.mean(axis=1, keepdims=True)) ** 2)) / max(1, len(runs_by_query) - 1)
        )
    queries = np.stack(columns, axis=1) if columns else np.zeros((begins[-1], 0))
    varies = [len(deviations) > 0 and bool(np.ptp(deviations) > ROUNDING) for deviations in residuals]
    fixed = np.array([systems[name].deterministic for name in arrays], bool)
    enough = np.array(runs, np.int64) >= TRAININGS
    estimand = Estimand(
        names=tuple(arrays),
        means=per_query[:, 0] @ queries,
        parts=parts(queries),
        blocks=starts,
        ids=ids[order],
        queries=queries,
        strata=begins[:-1],
        shares=shares,
        runs=np.array(runs, np.int64),
        random=enough & np.array(varies, bool) & ~fixed,
        deterministic=fixed,
        residuals=[row if scatters else np.empty(0) for row, scatters in zip(residuals, varies, strict=True)],
        groups=[systems[name].trainings or name for name in arrays],
        added=np.array(added),
    )
    _pool(estimand)
    return estimand


def _blocks(codes: Sequence[IntArray]) -> list[int]:
    """Number strata so that those which share a question have the same number."""
    block = list(range(len(codes)))
    stratum_of: dict[int, int] = {}
    for at, stratum_codes in enumerate(codes):
        for earlier in {stratum_of[code] for code in stratum_codes.tolist() if code in stratum_of}:
            block = [block[at] if number == block[earlier] else number for number in block]
        stratum_of.update(dict.fromkeys(stratum_codes.tolist(), at))
    return block


def _pool(estimand: Estimand) -> None:
    """Pool the scatter of trainings, and set what every system counts with."""
    several = [at for at, deviations in enumerate(estimand.residuals) if len(deviations)]
    free = np.array([len(estimand.residuals[at]) - 1 for at in several])
    estimand.variance = np.zeros(len(estimand.names))
    if not several:
        return
    from scipy import stats  # which takes half a second to load

    squares = np.array([float(estimand.residuals[at] @ estimand.residuals[at]) for at in several])
    added = float(free @ estimand.added[several]) / free.sum()
    pooled = max(0.0, float(squares.sum() / free.sum()) - added)
    judges = [estimand.residuals[at] for at in several if len(estimand.residuals[at]) >= TRAININGS]
    equal = float(stats.bartlett(*judges).pvalue) if len(judges) > 1 else math.nan
    estimand.scatter = Scatter(math.sqrt(pooled), int(free.sum()), equal)
    estimand.variance[:] = pooled
    if equal < _EQUAL:
        estimand.variance[several] = np.maximum(pooled, squares / free - estimand.added[several])


@dataclass(frozen=True)
class Differences:
    """Every pair of an estimand `[pairs]`: first minus second.

    Args:
        difference: of the means.
        error: standard error; NaN where a block has one question.
        freedom: degrees of freedom of the error.
        effect: difference in standard deviations of the per-query differences within strata (Cohen's d_z).
        wins: queries on which the first is better.
        losses: queries on which the second is.
    """

    difference: FloatArray
    error: FloatArray
    freedom: FloatArray
    effect: FloatArray
    wins: FloatArray
    losses: FloatArray


def differences(estimand: Estimand) -> Differences:
    """Compare every two systems of an estimand."""
    first, second = estimand.pairs
    count = len(first)
    pairs = Differences(estimand.means[first] - estimand.means[second], *(np.full(count, np.nan) for _ in range(5)))
    size = max(1, CELLS // max(1, len(estimand.queries)))
    for start in range(0, count, size):
        chunk = slice(start, min(count, start + size))
        a, b = first[chunk], second[chunk]
        values = estimand.queries[:, a] - estimand.queries[:, b]
        pairs.wins[chunk] = np.count_nonzero(values > 0, axis=0)
        pairs.losses[chunk] = np.count_nonzero(values < 0, axis=0)
        pairs.effect[chunk] = pairs.difference[chunk] / _deviation(estimand, values)
        error, freedom = _errors(estimand, estimand.parts[:, a] - estimand.parts[:, b], _trained(estimand, a, b))
        pairs.error[chunk], pairs.freedom[chunk] = error, freedom
    return pairs


def _deviation(estimand: Estimand, values: FloatArray) -> FloatArray:
    """Deviation within strata of per-query differences `[queries, pairs]`; NaN where there is none."""
    lengths = np.diff(np.append(estimand.strata, len(values)))[:, None]
    sums = np.add.reduceat(values, estimand.strata)
    squares = np.add.reduceat(values**2, estimand.strata)
    with np.errstate(invalid="ignore", divide="ignore"):
        within = estimand.shares @ (np.maximum(squares - sums**2 / lengths, 0) / (lengths - 1))
        return np.where(within > ROUNDING**2, np.sqrt(within), np.nan)


def _trained(estimand: Estimand, first: IntArray, second: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what trainings add to pairs: variance, the same with what questions add to it, degrees of freedom."""
    share = estimand.share
    variance = estimand.variance[first] * share[first] + estimand.variance[second] * share[second]
    with_questions = variance + estimand.added.mean() * (share[first] + share[second])
    freedom = np.full(len(first), max(1.0, float(estimand.scatter.freedom)))
    for at in estimand.together(first, second):
        gaps = estimand.residuals[first[at]] - estimand.residuals[second[at]]
        freedom[at] = len(gaps) - 1
        variance[at] = with_questions[at] = float(gaps @ gaps) / freedom[at] / len(gaps)
    return variance, with_questions, freedom


def _errors(
    estimand: Estimand, parts: FloatArray, trained: tuple[FloatArray, FloatArray, FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """Return standard errors and degrees of freedom of contributions `[questions, columns]` and `_trained`."""
    parts = np.where(np.abs(parts) > ROUNDING * np.abs(estimand.parts).max(initial=0.0), parts, 0 * parts)
    largest = np.abs(parts).max(axis=0, initial=0.0)
    unit = np.where(largest > 0, largest, 1.0)  # so that no square of a tiny number vanishes
    squares = np.add.reduceat((parts / unit) ** 2, estimand.blocks)
    variance, with_questions, freedom = trained[0] / unit / unit, trained[1] / unit / unit, trained[2]
    sizes = np.diff(np.append(estimand.blocks, len(parts)))[:, None]
    total = squares.sum(axis=0) + variance
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = (squares**2 / (sizes - 1)).sum(axis=0) + with_questions**2 / freedom
        return np.sqrt(total) * unit, total**2 / spread


def errors(estimand: Estimand) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return of every system the standard error of its mean, its degrees of freedom, its skewness over questions."""
    share = estimand.share
    free = np.full(len(share), max(1.0, float(estimand.scatter.freedom)))
    error, freedom = _errors(
        estimand,
        estimand.parts,
        (estimand.variance * share, (estimand.variance + estimand.added.mean()) * share if len(share) else share, free),
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        return error, freedom, np.where(error > 0, (estimand.parts**3).sum(axis=0) / error**3, 0.0)


def _checked(name: str, sample: Sample) -> dict[str, FloatArray]:
    """Return the values as arrays `[trainings, queries]`, one of each at least, all finite."""
    arrays = {stratum: np.atleast_1d(np.asarray(values, np.float64)) for stratum, values in sample.values.items()}
    arrays = {stratum: array[None] if array.ndim == 1 else array for stratum, array in arrays.items()}
    if not arrays:
        raise UsageError(where=name, found="no task", expected="at least one")
    runs = len(next(iter(arrays.values())))
    for stratum, array in arrays.items():
        place = f"{name}{', task ' + stratum if stratum else ''}"
        if array.ndim != 2 or not array.size:
            shape = list(np.shape(sample.values[stratum]))
            raise UsageError(
                where=place, found=f"values of shape {shape}", expected="one for each query, or seed and query"
            )
        if len(array) != runs:
            raise UsageError(where=place, found=f"{len(array)} seeds", expected=f"{runs}, as elsewhere")
        if not np.isfinite(array).all():
            raise UsageError(where=place, found="a value that is not finite", expected="numbers only")
    return arrays
