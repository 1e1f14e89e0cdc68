"""Differences of systems with their errors, over questions and trainings.

An estimand is a weighted mean of strata's means: the headline of a suite or a task. A stratum is a task or a subset of
one. Two things are random.

Questions: a question is what `bench.evaluation.significance.questions` takes for one. Its contribution to a difference
is the weighted sum of its queries' deviations from their strata's means; strata that share questions are one block, and
the variance is the sum over blocks of n / (n − 1) times the sum of squared contributions (with one query a question and
one stratum that is the variance of the paired t-test; with several strata that of Welch).

Trainings: the headline of a method scatters with its seed, and systems of one seed that began at one artefact share its
luck (`bench.evaluation.significance.trainings`). A system and the start that its trainings began with are compared as
one sample of gains, training by training; so are two systems from the same trainings (an encoder, and the same encoder
tuned). Starts are not trainings, so their scatter is not pooled with that of methods. Below `TRAININGS` trainings a
system counts as it is: what is found of it holds for these checkpoints and not for its method.

Degrees of freedom are Welch's and Satterthwaite's over all parts.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bench.core.errors import UsageError
from bench.evaluation.significance.luck import Luck
from bench.evaluation.significance.trainings import TRAININGS, FloatArray, IntArray, Variance

Values = Sequence[float] | Sequence[Sequence[float]] | FloatArray
"""Of a stratum: `[queries]`, or `[trainings, queries]`."""
Weights = Mapping[str, float]
"""Of strata in an estimand, positive."""

CELLS = 1 << 22
"""Entries of a matrix that are held at a time (32 MiB)."""
ROUNDING = 1e-10
"""Errors below this part of the largest contribution are none, and differences below this part of the largest mean."""


@dataclass(frozen=True)
class Sample:
    """The values of a system.

    Args:
        values: by stratum.
        deterministic: every training would give these values.
        trainings: name of its trainings, shared by systems that come from the same ones, seed by seed; empty for
            trainings of its own.
        seeds: of each training the name of what it shares with those of other systems, the artefact that it began at
            and the seed; empty where it shares nothing.
        start: name of the system that its trainings began as; empty where there is none.
    """

    values: Mapping[str, Values]
    deterministic: bool = False
    trainings: str = ""
    seeds: tuple[str, ...] = ()
    start: str = ""


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
        luck: what trainings add to each system's mean.
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
    luck: Luck

    @property
    def pairs(self) -> tuple[IntArray, IntArray]:
        """The first and the second system of every pair, in the order of `itertools.combinations`."""
        first, second = np.triu_indices(len(self.names), 1)
        return first.astype(np.int64), second.astype(np.int64)


def estimands(
    systems: Mapping[str, Sample], weights_by_estimand: Mapping[str, Weights], questions: Mapping[str, Sequence[str]]
) -> dict[str, Estimand]:
    """Prepare every estimand, of the systems that have all its strata.

    Args:
        systems: values by name, `[queries]` or `[trainings, queries]` of each stratum.
        weights_by_estimand: positive weights of strata, by estimand.
        questions: name of the question that each query asks, by stratum; default: each query asks its own. Of a
            stratum that no system has they say how many there are.

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
        if len(systems[name].seeds) not in {0, count}:
            raise UsageError(
                where=name, found=f"{len(systems[name].seeds)} names of seeds", expected=f"one for each of {count}"
            )
        for stratum, array in strata.items():
            first_name, size = sizes.setdefault(stratum, (name, array.shape[1]))
            if size != array.shape[1]:
                raise UsageError(
                    where=f"{first_name} and {name}",
                    found=f"{size} and {array.shape[1]} queries of {stratum}",
                    expected="the same queries on both sides",
                )
    for stratum in {stratum for weights in weights_by_estimand.values() for stratum in weights} - sizes.keys():
        sizes[stratum] = "", len(questions[stratum])  # no system has it
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

    by_query = [np.concatenate([tasks[stratum] for stratum in strata], axis=1) for tasks in arrays.values()]
    queries = np.stack([runs.mean(axis=0) for runs in by_query], axis=1) if by_query else np.zeros((begins[-1], 0))
    values = [runs @ per_query[:, 0] for runs in by_query]
    residuals = [runs - runs.mean() if np.ptp(runs) > ROUNDING else np.zeros(len(runs)) for runs in values]
    fixed = np.array([systems[name].deterministic for name in arrays], bool)
    runs = np.array([len(values) for values in by_query], np.int64)
    random = (runs >= TRAININGS) & np.array([row.any() for row in residuals], bool) & ~fixed
    numbers = {name: at for at, name in enumerate(arrays)}
    luck = Luck(
        residuals,
        lambda at: parts(by_query[at].T).T,
        random,
        [systems[name].seeds for name in arrays],
        np.array([numbers.get(systems[name].start, -1) for name in arrays], np.int64),
        [systems[name].trainings or name for name in arrays],
    )
    return Estimand(
        names=tuple(arrays),
        means=(per_query * queries).sum(axis=0),  # a product of matrices sums equal columns in unequal orders
        parts=parts(queries),
        blocks=starts,
        ids=ids[order],
        queries=queries,
        strata=begins[:-1],
        shares=shares,
        runs=runs,
        random=random,
        deterministic=fixed,
        luck=luck,
    )


def _blocks(codes: Sequence[IntArray]) -> list[int]:
    """Number strata so that those which share a question have the same number."""
    block = list(range(len(codes)))
    stratum_of: dict[int, int] = {}
    for at, stratum_codes in enumerate(codes):
        for earlier in {stratum_of[code] for code in stratum_codes.tolist() if code in stratum_of}:
            block = [block[at] if number == block[earlier] else number for number in block]
        stratum_of.update(dict.fromkeys(stratum_codes.tolist(), at))
    return block


@dataclass(frozen=True)
class Differences:
    """Pairs of an estimand `[pairs]`: first minus second.

    Args:
        first: place of each pair's first system.
        second: place of its second.
        difference: of the means.
        error: standard error; NaN where a block has one question.
        freedom: degrees of freedom of the error.
        luck: what trainings add to the variance of the difference, without what questions do.
        luck_total: the same as measured, with it.
        luck_freedom: degrees of freedom of `luck_total`.
        superiority: probability that a new training of the first is better than one of the second; NaN where neither
            has trainings that count as drawn.
        wins: queries on which the first is better.
        losses: queries on which the second is.
    """

    first: IntArray
    second: IntArray
    difference: FloatArray
    error: FloatArray
    freedom: FloatArray
    luck: FloatArray
    luck_total: FloatArray
    luck_freedom: FloatArray
    superiority: FloatArray
    wins: FloatArray
    losses: FloatArray


def differences(estimand: Estimand, first: IntArray, second: IntArray) -> Differences:
    """Compare systems of an estimand by their places."""
    from scipy.special import ndtr

    count = len(first)
    difference = estimand.means[first] - estimand.means[second]
    difference[np.abs(difference) <= ROUNDING * np.abs(estimand.means).max(initial=0.0)] = 0.0
    pairs = Differences(first, second, difference, *(np.full(count, np.nan) for _ in range(8)))
    size = max(1, CELLS // max(1, len(estimand.queries)))
    for start in range(0, count, size):
        chunk = slice(start, min(count, start + size))
        a, b = first[chunk], second[chunk]
        values = estimand.queries[:, a] - estimand.queries[:, b]
        pairs.wins[chunk] = np.count_nonzero(values > 0, axis=0)
        pairs.losses[chunk] = np.count_nonzero(values < 0, axis=0)
        luck = estimand.luck.of_pairs(a, b)
        pairs.error[chunk], pairs.freedom[chunk] = _errors(estimand, estimand.parts[:, a] - estimand.parts[:, b], luck)
        pairs.luck[chunk], pairs.luck_total[chunk], pairs.luck_freedom[chunk] = luck.net, luck.total, luck.freedom
        variance = estimand.luck.of_one(a, b)
        deviation = np.sqrt(np.where(variance > 0, variance, np.nan))
        pairs.superiority[chunk] = ndtr(pairs.difference[chunk] / deviation)
    return pairs


def _errors(estimand: Estimand, parts: FloatArray, luck: Variance) -> tuple[FloatArray, FloatArray]:
    """Return standard errors and degrees of freedom of contributions `[questions, columns]` and the luck in them.

    Freedom is one at least: where luck comes out at hardly more than what questions add to it, Satterthwaite's is less,
    and Student's distribution has quantiles that mean nothing.
    """
    parts = np.where(np.abs(parts) > ROUNDING * np.abs(estimand.parts).max(initial=0.0), parts, 0 * parts)
    largest = np.abs(parts).max(axis=0, initial=0.0)
    unit = np.where(largest > 0, largest, 1.0)  # so that no square of a tiny number vanishes
    squares = np.add.reduceat((parts / unit) ** 2, estimand.blocks)
    variance, with_questions = luck.net / unit / unit, luck.total / unit / unit
    sizes = np.diff(np.append(estimand.blocks, len(parts)))[:, None]
    total = squares.sum(axis=0) + variance
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = (squares**2 / (sizes - 1)).sum(axis=0) + with_questions**2 / luck.freedom
        return np.sqrt(total) * unit, np.maximum(1.0, total**2 / spread)


def errors(estimand: Estimand) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return of every system the standard error of its mean, its degrees of freedom, its skewness over questions."""
    error, freedom = _errors(estimand, estimand.parts, estimand.luck.of_means)
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
