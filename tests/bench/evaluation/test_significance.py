"""Paired tests: hand cases, scipy as the judge, calibration under the null, what is refused."""

from __future__ import annotations

import math
from dataclasses import asdict, astuple

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from bench.core.errors import UsageError
from bench.evaluation.significance.resampling import FloatArray, bootstrap, randomisation
from bench.evaluation.significance.tests import Comparison, holm, interval, paired, pairwise, stratified, summary
from bench.testing import fields


def systems(n: int, gain: float, seed: int = 1) -> tuple[FloatArray, FloatArray]:
    """Two systems on n queries; the first is better by `gain` on average."""
    draw = np.random.default_rng(seed)
    base = draw.random(n)
    return base + gain + draw.normal(0, 0.1, n), base


def test_three_queries_by_hand() -> None:
    """Differences 1, 2, −4 of eight sign patterns: |sum| is at least 1 in all, so p is 1; flip the 4: 7 and −7 only."""
    even = paired([2, 2, 0], [1, 0, 4], seed=0)
    assert (even.difference, even.p_randomisation) == pytest.approx((-1 / 3, 1))
    assert (even.n, even.wins, even.ties, even.losses) == (3, 2, 0, 1)
    clear = paired([2, 2, 4], [1, 0, 0], seed=0)
    assert (clear.difference, clear.p_randomisation) == pytest.approx((7 / 3, 2 / 8))
    # t = (7/3) / sqrt((7/3) / 3), 2 degrees of freedom; the effect is mean over deviation.
    assert clear.effect == pytest.approx((7 / 3) / math.sqrt(7 / 3))
    assert clear.p_t == pytest.approx(2 * stats.t.sf((7 / 3) / math.sqrt(7 / 9), 2))


def test_equal_systems() -> None:
    """No difference anywhere: nothing is significant, and a t-test is not defined."""
    same = paired([0.1, 0.5, 1.0], [0.1, 0.5, 1.0], seed=0)
    assert asdict(same) == {
        "difference": 0.0,
        "low": 0.0,
        "high": 0.0,
        "p_randomisation": 1.0,
        "p_t": None,
        "n": 3,
        "wins": 0,
        "ties": 3,
        "losses": 0,
        "effect": None,
        "detectable": None,
        "seeds": (1, 1),
    }


def test_queries_that_tie_change_no_p_value() -> None:
    """A zero has no sign: with many of them the test stays exact, and equal to the one without."""
    first, second = [0.5, 0.9, 0.4, 0.8], [0.1, 0.2, 0.5, 0.3]
    padding = [0.7] * 500
    alone, among = paired(first, second, seed=0), paired(first + padding, second + padding, seed=0)
    assert alone.p_randomisation == among.p_randomisation == 4 / 16
    assert among.ties == 500


@pytest.mark.parametrize("n", [5, 12])
def test_small_samples_equal_scipys_exact_test(n: int) -> None:
    """Full enumeration on both sides."""
    first, second = systems(n, 0.06)
    judge = stats.permutation_test(
        (first, second), lambda a, b, axis: np.mean(a - b, axis=axis), permutation_type="samples", n_resamples=np.inf
    )
    found = paired(first, second, seed=0)
    assert found.p_randomisation == pytest.approx(judge.pvalue, abs=1e-12)
    assert found.p_t == pytest.approx(stats.ttest_rel(first, second).pvalue, rel=1e-9)


def test_large_samples_agree_with_scipys_random_test() -> None:
    """Both draw 10,000 patterns; their p values differ by chance only (four standard errors)."""
    first, second = systems(80, 0.03)
    judge = stats.permutation_test(
        (first, second),
        lambda a, b, axis: np.mean(a - b, axis=axis),
        permutation_type="samples",
        n_resamples=9_999,
        rng=np.random.default_rng(5),
    )
    found = paired(first, second, seed=0)
    p = judge.pvalue
    assert 0.005 < p < 0.5
    assert found.p_randomisation == pytest.approx(p, abs=4 * math.sqrt(2 * p * (1 - p) / 10_000))
    assert found.p_t == pytest.approx(stats.ttest_rel(first, second).pvalue, rel=1e-9)
    assert found.effect == pytest.approx(np.mean(first - second) / np.std(first - second, ddof=1))


def test_the_smallest_p_is_not_zero() -> None:
    """The observed pattern counts among the random ones."""
    found = paired(np.ones(200), np.zeros(200), seed=0)
    assert found.p_randomisation == 1 / 10_001
    assert found.p_t is None, "every difference is the same: there is nothing to estimate a deviation from"


def test_calibration_under_the_null() -> None:
    """Of 2,000 pairs of equal systems about a twentieth differs at the level 0.05, with skewed values too."""
    draw = np.random.default_rng(11)
    normal = draw.normal(0, 1, (30, 2000))
    ranks = 1 / draw.integers(1, 30, (30, 2000)) - 1 / draw.integers(1, 30, (30, 2000))
    for differences in (normal, ranks):
        chances = randomisation([differences], [1.0], seed=3, flips=2_000)
        assert 0.035 <= np.mean(chances <= 0.05) <= 0.065
    low, high = bootstrap([normal + 0.3], [1.0], seed=3, resamples=500)
    covered = np.mean((low <= 0.3) & (high >= 0.3))
    assert 0.91 <= covered <= 0.97, "percentile intervals are a little short for 30 queries, not more"


def test_calibration_with_tasks_of_unequal_size_and_scatter() -> None:
    """Flips within tasks keep the level when a short task scatters most."""
    draw = np.random.default_rng(12)
    strata = [draw.normal(0, 0.1, (60, 2000)), draw.normal(0, 2, (15, 2000))]
    assert 0.035 <= np.mean(randomisation(strata, [0.5, 0.5], seed=3, flips=2_000) <= 0.05) <= 0.065


def test_tasks_count_alike_whatever_their_length() -> None:
    """The mean of the tasks' means; weights change it, and the order of tasks does not."""
    tasks = {"long": (np.full(90, 0.6), np.full(90, 0.5)), "short": (np.full(10, 0.1), np.full(10, 0.4))}
    found = stratified(tasks, seed=0)
    assert found.difference == pytest.approx((0.1 - 0.3) / 2)
    assert (found.n, found.wins, found.losses) == (100, 90, 10)
    assert stratified(tasks, 0, {"long": 3, "short": 1}).difference == pytest.approx((3 * 0.1 - 0.3) / 4)
    turned = dict(reversed(list(tasks.items())))
    assert stratified(turned, seed=0) == found


def test_stratified_exact_test_by_hand() -> None:
    """Two queries of weight ¼ and one of ½: the eight sums are ±1 (once each), ±½ (twice each) and 0 (twice)."""
    found = stratified({"a": ([1, 1], [0, 0]), "b": ([1], [0])}, seed=0)
    assert (found.difference, found.p_randomisation) == (1.0, 2 / 8)
    weaker = stratified({"a": ([1, 0], [0, 1]), "b": ([1], [0])}, seed=0)
    assert (weaker.difference, weaker.p_randomisation) == (0.5, 6 / 8)


def test_stratified_t_is_welchs_for_two_tasks() -> None:
    """The mean of two independent means is Welch's statistic with one sample turned round."""
    draw = np.random.default_rng(4)
    one, other = draw.normal(0.1, 1, 25), draw.normal(0.3, 3, 9)
    found = stratified({"a": (one, np.zeros(25)), "b": (other, np.zeros(9))}, seed=0)
    assert found.p_t == pytest.approx(stats.ttest_ind(one, -other, equal_var=False).pvalue, rel=1e-9)


def test_the_interval_agrees_with_scipys_bootstrap() -> None:
    """Ends within a tenth of the interval's width."""
    first, second = systems(60, 0.05)
    judge = stats.bootstrap(
        (first - second,), np.mean, n_resamples=5_000, method="percentile", rng=np.random.default_rng(9)
    ).confidence_interval
    found = paired(first, second, seed=0)
    width = judge.high - judge.low
    assert (found.low, found.high) == pytest.approx((judge.low, judge.high), abs=width / 10)
    assert interval({"": first - second}, seed=0) == (found.low, found.high)


def test_turning_the_pair_round_turns_the_sign() -> None:
    """Same chance, mirrored interval, wins for losses."""
    first, second = systems(50, 0.03)
    one, other = paired(first, second, seed=7), paired(second, first, seed=7)
    assert one.p_randomisation == other.p_randomisation
    assert (one.low, one.high) == pytest.approx((-other.high, -other.low))
    assert (one.difference, one.wins, one.ties) == (-other.difference, other.losses, other.ties)


def test_all_pairs_are_the_pairs_one_by_one() -> None:
    """Sharing the random numbers changes nothing."""
    draw = np.random.default_rng(2)
    table = {name: {"x": draw.random(40), "y": draw.random(25)} for name in "abc"}
    found = pairwise(table, seed=5)
    assert list(found) == [("a", "b"), ("a", "c"), ("b", "c")]
    for (one, other), comparison in found.items():
        alone = stratified({task: (table[one][task], table[other][task]) for task in "xy"}, seed=5)
        assert astuple(comparison)[:-1] == pytest.approx(astuple(alone)[:-1])
    assert pairwise({"a": table["a"]}, seed=5) == {}


def test_the_seed_decides() -> None:
    """Same seed, same numbers; another seed, other random patterns and resamples."""
    first, second = systems(100, 0.015)
    assert paired(first, second, seed=1) == paired(first, second, seed=1)
    one, other = paired(first, second, seed=1), paired(first, second, seed=2)
    assert (one.low, one.p_randomisation) != (other.low, other.p_randomisation)


def test_tiny_differences_stay_numbers() -> None:
    """Squares that would vanish do no harm."""
    found = paired([1e-200, 3e-200, 2e-200], [0, 0, 0], seed=0)
    assert found.p_t == pytest.approx(stats.ttest_1samp([1, 3, 2], 0).pvalue)


def test_holm_by_hand() -> None:
    """0.01 × 4, 0.02 × 3, 0.03 × 2 → not below its forerunner, 0.9."""
    assert holm([0.03, 0.9, 0.01, 0.02]) == pytest.approx([0.06, 0.9, 0.04, 0.06])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([]) == []


@pytest.mark.parametrize("count", [1, 2, 17, 300])
def test_holm_is_statsmodels(count: int) -> None:
    """On random p values, with ties."""
    chances = np.round(np.random.default_rng(count).random(count) ** 3, 2)
    assert holm(list(chances)) == pytest.approx(multipletests(chances, method="holm")[1], abs=1e-12)


def test_the_line_for_people() -> None:
    """Signs, units, two digits of p; a rounded zero has no sign."""
    shown = Comparison(0.4123, -0.0004, 0.4349, 1e-4, None, 6600, 1, 2, 3, None)
    assert summary("crop", "crop@init", "RR@100", shown) == (
        "crop − crop@init: +41.2 RR@100 points, 95 % [0.0, 43.5], p < 0.001 over 6,600 queries"
    )
    worse = Comparison(-0.021, -0.04, 0.001, 0.0123, None, 12, 1, 2, 3, None)
    assert summary("a", "b", "P@1", worse) == "a − b: −2.1 P@1 points, 95 % [−4.0, 0.1], p = 0.012 over 12 queries"


@pytest.mark.parametrize(
    ("first", "second", "fault"),
    [
        ([1, 2], [1], {"expected": "the same queries on both sides"}),
        ([], [], {"expected": "one for each query"}),
        ([math.nan], [0], {"found": "a value that is not finite"}),
        ([0], [math.inf], {"found": "a value that is not finite"}),
        ([[[1, 2]]], [[[1, 2]]], {"found": "values of shape [1, 1, 2]"}),
        (1.0, 1.0, {"found": "values of shape []"}),
    ],
)
def test_what_cannot_be_paired_is_refused(first: list[float], second: list[float], fault: dict[str, str]) -> None:
    """With a sentence that says what was found."""
    with pytest.raises(UsageError, check=fields(**fault)):
        paired(first, second, seed=0)


def test_tasks_and_weights_must_match() -> None:
    """No task, another task, a missing or negative weight."""
    with pytest.raises(UsageError, check=fields(found="no task")):
        stratified({}, seed=0)
    with pytest.raises(UsageError, check=fields(expected="the same queries")):
        pairwise({"a": {"x": [1.0]}, "b": {"y": [1.0]}}, seed=0)
    for weights in ({}, {"x": -1.0}, {"x": 1.0, "y": 1.0}):
        with pytest.raises(UsageError, check=fields(expected="a positive number for each of x")):
            stratified({"x": ([1.0], [0.0])}, 0, weights)
