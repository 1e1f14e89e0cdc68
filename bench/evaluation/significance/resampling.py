"""The two engines of chance, for many pairs at a time: random signs under the null, and resampled queries and seeds.

Conventions: a stratum is a task (or a leg of one); statistics are weighted means of the strata's means; chance works
within each stratum, so that a long task is not more important than a short one. Everything is seeded.

The bootstrap has two levels. Queries are drawn within each stratum, the same for all systems, since all answer the same
ones. Training runs (seeds) are drawn for each system by itself: seed 0 of one method has nothing in common with seed 0
of another, and to take them for a pair would make intervals too short. The exception is by design, where two systems
come from the same trainings (an encoder, and the same encoder tuned): these draw together. One draw of seeds holds for
all tasks, for one training is tested on all of them. A handful of runs scatters less round its own mean than round the
truth, so deviations are stretched by √(S / (S − 1)) for S runs (Davison and Hinkley 1997, §3.8 on two-level samples),
which makes the variance right; that the tails of two or three runs cannot be known is not mended by it.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

EXACT = 12
"""Up to so many differences that are not zero, all sign patterns are enumerated."""
FLIPS, RESAMPLES = 10_000, 2_000
COVERAGE = 0.95
CELLS = 1 << 22
"""Entries of a random matrix that are held at a time (32 MiB)."""
ROUNDING = 1e-10
"""Statistics that differ by less, relative to the sum of all |differences|, are the same number."""


@dataclass(frozen=True)
class TrainingRuns:
    """The training runs of a system, as a source of chance besides the queries.

    Args:
        name: of the trainings; what bears one name draws the same runs.
        strata: by stratum, values minus their mean over the runs [queries, runs]; at least two runs.
        plus: columns to which the system counts as it is.
        minus: columns from which it is taken away.
    """

    name: str
    strata: Sequence[FloatArray]
    plus: Sequence[int]
    minus: Sequence[int] = ()

    @property
    def runs(self) -> int:
        """How many there are."""
        return int(self.strata[0].shape[1])


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
    observed = np.abs(parts.sum(axis=0)) - ROUNDING * np.abs(parts).sum(axis=0)
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
    strata: Sequence[FloatArray],
    weights: Sequence[float],
    seed: int,
    resamples: int = RESAMPLES,
    trained: Sequence[TrainingRuns] = (),
) -> tuple[FloatArray, FloatArray]:
    """Return both ends [columns] of the percentile bootstrap interval of the weighted mean of the tasks' means.

    Args:
        strata: per-query values or differences [queries, columns] of each task, means over seeds.
        weights: of each task's mean, summing to one.
        seed: decides the resamples, which all columns share.
        resamples: how many.
        trained: the seeds of systems that have several; without them queries alone are drawn.
    """
    chance = np.random.default_rng(seed)
    columns = strata[0].shape[1]
    drawn_means = np.zeros((resamples, columns + sum(one.runs for one in trained)))
    for number, (weight, block) in enumerate(zip(weights, strata, strict=True)):
        wide = np.hstack([block, *(one.strata[number] for one in trained)]) if trained else block
        rows, done = len(block), 0
        for size in _chunks(resamples, rows):
            drawn = chance.integers(rows, size=(size, rows)) + rows * np.arange(size)[:, None]
            times = np.bincount(drawn.ravel(), minlength=size * rows).reshape(size, rows)
            drawn_means[done : done + size] += weight / rows * (times.astype(np.float64) @ wide)
            done += size
    means, start = drawn_means[:, :columns], columns
    for one in trained:
        shift = _shift(one, drawn_means[:, start : start + one.runs], seed)[:, None]
        means[:, list(one.plus)] += shift
        means[:, list(one.minus)] -= shift
        start += one.runs
    low, high = np.quantile(means, [(1 - COVERAGE) / 2, (1 + COVERAGE) / 2], axis=0)
    return low, high


def _shift(one: TrainingRuns, deviations: FloatArray, seed: int) -> FloatArray:
    """Return what drawn runs add to a system's mean [resamples], of each run's deviation [resamples, runs]."""
    name = int.from_bytes(hashlib.sha256(one.name.encode()).digest()[:8])
    chance = np.random.default_rng([seed, name])
    times = chance.multinomial(one.runs, [1 / one.runs] * one.runs, size=len(deviations))
    stretch = math.sqrt(one.runs / (one.runs - 1))
    shift: FloatArray = stretch * np.einsum("rs,rs->r", times / one.runs, deviations)
    return shift


def _chunks(total: int, width: int) -> list[int]:
    """Cut `total` rows of `width` entries into blocks that fit into memory."""
    size = max(1, CELLS // max(1, width))
    return [min(size, total - start) for start in range(0, total, size)]
