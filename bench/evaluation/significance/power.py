"""The paired t-test over several tasks, the effect size, and the smallest difference that a test would have found.

Everything is computed for many pairs at a time. A task's mean difference has the error √(variance / queries); the
weighted mean over tasks has the root of the sum of the squares, with Welch's and Satterthwaite's degrees of freedom.
With one task this is the paired t-test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench.evaluation.significance.resampling import ROUNDING, FloatArray

LEVEL, POWER = 0.05, 0.8
_STEPS = 40  # of bisection: 2⁻⁴⁰ of the first bracket


@dataclass(frozen=True)
class Student:
    """What normal theory says of pairs, one a column; NaN where a task has one query only or no difference varies.

    Args:
        p: two-sided, of the paired t-test.
        effect: difference in standard deviations of the per-query differences within tasks (Cohen's d_z).
        error: standard error of the difference, in the unit of the values.
        freedom: degrees of freedom.
    """

    p: FloatArray
    effect: FloatArray
    error: FloatArray
    freedom: FloatArray


def student(strata: Sequence[FloatArray], weights: Sequence[float]) -> Student:
    """Test every column of differences.

    Args:
        strata: per-query differences [queries, columns] of each task.
        weights: of each task's mean, summing to one.
    """
    from scipy.special import stdtr

    columns = strata[0].shape[1]
    nothing = np.full(columns, np.nan)
    if min(map(len, strata)) < 2:
        return Student(nothing, nothing, nothing, nothing)
    largest = np.max([np.abs(block).max(axis=0) for block in strata], axis=0)
    unit = np.where(largest > 0, largest, 1.0)
    scaled = [block / unit for block in strata]  # so that no square of a tiny number vanishes
    sizes, share = np.array([len(block) for block in strata])[:, None], np.asarray(weights, np.float64)[:, None]
    variances = np.stack([block.var(axis=0, ddof=1) for block in scaled])
    difference = (share * np.stack([block.mean(axis=0) for block in scaled])).sum(axis=0)
    scatter = np.sqrt((share * variances).sum(axis=0))
    varies = (largest > 0) & (scatter > ROUNDING)
    errors = np.where(varies, share**2 * variances / sizes, 1.0)
    error = np.sqrt(errors.sum(axis=0))
    freedom = errors.sum(axis=0) ** 2 / (errors**2 / (sizes - 1)).sum(axis=0)
    p = 2 * stdtr(freedom, -np.abs(difference / error))
    effect = difference / np.where(varies, scatter, 1.0)
    found = (np.where(varies, one, np.nan) for one in (p, effect, error * unit, freedom))
    return Student(*found)


def detectable(tests: Student, level: float = LEVEL, power: float = POWER) -> FloatArray:
    """Return the difference [columns] that the two-sided t-test would find with the given power.

    It is the standard error times the noncentrality at which the test of that level rejects with that probability:
    2.80 for many queries, more for few. Training variation is no part of it.

    Args:
        tests: of the pairs.
        level: of the test, before any correction.
        power: probability to find it.
    """
    from scipy.special import nctdtr, stdtrit

    known = np.isfinite(tests.freedom)
    freedom = tests.freedom[known]
    critical = stdtrit(freedom, 1 - level / 2)
    low, high = np.zeros_like(freedom), 2 * critical + 4
    for _ in range(_STEPS):
        middle = (low + high) / 2
        found = 1 - nctdtr(freedom, middle, critical) + nctdtr(freedom, middle, -critical)
        low, high = np.where(found < power, middle, low), np.where(found < power, high, middle)
    smallest = np.full(tests.freedom.shape, np.nan)
    smallest[known] = tests.error[known] * (low + high) / 2
    return smallest
