"""Leads, crossings and standstills: scipy and hand calculations as judges."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from bench.core.errors import UsageError
from bench.evaluation.learning_curves.bands import Bands, CurveScores, Lead, Run, amount, bands, flats
from bench.evaluation.learning_curves.simultaneous import Band, correlations
from bench.evaluation.significance.families import family
from bench.evaluation.significance.trainings import FloatArray
from bench.testing import fields


def curves(values: Any, x: Any = None, **settings: Any) -> CurveScores:
    """Scores of methods `a`, `b` and so on `[methods, seeds, points, questions]`."""
    table = np.asarray(values, np.float64)
    methods, seeds, count = table.shape[:3]
    trainings = tuple((chr(ord("a") + method), seed) for method in range(methods) for seed in range(seeds))
    axis = [1000.0 * 2**at for at in range(count)] if x is None else x
    return CurveScores(np.asarray(axis, float), trainings, table.reshape(-1, *table.shape[2:]), **settings)


def drawn(methods: int, seeds: int, points: int = 4, questions: int = 60, seed: int = 0) -> FloatArray:
    """Values with an effect of everything `[methods, seeds, points, questions]`."""
    draw = np.random.default_rng(seed)
    skill = 0.02 * draw.normal(size=(methods, 1, points, 1)) + 0.01 * draw.normal(size=(methods, seeds, points, 1))
    return 0.5 + skill + 0.05 * draw.normal(size=(methods, seeds, points, questions))


def pair_with(signs: list[int], lost: list[int] | None = None) -> Lead:
    """The lead of `a` and `b` where a band of one row says these signs."""
    row = np.array([signs], float)
    row[:, lost or []] = np.nan
    adjusted = np.where(row == 0, 1.0, 0.0)
    values = np.zeros((2, 3, len(signs), 5))
    values[0, 2, lost or []] = np.nan
    width = np.full(row.shape, 0.02)
    band = Band(row, width, width, width, width, adjusted, 0 * adjusted, np.array([False]))
    return Bands(curves(values), (("a", "b"),), band).lead("a", "b")


def test_a_pair_at_one_point_is_a_paired_t_test() -> None:
    """One training each: over questions alone, and about these trainings."""
    scores = curves(drawn(2, 1, points=1))
    interval = stats.ttest_rel(*scores.values[:, 0]).confidence_interval()
    compared = bands(scores)
    assert [compared.band.low[0, 0], compared.band.high[0, 0]] == pytest.approx([interval.low, interval.high])
    assert compared.lead("a", "b").checkpoints


def test_two_trainings_each_count_with_their_mean() -> None:
    """Their scatter says nothing, and the sentence speaks of them."""
    scores = curves(drawn(2, 2, points=1))
    means = scores.values.reshape(2, 2, -1).mean(axis=1)
    interval = stats.ttest_rel(*means).confidence_interval()
    compared = bands(scores)
    assert compared.band.high[0, 0] == pytest.approx(interval.high)
    assert compared.leads[0].sentence.startswith("these seeds: ")


def test_points_that_are_alike_count_as_one_and_others_by_their_number() -> None:
    """Šidák's level for independent points of many questions."""
    values = drawn(2, 1, points=8, questions=3000)
    alone = bands(curves(values[:, :, :1])).band
    alike = bands(curves(np.repeat(values[:, :, :1], 8, axis=2))).band
    assert alike.reach[0] == pytest.approx([alone.reach[0, 0]] * 8, rel=0.02)
    apart = bands(curves(values)).band
    assert apart.reach[0] / apart.error[0] == pytest.approx([stats.norm.isf((1 - 0.95 ** (1 / 8)) / 2)] * 8, rel=0.02)


def test_trainings_are_blocked_by_seed_and_no_point_is_quiet_by_chance() -> None:
    """Two methods that share seeds: differences by seed, at each point the larger of its variance and the mean."""
    draw = np.random.default_rng(2)
    runs = 0.5 + 0.02 * draw.normal(size=(2, 4, 3)) + 0.1 * draw.normal(size=(1, 4, 3))
    scores = curves(np.repeat(runs[..., None], 6, axis=3), starts=("start",) * 8)
    band = bands(scores).band
    variances = np.var(runs[0] - runs[1], axis=0, ddof=1)
    assert band.error[0] ** 2 == pytest.approx(np.maximum(variances, variances.mean()) / 4)
    assert band.freedom[0] == pytest.approx([3, 3, 3])
    apart = bands(replace(scores, starts=())).band
    assert (apart.error > 2 * band.error).all()


def test_one_chi_square_serves_all_points() -> None:
    """Trainings that do at every point what they do at one make one t test of many points."""
    runs = np.repeat(0.5 + 0.02 * np.random.default_rng(2).normal(size=(2, 5, 1)), 6, axis=2)
    band = bands(curves(np.repeat(runs[..., None], 4, axis=3), starts=("start",) * 10)).band
    interval = stats.ttest_rel(runs[0, :, 0], runs[1, :, 0]).confidence_interval()
    assert band.high[0] == pytest.approx([interval.high] * 6, rel=0.05)


def test_with_many_trainings_a_point_has_the_errors_of_a_board() -> None:
    """Eight methods, three seeds in common; questions lend freedom up to three times that of the trainings."""
    on_questions = 0.1 * np.random.default_rng(4).normal(size=(8, 1, 2, 60))
    scores = curves(drawn(8, 3, points=2) + on_questions, starts=("start",) * 24)
    band = bands(scores).band
    for at in range(2):
        samples = {
            method: scores.sample(method, {"": scores.values[scores.rows(method), at]}) for method in scores.methods
        }
        board = family(samples, {"": {"": 1.0}})
        assert band.error[:, at] == pytest.approx(board.table["error"])
        assert band.difference[:, at] == pytest.approx(board.table["difference"])
        limit = 3 * board.table["luck_freedom"]
        assert band.freedom[:, at] == pytest.approx(np.minimum(board.table["freedom"], limit))
        assert (board.table["freedom"] > limit).any()


def test_strata_weigh_and_clusters_are_one_question() -> None:
    """A question that is asked twice is one; a score is the weighted mean of means."""
    values = drawn(2, 3)
    once = bands(curves(values)).band
    twice = bands(curves(np.repeat(values, 2, axis=3), clusters=tuple(str(at // 2) for at in range(120)))).band
    assert twice.error == pytest.approx(once.error)
    strata = ("x",) * 20 + ("y",) * 40
    scores = curves(values, strata=strata, weights={"x": 3.0, "y": 1.0})
    expected = 0.75 * values[..., :20].mean(axis=3) + 0.25 * values[..., 20:].mean(axis=3)
    assert scores.scores == pytest.approx(expected.reshape(6, 4))
    assert bands(scores).band.difference[0] == pytest.approx((expected[0] - expected[1]).mean(axis=0))


def test_neither_order_nor_scale_matter() -> None:
    """Methods, seeds and questions in another order; other units of both axes."""
    scores = curves(drawn(3, 3), starts=("start",) * 9)
    leads = bands(scores).leads
    order = np.random.default_rng(1).permutation(9)
    shuffled = replace(
        scores,
        trainings=tuple(scores.trainings[at] for at in order),
        values=scores.values[order][:, :, np.random.default_rng(2).permutation(60)],
    )
    other = bands(shuffled)
    for lead in leads:
        turned = other.lead(lead.first, lead.second)
        assert (turned.runs, turned.x) == (lead.runs, lead.x)
        assert turned.detectable == pytest.approx(lead.detectable, rel=0.03)
    wide = bands(replace(scores, x=7 * scores.x, values=0.3 + 10 * scores.values))
    assert wide.band.reach == pytest.approx(10 * bands(scores).band.reach)
    assert wide.leads[0].x == tuple(7 * x for x in leads[0].x)


def test_a_pair_can_be_asked_for_in_either_order() -> None:
    """What one leads, the other does not."""
    values = drawn(2, 3)
    values[1] += 0.2
    compared = bands(curves(values, starts=("start",) * 6))
    assert compared.lead("b", "a").runs == compared.lead("a", "b").runs
    assert compared.lead("b", "a").leader == "b"
    assert compared.lead("b", "a").sentence == "b leads a at every point from 1k to 8k tokens"
    with pytest.raises(KeyError):
        compared.lead("a", "c")


def test_one_method_has_no_pairs() -> None:
    """And can still be flat."""
    scores = curves(drawn(1, 3))
    assert bands(scores).leads == ()
    assert [of_method.method for of_method in flats(scores)] == ["a"]


def test_without_scatter_the_number_of_questions_decides() -> None:
    """The sign test, corrected for two points; a single question says nothing."""
    for questions, leads in ((4, False), (20, True)):
        values = np.zeros((2, 1, 2, questions)) + np.linspace(0, 1, questions)
        values[0] += 0.125
        lead = bands(curves(values)).leads[0]
        assert lead.detectable is None
        assert lead.leader == ("a" if leads else None)
    alone = bands(curves(drawn(2, 1, questions=1))).leads[0]
    assert (alone.runs, alone.detectable) == ((), None)


def test_a_method_has_no_value_where_one_of_its_trainings_has_none() -> None:
    """A mean of those that survived would flatter it; the other pairs are compared as before."""
    values = drawn(3, 3)
    values[1, 2, 2:] = np.nan
    scores = curves(values, starts=("start",) * 9)
    assert scores.lost("b") == {2: (2,), 3: (2,)}
    assert np.isnan(scores.mean("b")).tolist() == [False, False, True, True]
    compared = bands(scores)
    assert compared.lead("a", "b").x == (1000.0, 2000.0)
    assert compared.lead("a", "b").sentence.endswith("not compared at 4k and 8k tokens, where seed 2 of b has no value")
    assert compared.lead("a", "c").x == (1000.0, 2000.0, 4000.0, 8000.0)
    values[1, 0] = np.nan
    nowhere = bands(curves(values)).lead("a", "b")
    assert (nowhere.x, nowhere.leader) == ((), None)
    assert nowhere.sentence.startswith("a and b have no point in common")


ALSO = " and between 2k and 4k tokens"


@pytest.mark.parametrize(
    ("signs", "runs", "crossings", "sentence"),
    [
        ([0, 0, 0], [], [], "a and b: nobody leads up to 4k tokens; a gap of 2.0 points there would have shown"),
        ([1, 1, 1], [("a", 1, 4)], [], "a leads b at every point from 1k to 4k tokens"),
        ([0, -1, -1], [("b", 2, 4)], [], "b leads a from 2k tokens on; elsewhere nobody leads"),
        ([1, 1, 0], [("a", 1, 2)], [], "a leads b up to 2k tokens; elsewhere nobody leads"),
        ([0, 1, 0], [("a", 2, 2)], [], "a leads b at 2k tokens; elsewhere nobody leads"),
        ([0, 1, 1, 0], [("a", 2, 4)], [], "a leads b from 2k to 4k tokens; elsewhere nobody leads"),
        (
            [-1, -1, 0, 1, 1],
            [("b", 1, 2), ("a", 8, 16)],
            [(2, 8)],
            "b leads a up to 2k tokens, a leads from 8k tokens on; they cross between 2k and 8k tokens",
        ),
        (
            [1, 0, 1, -1],
            [("a", 1, 1), ("a", 4, 4), ("b", 8, 8)],
            [(4, 8)],
            "a leads b at 1k tokens and at 4k tokens, b leads at 8k tokens; they cross between 4k and 8k tokens",
        ),
        (
            [1, -1, 1],
            [("a", 1, 1), ("b", 2, 2), ("a", 4, 4)],
            [(1, 2), (2, 4)],
            "a leads b at 1k tokens, b leads at 2k tokens, a leads at 4k tokens; they cross between 1k and 2k tokens"
            + ALSO,
        ),
        ([1], [("a", 1, 1)], [], "a leads b at 1k tokens"),
        ([0], [], [], "a and b: nobody leads at 1k tokens; a gap of 2.0 points there would have shown"),
    ],
)
def test_runs_of_the_band_without_0(signs: list[int], runs: Any, crossings: Any, sentence: str) -> None:
    """Leads, the intervals in which curves cross, and the sentence."""
    lead = pair_with(signs)
    assert lead.runs == tuple(Run(name, 1000.0 * first, 1000.0 * last) for name, first, last in runs)
    assert lead.crossings == tuple((1000.0 * low, 1000.0 * high) for low, high in crossings)
    shown = replace(lead, detectable=0.02)
    assert shown.sentence == sentence
    assert shown.as_json()["sentence"] == sentence


def test_a_lead_ends_where_points_do() -> None:
    """The last point has no value, so nothing is said of it."""
    lead = pair_with([0, 1, 1, 1], lost=[3])
    assert (lead.x, lead.leader) == ((1000.0, 2000.0, 4000.0), "a")
    assert lead.sentence == (
        "a leads b from 2k tokens on; elsewhere nobody leads; not compared at 8k tokens, where seed 2 of a has no value"
    )


def test_what_draws_could_turn_is_no_lead() -> None:
    """A corrected p within four Monte-Carlo errors of the level."""
    ones = np.ones((1, 3))
    adjusted, chance = np.array([[0.01, 0.049, 0.049]]), np.array([[0.0, 0.001, 0.0001]])
    band = Band(-ones, ones, ones, ones, ones, adjusted, chance, np.array([False]))
    assert band.signs.tolist() == [[-1, 0, -1]]


def test_flat_from_where_on_the_gain_is_within_what_could_be_missed() -> None:
    """Rises by 10 and 5 points, then by nothing: from the third point on; the margin is the test's own or named."""
    values = drawn(1, 1, questions=400) * 0 + 0.5
    values += 0.05 * np.random.default_rng(3).normal(size=values.shape)
    values -= values.mean(axis=3, keepdims=True) - 0.5 - np.array([0.0, 0.10, 0.15, 0.15])[None, None, :, None]
    (flat,) = flats(curves(values))
    difference = values[0, 0, 3] - values[0, 0, 2]
    error = difference.std(ddof=1) / 20
    assert (flat.since, flat.end, flat.checkpoints) == (4000.0, 8000.0, True)
    gain, low, high = flat.gain or (math.nan,) * 3
    assert gain == pytest.approx(0, abs=1e-12)
    assert [high, -low] == pytest.approx([error * stats.norm.isf((1 - 0.95 ** (1 / 3)) / 2)] * 2, rel=0.1)
    assert flat.least == pytest.approx(high + error * stats.t.ppf(0.8, 399))
    assert flat.sentence == (
        "these seeds: a is flat from 4k tokens on: what it gained from there to 8k tokens is within "
        f"± {100 * (flat.least or 0):.1f} points; a smaller gain could be missed"
    )
    assert flats(curves(values), least=0.2)[0].since == 1000.0
    (strict,) = flats(curves(values), least=0.001)
    assert (strict.since, strict.least) == (None, 0.001)
    assert "a is not known to be flat at 8k tokens" in strict.sentence
    values[..., 3, :] += 0.1
    (rising,) = flats(curves(values))
    assert rising.since is None
    assert "is not flat at 8k tokens: over the point before it gained +10.0 points" in rising.sentence


def test_flat_without_scatter_and_with_too_few_points() -> None:
    """Nothing is gained at all; a single point; a method that ends before the others."""
    still = np.full((1, 3, 3, 20), 0.5)
    (flat,) = flats(curves(still))
    assert (flat.since, flat.least) == (1000.0, 0.0)
    (alone,) = flats(curves(still[:, :, :1]))
    assert alone.since is None
    assert "too few points or questions" in alone.sentence
    values = drawn(2, 3)
    values[0, 1, 3] = np.nan
    assert [of_method.end for of_method in flats(curves(values))] == [4000.0, 8000.0]
    with pytest.raises(UsageError, check=fields(found="a gain of 0")):
        flats(curves(still), least=0)


def test_too_few_questions_say_nothing() -> None:
    """One has no error, so nobody can be said to lead or not; of two a gap of all points could be missed."""
    trainings = tuple((method, seed) for method in "ab" for seed in range(3))
    values = np.random.default_rng(0).uniform(0, 1, (6, 3, 2))
    single = CurveScores(np.array([1.0, 2.0, 4.0]), trainings, values[:, :, :1])
    (lead,) = bands(single).leads
    assert (lead.x, lead.runs, lead.detectable) == ((), (), None)
    assert lead.sentence == "a and b: too few questions to say who leads"
    two = CurveScores(np.array([1.0, 2.0, 4.0]), trainings, values)
    assert bands(two).leads[0].sentence == "a and b: nobody leads up to 4 tokens; no gap there would have shown"
    for scores in (single, two):
        assert all("too few points or questions" in flat.sentence for flat in flats(scores))


def test_what_does_not_fit_is_refused() -> None:
    """Each with what was found."""
    scores = curves(drawn(2, 2))
    holes = scores.values.copy()
    holes[3, 1, 5] = np.nan
    infinite = scores.values.copy()
    infinite[0, 0] = np.inf
    for change, where, found in (
        ({"values": holes}, "b, seed 1, at 2k tokens", "not finite"),
        ({"values": infinite}, "a, seed 0, at 1k tokens", "not finite"),
        ({"values": scores.values[:3]}, "a curve", "[3, 4, 60]"),
        ({"values": scores.values[:, :, :0]}, "a curve", "[4, 4, 0]"),
        ({"x": scores.x[::-1]}, "a curve", "points [8000.0"),
        ({"x": scores.x - 1000}, "a curve", "points [0.0"),
        ({"trainings": (*scores.trainings[:3], ("a", 0))}, "a", "seed 0 twice"),
        ({"strata": ("x",)}, "a curve", "1 names of strata"),
        ({"starts": ("x",)}, "a curve", "1 names of starts"),
        ({"clusters": ("x",)}, "a curve", "1 names of clusters"),
        ({"strata": ("x", "y") * 30, "weights": {"x": 1.0}}, "stratum 'y'", "no weight"),
    ):
        with pytest.raises(UsageError, check=fields(where=where, found=found)):
            replace(scores, **change)
    with pytest.raises(UsageError, check=fields(found="weights")):
        bands(replace(scores, weights={"": -1.0}))


def test_correlations_are_pooled_over_trainings() -> None:
    """Paths without a mean, as numpy has it; nothing where nothing scatters."""
    paths = np.random.default_rng(0).normal(size=(9, 3)).cumsum(axis=1)
    paths -= paths.mean(axis=0)
    assert correlations(paths) == pytest.approx(np.corrcoef(paths.T))
    paths[:, 1] = 0
    assert correlations(paths)[1] == pytest.approx([0, 1, 0])
    assert correlations(np.zeros((0, 2))) == pytest.approx(np.eye(2))


def test_the_same_curves_give_the_same_band() -> None:
    """Whatever the draws, its width is the same to a percent, and with one seed exactly."""
    scores = curves(drawn(4, 3), starts=("start",) * 12)
    reach = bands(scores, seed=5).band.reach
    assert (reach == bands(scores, seed=5).band.reach).all()
    assert bands(scores, seed=6).band.reach == pytest.approx(reach, rel=0.02)


def test_amounts_have_two_or_three_digits() -> None:
    """Below a thousand as they are, then k, M, G and powers of ten."""
    numbers = (7.5, 800, 999.6, 7812.5, 31250, 999_999, 39e6, 2.5e9, 1.25e15)
    assert [amount(x) for x in numbers] == ["7.5", "800", "1k", "7.8k", "31k", "1M", "39M", "2.5G", "1.2e15"]
