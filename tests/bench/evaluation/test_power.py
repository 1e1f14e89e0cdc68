"""The t-test over tasks and what it could have found: scipy and statsmodels as judges, and simulated pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import TTestPower
from statsmodels.stats.weightstats import DescrStatsW

from bench.evaluation.significance.power import detectable, student
from bench.evaluation.significance.tests import paired, stratified


@pytest.mark.parametrize("n", [3, 5, 10, 60, 100])
def test_what_is_detectable_is_statsmodels_power(n: int) -> None:
    """Its effect size times the deviation of the differences."""
    draw = np.random.default_rng(n)
    first, second = draw.random(n), draw.random(n)
    expected = TTestPower().solve_power(nobs=n, alpha=0.05, power=0.8) * np.std(first - second, ddof=1)
    assert paired(first, second, seed=0).detectable == pytest.approx(expected, rel=1e-4)


def test_many_queries_need_2_80_standard_errors() -> None:
    """1.960 for the level and 0.842 for the power."""
    differences = np.random.default_rng(0).normal(0, 0.3, (20_000, 1))
    tests = student([differences], [1.0])
    assert detectable(tests)[0] / tests.error[0] == pytest.approx(1.95996 + 0.84162, rel=1e-3)


def test_the_detectable_difference_is_found_four_times_of_five() -> None:
    """Simulated: two tasks of other sizes and scatter, 4,000 pairs whose true difference is the detectable one."""
    draw = np.random.default_rng(5)
    noise = [draw.normal(0, 0.2, (60, 4_000)), draw.normal(0, 0.4, (25, 4_000))]
    error = math.sqrt((0.2**2 / 60 + 0.4**2 / 25) / 4)
    rough = student(noise, [0.5, 0.5])
    smallest = float(np.median(detectable(rough) / rough.error)) * error
    found = student([block + smallest for block in noise], [0.5, 0.5])
    assert np.mean(found.p <= 0.05) == pytest.approx(0.8, abs=0.025)


def test_columns_are_tested_as_by_scipy_and_statsmodels() -> None:
    """Each of many pairs, one task: p, standard error, degrees of freedom; NaN where nothing varies."""
    draw = np.random.default_rng(6)
    differences = draw.normal(0.02, 0.3, (40, 5))
    differences[:, 3], differences[:, 4] = 0.0, 0.25
    found = student([differences], [1.0])
    for column in range(3):
        judge = stats.ttest_1samp(differences[:, column], 0)
        other = DescrStatsW(differences[:, column])
        assert found.p[column] == pytest.approx(judge.pvalue, rel=1e-9)
        assert found.p[column] == pytest.approx(other.ttest_mean(0)[1], rel=1e-9)
        assert found.error[column] == pytest.approx(other.std_mean, rel=1e-9)
        assert found.freedom[column] == pytest.approx(39)
    assert np.isnan(found.p[3:]).all()
    assert np.isnan(detectable(found)[3:]).all()


def test_a_task_with_one_query_tells_nothing() -> None:
    """No spread, no error, no power."""
    found = stratified({"a": ([0.5, 0.7], [0.1, 0.2]), "b": ([1.0], [0.0])}, seed=0)
    assert (found.p_t, found.effect, found.detectable) == (None, None, None)
