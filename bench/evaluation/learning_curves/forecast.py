"""What a score would be at a budget that nobody has run: a − b · n^−c, and whether such forecasts are worth anything.

Nothing prints a forecast unless it is asked for, and none is printed without its check: the curves are fitted to the
points up to a quarter of the last one, the last one is forecast, and the order of the methods by these forecasts is
compared with their order by the scores at that quarter.

Trainings of one method have an offset of their own each, and a, b and c in common. As each has all points, that is the
least-squares fit to their mean. Around it a forecast (and the exponent) is a weighted sum of the points, so its error
is that of any score: over questions, and over the trainings' whole paths, whose points may depend on each other as they
like (delta method; `bench.evaluation.significance.estimates`). That a curve goes on as a power of the budget is
assumed; no interval knows of it.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bench.core.errors import UsageError
from bench.evaluation.learning_curves.bands import CurveScores, amount
from bench.evaluation.significance.estimates import errors
from bench.evaluation.significance.families import COVERAGE
from bench.evaluation.significance.trainings import TRAININGS, FloatArray, IntArray
from bench.evaluation.tables import points

FEWEST = 5
"""Points that a fit needs."""
STEEPEST = 1.5
"""The largest exponent that is believed."""
FLATTEST = 0.02
"""The smallest: below, the curve is a logarithm and has no end."""
HELD_OUT = 4.0
"""The check fits up to this part of the last point."""


@dataclass(frozen=True)
class Forecast:
    """A method's score at a point beyond those that were fitted.

    Args:
        method: its name.
        at: the point, in the axis's unit.
        until: the last point that was fitted.
        value: the score, a fraction; None where there is no forecast.
        interval: its 95 % interval over questions and trainings, if the curve is a power of the budget; None also where
            a variance needs more questions.
        exponent: c.
        exponent_interval: its 95 % interval.
        why_not: why there is none; empty where there is one.
        checkpoints: it holds for these trainings only.
        unit: of the axis.
    """

    method: str
    at: float
    until: float
    value: float | None = None
    interval: tuple[float, float] | None = None
    exponent: float | None = None
    exponent_interval: tuple[float, float] | None = None
    why_not: str = ""
    checkpoints: bool = False
    unit: str = "tokens"

    @property
    def sentence(self) -> str:
        """Say it: `crop: 41.3 [39.0, 43.6] at 4M tokens, if it goes on as it did up to 1M`."""
        point = f"at {amount(self.at)} {self.unit}"
        if self.value is None:
            return f"{self.method}: no forecast {point}: {self.why_not}"
        interval = "" if self.interval is None else f" [{points(self.interval[0])}, {points(self.interval[1])}]"
        prefix = "these seeds: " if self.checkpoints else ""
        going_on = f"if it goes on as it did up to {amount(self.until)}"
        return f"{prefix}{self.method}: {points(self.value)}{interval} {point}, {going_on}"

    def as_json(self) -> dict[str, Any]:
        """Return it as `--json` prints it: fractions, None where a number is not defined."""
        intervals = {name: getattr(self, name) for name in ("interval", "exponent_interval")}
        listed = {name: None if interval is None else list(interval) for name, interval in intervals.items()}
        return vars(self) | listed | {"sentence": self.sentence}


@dataclass(frozen=True)
class HeldOutCheck:
    """How good forecasts of the last point would have been, from the points up to a quarter of it.

    Args:
        until: the last point that was fitted, in the axis's unit; None where none is early enough.
        at: the last point.
        forecasts: of the methods that could be forecast.
        errors: forecast less score, in their order, fractions.
        tau_forecasts: Kendall's τ of the forecasts with the scores at `at`; None for fewer than three methods, or where
            all are equal.
        tau_scores: of the scores at `until` with them, of the same methods.
        unit: of the axis.
    """

    until: float | None
    at: float
    forecasts: tuple[Forecast, ...] = ()
    errors: tuple[float, ...] = ()
    tau_forecasts: float | None = None
    tau_scores: float | None = None
    unit: str = "tokens"

    @property
    def ranks_better(self) -> bool | None:
        """Whether forecasts order the methods better than the scores do; None where it cannot be said."""
        if self.tau_forecasts is None or self.tau_scores is None:
            return None
        return self.tau_forecasts > self.tau_scores

    @property
    def sentence(self) -> str:
        """Say how far off forecasts were, and whether they rank better than the scores do."""
        if self.until is None or not self.errors:
            return f"no check of forecasts: no method has {FEWEST} points to fit up to a quarter of the last one"
        off = points(float(np.abs(self.errors).mean()))
        until, at, count = amount(self.until), f"{amount(self.at)} {self.unit}", len(self.errors)
        held_out = f"held out: fitted up to {until}, forecasts of {at} are off by {off} points"
        if self.tau_forecasts is None or self.tau_scores is None:
            return (
                f"{held_out}; methods are too few or too equal to say whether forecasts rank them better than scores do"
            )
        taus = f"τ {self.tau_forecasts:.2f}, the order of their scores at {until} with τ {self.tau_scores:.2f}"
        verdict = "rank better" if self.ranks_better else "do not rank better: read the scores"
        return f"{held_out}; their order of {count} methods agrees with {taus}: forecasts {verdict}"

    def as_json(self) -> dict[str, Any]:
        """Return it as `--json` prints it: fractions, None where a number is not defined."""
        return {
            "until": self.until,
            "at": self.at,
            "errors": {forecast.method: error for forecast, error in zip(self.forecasts, self.errors, strict=True)},
            "tau_forecasts": self.tau_forecasts,
            "tau_scores": self.tau_scores,
            "ranks_better": self.ranks_better,
            "sentence": self.sentence,
        }


def forecast(scores: CurveScores, method: str, at: float, until: float = np.inf) -> Forecast:
    """Forecast a method's score from its points up to some point.

    Args:
        scores: that have the method.
        method: its name.
        at: the point to forecast, in the axis's unit.
        until: the last point to fit; default: all.

    Raises:
        UsageError: a point that is not beyond those that are fitted.
    """
    mean = scores.mean(method)
    fitted_points = np.flatnonzero(np.isfinite(mean) & (scores.x <= until))
    last = float(scores.x[fitted_points[-1]]) if len(fitted_points) else float(scores.x[0])
    if not last < at < np.inf:
        raise UsageError(
            found=f"a forecast at {amount(at)} {scores.unit}",
            expected=f"one beyond {amount(last)}, the last point that is fitted",
        )
    undefined = Forecast(method, float(at), last, checkpoints=len(scores.rows(method)) < TRAININGS, unit=scores.unit)
    if len(fitted_points) < FEWEST:
        return replace(undefined, why_not=f"{len(fitted_points)} points, and it needs {FEWEST}")
    x, y = scores.x[fitted_points] / last, mean[fitted_points]
    exponent = _exponent(x, y)
    if not FLATTEST * 1.01 < exponent < STEEPEST * 0.99:
        why = "it rises like a logarithm, without an end" if exponent < 1 else "it bends more sharply than is believed"
        return replace(undefined, why_not=f"its exponent is at a bound ({why})")
    end, scale = np.linalg.lstsq(_design(x, exponent), y, rcond=None)[0]
    if scale <= 0:
        return replace(undefined, why_not="it does not rise")
    ahead = np.array([at / last])
    # How end, scale and exponent follow the points, near the fit.
    follows = np.linalg.pinv(_gradients(x, scale, exponent))
    value = float(end - scale * ahead[0] ** -exponent)
    return replace(
        undefined,
        value=value,
        interval=_interval(scores, method, fitted_points, (_gradients(ahead, scale, exponent) @ follows)[0], value),
        exponent=exponent,
        exponent_interval=_interval(scores, method, fitted_points, follows[2], exponent),
    )


def check(scores: CurveScores) -> HeldOutCheck:
    """Hold forecasts from the points up to a quarter of the last one against the scores there."""
    from scipy.stats import kendalltau

    at = float(scores.x[-1])
    early = scores.x[scores.x <= at / HELD_OUT]
    if not len(early):
        return HeldOutCheck(None, at, unit=scores.unit)
    until = float(early[-1])
    means = {method: scores.mean(method) for method in scores.methods}
    place = len(early) - 1
    fits = [
        forecast(scores, method, at, until) for method, mean in means.items() if np.isfinite(mean[[place, -1]]).all()
    ]
    forecasts = tuple(of_method for of_method in fits if of_method.value is not None)
    predicted = [of_method.value for of_method in forecasts if of_method.value is not None]
    ends, starts = ([float(means[of_method.method][column]) for of_method in forecasts] for column in (-1, place))
    taus = [np.nan, np.nan]
    if len(forecasts) > 2:
        taus = [float(kendalltau(ends, ranked).statistic) for ranked in (predicted, starts)]
    of_forecasts, of_scores = (None if np.isnan(tau) else tau for tau in taus)
    off = tuple(value - end for value, end in zip(predicted, ends, strict=True))
    return HeldOutCheck(until, at, forecasts, off, of_forecasts, of_scores, scores.unit)


def _exponent(x: FloatArray, y: FloatArray) -> float:
    """Return the exponent of the least-squares fit: the best of a grid, then between its neighbours."""
    from scipy.optimize import minimize_scalar

    def left(exponent: float) -> float:
        design = _design(x, exponent)
        residuals = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
        return float(residuals @ residuals)

    grid = np.linspace(FLATTEST, STEEPEST, 38)
    best = int(np.argmin([left(exponent) for exponent in grid]))
    around = grid[max(0, best - 1)], grid[min(len(grid) - 1, best + 1)]
    return float(minimize_scalar(left, bounds=around, method="bounded", options={"xatol": 1e-6}).x)


def _design(x: FloatArray, exponent: float) -> FloatArray:
    """Return what end and scale are multiplied by `[points, 2]`."""
    return np.stack([np.ones_like(x), -(x**-exponent)], axis=1)


def _gradients(x: FloatArray, scale: float, exponent: float) -> FloatArray:
    """Return how the curve follows end, scale and exponent `[points, 3]`."""
    powers = x**-exponent
    return np.stack([np.ones_like(x), -powers, scale * np.log(x) * powers], axis=1)


def _interval(
    scores: CurveScores, method: str, fitted_points: IntArray, weights: FloatArray, value: float
) -> tuple[float, float] | None:
    """Return the 95 % interval of a weighted sum of points around a value; None where its error cannot be said."""
    from scipy.special import stdtrit

    values = np.einsum("p,tpq->tq", weights, scores.values[np.ix_(scores.rows(method), fitted_points.tolist())])
    error, freedom, _ = errors(scores.prepared([{method: values}])[0])
    if np.isnan(error[0]):
        return None
    half = float(error[0] * stdtrit(freedom[0], (1 + COVERAGE) / 2)) if error[0] > 0 else 0.0
    return value - half, value + half
