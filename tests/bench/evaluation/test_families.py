"""Families of comparisons: scipy and statsmodels as judges of estimates, errors and corrections; what is refused."""

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

from bench.core.errors import UsageError
from bench.evaluation.significance import simulation
from bench.evaluation.significance.estimates import Sample
from bench.evaluation.significance.families import Family, family, holm, intervals, stratified
from bench.evaluation.significance.questions import questions
from bench.evaluation.significance.trainings import FloatArray
from bench.testing import fields
from bench.types import Parallel
from experiments.calibration import decision
from tests.conftest import cases


def noisy(n: int, gain: float = 0.0, seed: int = 1) -> tuple[FloatArray, FloatArray]:
    """Two systems on n queries; the first is better by `gain` on average."""
    draw = np.random.default_rng(seed)
    base = draw.random(n)
    return base + gain + draw.normal(0, 0.1, n), base


def constant(*runs: float, queries: int = 5) -> FloatArray:
    """Trainings of a system that answers every query alike, so that trainings alone are random."""
    return np.repeat(np.array(runs)[:, None], queries, axis=1)


@pytest.mark.parametrize("n", [3, 12, 80])
def test_one_task_is_the_paired_t_test(n: int) -> None:
    """P and interval; what is detectable is what statsmodels' power finds."""
    first, second = noisy(n, 0.03)
    comparison, judge = stratified({"": (first, second)}), stats.ttest_rel(first, second)
    assert comparison.p_uncorrected == comparison.adjusted == pytest.approx(judge.pvalue, rel=1e-9)
    assert (comparison.low, comparison.high) == pytest.approx(tuple(judge.confidence_interval()), rel=1e-9)
    deviation = np.std(first - second, ddof=1)
    expected = TTestPower().solve_power(nobs=n, alpha=0.05, power=0.8) * deviation
    assert comparison.detectable == pytest.approx(expected, rel=0.15 if n == 3 else 0.01)


@pytest.mark.parametrize("case", cases("decisions"), ids=lambda case: str(case["name"]))
def test_decisions_are_those_of_scipy_statsmodels_and_the_hand(case: dict[str, Any]) -> None:
    """Twelve of them: paired, weighted, clustered, with trainings, corrected; docs/calibration.md lists them."""
    comparison = decision(case)
    assert comparison.p_uncorrected == pytest.approx(case["p"], rel=1e-9)
    assert comparison.low == (None if case["low"] is None else pytest.approx(case["low"], rel=1e-9))
    assert comparison.high == (None if case["high"] is None else pytest.approx(case["high"], rel=1e-9))
    assert (comparison.decided, comparison.checkpoints) == (case["decided"], case["checkpoints"])
    assert case["adjusted"] is None or comparison.adjusted == pytest.approx(case["adjusted"], rel=1e-9)


@pytest.mark.parametrize("count", range(2, 12))
def test_equal_systems_do_not_differ_however_many_there_are(count: int) -> None:
    """Sums of equal values may differ in their last digit: no difference, and none that is decided."""
    draw = np.random.default_rng(count)
    first, second = draw.random((3, 60)), draw.random((3, 60))
    samples = {f"{at}": Sample({"a": first, "b": second}, seeds=("x", "y", "z")) for at in range(count)}
    other = {"other": Sample({"a": draw.random(60), "b": draw.random(60)}, deterministic=True)}
    compared = family({**samples, **other}, {"": {"a": 0.5, "b": 0.5}})
    pairs = [compared.comparison(*pair) for pair in combinations(samples, 2)]
    assert {(pair.difference, pair.adjusted, pair.decided) for pair in pairs} == {(0.0, 1.0, False)}


def test_questions_that_share_a_draw_are_wider_than_if_each_were_its_own() -> None:
    """And the order of tasks changes nothing."""
    shared = np.random.default_rng(5).normal(0, 1, 40)
    tasks = {language: (shared, np.zeros(40)) for language in ("en", "de", "fr")}
    by_question, by_query = (
        stratified(tasks, questions={key: list(map(str, range(40))) for key in tasks}),
        stratified(tasks),
    )
    assert by_question.low is not None
    assert by_query.low is not None
    assert by_question.difference - by_question.low == pytest.approx(
        math.sqrt(3) * (by_query.difference - by_query.low), rel=0.03
    )
    assert stratified(dict(reversed(list(tasks.items())))) == by_query


def test_trainings_are_two_samples_or_pairs() -> None:
    """Of two methods the t-test of pooled variance; of an encoder and the same encoder tuned the paired one."""
    runs = {"a": (0.50, 0.54, 0.49), "b": (0.45, 0.47, 0.44, 0.46)}
    result = family({name: Sample({"": constant(*values)}) for name, values in runs.items()}, {"": {"": 1.0}})
    comparison = result.comparison("a", "b")
    assert (comparison.checkpoints, comparison.seeds) == (False, (3, 4))
    assert result.scatter[""].equal == pytest.approx(stats.bartlett(*runs.values()).pvalue)
    plain, better = (0.2, 0.5, 0.3, 0.7), (0.24, 0.55, 0.33, 0.75)
    shared = {"plain": constant(*plain), "better": constant(*better), "shifted": constant(*plain) + 0.02}
    result = family({name: Sample({"": values}, trainings="t") for name, values in shared.items()}, {"": {"": 1.0}})
    paired = stats.ttest_rel(better, plain)
    comparison = result.comparison("better", "plain")
    assert (comparison.p_uncorrected, comparison.low) == pytest.approx(
        (paired.pvalue, paired.confidence_interval().low), rel=1e-6
    )
    shifted = result.comparison("shifted", "plain")
    assert (shifted.low, shifted.high) == pytest.approx((0.02, 0.02))


def test_what_questions_add_to_the_scatter_of_trainings_counts_once() -> None:
    """Trainings that differ by noise of queries alone: the error is that of the questions, not of both."""
    draw = np.random.default_rng(7)
    values = {name: Sample({"": draw.normal(0, 1, (5, 2000))}) for name in "abcdefgh"}
    result = family(values, {"": {"": 1.0}})
    assert result.scatter[""].deviation < 0.5 * math.sqrt(1 / 2000)
    comparison = result.comparison("a", "b")
    assert comparison.high is not None
    assert comparison.high - comparison.difference == pytest.approx(1.96 * math.sqrt(2 / 5 / 2000), rel=0.3)


def test_a_method_whose_trainings_scatter_more_counts_with_its_own() -> None:
    """Bartlett's test rejects; the pooled variance would make its differences too sure, others keep theirs."""
    wild = (0.1, 0.9, 0.3, 0.7, 0.2, 0.8)
    calm = {f"calm{at}": Sample({"": constant(*(0.5 + 0.001 * (at + run) for run in range(6)))}) for at in range(5)}
    result = family({"wild": Sample({"": constant(*wild)}), **calm}, {"": {"": 1.0}})
    assert result.scatter[""].equal < 1e-6
    width = {pair: result.comparison(*pair).high - result.comparison(*pair).difference for pair in result.pairs()}  # type: ignore[operator] # numbers, here
    pooled = result.scatter[""].deviation
    reach = stats.t.ppf(0.975, result.scatter[""].freedom)
    assert width["calm0", "calm1"] == pytest.approx(reach * pooled * math.sqrt(2 / 6), rel=1e-6)
    assert width["wild", "calm1"] > 1.2 * width["calm0", "calm1"]


@pytest.mark.parametrize(("ratio", "pooled"), [(1.5, True), (1.7, True), (1.8, False), (3.0, False)])
def test_scatter_is_pooled_unless_bartletts_test_rejects_at_one_in_four(ratio: float, pooled: bool) -> None:
    """Next to a system whose trainings scatter `ratio` times as much; own variances bring their own freedom."""
    shape = np.array([-1.5, -0.5, 0.5, 1.5, -1.0, 1.0])
    runs = {"calm": 0.5 + 0.01 * shape, "wild": 0.5 + 0.01 * ratio * shape}
    p = stats.bartlett(*runs.values()).pvalue
    assert bool(p > 0.25) is pooled
    result = family({name: Sample({"": constant(*values)}) for name, values in runs.items()}, {"": {"": 1.0}})
    scatter = {name: float(np.var(values, ddof=1)) for name, values in runs.items()}
    mean = (scatter["calm"] + scatter["wild"]) / 2
    counted = [mean, mean] if pooled else [max(mean, scatter[name]) for name in ("calm", "wild")]
    freedom = 10.0 if pooled else sum(counted) ** 2 / (counted[0] ** 2 / 10 + counted[1] ** 2 / 5)
    comparison = result.comparison("wild", "calm")
    assert comparison.high is not None
    reach = stats.t.ppf(0.975, freedom) * math.sqrt(sum(counted) / 6)
    assert comparison.high - comparison.difference == pytest.approx(reach, rel=1e-6)


def test_trainings_and_questions_have_satterthwaites_degrees_of_freedom() -> None:
    """Of 12 questions and five trainings a system, by hand: both parts are estimates, each with its own freedom."""
    draw = np.random.default_rng(11)
    values = {
        name: 0.5 + gain + draw.normal(0, 0.1, 12) + draw.normal(0, 0.1, (5, 12)) + draw.normal(0, 0.09, (5, 1))
        for name, gain in (("a", 0.1), ("b", 0.0))
    }
    between = np.mean([np.var(runs.mean(axis=1), ddof=1) for runs in values.values()])
    centred = [runs - runs.mean(axis=1, keepdims=True) for runs in values.values()]
    by_chance = np.mean([np.var(runs, axis=0, ddof=1).sum() / 12 / 11 for runs in centred])
    assert between > 2 * by_chance
    means = values["a"].mean(axis=0) - values["b"].mean(axis=0)
    of_questions = np.var(means, ddof=1) / 12
    variance = of_questions + (between - by_chance) * 2 / 5
    freedom = variance**2 / (of_questions**2 / 11 + (between * 2 / 5) ** 2 / 8)
    comparison = family({name: Sample({"": runs}) for name, runs in values.items()}, {"": {"": 1.0}}).comparison(
        "a", "b"
    )
    assert comparison.p_uncorrected == pytest.approx(
        2 * stats.t.sf(means.mean() / math.sqrt(variance), freedom), rel=1e-9
    )


@pytest.mark.parametrize(
    ("runs", "deterministic", "of_checkpoints"), [(1, False, True), (2, False, True), (3, False, False)]
)
def test_below_three_trainings_it_is_about_checkpoints(runs: int, deterministic: bool, of_checkpoints: bool) -> None:
    """Trainings then change nothing but the mean; a deterministic system says all with one."""
    draw = np.random.default_rng(8)
    values = draw.random(60) + draw.normal(0, 0.2, (runs, 1))
    fixed = draw.random(60)
    result = family({"a": Sample({"": values}), "b": Sample({"": fixed}, deterministic=True)}, {"": {"": 1.0}})
    comparison, means = result.comparison("a", "b"), stratified({"": (values.mean(axis=0), fixed)})
    assert comparison.checkpoints is of_checkpoints
    assert (comparison.p_uncorrected == pytest.approx(means.p_uncorrected)) is of_checkpoints


def test_the_correction_is_tukeys_for_independent_systems() -> None:
    """The clearest of 28 pairs: the studentised range, which knows the dependence of pairs, and not Holm's 28-fold."""
    draw = np.random.default_rng(9)
    values = {str(at): draw.normal(0, 1, 400) for at in range(8)}
    values["0"] += 0.12
    result = family({name: Sample({"": column}) for name, column in values.items()}, {"": {"": 1.0}})
    best = int(np.argmin(result.table["p_uncorrected"]))
    quantile = stats.norm.isf(result.table["p_uncorrected"][best] / 2)
    expected = stats.studentized_range.sf(math.sqrt(2) * quantile, 8, np.inf)
    assert 0.01 < expected < 0.5
    assert result.table["adjusted"][best] == pytest.approx(expected, rel=0.15)
    assert result.table["adjusted"][best] < 0.85 * 28 * result.table["p_uncorrected"][best]


def systems_in_steps(count: int, step: float, n: int = 100) -> Family:
    """Systems one step apart on one task."""
    draw = np.random.default_rng(count)
    values = {f"{at:03}": Sample({"": draw.normal(step * at, 1, n)}, deterministic=True) for at in range(count)}
    return family(values, {"": {"": 1.0}})


def test_a_family_of_a_few_systems_is_drawn_ten_thousand_times() -> None:
    """A corrected p value that neither bound decides counts draws: it is a multiple of 1 in 10,001, and of no fewer."""
    table = systems_in_steps(4, 0.2).table
    assert (np.abs(table["adjusted"] - 0.05) > 4 * table["chance"]).all(), "so that no further draws are needed"
    by_draws = table["adjusted"][
        (table["adjusted"] > table["p_uncorrected"]) & (table["adjusted"] < table["holm"] - 1e-9)
    ]
    assert len(by_draws) >= 2
    counts = by_draws * 10_001
    assert counts == pytest.approx(np.round(counts), abs=1e-6)
    assert any(abs(value * 1_001 - round(value * 1_001)) > 1e-3 for value in by_draws)


def test_draws_are_as_many_in_unequal_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last chunk is what is left: nothing is counted beyond the draws that it is divided by."""
    table = systems_in_steps(4, 0.2).table
    monkeypatch.setattr(simulation, "_CHUNK", 7_000)
    monkeypatch.setattr(simulation, "CELLS", 1)
    again = systems_in_steps(4, 0.2).table["adjusted"]
    assert again == pytest.approx(table["adjusted"], abs=4 * math.sqrt(2) * table["chance"].max())


def test_p_values_have_no_floor_and_keep_their_order() -> None:
    """Of 20 systems far apart all 190 pairs are decided, with p values that 10,000 draws alone could never say."""
    result = systems_in_steps(20, 2.0)
    assert result.decided.all()
    assert result.table["adjusted"].max() < 1e-6
    result = systems_in_steps(12, 0.15)
    p, adjusted = result.table["p_uncorrected"], result.table["adjusted"]
    order = np.argsort(p)
    assert (np.diff(adjusted[order]) >= 0).all()
    assert (p <= adjusted).all()
    assert (adjusted <= holm(p) + 1e-12).all()
    assert result.table["holm"] == pytest.approx(multipletests(p, method="holm")[1], abs=1e-12)


@pytest.mark.parametrize("count", [1, 2, 17, 300])
def test_holm_is_statsmodels(count: int) -> None:
    """On random p values, with ties."""
    chances = np.round(np.random.default_rng(count).random(count) ** 3, 2)
    assert holm(chances) == pytest.approx(multipletests(chances, method="holm")[1], abs=1e-12)


def test_cells_are_one_family_over_all_tasks() -> None:
    """A system without a task is compared on the others; each p is that of the task alone, corrected over all."""
    draw = np.random.default_rng(10)
    table = {name: {task: draw.random(40) for task in ("x", "y")} for name in "abc"}
    del table["c"]["y"]
    result = family(
        {name: Sample(values) for name, values in table.items()}, {task: {task: 1.0} for task in ("x", "y")}
    )
    assert result.members == {"x": ("a", "b", "c"), "y": ("a", "b")}
    assert len(result.decided) == 4
    for task, names in result.members.items():
        for first, second in combinations(names, 2):
            expected = stratified({task: (table[first][task], table[second][task])})
            comparison = result.comparison(first, second, task)
            assert (comparison.difference, comparison.p_uncorrected) == pytest.approx(
                (expected.difference, expected.p_uncorrected)
            )
            assert comparison.adjusted >= comparison.p_uncorrected
            assert result.comparison(second, first, task) == comparison.turned()
    assert not result.has("a", "c", "y")
    one_query = {name: values | {"z": [0.1 * at]} for at, (name, values) in enumerate(table.items())}
    strata = {task: {task: 1.0} for task in ("x", "y", "z")}
    wider = family({name: Sample(values) for name, values in one_query.items()}, strata)
    assert wider.column("adjusted", "z").tolist() == [1.0] * 3, "nothing is known of a task with one query"
    assert (wider.column("adjusted", "x") >= result.column("adjusted", "x") - 0.02).all(), "and it spoils no other"
    assert result.column("p_uncorrected", "y").tolist() == [result.comparison("a", "b", "y").p_uncorrected]


def test_nothing_varies() -> None:
    """Equal systems differ by nothing; a constant gain is sure; one query and copies of a training add nothing."""
    equal = stratified({"": ([0.1, 0.5, 1.0], [0.1, 0.5, 1.0])})
    assert (equal.difference, equal.low, equal.high, equal.p_uncorrected, equal.superiority, equal.detectable) == (
        0,
        0,
        0,
        1,
        None,
        None,
    )
    assert (equal.wins, equal.ties, equal.losses) == (0, 3, 0)
    gain = stratified({"": (np.linspace(0, 1, 9) + 0.3, np.linspace(0, 1, 9))})
    assert (gain.p_uncorrected, gain.wins) == (2**-8, 9)
    assert gain.low == pytest.approx(0.3)
    single = stratified({"a": ([0.5, 0.7], [0.1, 0.2]), "b": ([1.0], [0.0])})
    assert (single.p_uncorrected, single.low, single.high, single.detectable) == (1, None, None, None)
    tiny = stratified({"": ([1e-200, 3e-200, 2e-200], [0, 0, 0])})
    assert tiny.p_uncorrected == pytest.approx(stats.ttest_1samp([1, 3, 2], 0).pvalue)
    first, second = noisy(50, 0.02)
    result = family({"a": Sample({"": np.tile(first, (5, 1))}), "b": Sample({"": second})}, {"": {"": 1.0}})
    assert result.comparison("a", "b").p_uncorrected == pytest.approx(stratified({"": (first, second)}).p_uncorrected)
    # Draws are seeded; a family of one system has no pairs.
    assert systems_in_steps(5, 0.2).table["adjusted"].tolist() == systems_in_steps(5, 0.2).table["adjusted"].tolist()
    single_system = family({"a": Sample({"": [0.1, 0.2]})}, {"": {"": 1.0}})
    assert (list(single_system.pairs()), single_system.decided.tolist()) == ([], [])


def test_intervals_of_a_system() -> None:
    """Student's where nothing is skewed, and further on the long side where it is; none for one query."""
    even = np.linspace(0, 1, 40)
    ((low, high),) = intervals({"a": Sample({"": even})}, {"": 1.0}).values()
    assert (low, high) == pytest.approx(tuple(stats.ttest_1samp(even, 0).confidence_interval()), rel=1e-6)
    skewed = np.where(np.arange(40) < 4, 1.0, 0.0)
    ((low, high),) = intervals({"a": Sample({"": skewed})}, {"": 1.0}).values()
    judge = stats.ttest_1samp(skewed, 0).confidence_interval()
    assert low == pytest.approx(judge.low)
    assert high > judge.high + 0.02
    assert intervals({"a": Sample({"": [0.5]})}, {"": 1.0}) == {}


@pytest.mark.parametrize("successes", [4, 36])
def test_skewed_intervals_are_halls(successes: int) -> None:
    """Hall (1992): g(T) = T + s T²/3 + s² T³/27 + s/6 is symmetric, for a studentised mean T and s = skewness / √n.

    The roots of both cubic equations g(T) = ±t are those of numpy; the longer reach of Student and Hall counts. Few
    successes are skewed to the right and widen the upper side, few failures the lower one.
    """
    values = np.where(np.arange(40) < successes, 1.0, 0.0)
    skewness, error, student = stats.skew(values) / math.sqrt(40), stats.sem(values), stats.t.ppf(0.975, 39)
    roots = []
    for quantile in (student, -student):
        cubic = np.roots([skewness**2 / 27, skewness / 3, 1.0, skewness / 6 - quantile])
        (root,) = (complex(root).real for root in cubic if abs(complex(root).imag) < 1e-9)
        roots.append(root)
    ((low, high),) = intervals({"a": Sample({"": values})}, {"": 1.0}).values()
    assert low == pytest.approx(values.mean() - error * max(student, roots[0]), rel=1e-9)
    assert high == pytest.approx(values.mean() + error * max(student, -roots[1]), rel=1e-9)
    wide, narrow = (
        (high - values.mean(), values.mean() - low) if successes == 4 else (values.mean() - low, high - values.mean())
    )
    assert wide > 1.2 * narrow


@pytest.mark.parametrize(("parallel", "task", "queries", "expected"), cases("which-queries-are-one-question"))
def test_which_queries_are_one_question(parallel: Parallel, task: str, queries: list[str], expected: Any) -> None:
    """By id within a task or a suite, without the task's name."""
    assert questions(parallel, task, queries) == expected


@pytest.mark.parametrize(
    ("first", "second", "fault"),
    [
        ({"": [1, 2]}, {"": [1]}, {"expected": "the same queries on both sides"}),
        ({"": []}, {"": []}, {"expected": "one for each query"}),
        ({"": [math.nan]}, {"": [0]}, {"found": "a value that is not finite"}),
        ({"": [[[1, 2]]]}, {"": [[[1, 2]]]}, {"found": "values of shape [1, 1, 2]"}),
        ({}, {"": [1]}, {"found": "no task"}),
        ({"": [[1], [2]], "b": [[1]]}, {"": [1]}, {"found": "1 seeds", "expected": "2"}),
    ],
)
def test_what_cannot_be_paired_is_refused(first: Any, second: Any, fault: dict[str, str]) -> None:
    """By what was found, and what was expected."""
    with pytest.raises(UsageError, check=fields(**fault)):
        family({"a": Sample(first), "b": Sample(second)}, {"": {"": 1.0}})


def test_weights_questions_and_trainings_must_fit() -> None:
    """A weight that is not positive, another number of questions than queries, of trainings in common."""
    pair = {"a": Sample({"x": [1.0, 2.0]}), "b": Sample({"x": [1.0, 1.0]})}
    for weights in ({}, {"x": -1.0}, {"x": math.inf}):
        with pytest.raises(UsageError, check=fields(expected="a positive number for each stratum")):
            family(pair, {"": weights})
    with pytest.raises(UsageError, check=fields(where="x", found="1 questions")):
        family(pair, {"": {"x": 1.0}}, {"x": ["q"]})
    shared = {name: Sample({"x": constant(*runs)}, trainings="t") for name, runs in (("a", (1, 2)), ("b", (1, 2, 3)))}
    with pytest.raises(UsageError, check=fields(found="2 and 3 seeds", expected="the same trainings")):
        family(shared, {"": {"x": 1.0}})
