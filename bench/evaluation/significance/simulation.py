"""What chance makes of many differences at once, if no two systems differed.

Every question has one random multiplier, the same for all systems and estimands, and every source of luck one (a seed,
a training: `bench.evaluation.significance.luck`). Multipliers are random signs of Gaussian size, which is to say
standard normals, so that only covariances matter: the questions of an estimand that shares none with another are
replaced by as many normals as it has systems.

Errors are estimates, too. Pairs whose trainings scatter by one pooled variance have one estimate of it in common, so
one draw of what it makes of their errors serves them all; a system that counts with its own variance brings its own.
Each size is read as the normal deviate that is as rare as it is by Student's distribution with the pair's degrees of
freedom, so that pairs of unlike freedom are comparable.
"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bench.evaluation.significance.estimates import CELLS, Differences, Estimand
from bench.evaluation.significance.trainings import FloatArray, IntArray

_CHUNK = 64  # draws, at least: rows of fewer are slow
_MANY = 300.0
"""Degrees of freedom from which Student's distribution is taken for the normal one."""
_STEP = 0.02  # of their logarithm, within which distributions are one


@dataclass(frozen=True)
class _Part:
    """Pairs of an estimand: differences of columns, which are sums of what sources do to them.

    Args:
        questions: factor of the questions `[sources, columns]`.
        ids: of the sources among those that estimands share, a slice for all of them; None where they are the
            estimand's own.
        luck: factor of the luck `[sources, columns]`.
        luck_ids: of its sources.
        first: column of each pair's first system.
        second: column of its second.
        scale: one over the deviation of each pair; 0 for pairs without error.
        errors: number of estimates of a variance that the pairs' errors rest on.
        students: of pairs with few degrees of freedom, by their distribution.
    """

    questions: FloatArray
    ids: IntArray | slice | None
    luck: FloatArray
    luck_ids: IntArray
    first: IntArray
    second: IntArray
    scale: npt.NDArray[np.float32]
    errors: int
    students: list["_Students"]


@dataclass(frozen=True)
class _Students:
    """Pairs of a part that one distribution serves.

    Args:
        rows: of the pairs.
        errors: the estimates of a variance that their errors rest on, each once.
        places: which of `errors` it is for each pair.
        student: the distribution.
    """

    rows: IntArray
    errors: IntArray
    places: IntArray
    student: "Student"


class Student:
    """Tables of Student's distribution with some degrees of freedom."""

    def __init__(self, freedom: float) -> None:
        from scipy.special import gammaincinv, ndtr, ndtri, stdtr

        self._normals = np.linspace(-6, 6, 601)
        self._log_ratios = np.log(2 * gammaincinv(freedom / 2, ndtr(self._normals)) / freedom)
        self._log_sizes = np.linspace(-12, 40, 2081)  # of squares
        chance = np.maximum(stdtr(freedom, -np.exp(self._log_sizes / 2)), 1e-300)
        self._deviates = -ndtri(chance)

    def log_ratios(self, normals: FloatArray) -> FloatArray:
        """Return logarithms of drawn variances over their expectation, which are as rare as standard normals."""
        return _interpolated(normals, self._normals, self._log_ratios)

    def deviates(self, sizes: FloatArray, log_ratios: FloatArray) -> FloatArray:
        """Return normal deviates as rare as `sizes` over errors whose squares are drawn by `log_ratios`."""
        with np.errstate(divide="ignore"):
            squares = 2 * np.log(sizes) - log_ratios
        return _interpolated(squares, self._log_sizes, self._deviates)


_student = functools.cache(Student)


def students(freedom: FloatArray) -> list[tuple[IntArray, Student]]:
    """Group rows by their degrees of freedom; those with many, for which the normal distribution serves, are left out.

    Args:
        freedom: of each row; NaN for many `[rows]`.

    Returns:
        Rows, and the distribution that serves them all.
    """
    bins = np.round(np.log(np.clip(np.nan_to_num(freedom, nan=_MANY), 1, _MANY)) / _STEP)
    few = np.unique(bins[bins < np.round(np.log(_MANY) / _STEP)])
    return [(np.flatnonzero(bins == number), _student(float(np.exp(_STEP * number)))) for number in few]


def _interpolated(values: FloatArray, grid: FloatArray, table: FloatArray) -> FloatArray:
    """Interpolate linearly on an even grid, as `numpy.interp` does, which looks for every place."""
    places = (values - grid[0]) * ((len(grid) - 1) / (grid[-1] - grid[0]))
    np.clip(places, 0.0, len(grid) - 1.0, out=places)
    below = np.minimum(places.astype(np.int32), len(grid) - 2)
    places -= below
    interpolated: FloatArray = np.diff(table)[below]
    interpolated *= places
    interpolated += table[below]
    return interpolated


class Simulation:
    """Draws of all pairs of some estimands.

    Args:
        estimands: their systems.
        pairs: of each estimand.
        seed: of the generator.
    """

    def __init__(self, estimands: Sequence[Estimand], pairs: Sequence[Differences], seed: int) -> None:
        self._generator = np.random.default_rng(seed)
        uses = np.bincount(np.concatenate([estimand.ids for estimand in estimands]))
        sources: dict[str, int] = {}
        self._parts = []
        for estimand, differences in zip(estimands, pairs, strict=True):
            questions = np.nan_to_num(estimand.parts)
            ids: IntArray | slice | None = None
            if (uses[estimand.ids] > 1).any():
                ids = estimand.ids
                if np.array_equal(ids, np.arange(len(uses))):
                    ids = slice(None)  # copies nothing
            elif len(questions) > questions.shape[1]:
                questions = np.asarray(np.linalg.qr(questions, mode="r"))
            names, luck = estimand.luck.moves()
            luck_ids = np.array([sources.setdefault(name, len(sources)) for name in names], np.int64)
            first, second = estimand.luck.columns(differences.first, differences.second)
            questions = questions[:, estimand.luck.column_systems]
            products = questions.T @ questions + luck.T @ luck
            squares = products.diagonal()[first] + products.diagonal()[second] - 2 * products[first, second]
            deviation = np.sqrt(np.maximum(squares, 0.0))
            scatters = (differences.error > 0) & (deviation > 0)
            scale = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=scatters)
            errors = estimand.luck.errors(differences.first, differences.second)
            grouped = [
                _Students(rows, *np.unique(errors[rows], return_inverse=True), student)
                for rows, student in students(differences.freedom)
            ]
            scales, count = scale.astype(np.float32), 1 + int(errors.max(initial=0))
            self._parts.append(_Part(questions, ids, luck, luck_ids, first, second, scales, count, grouped))
        self._luck_sources = len(sources)
        self._questions = len(uses) if any(part.ids is not None for part in self._parts) else 0
        widest = max(self._questions, self._luck_sources, sum(len(part.first) for part in self._parts))
        self._size = max(_CHUNK, CELLS // max(1, widest))

    def draw(self, limit: int) -> npt.NDArray[np.float32]:
        """Return the sizes of all pairs, in units of their deviations, in at most `limit` draws `[pairs, draws]`."""
        count = min(limit, self._size)
        shared = self._generator.standard_normal((self._questions, count))
        luck = self._generator.standard_normal((self._luck_sources, count))
        sizes = []
        for part in self._parts:
            normals = (
                self._generator.standard_normal((len(part.questions), count)) if part.ids is None else shared[part.ids]
            )
            values = (part.questions.T @ normals + part.luck.T @ luck[part.luck_ids]).astype(np.float32)
            deviates = np.abs(values[part.first] - values[part.second]) * part.scale[:, None]
            errors = self._generator.standard_normal((part.errors, count))
            for group in part.students:
                log_ratios = group.student.log_ratios(errors[group.errors])[group.places]
                deviates[group.rows] = group.student.deviates(deviates[group.rows], log_ratios)
            sizes.append(deviates)
        return np.concatenate(sizes)
