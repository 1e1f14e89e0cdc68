"""Intervals by simulation: what they cover over queries, and over training runs of which there are few."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from bench.core.errors import UsageError
from bench.evaluation.significance.resampling import FloatArray, TrainingRuns, bootstrap
from bench.evaluation.significance.tests import ENOUGH, interval, intervals, pairwise, stratified

PAIRS = 800
QUERIES = (70, 50)


def test_intervals_over_a_hundred_queries_cover_the_truth() -> None:
    """Of 2,000 pairs, with skewed differences of ranks and with two tasks of other sizes."""
    draw = np.random.default_rng(21)
    ranks = 1 / draw.integers(1, 30, (100, 2_000)) - 1 / draw.integers(1, 30, (100, 2_000))
    low, high = bootstrap([ranks + 0.1], [1.0], seed=3, resamples=1_000)
    assert 0.93 <= np.mean((low <= 0.1) & (high >= 0.1)) <= 0.97
    tasks = [draw.normal(0.2, 0.3, (100, 2_000)), draw.normal(0.0, 0.5, (150, 2_000))]
    low, high = bootstrap(tasks, [0.5, 0.5], seed=3, resamples=1_000)
    assert 0.93 <= np.mean((low <= 0.1) & (high >= 0.1)) <= 0.97


def test_the_interval_is_scipys_paired_bootstrap() -> None:
    """Ends within a tenth of the width, for 150 queries with ties."""
    draw = np.random.default_rng(8)
    first, second = draw.integers(0, 3, 150) / 2, draw.integers(0, 3, 150) / 2
    judge = stats.bootstrap(
        (first, second),
        lambda a, b, axis: np.mean(a, axis=axis) - np.mean(b, axis=axis),
        paired=True,
        n_resamples=5_000,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    found = stratified({"x": (first, second)}, seed=0)
    assert (found.low, found.high) == pytest.approx((judge.low, judge.high), abs=(judge.high - judge.low) / 10)


def simulated(runs: int, between: float, draw: np.random.Generator) -> tuple[list[FloatArray], list[TrainingRuns]]:
    """Pairs of systems that are equally good: queries, training runs and their mixture make their differences.

    Args:
        runs: of each system.
        between: deviation of a training run's mean.
        draw: chance.
    """
    shifts = [draw.normal(0, between, (PAIRS, runs)) for _ in range(2)]
    strata, deviations = [], ([], [])  # type: tuple[list[FloatArray], tuple[list[FloatArray], list[FloatArray]]]
    for queries in QUERIES:
        own = draw.normal(0, 0.3, (queries, PAIRS, 1))
        sides = [shift + draw.normal(0, 0.1, (queries, PAIRS, runs)) for shift in shifts]
        sides[0] = sides[0] + own
        strata.append(sides[0].mean(axis=2) - sides[1].mean(axis=2))
        for kept, side in zip(deviations, sides, strict=True):
            kept.append(side - side.mean(axis=2, keepdims=True))
    trained = [
        TrainingRuns(
            f"{side}-{pair}", [block[:, pair] for block in kept], *(([pair], []) if side == 0 else ([], [pair]))
        )
        for side, kept in enumerate(deviations)
        for pair in range(PAIRS if runs > 1 else 0)
    ]
    return strata, trained


def test_coverage_over_training_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Measured, with runs that scatter as much as queries do: from five runs on the intervals hold what they promise.

    With one run training variation is not included, and an interval says too much; with two or three it is too short.
    """
    found = {}
    for runs in (1, 2, 3, 5, 10):
        strata, trained = simulated(runs, 0.05, np.random.default_rng(runs))
        low, high = bootstrap(strata, [0.5, 0.5], seed=1, resamples=400, trained=trained)
        found[runs] = float(np.mean((low <= 0) & (high >= 0)))
    with capsys.disabled():
        told = ", ".join(f"{runs}: {share:.1%}" for runs, share in found.items())
        print(f"\ncoverage of 95 % intervals by training runs: {told}")  # noqa: T201 (a measurement)
    assert found[1] < 0.75
    assert 0.83 <= found[2] <= found[5]
    assert found[3] >= 0.88
    assert all(0.915 <= found[runs] <= 0.975 for runs in (ENOUGH, 10))


def runs_of(seeds: int, spread: float, seed: int) -> FloatArray:
    """Values [seeds, 80 queries] of a system whose runs differ by `spread`."""
    draw = np.random.default_rng(seed)
    values: FloatArray = draw.random(80) + draw.normal(0, spread, (seeds, 1)) + draw.normal(0, 0.01, (seeds, 80))
    return values


def test_runs_widen_the_interval_and_change_no_test() -> None:
    """Tests are of the means over runs; the variance of the runs' mean adds to that of the queries."""
    first, second = runs_of(4, 0.2, 1), runs_of(6, 0.0, 2)
    whole = stratified({"x": (first, second)}, seed=0)
    means = stratified({"x": (first.mean(axis=0), second.mean(axis=0))}, seed=0)
    for name in ("difference", "p_randomisation", "p_t", "effect", "detectable", "wins", "losses", "n"):
        assert getattr(whole, name) == getattr(means, name)
    assert (whole.seeds, means.seeds) == ((4, 6), (1, 1))
    assert whole.high - whole.low > 1.5 * (means.high - means.low)
    low, high = interval({"x": first}, seed=0)
    expected = 2 * 1.96 * np.hypot(first.mean(axis=1).std(ddof=1) / 2, first.mean(axis=0).std(ddof=1) / np.sqrt(80))
    assert high - low == pytest.approx(expected, rel=0.15)


def test_intervals_of_a_table_are_those_one_by_one() -> None:
    """Up to rounding without runs; runs are drawn by the system's name, so up to their chance with several."""
    table = {"a": {"x": runs_of(1, 0.1, 1)}, "b": {"x": runs_of(5, 0.1, 2)}}
    found = intervals(table, 0)
    assert found["a"] == pytest.approx(interval(table["a"], 0), abs=1e-12)
    assert found["b"] == intervals({"b": table["b"]}, 0)["b"]
    assert found["b"] == pytest.approx(interval(table["b"], 0), abs=0.02)
    assert intervals({}, 0) == {}


def test_runs_that_are_the_same_add_nothing() -> None:
    """Five copies of one run are one run."""
    first, second = runs_of(1, 0.0, 1), runs_of(1, 0.0, 2)
    once = stratified({"x": (first, second)}, seed=0)
    five = stratified({"x": (np.tile(first, (5, 1)), second)}, seed=0)
    assert (five.low, five.high) == pytest.approx((once.low, once.high), abs=1e-12)


def test_runs_in_common_cancel() -> None:
    """An encoder and the same encoder, always a little better: apart their runs blur it, together they do not."""
    first = runs_of(3, 0.3, 1)
    table = {"tuned": {"x": first + 0.02}, "plain": {"x": first}}
    apart = pairwise(table, 0)["tuned", "plain"]
    together = pairwise(table, 0, trainings={"tuned": "crop", "plain": "crop"})["tuned", "plain"]
    assert apart.low < 0 < apart.high
    assert (together.low, together.high) == pytest.approx((0.02, 0.02))


def test_turning_a_pair_with_runs() -> None:
    """Both ways round the same chance; `turned` says the same as asking again."""
    table = {"a": {"x": runs_of(3, 0.1, 1)}, "b": {"x": runs_of(2, 0.1, 2)}, "c": {"x": runs_of(1, 0.1, 3)}}
    forth = pairwise(table, 0)
    back = pairwise(dict(reversed(table.items())), 0)
    for (one, other), found in forth.items():
        turned, again = found.turned(), back[other, one]
        assert (turned.low, turned.high, turned.effect) == pytest.approx((again.low, again.high, again.effect))
        assert (turned.wins, turned.losses, turned.seeds) == (again.wins, again.losses, again.seeds)
        assert found.turned().turned() == found


def test_runs_that_do_not_fit_are_refused() -> None:
    """Other numbers of runs in two tasks, or in two systems of the same trainings; no run at all."""
    two, three = runs_of(2, 0.1, 1), runs_of(3, 0.1, 1)
    with pytest.raises(UsageError, match="found 3 seeds, elsewhere 2"):
        pairwise({"a": {"x": two, "y": three}, "b": {"x": two, "y": two}}, 0)
    with pytest.raises(UsageError, match="found 2 and 3 seeds, expected the same for the same trainings"):
        pairwise({"a": {"x": two}, "b": {"x": three}}, 0, trainings={"a": "t", "b": "t"})
    with pytest.raises(UsageError, match=r"found values of shape \[0, 80\]"):
        interval({"x": two[:0]}, 0)
