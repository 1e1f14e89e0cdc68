"""Other tasks: the paired t test of scipy, the analysis of variance of statsmodels, and cases worked by hand."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ttest_rel

from bench.evaluation.significance.families import Comparison, stratified
from bench.evaluation.significance.tasks import better_in_at_least, over_tasks, reliability

Values = dict[tuple[str, str], float]
FIRST, SECOND = (0.31, 0.52, 0.44, 0.73, 0.2), (0.25, 0.5, 0.47, 0.61, 0.2)


def tasks(values: Sequence[float]) -> Values:
    """Values by task, of its only subset."""
    return {(f"t{at}", ""): value for at, value in enumerate(values)}


def test_equal_shares_are_the_paired_t_test() -> None:
    """Of scipy, over tasks: one value each."""
    expected = ttest_rel(FIRST, SECOND)
    interval = expected.confidence_interval()
    compared = over_tasks(tasks(FIRST), tasks(SECOND), tasks([0.2] * 5))
    assert (compared.low, compared.high) == pytest.approx((interval.low, interval.high), rel=1e-9)
    assert (compared.difference, compared.p_uncorrected) == pytest.approx((0.034, expected.pvalue), rel=1e-9)
    assert (compared.wins, compared.ties, compared.tasks, compared.better_in) == (3, 1, 5, None)


def test_unequal_shares_by_hand() -> None:
    """Differences .1, .3, .2 (s = .1), shares 1/2, 1/4, 1/4: mean .175, error .1 · √(3/8), t(2) at 97.5 % = 4.3027."""
    compared = over_tasks(tasks([0.1, 0.3, 0.2]), tasks([0.0] * 3), tasks([0.5, 0.25, 0.25]))
    reach = 4.302653 * 0.1 * math.sqrt(3 / 8)
    assert (compared.difference, compared.low, compared.high) == pytest.approx((0.175, 0.175 - reach, 0.175 + reach))


def test_unequal_shares_cover_what_tasks_have_on_average() -> None:
    """A task that weighs half of ten: 95 % of intervals hold the true difference, or more; Monte-Carlo error .005."""
    chance = np.random.default_rng(0)
    weights, zero = tasks([0.5, *[0.5 / 9] * 9]), tasks([0.0] * 10)
    intervals = [over_tasks(tasks(row), zero, weights) for row in chance.normal(0.02, 0.1, size=(2_000, 10)).tolist()]
    covered = np.mean(
        [pair.low is not None and pair.high is not None and pair.low <= 0.02 <= pair.high for pair in intervals]
    )
    assert covered >= 0.935


def test_subsets_count_by_their_weights_within_their_task() -> None:
    """A task of two subsets, 3 to 1: 0.9 = 0.75 · 1 + 0.25 · 0.6."""
    weights = {("x", "ab"): 0.25, ("x", "ba"): 1 / 12, ("y", ""): 1 / 3, ("z", ""): 1 / 3}
    split = {("x", "ab"): 1.0, ("x", "ba"): 0.6, ("y", ""): 0.2, ("z", ""): 0.5}
    flat = dict.fromkeys(weights, 0.4)
    expected = over_tasks(tasks([0.9, 0.2, 0.5]), tasks([0.4] * 3), tasks([1 / 3] * 3))
    assert astuple(over_tasks(split, flat, weights))[:-1] == pytest.approx(astuple(expected)[:-1], rel=1e-9)


def test_two_tasks_are_no_sample() -> None:
    """The difference and who wins, without an interval; so for one task."""
    for count in (1, 2):
        compared = over_tasks(tasks(FIRST[:count]), tasks(SECOND[:count]), tasks([1 / count] * count))
        assert (compared.low, compared.high, compared.p_uncorrected, compared.interval) == (None, None, None, None)
        assert (compared.wins, compared.ties, compared.tasks) == (count, 0, count)


@pytest.mark.parametrize(("gain", "p", "wins"), [(0.1, 0.25, 3), (0.0, 1.0, 0), (-0.1, 0.25, 0)])
def test_tasks_that_all_differ_alike(gain: float, p: float, wins: int) -> None:
    """An interval without width, judged by the signs of three tasks, 2 · (1/2)³; rounding does not count."""
    start = (0.1, 0.2, 0.7)
    compared = over_tasks(tasks([value + gain for value in start]), tasks(start), tasks([1 / 3] * 3))
    assert (compared.low, compared.high, compared.p_uncorrected, compared.wins) == (
        compared.difference,
        compared.difference,
        p,
        wins,
    )
    assert compared.difference == pytest.approx(gain)
    assert compared.ties == (0 if gain else 3)


def test_partial_conjunction_by_hand() -> None:
    """Five tasks, sorted .001, .004, .02, .03, .5: times 5, 4, 3, 2, 1 they are .005, .016, .06, .06, .5: two tasks.

    A fourth of .02 would pass by itself, at .04, but not behind a third that fails.
    """
    assert better_in_at_least([0.03, 0.001, 0.5, 0.004, 0.02]) == 2
    assert better_in_at_least([0.001, 0.004, 0.02, 0.02, 0.5]) == 2
    assert better_in_at_least([0.001, 0.004, 0.016, 0.025, 0.05]) == 5, "the level itself is significant"
    assert better_in_at_least([0.02, 0.02, 0.02, 0.02, 0.02]) == 0
    assert better_in_at_least([]) == 0
    # For ten pairs together the first is .05, the second .16.
    assert better_in_at_least([0.03, 0.001, 0.5, 0.004, 0.02], pairs=10) == 1


@pytest.mark.parametrize("shared", [0.0, 0.9])
def test_partial_conjunction_is_rarely_too_large(shared: float) -> None:
    """Better in 2 of 6 tasks, clearly, and equal in 4, which may share their questions: 5 % say more, or fewer."""
    from scipy.special import ndtr

    chance = np.random.default_rng(1)
    common, parts = chance.standard_normal((4_000, 1)), chance.standard_normal((4_000, 6))
    scores = math.sqrt(shared) * common + math.sqrt(1 - shared) * parts + np.array([6, 6, 0, 0, 0, 0])
    counts = [better_in_at_least(p_values) for p_values in ndtr(-scores).tolist()]
    assert np.mean(np.array(counts) > 2) <= 0.06
    assert np.mean(np.array(counts) == 2) >= 0.9


def test_tests_of_tasks_are_read_in_the_direction_of_the_pair() -> None:
    """One-sided: half of p where the first is better, else the rest; for a task without a test nothing is claimed."""
    chance = np.random.default_rng(2)
    columns = {
        f"t{at}": (chance.normal(level, 0.1, 50), chance.normal(0.4, 0.1, 50))
        for at, level in enumerate((0.6, 0.6, 0.2))
    }
    tests: Mapping[str, Comparison] = {task: stratified({task: pair}) for task, pair in columns.items()}
    first, second = (tasks([float(pair[side].mean()) for pair in columns.values()]) for side in (0, 1))
    weights = tasks([1 / 3] * 3)
    assert over_tasks(first, second, weights, tests).better_in == 2
    turned = {task: test.turned() for task, test in tests.items()}
    assert over_tasks(second, first, weights, turned).better_in == 1
    assert over_tasks(first, second, weights, {"t0": tests["t0"]}).better_in is None
    barely = {
        task: replace(test, p_uncorrected=0.06) for task, test in tests.items()
    }  # two of three at .03: 3 · .03 is not enough
    assert over_tasks(first, second, weights, barely).better_in == 0


def test_reliability_by_hand() -> None:
    """Systems' means .2, .4, .6 (variance .04) and residuals of ± .05: the table below.

    Residuals, rows by tasks: 0 .05 −.05 | .05 −.05 0 | −.05 0 .05; squares sum to .015, over 4 degrees of freedom
    .00375. Systems: .04 − .00375 / 3 = .03875. Coefficient .03875 / (.03875 + .00125) = .96875; 19 · .00375 / .03875 =
    1.84: two tasks.
    """
    residual = np.array([[0.0, 0.05, -0.05], [0.05, -0.05, 0.0], [-0.05, 0.0, 0.05]])
    table = np.array([[0.2], [0.4], [0.6]]) + np.array([-0.1, 0.0, 0.1]) + residual
    systems = {str(at): tasks(row) for at, row in enumerate(table.tolist())}
    measured = reliability(systems, tasks([1 / 3] * 3))
    assert measured is not None
    assert (measured.coefficient, measured.tasks_needed) == pytest.approx((0.96875, 2))
    assert (measured.systems, measured.tasks) == (3, 3)
    assert str(measured) == "0.97 for 3 systems on 3 tasks; 2 tasks that count alike are needed for 0.95"
    # Shares 1/2, 1/4, 1/4 are worth 8/3 tasks: .03875 / (.03875 + .00375 · 3/8).
    unequal = reliability(systems, tasks([0.5, 0.25, 0.25]))
    assert unequal is not None
    assert (unequal.coefficient, unequal.tasks_needed) == pytest.approx((0.03875 / 0.04015625, 2))


def test_reliability_is_that_of_an_analysis_of_variance() -> None:
    """Mean squares of statsmodels for a table without replication; 1 − 1/F is the coefficient of the whole table."""
    from statsmodels.formula.api import ols
    from statsmodels.stats.anova import anova_lm

    chance = np.random.default_rng(3)
    table = chance.normal(0, 0.02, (6, 1)) + chance.normal(0, 0.1, (1, 8)) + chance.normal(0.5, 0.05, (6, 8))
    frame = pd.DataFrame([(str(s), str(t), value) for (s, t), value in np.ndenumerate(table)], columns=["s", "t", "y"])
    squares = anova_lm(ols("y ~ C(s) + C(t)", frame).fit())["mean_sq"]
    between, within = (squares["C(s)"] - squares["Residual"]) / 8, squares["Residual"]
    assert between > 0
    measured = reliability({str(at): tasks(row) for at, row in enumerate(table.tolist())}, tasks([1 / 8] * 8))
    assert measured is not None
    assert measured.coefficient == pytest.approx(1 - within / squares["C(s)"])
    assert measured.tasks_needed == math.ceil(19 * within / between)


def test_reliability_of_systems_that_do_not_differ() -> None:
    """Equal on average: no number of tasks orders them; alike in all tasks: one task does; few of either: nothing."""
    latin = [[0.1, 0.2, 0.3], [0.2, 0.3, 0.1], [0.3, 0.1, 0.2]]
    equal, weights = {str(at): tasks(row) for at, row in enumerate(latin)}, tasks([1 / 3] * 3)
    measured = reliability(equal, weights)
    assert measured is not None
    assert (measured.coefficient, measured.tasks_needed) == (0.0, None)
    assert str(measured).endswith("so no number of tasks is enough")
    same = reliability(dict.fromkeys("abc", tasks([0.1, 0.2, 0.7])), weights)
    assert same is not None
    assert (same.coefficient, same.tasks_needed) == (0.0, None)
    steps = reliability({str(at): tasks([0.1 + at / 10, 0.2 + at / 10, 0.7 + at / 10]) for at in range(3)}, weights)
    assert steps is not None
    assert (steps.coefficient, steps.tasks_needed) == pytest.approx((1, 1))
    assert str(steps) == "1.00 for 3 systems on 3 tasks; one task is enough for 0.95"
    assert reliability(dict(list(equal.items())[:2]), weights) is None
    assert reliability({name: tasks([0.1, 0.2]) for name in "abc"}, tasks([0.5, 0.5])) is None
    assert reliability({}, {}) is None
