"""Agreement with a printed number: by hand, and how often it is said of numbers that are wrong."""

import math

import numpy as np
import pytest
from scipy import stats

from bench.evaluation.significance.agreement import agreement, trained_reach


@pytest.mark.parametrize(
    ("difference", "reach", "unit", "verdict"),
    [
        (0.004, 0.005, 0.001, "agrees"),
        (0.0049, 0.0045, 0.001, "agrees"),
        (0.006, 0.0045, 0.001, "differs"),
        (-0.006, 0.0045, 0.001, "differs"),
        (0.006, 0.007, 0.001, "cannot tell"),
        (-0.02, 0.03, 0.001, "cannot tell"),
        (0.0, 0.0096, 0.001, "cannot tell"),
        (0.0, 0.0096, 0.0001, "agrees"),
        (0.0, 0.0, 0.01, "agrees"),
        (0.03, 0.0, 0.1, "cannot tell"),
    ],
)
def test_verdicts_by_hand(difference: float, reach: float, unit: float, verdict: str) -> None:
    """The interval with half a printed unit on each side: within a point, clear of 0, or neither."""
    judged = agreement(difference, reach, unit)
    assert judged.verdict == verdict
    assert (judged.low, judged.high) == pytest.approx((difference - reach - unit / 2, difference + reach + unit / 2))
    turned = agreement(-difference, reach, unit)
    assert turned.verdict == verdict, "the other way round it is the same"


def test_a_margin_can_be_stated() -> None:
    """And decides in place of the point."""
    assert agreement(0.015, 0.001, 0.001).verdict == "differs"
    assert agreement(0.015, 0.001, 0.001, margin=0.02).verdict == "agrees"
    assert agreement(0.001, 0.0, 0.0, margin=0.0).verdict == "differs"


@pytest.mark.parametrize(
    ("away", "deviation", "agreeing"),
    [
        (0, 0.015, 0.0),
        (2, 0.015, 0.0),
        (3, 0.015, 0.0),
        (5, 0.015, 0.0),
        (0, 0.002, 1.0),
        (2, 0.003, 0.2),
        (3, 0.003, 0.05),
        (5, 0.003, 0.001),
    ],
)
def test_wrong_numbers_do_not_agree(away: int, deviation: float, agreeing: float) -> None:
    """Three trainings, a variance of 16 degrees of freedom, a paper whose method is so many standard deviations off.

    The difference over its error is noncentral t, of which the tails are "differs" wherever the interval is wider than
    the margin; "agrees", at most so often, is said of numbers 3 standard deviations off in one case of twenty.
    """
    draw, worlds = np.random.default_rng(4), 4_000
    verdicts = []
    for _ in range(worlds):
        variance = deviation**2 * draw.chisquare(16) / 16
        difference = draw.normal(0, deviation, 3).mean() - draw.normal(away * deviation, deviation)
        verdicts.append(agreement(difference, trained_reach(variance, 16, 3), 0.0).verdict)
    shares = {verdict: verdicts.count(verdict) / worlds for verdict in ("agrees", "differs", "cannot tell")}
    assert shares["agrees"] <= agreeing + 0.01
    assert away or shares["differs"] <= 0.05 + 0.01
    if deviation > 0.01:
        shift, critical = away / math.sqrt(4 / 3), stats.t.ppf(0.975, 16)
        expected = stats.nct.sf(critical, 16, shift) + stats.nct.cdf(-critical, 16, shift)
        assert shares["differs"] == pytest.approx(expected, abs=4 * math.sqrt(0.25 / worlds))


def test_the_reach_is_students_prediction() -> None:
    """Of one more training after three, by hand: 4.303 · 0.02 · √(4/3) with two degrees of freedom."""
    assert trained_reach(0.02**2, 2, 3) == pytest.approx(4.302653 * 0.02 * math.sqrt(4 / 3))
