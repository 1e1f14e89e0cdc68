"""One band over all contrasts of some systems and all points at which they were scored.

The band holds the truth of all contrasts at all points together with 95 %, so whatever is read off it, in whatever
order and however often, is wrong in one of twenty families at most. Testing point by point from both ends is not: each
pair of curves that cross meets its true tie at a point of its own, and each tie is then tested nearly alone.

At a point a contrast has the error and the degrees of freedom that a board gives it
(`bench.evaluation.significance.estimates`). The size that all stay below together is simulated. Questions have one
multiplier each, the same at all points. What a training does by itself goes along its path: correlations of points are
pooled over the trainings of all methods (each method counts the same), since three trainings of one say nothing of
them. Errors are estimates, too: those that rest on one pool of trainings are wrong together, so one χ² serves all
points and contrasts. How often such a band is wrong is simulated (docs/calibration.md, rows of curves).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bench.evaluation.significance import families
from bench.evaluation.significance.estimates import CELLS, Estimand
from bench.evaluation.significance.families import LEVEL, POWER, SEED, judge
from bench.evaluation.significance.simulation import Student, students
from bench.evaluation.significance.trainings import BLIND, BoolArray, FloatArray, IntArray

_DRAWS, _MOST = 10_000, 100_000
_LENT = 3.0
"""Times the degrees of freedom of the trainings that an error may have, whatever questions lend it."""
_LEAST = 1e-300


@dataclass(frozen=True)
class Band:
    """Contrasts of systems at points, first minus second `[contrasts, points]`; NaN where a system has no value.

    Args:
        difference: in the unit of the values.
        error: standard error; NaN also where a block of strata has one question.
        freedom: degrees of freedom of the error.
        reach: half of the band's width; NaN as `error`.
        detectable: the true difference that the band would show with a probability of 80 %; NaN as `error`.
        adjusted: p corrected for all contrasts and points.
        chance: its Monte-Carlo error.
        checkpoints: whether a contrast is about checkpoints, since a method has too few trainings `[contrasts]`.
    """

    difference: FloatArray
    error: FloatArray
    freedom: FloatArray
    reach: FloatArray
    detectable: FloatArray
    adjusted: FloatArray
    chance: FloatArray
    checkpoints: BoolArray

    @property
    def low(self) -> FloatArray:
        """Lower end of the band."""
        return self.difference - self.reach

    @property
    def high(self) -> FloatArray:
        """Upper end of the band."""
        return self.difference + self.reach

    @property
    def signs(self) -> IntArray:
        """1 or −1 where the band is above or below 0, and 0 elsewhere or where more draws could turn it."""
        with np.errstate(invalid="ignore"):
            decided = (self.adjusted <= LEVEL) & (np.abs(self.adjusted - LEVEL) >= families.MARGIN * self.chance)
            return np.where(decided, np.sign(self.difference), 0).astype(np.int64)


def band(estimands: Sequence[Estimand], contrasts: Sequence[tuple[str, str]], seed: int = SEED) -> Band:
    """Compare systems at all points.

    Args:
        estimands: one a point, of the same questions; a system may be missing at some.
        contrasts: names of the first and the second system of each.
        seed: of the simulated draws.
    """
    from scipy.special import ndtr, ndtri, stdtr, stdtrit

    fields = ("difference", "error", "freedom", "p_uncorrected", "luck", "luck_total", "luck_freedom")
    columns = {name: np.full((len(contrasts), len(estimands)), np.nan) for name in fields}
    checkpoints = np.zeros(len(contrasts), bool)
    compared = []
    for at, estimand in enumerate(estimands):
        places = {name: place for place, name in enumerate(estimand.names)}
        rows = np.array([row for row, pair in enumerate(contrasts) if {*pair} <= places.keys()], np.int64)
        sides = [np.array([places[contrasts[row][side]] for row in rows], np.int64) for side in (0, 1)]
        judged = judge(estimand, *sides)
        for name, column in columns.items():
            column[rows, at] = getattr(judged, name)
        checkpoints[rows] |= judged.checkpoints > 0
        compared.append((rows, judged.first, judged.second))
    error, freedom, luck = _cautious(columns)
    with np.errstate(invalid="ignore", divide="ignore"):
        p = 2 * stdtr(freedom, -np.abs(columns["difference"] / error))
    p = np.where(error > 0, p, columns["p_uncorrected"])
    count = int(np.isfinite(p).sum())
    observed = -ndtri(np.clip(p, _LEAST, 1.0) / 2)
    simulation = _BandSimulation(estimands, contrasts, compared, error, freedom, luck, seed)
    largest, draws = np.zeros(0), _DRAWS
    adjusted, chance, level = p, np.where(np.isfinite(p), 0.0, np.nan), LEVEL
    while count > 1:
        largest = np.sort(np.append(largest, simulation.largest(draws - len(largest))))
        exceeded = (1 + draws - np.searchsorted(largest, observed)) / (1 + draws)
        adjusted = np.maximum(p, np.minimum(exceeded, count * p))
        chance = np.where(adjusted == exceeded, np.sqrt(exceeded * (1 - exceeded) / draws), 0.0)
        level = 2 * float(ndtr(-np.quantile(largest, 1 - LEVEL)))
        level = min(LEVEL, max(level, LEVEL / count))
        if draws >= _MOST or not (np.abs(adjusted - LEVEL) < families.MARGIN * chance).any():
            break
        draws = min(_MOST, 2 * draws)
    with np.errstate(invalid="ignore"):
        reach = np.where(error == 0, 0.0, error * stdtrit(freedom, 1 - level / 2))
        detectable = np.where(error == 0, np.nan, reach + error * stdtrit(freedom, POWER))
    return Band(columns["difference"], error, freedom, reach, detectable, adjusted, chance, checkpoints)


def _cautious(columns: Mapping[str, FloatArray]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return errors, degrees of freedom and what trainings add to the squares, where few trainings say what they add.

    Of many points one looks quiet by chance, and errors there would be too small. So with few degrees of freedom a
    point counts with what trainings add at an average point where that is more; and freedom that questions lend is
    limited, since Satterthwaite's is too large where the variance of few trainings comes out too small.
    """
    luck, total, of_luck = (columns[name] for name in ("luck", "luck_total", "luck_freedom"))
    has_luck = (luck > 0) | (total > 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        square = columns["error"] ** 2
        spread = square**2 / columns["freedom"] - np.where(has_luck, total**2 / of_luck, 0.0)
        questions = square - luck
        counts = np.maximum(1, has_luck.sum(axis=1, keepdims=True))
        average = [np.where(has_luck, of, 0.0).sum(axis=1, keepdims=True) / counts for of in (luck, total)]
        few_df = has_luck & (of_luck < BLIND + 0.5)
        luck, total = (np.where(few_df, np.fmax(of, mean), of) for of, mean in zip((luck, total), average, strict=True))
        square = questions + luck
        spread = np.maximum(spread, 0.0) + np.where(has_luck, total**2 / of_luck, 0.0)
        freedom = np.where(few_df, np.maximum(1.0, square**2 / spread), columns["freedom"])
        freedom = np.where(has_luck, np.minimum(freedom, np.maximum(1.0, _LENT * of_luck)), freedom)
        return np.where(few_df, np.sqrt(square), columns["error"]), freedom, luck


class _BandSimulation:
    """Draws of all contrasts at all points, if no contrast were different from 0 anywhere."""

    def __init__(
        self,
        estimands: Sequence[Estimand],
        contrasts: Sequence[tuple[str, str]],
        compared: Sequence[tuple[IntArray, IntArray, IntArray]],
        error: FloatArray,
        freedom: FloatArray,
        luck: FloatArray,
        seed: int,
    ) -> None:
        """Read how contrasts depend on each other.

        Args:
            estimands: one a point.
            contrasts: names of the first and the second system of each.
            compared: by point the contrasts that are there, and the places of both systems of each.
            error: of each contrast and point `[contrasts, points]`.
            freedom: of the error `[contrasts, points]`.
            luck: what trainings add to its square `[contrasts, points]`.
            seed: of the draws.
        """
        self._generator = np.random.default_rng(seed)
        names = sorted({name for pair in contrasts for name in pair})
        places = {name: at for at, name in enumerate(names)}
        shape, self._systems, self._points = (len(contrasts), len(estimands)), len(names), len(estimands)
        self._sides = [np.array([places[pair[side]] for pair in contrasts], np.int64) for side in (0, 1)]
        questions = np.zeros((1 + max(int(estimand.ids.max()) for estimand in estimands), len(estimands), len(names)))
        self._scale = np.divide(1.0, error, out=np.zeros(shape), where=error > 0)
        self._luck = np.zeros((2, *shape))
        sources: dict[str, int] = {}
        self._errors = np.zeros(shape, np.int64)
        paths: dict[str, FloatArray] = {}
        for at, (estimand, (rows, first, second)) in enumerate(zip(estimands, compared, strict=True)):
            for place, name in enumerate(estimand.names):
                if name in places:
                    questions[estimand.ids, at, places[name]] = np.nan_to_num(estimand.parts[:, place])
            # What trainings add to a difference is split as the means of both sides have it.
            means = np.stack([estimand.luck.of_means.net[side] for side in (first, second)])
            total = means.sum(axis=0)
            shares = np.divide(means, total, out=np.full_like(means, 0.5), where=total > 0)
            self._luck[:, rows, at] = np.sqrt(shares * luck[rows, at])
            sources_of = estimand.luck.estimates(estimand.names, first, second)
            self._errors[rows, at] = [sources.setdefault(name, len(sources)) for name in sources_of]
            for name, moves in estimand.luck.alone().items():
                paths.setdefault(name, np.zeros(len(estimands)))[at] = np.nan_to_num(moves.sum())
        flat = questions.reshape(len(questions), -1)
        if len(flat) > flat.shape[1]:
            flat = np.asarray(np.linalg.qr(flat, mode="r"))
        self._questions = flat.astype(np.float32)
        self._path = _root(correlations(np.array([*paths.values()]).reshape(len(paths), len(estimands))))
        self._sources = len(sources)
        self._students: list[tuple[IntArray, Student]] = students(freedom.ravel())
        self._size = max(64, CELLS // max(1, freedom.size))

    def largest(self, draws: int) -> FloatArray:
        """Return the largest size of all contrasts and points, as a normal deviate as rare, in some draws `[draws]`."""
        parts = [self._draw(min(self._size, draws - start)) for start in range(0, draws, self._size)]
        return np.concatenate(parts)

    def _draw(self, draws: int) -> FloatArray:
        first, second = self._sides
        normals = self._generator.standard_normal((draws, len(self._questions)), np.float32)
        values = (normals @ self._questions).reshape(draws, self._points, self._systems).T
        values = values[first] - values[second]
        if self._luck.any():
            path = self._generator.standard_normal((self._systems, draws, len(self._path)), np.float32) @ self._path
            path = path.transpose(0, 2, 1)
            values += self._luck[0, :, :, None].astype(np.float32) * path[first]
            values -= self._luck[1, :, :, None].astype(np.float32) * path[second]
        sizes = (np.abs(values) * self._scale[:, :, None].astype(np.float32)).reshape(-1, draws)
        errors, sources = self._generator.standard_normal((self._sources, draws)), self._errors.ravel()
        for rows, student in self._students:
            ratios = student.log_ratios(errors)[sources[rows]]
            sizes[rows] = student.deviates(sizes[rows].astype(np.float64), ratios)
        largest: FloatArray = sizes.max(axis=0).astype(np.float64)
        return largest


def correlations(paths: FloatArray) -> FloatArray:
    """Return how points depend on each other along a training, pooled over trainings.

    Args:
        paths: deviations of trainings `[trainings, points]`.

    Returns:
        Correlations `[points, points]`; 0 with points at which nothing scatters.
    """
    products = paths.T @ paths
    deviations = np.sqrt(np.diagonal(products))
    unit = np.where(deviations > 0, deviations, 1.0)
    pooled: FloatArray = products / unit[:, None] / unit
    np.fill_diagonal(pooled, 1.0)
    return pooled


def _root(covariance: FloatArray) -> FloatArray:
    """Return a matrix whose rows, times standard normals, have this covariance."""
    values, vectors = np.linalg.eigh(covariance)
    root: FloatArray = (vectors * np.sqrt(np.maximum(values, 0.0))).T.astype(np.float32)
    return root
