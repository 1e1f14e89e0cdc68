"""Simulated curves: how often the band over points and pairs is wrong, what it sees, how good exponents are.

`experiments.calibration` runs the worlds. Methods are trained with shared seeds and scored at eight points; what a
training does by itself goes along its path, and so does what a method makes of a question.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from bench.evaluation.learning_curves import simultaneous
from bench.evaluation.learning_curves.bands import CurveScores, bands, flats
from bench.evaluation.learning_curves.forecast import forecast
from bench.evaluation.significance import families
from bench.evaluation.significance.trainings import FloatArray

POINTS = 8
HARD, SKILL, NOISE, SCATTER = 10.0, 10.0, 3.0, 1.2
"""Standard deviations, points: of a question's difficulty, of what a method makes of one, of what a training does, and
of a training's skill, as suites here show."""
LUCK = 0.2
"""Correlation of two trainings with one seed, as suites here show."""

END, SCALE, EXPONENT = 50.0, 10.0, 0.3
"""Of curves that rise: points, points, and how fast."""

DRAWS = 1_000
"""Of a band: as many keep the level of a simulated test."""
Estimates: TypeAlias = dict[str, tuple[float, float]]
"""By name, each with its Monte-Carlo error."""


@dataclass(frozen=True)
class CurveWorld:
    """Methods along their trainings.

    Args:
        methods: how many.
        seeds: trainings of each.
        shape: `equal`; `rising`, all alike by a power of the budget; `pairs`, of which each crosses at a point of its
            own and is far from all others; `lines`, of which 22 of 28 pairs cross at a point.
        gap: points by which the first method leads all others, at all points (of `equal` ones).
        slope: points by which curves that cross part from one point to the next.
        path: correlation of what a training does at neighbouring points.
        noisy: how many methods, the last ones, scatter otherwise.
        times: by what factor they do.
        tasks: questions of each task.
    """

    methods: int
    seeds: int
    shape: str = "equal"
    gap: float = 0.0
    slope: float = 8.0
    path: float = 0.8
    noisy: int = 0
    times: float = 1.0
    tasks: Sequence[int] = (150, 150)

    @property
    def truth(self) -> FloatArray:
        """Expected scores, points `[methods, points]`."""
        at, method = np.arange(float(POINTS)), np.arange(float(self.methods))[:, None]
        truth: FloatArray = self.gap * (method == 0) + 0.0 * at
        if self.shape == "pairs":  # pair k crosses at the point 2 k + 1
            truth = 60 * (method // 2) + self.slope / 2 * np.where(method % 2, 1, -1) * (at - 1 - 2 * (method // 2))
        elif self.shape == "lines":  # m and n cross where m + n is the point's number and 3
            truth = self.slope * (method * (at + 3) - method**2)
        elif self.shape == "rising":
            truth = END - SCALE * 2 ** (EXPONENT * (POINTS - 1 - at)) + 0 * method
        return truth

    def draw(self, draw: np.random.Generator) -> CurveScores:
        """Draw the scores of all trainings."""
        queries = sum(self.tasks)
        times = np.where(np.arange(self.methods) >= self.methods - self.noisy, self.times, 1.0)[:, None, None]
        shared, own = (self._paths(draw, (count, self.seeds)) for count in (1, self.methods))
        skill = self.truth[:, None] + SCATTER * times * (math.sqrt(LUCK) * shared + math.sqrt(1 - LUCK) * own)
        on_questions = SKILL * self._paths(draw, (self.methods, 1, queries)).swapaxes(2, 3)
        noise = NOISE * draw.standard_normal((self.methods, self.seeds, POINTS, queries), np.float32)
        hard = HARD * draw.standard_normal(queries)
        values = (skill[..., None] + on_questions + noise + hard) / 100
        return CurveScores(
            x=np.array([1e6 * 2.0**at for at in range(1 - POINTS, 1)]),
            trainings=tuple((f"{at:03}", seed) for at in range(self.methods) for seed in range(self.seeds)),
            values=values.reshape(-1, POINTS, queries),
            strata=tuple(str(task) for task, count in enumerate(self.tasks) for _ in range(count)),
            starts=("start",) * (self.methods * self.seeds),
        )

    def _paths(self, draw: np.random.Generator, shape: tuple[int, ...]) -> FloatArray:
        """Draw paths of unit variance whose neighbouring points are correlated `[*shape, points]`."""
        steps = draw.standard_normal((*shape, POINTS))
        for at in range(1, POINTS):
            steps[..., at] = self.path * steps[..., at - 1] + math.sqrt(1 - self.path**2) * steps[..., at]
        return steps


def measured(of: str, world: CurveWorld, draws: int) -> Estimates:
    """Return what is measured in a world, and whatever comes with it."""
    simulate = exponents if of in {"exponents", "forecasts"} else standstills if "flats" in of else leads
    with _few_draws():
        return simulate(world, draws)


@contextmanager
def _few_draws() -> Iterator[None]:
    """Draw few times, and let what is close to the level be decided."""
    engine = simultaneous._DRAWS, simultaneous._MOST, families.MARGIN
    simultaneous._DRAWS, simultaneous._MOST, families.MARGIN = DRAWS, DRAWS, 0.0
    try:
        yield
    finally:
        simultaneous._DRAWS, simultaneous._MOST, families.MARGIN = engine


def leads(world: CurveWorld, draws: int, seed: int = 1) -> Estimates:
    """Draw a world many times and return what the band says of leads.

    - `false leads`: how often any method is said to lead another at a point where it does not;
    - `leads found`: the share of pairs and points with a true difference at which the better one is said to lead;
    - `band covers`: how often the band holds the truth of all pairs at all points.
    """
    draw, rows = np.random.default_rng(seed), list[list[float]]()
    first, second = np.triu_indices(world.methods, 1)
    true = (world.truth[first] - world.truth[second]) / 100
    for _ in range(draws):
        band = bands(world.draw(draw), int(draw.integers(1 << 30))).band
        signs, apart = band.signs, true != 0
        row = [((signs != 0) & (signs != np.sign(true))).any(), ((band.low <= true) & (true <= band.high)).all()]
        rows.append([*row, (signs == np.sign(true))[apart].mean() if apart.any() else 0.0])
    return _estimates(("false leads", "band covers", "leads found"), rows)


def standstills(world: CurveWorld, draws: int, seed: int = 1) -> Estimates:
    """Draw a world many times and return what the band says of standing still.

    - `false flats`: how often any method is said to be flat from a point on where it gains more than was said;
    - `flats`: the share of methods that are said to be flat.
    """
    draw, rows = np.random.default_rng(seed), list[list[float]]()
    gains = (world.truth[:, -1:] - world.truth) / 100
    for _ in range(draws):
        scores = world.draw(draw)
        of_methods = flats(scores, seed=int(draw.integers(1 << 30)))
        said = [
            (scores.x >= flat.since, flat.least, np.abs(gain))
            for flat, gain in zip(of_methods, gains, strict=True)
            if flat.since is not None and flat.least is not None
        ]
        false = any(gain[flat].max() > least for flat, least, gain in said)
        rows.append([false, len(said) / world.methods])
    return _estimates(("false flats", "flats"), rows)


def exponents(world: CurveWorld, draws: int, seed: int = 1) -> Estimates:
    """Draw rising curves many times and return what fits say of them.

    - `exponents`: the share of intervals of exponents that hold the truth;
    - `forecasts`: of intervals of scores at four times the last point;
    - `forecast`: the share of curves that are forecast.
    """
    draw, rows = np.random.default_rng(seed), list[list[float]]()
    for _ in range(draws):
        scores = world.draw(draw)
        ahead = 4 * float(scores.x[-1])
        truth = (END - SCALE * 4.0**-EXPONENT) / 100
        found = [forecast(scores, method, ahead) for method in scores.methods]
        for of_method in found:
            if of_method.interval and of_method.exponent_interval:
                rows.append([_holds(of_method.exponent_interval, EXPONENT), _holds(of_method.interval, truth), True])
            else:
                rows.append([np.nan, np.nan, False])
    return _estimates(("exponents", "forecasts", "forecast"), rows)


def _holds(interval: tuple[float, float], truth: float) -> bool:
    """Whether an interval holds the truth."""
    return interval[0] <= truth <= interval[1]


def _estimates(names: Sequence[str], rows: Sequence[Sequence[float]]) -> Estimates:
    """Return means with their errors; NaN is left out."""
    table = np.array(rows, np.float64)
    counts = np.isfinite(table).sum(axis=0)
    errors = np.nanstd(table, axis=0) / np.sqrt(counts)
    return dict(zip(names, zip(np.nanmean(table, axis=0).tolist(), errors.tolist(), strict=True), strict=True))
