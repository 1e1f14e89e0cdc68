"""Forecasts and their check: scipy's fit as judge of values and of how far they move."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize, stats

from bench.core.errors import UsageError
from bench.evaluation.learning_curves.bands import CurveScores
from bench.evaluation.learning_curves.forecast import HeldOutCheck, check, forecast
from bench.evaluation.significance.trainings import FloatArray
from bench.testing import fields

X: FloatArray = np.array([1000.0 * 2**at for at in range(8)])


def power(x: FloatArray, end: float, scale: float, exponent: float) -> FloatArray:
    """A curve that rises to its end, in units of the first point."""
    curve: FloatArray = end - scale * (x / X[0]) ** -exponent
    return curve


def curves(*methods: Sequence[FloatArray], questions: int = 4) -> CurveScores:
    """Trainings `[points]` of methods `a`, `b` and so on, with the same value on each question."""
    trainings = tuple((chr(ord("a") + at), seed) for at, runs in enumerate(methods) for seed in range(len(runs)))
    values = np.array([run for runs in methods for run in runs])
    return CurveScores(X, trainings, np.repeat(values[..., None], questions, axis=2))


def fitted(runs: FloatArray) -> FloatArray:
    """End, scale and exponent by scipy."""
    return np.asarray(optimize.curve_fit(power, X, runs.mean(axis=0), p0=(0.5, 0.3, 0.4), xtol=1e-14, ftol=1e-14)[0])


def test_a_power_is_found_whatever_the_offsets_of_its_trainings() -> None:
    """Their mean is its offset; without scatter around it the interval is that of the offsets."""
    offsets = np.array([-0.02, 0.0, 0.02])
    scores = curves([power(X, 0.6, 0.4, 0.35) + offset for offset in offsets])
    found = forecast(scores, "a", 4 * X[-1])
    assert found.exponent == pytest.approx(0.35, abs=1e-4)
    assert found.value == pytest.approx(power(np.array([4 * X[-1]]), 0.6, 0.4, 0.35)[0], abs=1e-5)
    half = stats.t.ppf(0.975, 2) * 0.02 / math.sqrt(3)
    low, high = found.interval or (0, 0)
    assert high - low == pytest.approx(2 * half, rel=1e-3)
    assert found.value == pytest.approx((low + high) / 2)
    assert found.sentence.startswith("a: ")
    assert found.sentence.endswith("at 512k tokens, if it goes on as it did up to 128k")
    assert found.as_json() | {"interval": None} == {
        "method": "a",
        "at": 512_000,
        "until": 128_000,
        "value": found.value,
        "interval": None,
        "exponent": found.exponent,
        "exponent_interval": [*(found.exponent_interval or ())],
        "why_not": "",
        "checkpoints": False,
        "unit": "tokens",
        "sentence": found.sentence,
    }


def test_intervals_are_of_what_fits_do_when_a_training_moves() -> None:
    """Each training's pull on the fit, by finite differences of scipy's; Student's over trainings."""
    runs = power(X, 0.6, 0.4, 0.35) + 0.004 * np.random.default_rng(0).normal(size=(4, 8))
    found = forecast(curves(list(runs)), "a", 2 * X[-1])
    best = fitted(runs)
    assert found.exponent == pytest.approx(best[2], abs=1e-5)
    step = 1e-6
    pulls = np.array([(fitted(runs + step * np.eye(8)[at]) - best) / step for at in range(8)])
    ends = [power(np.array([2 * X[-1]]), *(best + sign * step * pulls[at]))[0] for at in range(8) for sign in (1, -1)]
    of_value = (np.array(ends[::2]) - np.array(ends[1::2])) / (2 * step)
    for interval, pull in ((found.exponent_interval, pulls[:, 2]), (found.interval, of_value)):
        low, high = interval or (0, 0)
        expected = stats.ttest_1samp(runs @ pull, 0).confidence_interval()
        assert high - low == pytest.approx(expected.high - expected.low, rel=1e-3)


def test_one_training_has_an_interval_over_questions() -> None:
    """And speaks of itself."""
    draw = np.random.default_rng(0)
    values = power(X, 0.6, 0.4, 0.35)[None, :, None] + 0.01 * draw.normal(size=(1, 8, 50))
    found = forecast(CurveScores(X, (("a", 0),), values), "a", 2 * X[-1])
    assert found.checkpoints
    assert found.sentence.startswith("these seeds: a: ")
    low, high = found.interval or (0, 0)
    assert low < float(found.value or 0) < high


def test_no_forecast_of_what_no_power_fits() -> None:
    """Few points, a logarithm, a step, a curve that falls; each says why."""
    flat = np.zeros(8)
    cases = {
        "bound (it rises like a logarithm": np.log(X) / 20,
        "bound (it bends more sharply": np.where(X[0] < X, 0.5, 0.1),
        "it does not rise": -power(X, 0.6, 0.4, 0.35),
    }
    for why, curve in cases.items():
        found = forecast(curves([curve, curve + 0.01, curve + flat]), "a", 4 * X[-1])
        assert (found.value, found.interval, found.exponent) == (None, None, None)
        assert why in found.sentence
    short = curves([power(X, 0.6, 0.4, 0.35)])
    assert forecast(short, "a", 4 * X[-1], until=8_000).why_not == "4 points, and it needs 5"
    lost = short.values.copy()
    lost[0, 4:] = np.nan
    assert forecast(replace(short, values=lost), "a", 4 * X[-1]).why_not == "4 points, and it needs 5"
    with pytest.raises(UsageError, check=fields(found="a forecast at 128k tokens", expected="beyond 128k")):
        forecast(short, "a", X[-1])


def test_a_check_says_whether_forecasts_rank_better_than_scores() -> None:
    """Curves that cross after a quarter: forecasts see it, and scores at the quarter do not."""
    ends, exponents = (0.5, 0.6, 0.7, 0.8), (1.0, 0.5, 0.3, 0.2)
    scores = curves(*([power(X, end, end, exponent)] for end, exponent in zip(ends, exponents, strict=True)))
    early, last = scores.scores[:, 5], scores.scores[:, 7]
    checked = check(scores)
    assert (checked.until, checked.at) == (32_000, 128_000)
    assert checked.errors == pytest.approx([0] * 4, abs=1e-4)
    assert checked.tau_forecasts == pytest.approx(1)
    assert checked.tau_scores == pytest.approx(stats.kendalltau(early, last).statistic)
    assert (checked.tau_scores or 1) < 1
    assert checked.ranks_better
    assert checked.sentence.endswith("forecasts rank better")
    assert checked.as_json()["errors"].keys() == {"a", "b", "c", "d"}


def test_a_check_recommends_the_scores_where_forecasts_are_no_better() -> None:
    """Curves that never cross."""
    checked = check(curves(*([power(X, end, 0.4, 0.35)] for end in (0.5, 0.6, 0.7))))
    assert (checked.tau_forecasts, checked.tau_scores) == pytest.approx((1, 1))
    assert checked.ranks_better is False
    assert checked.sentence.endswith("forecasts do not rank better: read the scores")


def test_a_check_that_cannot_be_made_says_so() -> None:
    """Two methods have no order to speak of; few points cannot be fitted."""
    two = check(curves([power(X, 0.5, 0.4, 0.35)], [power(X, 0.6, 0.4, 0.35)]))
    assert (two.tau_forecasts, two.ranks_better, len(two.errors)) == (None, None, 2)
    assert "too few or too equal" in two.sentence
    scores = curves([power(X, 0.5, 0.4, 0.35)])
    few = CurveScores(X[:3], scores.trainings, scores.values[:, :3])
    assert check(few).sentence.startswith("no check of forecasts")
    alone = CurveScores(X[:1], scores.trainings, scores.values[:, :1])
    assert check(alone) == HeldOutCheck(None, 1000.0)
