"""Which methods are unlikely to catch up, guessed on the way: never a test, and it says so.

No test on scores of a quarter of a budget is valid for its end: where curves rise at different rates, tests and halving
alike drop the method that would have been best in a third to a half of cases, since it may well be behind at a quarter.
So each method may repeat its last doubling's gain for every doubling that is left, though gains mostly shrink, and the
leader is taken to stay flat; who stays behind even so, by two standard errors on either side, is dropped.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bench.core.errors import UsageError
from bench.evaluation.significance.trainings import FloatArray

ERRORS = 2.0
"""Standard errors by which a forecast must stay behind, on either side."""


@dataclass(frozen=True)
class Guess:
    """What is expected of a method at the end if it repeats its last gain.

    Args:
        now: mean over seeds at the point, a fraction.
        gain: mean of what the last doubling gained.
        forecast: `now` and the gain of every doubling that is left.
        highest: the forecast and its errors.
        leader: the highest mean at the point, which is taken to stay flat.
        lowest: that, less its errors.
        dropped: whether `highest` is below `lowest`.
    """

    now: float
    gain: float
    forecast: float
    highest: float
    leader: float
    lowest: float
    dropped: bool


def guesses(before: Mapping[str, FloatArray], now: Mapping[str, FloatArray], share: float) -> dict[str, Guess]:
    """Guess which methods to drop at a point of their trainings.

    Args:
        before: scores at half of the tokens of the point, by method, each `[seeds]`, two or more.
        now: scores at the point, of the same seeds.
        share: of the budget at the point, 0 < share < 1.

    Raises:
        UsageError: a method has fewer than two seeds, or others than the rest.
    """
    doublings = -math.log2(share)
    seeds = {len(values) for values in (*before.values(), *now.values())}
    if len(seeds) != 1 or min(seeds) < 2:
        raise UsageError(found=f"trainings by method and point: {sorted(seeds)}", expected="two or more, of all alike")
    (count,) = seeds
    forecasts = {name: now[name] + doublings * (now[name] - before[name]) for name in now}
    error, error_now = _error(forecasts, count), _error(now, count)
    leader = max(float(values.mean()) for values in now.values())
    lowest = leader - ERRORS * error_now
    result = {}
    for name, values in forecasts.items():
        forecast, gain = float(values.mean()), float((now[name] - before[name]).mean())
        highest = max(forecast, float(now[name].mean())) + ERRORS * error
        result[name] = Guess(float(now[name].mean()), gain, forecast, highest, leader, lowest, highest < lowest)
    return result


def _error(values: Mapping[str, FloatArray], count: int) -> float:
    """Return the standard error of a mean over seeds, from the scatter of all methods."""
    return math.sqrt(float(np.mean([np.var(scores_of_method, ddof=1) for scores_of_method in values.values()])) / count)
