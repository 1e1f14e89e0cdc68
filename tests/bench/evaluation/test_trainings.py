"""Trainings crossed with seeds: statsmodels' mixed model, textbook formulas and least squares as judges."""

import math
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy import stats

from bench.core.errors import UsageError
from bench.evaluation.significance.estimates import Sample
from bench.evaluation.significance.families import Comparison, Family, family
from bench.evaluation.significance.trainings import FloatArray, Trainings, bartlett
from bench.testing import fields


def table(systems: int, seeds: int, shared: float = 1.0, seed: int = 0) -> FloatArray:
    """Values `[systems, seeds]`: a seed's luck that all have in common, and each training's own."""
    draw = np.random.default_rng(seed)
    return 0.5 + 0.02 * draw.normal(size=(systems, seeds)) + 0.02 * shared * draw.normal(size=seeds)


def crossed(values: FloatArray, present: Any = None) -> Trainings:
    """Cross a table with its seeds, without questions; `present` leaves trainings out."""
    systems, seeds = np.indices(values.shape)[:2]
    chosen = np.ones(values.shape, bool) if present is None else np.asarray(present, bool)
    count = int(chosen.sum())
    return Trainings(values[chosen], np.zeros((count, 1)), systems[chosen], seeds[chosen])


def sample(runs: Any, seeds: Any = None, start: str = "", spread: float = 0.0) -> Sample:
    """Trainings that answer every question alike, or with a spread that is the same for all systems."""
    values = np.asarray(runs, float)[:, None] + spread * np.linspace(-1, 1, 5)
    return Sample({"": values}, seeds=tuple(map(str, seeds if seeds is not None else ())), start=start)


def compared(systems: dict[str, Sample], pairs: Any = None) -> Family:
    """Compare on the only task."""
    return family(systems, {"": {"": 1.0}}, pairs=pairs)


def half(comparison: Comparison) -> float:
    """Half the width of an interval."""
    assert comparison.low is not None
    assert comparison.high is not None
    return (comparison.high - comparison.low) / 2


@pytest.mark.parametrize(("systems", "seeds"), [(4, 3), (5, 3), (9, 3), (4, 10)])
def test_whole_tables_are_the_two_way_analysis_of_variance_and_reml(systems: int, seeds: int) -> None:
    """Components and errors are MixedLM's `y ~ system + (1 | seed)` where both components are positive."""
    values = table(systems, seeds, seed=systems)
    trainings = crossed(values)
    rows = pd.DataFrame(
        {
            "y": values.ravel(),
            "system": np.indices(values.shape)[0].ravel().astype(str),
            "seed": np.indices(values.shape)[1].ravel(),
        }
    )
    rows["y"] *= 100  # near one, as the optimiser likes it
    model = smf.mixedlm("y ~ C(system)", rows, groups="seed").fit(reml=True)
    centred = values - values.mean(axis=1, keepdims=True)
    by_seed = systems * (centred.mean(axis=0) ** 2).sum() / (seeds - 1)
    rest = ((centred - centred.mean(axis=0)) ** 2).sum() / (systems - 1) / (seeds - 1)
    assert by_seed > rest, "a component at the boundary is another test"
    assert trainings.rest is not None
    assert trainings.rest.pooled == pytest.approx((rest, rest, (systems - 1) * (seeds - 1)))
    whole = (by_seed + (systems - 1) * rest) / systems
    freedom = (seeds - 1) * (by_seed + (systems - 1) * rest) ** 2 / (by_seed**2 + (systems - 1) * rest**2)
    assert trainings.whole.pooled == pytest.approx((whole, whole, freedom))
    pair = trainings.of_pairs(np.array([0]), np.array([1]))
    assert pair.total[0] == pytest.approx(2 * rest / seeds)
    assert math.sqrt(pair.total[0]) == pytest.approx(model.bse.iloc[1] / 100, rel=1e-5)
    assert whole == pytest.approx((model.scale + model.cov_re.iloc[0, 0]) / 1e4, rel=1e-4)
    comparison = compared({str(at): sample(row, range(seeds)) for at, row in enumerate(values)}).comparison("0", "1")
    reach = stats.t.ppf(0.975, (systems - 1) * (seeds - 1)) * math.sqrt(2 * rest / seeds)
    assert half(comparison) == pytest.approx(reach, rel=1e-9)


def test_at_the_boundary_mean_squares_stay_what_they_are() -> None:
    """Where seeds scatter less than chance lets them, REML pools both squares; here a pair keeps its own."""
    values = table(5, 3, shared=0.0)
    values -= values.mean(axis=0) - values.mean()  # no effect of any seed is left
    trainings = crossed(values)
    assert trainings.rest is not None
    squares = ((values - values.mean(axis=1, keepdims=True)) ** 2).sum()
    assert trainings.rest.pooled[1] == pytest.approx(squares / 8)
    assert trainings.whole.pooled[1] == pytest.approx(squares / 10), "one training of a system"
    assert trainings.of_pairs(np.array([0]), np.array([1])).total[0] == pytest.approx(2 * squares / 8 / 3)


def test_tables_with_holes_are_solved_by_least_squares() -> None:
    """Sums of squares are those of regressions on systems, and on systems and seeds."""
    values = table(5, 4, seed=3)
    present = np.ones((5, 4), bool)
    present[0, 1] = present[3, 2] = present[3, 3] = False
    trainings = crossed(values, present)
    places = np.argwhere(present)
    columns = np.eye(5)[places[:, 0]], np.eye(4)[places[:, 1]]
    squares = []
    for design in (columns[0], np.concatenate(columns, axis=1)):
        solution = np.linalg.lstsq(design, values[present], rcond=None)[0]
        squares.append(float(((values[present] - design @ solution) ** 2).sum()))
    assert (trainings.alone**2).sum() == pytest.approx(squares[1])
    assert (trainings.seeds**2).sum() == pytest.approx(squares[0] - squares[1])
    assert trainings.df_seeds == 3
    assert trainings.rest is not None


def test_seeds_that_two_systems_do_not_share_are_two_samples() -> None:
    """Without a seed in common the pooled t-test; with all, seed by seed; with some, between the two."""
    first, second = np.array([0.50, 0.55, 0.48, 0.52, 0.51]), np.array([0.47, 0.53, 0.44, 0.49, 0.45])
    judge = stats.ttest_ind(first, second)
    apart = compared({"a": sample(first, "abcde"), "b": sample(second, "fghij")}).comparison("a", "b")
    assert (apart.p_uncorrected, apart.low) == pytest.approx((judge.pvalue, judge.confidence_interval().low))
    unnamed = compared({"a": sample(first), "b": sample(second)}).comparison("a", "b")
    assert unnamed.p_uncorrected == pytest.approx(judge.pvalue)
    together = compared({"a": sample(first, "abcde"), "b": sample(second, "abcde")}).comparison("a", "b")
    assert together.p_uncorrected == pytest.approx(stats.ttest_rel(first, second).pvalue)
    third, fourth = np.array([0.47, 0.40, 0.44]), np.array([0.45, 0.37, 0.43])
    rows = {
        "a": sample(first[:3], "xyz"),
        "b": sample(second[:3], "xyz"),
        "c": sample(third, "yzu"),
        "d": sample(fourth, "yzu"),
    }
    whole = compared(rows)
    widths = {pair: half(whole.comparison(*pair)) for pair in (("a", "b"), ("a", "c"))}
    assert widths["a", "b"] < widths["a", "c"]


def test_a_fixed_system_is_compared_with_the_whole_luck_of_a_training() -> None:
    """V / S with Satterthwaite's degrees of freedom, however the seeds move all methods alike."""
    values = table(4, 3, shared=3.0, seed=5)
    rows = {f"m{at}": sample(row, range(3)) for at, row in enumerate(values)}
    fixed = compared({**rows, "bm25": Sample({"": np.full(5, 0.3)}, deterministic=True)}).comparison("m0", "bm25")
    variance, _, freedom = crossed(values).whole.pooled
    assert freedom < 4, "seeds move all alike: four methods are hardly more than one"
    assert half(fixed) == pytest.approx(stats.t.ppf(0.975, freedom) * math.sqrt(variance / 3), rel=1e-9)


@pytest.mark.parametrize("drawn", [True, False])
def test_gains_are_paired_with_the_start_of_the_seed(drawn: bool) -> None:
    """Three methods over one start: the analysis of variance of Y − X, many to one; a fixed start has one row."""
    luck = np.array([0.05, -0.04, 0.01])
    start = 0.2 + luck if drawn else np.full(3, 0.2)
    values = np.array([0.30, 0.25, 0.21])[:, None] + luck * 0.8 + table(3, 3, 0.0, seed=3) - 0.5
    rows = {f"m{at}": sample(row, range(3), "start") for at, row in enumerate(values)}
    rows["start"] = sample(start, range(3)) if drawn else Sample({"": np.full(5, 0.2)}, deterministic=True)
    gains = compared(rows, [(f"m{at}", "start") for at in range(3)])
    whole = crossed(values - start).whole
    reach = stats.t.ppf(0.975, whole.freedom) * np.sqrt(whole.total / 3)
    for at in range(3):
        gain = gains.comparison(f"m{at}", "start")
        assert gain.difference == pytest.approx(values[at].mean() - 0.2 - (luck.mean() if drawn else 0))
        assert half(gain) == pytest.approx(reach[at], rel=1e-9)
        assert gains.comparison("start", f"m{at}").difference == -gain.difference
    everyone = compared(rows)
    same, mine = everyone.comparison("m0", "start"), gains.comparison("m0", "start")
    assert (same.p_uncorrected, same.low, same.high) == (mine.p_uncorrected, mine.low, mine.high), (
        "one pair has one test in every family"
    )
    assert same.adjusted >= mine.adjusted, "and pays for the family that it is in"
    assert list(gains.pairs()) == [(f"m{at}", "start") for at in range(3)]


def test_unlike_scatter_is_found_in_what_trainings_do_by_themselves() -> None:
    """Grubbs's estimator of each method's own part; a luck that seeds share hides nothing of it."""
    draw = np.random.default_rng(4)
    luck, wild, seeds = draw.normal(size=6), 8 * draw.normal(size=6), 6
    values = draw.normal(size=(5, seeds)) + 20 * luck
    values[0] += wild
    trainings = crossed(values)
    assert trainings.rest is not None
    assert trainings.rest.sources[0] == -1, trainings.rest.alike
    double = values - values.mean(axis=1, keepdims=True) - values.mean(axis=0) + values.mean()
    mean_square = (double**2).sum(axis=1) / (seeds - 1)
    pooled = (double**2).sum() / 4 / (seeds - 1)
    assert trainings.rest.total[0] == pytest.approx((mean_square[0] - pooled / 5) / (1 - 2 / 5))
    assert trainings.rest.freedom[0] == pytest.approx(seeds - 1)


def test_so_few_trainings_that_no_pretest_sees_them_are_never_pooled() -> None:
    """Three methods with three seeds count with the larger variance, though Bartlett's test finds nothing."""
    values = {"a": [0.50, 0.53, 0.48], "b": [0.44, 0.47, 0.45], "c": [0.61, 0.63, 0.58]}
    assert stats.bartlett(*values.values()).pvalue > 0.5
    variances = [float(np.var(runs, ddof=1)) for runs in values.values()]
    pooled = fmean(variances)
    counted, freedom = [max(pooled, variance) for variance in variances], [2 if v > pooled else 6 for v in variances]
    assert freedom == [2, 6, 2]
    family = compared({name: sample(runs) for name, runs in values.items()})
    spread = sum((variance / 3) ** 2 / free for variance, free in zip(counted[:2], freedom[:2], strict=True))
    satterthwaite = (sum(counted[:2]) / 3) ** 2 / spread
    expected = stats.t.ppf(0.975, satterthwaite) * math.sqrt(sum(counted[:2]) / 3)
    assert half(family.comparison("a", "b")) == pytest.approx(expected)
    assert not family.scatter[""].pooled


@pytest.mark.parametrize(("times", "apart"), [(1.2, False), (4.0, True)])
def test_systems_with_as_many_seeds_are_pooled_apart_where_they_scatter_unlike_the_rest(
    times: float, apart: bool
) -> None:
    """Two methods with eight seeds each, two with four: one pool of all, or one each with its own freedom."""
    draw, deviations = np.random.default_rng(12), {"a": 1.0, "b": 1.1, "c": times, "d": 1.1 * times}
    runs = {}
    for name, deviation in deviations.items():
        values = draw.normal(size=8 if name in "ab" else 4)
        runs[name] = deviation * (values - values.mean()) / values.std(ddof=1)
    groups = np.array([1 + 1.1**2, times**2 * (1 + 1.1**2)]) / 2
    assert (bartlett(groups, np.array([14.0, 6.0])) < 0.25) is apart
    family = compared({name: sample(values) for name, values in runs.items()})
    freedom = [14, 6] if apart else [groups.sum() ** 2 / (groups[0] ** 2 / 14 + groups[1] ** 2 / 6)] * 2
    variances = groups if apart else [groups.mean()] * 2
    for pair, seeds, variance, free in zip(("ab", "cd"), (8, 4), variances, freedom, strict=True):
        expected = stats.t.ppf(0.975, free) * math.sqrt(2 * variance / seeds)
        assert half(family.comparison(*pair)) == pytest.approx(expected)


def test_where_numbers_of_seeds_differ_each_method_counts_the_same() -> None:
    """Two methods with many seeds do not outvote the one with few: the mean of variances, not of squares."""
    draw = np.random.default_rng(6)
    runs = {"a": draw.normal(0, 1, 10), "b": draw.normal(0, 1, 10), "c": draw.normal(0, 1, 3)}
    scatter = compared({name: sample(values) for name, values in runs.items()}).scatter[""]
    variances = [float(np.var(values, ddof=1)) for values in runs.values()]
    many = (variances[0] + variances[1]) / 2
    assert scatter.deviation == pytest.approx(math.sqrt(sum(variances) / 3))
    expected = sum(variances) ** 2 / ((2 * many) ** 2 / 18 + variances[2] ** 2 / 2)
    assert scatter.freedom == pytest.approx(expected)


def test_bartletts_test_is_scipys() -> None:
    """Of raw scatter, for equal and unequal numbers."""
    draw = np.random.default_rng(7)
    samples = [draw.normal(0, scale, size) for scale, size in ((1, 3), (2, 5), (0.5, 9))]
    variances = np.array([np.var(values, ddof=1) for values in samples])
    freedom = np.array([len(values) - 1.0 for values in samples])
    assert bartlett(variances, freedom) == pytest.approx(stats.bartlett(*samples).pvalue)
    halves = [np.array([True, True, False]), np.array([False, False, True])]
    assert bartlett(variances, freedom, halves) == pytest.approx(stats.bartlett(*samples[:2]).pvalue)
    assert math.isnan(bartlett(variances[:1], freedom[:1]))


def test_what_trainings_have_in_common_is_said() -> None:
    """The part of a training's variance that all systems of its seed have; nothing is said without shared seeds."""
    values = table(6, 4, shared=3.0, seed=8)
    shared = compared({str(at): sample(row, range(4)) for at, row in enumerate(values)}).scatter[""].shared
    centred = values - values.mean(axis=1, keepdims=True)
    rest = ((centred - centred.mean(axis=0)) ** 2).sum() / 15
    assert shared == pytest.approx(1 - rest / ((centred**2).sum() / 18))
    assert math.isnan(compared({str(at): sample(row) for at, row in enumerate(values)}).scatter[""].shared)


def test_a_new_training_beats_a_new_one_as_often_as_they_scatter() -> None:
    """Whatever the number of seeds that showed it; none is said where nothing scatters, or of checkpoints."""
    values = np.array([[0.50, 0.54, 0.49, 0.53, 0.51], [0.45, 0.47, 0.44, 0.48, 0.46]])
    rows = {name: sample(row) for name, row in zip("ab", values, strict=True)}
    variance = float(np.mean([np.var(row, ddof=1) for row in values]))
    expected = stats.norm.cdf((values[0].mean() - values[1].mean()) / math.sqrt(2 * variance))
    comparison = compared(rows).comparison("a", "b")
    assert comparison.superiority == pytest.approx(expected)
    assert comparison.turned().superiority == pytest.approx(1 - expected)
    longer = {name: sample(np.tile(row, 5)) for name, row in zip("ab", values, strict=True)}
    assert compared(longer).comparison("a", "b").superiority == pytest.approx(expected, abs=0.02)
    few = compared({"a": sample([0.5, 0.6]), "b": sample([0.4, 0.45, 0.5])}).comparison("a", "b")
    assert (few.superiority, few.checkpoints) == (None, True)


def test_one_method_no_scatter_and_two_seeds() -> None:
    """A number that is right, or none."""
    (alone,) = compared({"a": sample([0.5, 0.6, 0.4])}).members.values()
    assert alone == ("a",)
    same = compared({"a": sample([0.5] * 3, range(3)), "b": sample([0.4] * 3, range(3))}).comparison("a", "b")
    assert (same.low, same.high) == pytest.approx((0.1, 0.1))
    one = sample([0.5, 0.52, 0.6], range(3))
    one_scatters = compared({"a": one, "b": sample([0.4] * 3, range(3))}).comparison("a", "b")
    assert half(one_scatters) == pytest.approx(stats.t.ppf(0.975, 2) * np.std([0.5, 0.52, 0.6], ddof=1) / math.sqrt(3))
    two = compared({"a": sample([0.5, 0.6], range(2), "s"), "s": sample([0.4, 0.45], range(2))}).comparison("a", "s")
    assert (two.checkpoints, two.superiority) == (True, None)


def test_names_of_seeds_are_one_for_each_training() -> None:
    """Else the error says whose are not."""
    fault = fields(where="a", found="2 names of seeds", expected="one for each of 3")
    with pytest.raises(UsageError, check=fault):
        compared({"a": sample([0.5, 0.6, 0.7], "xy"), "b": sample([0.4, 0.5, 0.6])})


def test_decisions_near_the_level_are_drawn_until_they_stand() -> None:
    """Or are called open: eight generators never say both yes and no of one pair."""
    draw = np.random.default_rng(12)
    values = draw.normal(0, 1, (6, 150))
    values[0] += 0.276
    rows = {str(at): Sample({"": row}, deterministic=True) for at, row in enumerate(values)}
    families = [family(rows, {"": {"": 1.0}}, seed=seed) for seed in range(8)]
    adjusted = np.array([each.table["adjusted"] for each in families])
    closest = int(np.argmin(np.abs(adjusted.mean(axis=0) - 0.05)))
    assert 0.03 < adjusted[:, closest].mean() < 0.07, "one pair is near the level"
    decided = {
        each.decided.tobytes()
        for each in families
        if (np.abs(each.table["adjusted"] - 0.05) >= 4 * each.table["chance"]).all()
    }
    assert len(decided) <= 1
    assert max(each.table["chance"][closest] for each in families) < 0.003


def test_a_decision_that_draws_do_not_settle_is_none() -> None:
    """Neither yes nor no is said of a p value within its own error of the level, and no digit that chance drew."""
    comparison = Comparison(0.1, 0.0, 0.2, 0.004, 0.0497, None, None, 100, 60, 40, chance=0.0004)
    assert (comparison.settled, comparison.decided) == (False, False)
    assert comparison.chance_text == "p = 0.05, not decided"
    sure = Comparison(0.1, 0.0, 0.2, 0.004, 0.0412, None, None, 100, 60, 40, chance=0.0004)
    assert (sure.settled, sure.decided, sure.chance_text) == (True, True, "p = 0.041")


def test_freedom_is_one_at_least() -> None:
    """Where trainings scatter no more than their questions make them, on few questions: an interval that can be read.

    Satterthwaite's freedom is the square of the variance over its spread; what questions add to the scatter of
    trainings is in the spread, and was taken off the variance.
    """
    draw = np.random.default_rng(6)
    for _ in range(40):
        first, second = (0.5 + 0.2 * draw.normal(size=(3, 12)) for _ in range(2))
        samples = {name: Sample({"": np.clip(values, 0, 1)}) for name, values in (("a", first), ("b", second))}
        comparison = family(samples, {"": {"": 1.0}}).comparison("a", "b")
        assert comparison.freedom is not None
        assert comparison.freedom >= 1
        assert comparison.low is not None
        assert comparison.error is not None
        assert comparison.difference - comparison.low <= stats.t.ppf(0.975, 1) * comparison.error * (1 + 1e-9)
