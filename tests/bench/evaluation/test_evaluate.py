"""A run against its judgements: the mean, what counts as 0, plugins' measures, and what is refused."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from bench.core.errors import BenchError, PluginError, UsageError
from bench.core.records import CleanRun
from bench.evaluation.measures.builtin import BUILTIN
from bench.evaluation.measures.checks import LARGEST_GRADE
from bench.evaluation.measures.evaluate import Coverage, coverage, evaluate, without_identical
from bench.evaluation.measures.specs import MeasureSpec, parse_many
from bench.types import Measure, Ranking, Tie

ALL = parse_many("nDCG nDCG@3 R@3 RR RR@3 AP AP@3 P@1 Success@3 Rcap@3")
QRELS = {"q1": {"a": 2, "b": 1, "c": 0}, "q2": {"c": 1}, "q3": {"d": 0}}
TIES: tuple[Tie, ...] = ("trec", "list")


def ranking(query: str, *documents: str) -> Ranking:
    return Ranking(query, documents, [float(len(documents) - at) for at in range(len(documents))])


@pytest.mark.parametrize("tie", TIES)
def test_the_mean_is_over_all_judged_queries(tie: Tie) -> None:
    """Missing and irrelevant queries count 0, so RR is (1/2 + 0 + 0) / 3; q9 is nobody's."""
    run = {"q1": ranking("q1", "c", "a"), "q3": ranking("q3", "d"), "q9": ranking("q9", "a")}
    scores = evaluate(QRELS, run, parse_many("RR@10 P@2"), tie)
    assert scores.queries == ("q1", "q2", "q3")
    assert scores.values == {"RR@10": (0.5, 0.0, 0.0), "P@2": (0.5, 0.0, 0.0)}
    assert scores.means == pytest.approx({"RR@10": 1 / 6, "P@2": 1 / 6}, abs=1e-15)
    # An entry that holds nothing is dropped by pytrec_eval, not by us.
    scores = evaluate({"q1": {"a": 1}, "q2": {}}, {"q1": ranking("q1", "a"), "q2": ranking("q2", "a")}, ALL, tie)
    assert scores.means["nDCG@3"] == 0.5
    # Touché has grades down to -2; trec_eval's C code crashes where a query has nothing better.
    qrels = {"q1": {"a": -2, "b": -2}, "q2": {"a": -2, "b": 1}}
    run = {query: ranking(query, "a", "b") for query in qrels}
    gain = pytest.approx(1 / math.log2(3), abs=1e-15)
    assert evaluate(qrels, run, parse_many("RR nDCG@3"), tie).values == {"RR": (0.0, 0.5), "nDCG@3": (0.0, gain)}


@pytest.mark.parametrize("tie", TIES)
def test_a_perfect_run_scores_one(tie: Tie) -> None:
    """On every measure, for queries with up to three relevant documents (P@1 asks for one)."""
    qrels = {"q1": {"a": 2, "b": 1, "c": 0}, "q2": {"c": 1}, "q3": {"x": 3, "y": 3, "z": 1, "w": -1}}
    run = {"q1": ranking("q1", "a", "b", "c"), "q2": ranking("q2", "c"), "q3": ranking("q3", "y", "x", "z", "w")}
    assert set(evaluate(qrels, run, ALL, tie).means.values()) == {1.0}


@pytest.mark.parametrize("tie", TIES)
@pytest.mark.parametrize("run", [{}, {"q1": Ranking("q1", (), ())}, {"q9": ranking("q9", "a")}])
def test_an_empty_run_scores_zero(run: dict[str, Ranking], tie: Tie) -> None:
    """On every measure, whether queries are absent, empty or all unjudged."""
    scores = evaluate(QRELS, run, ALL, tie)
    assert set(scores.means.values()) == {0.0}
    assert all(values == (0.0, 0.0, 0.0) for values in scores.values.values())


def test_the_tie_rule_decides() -> None:
    """Trec puts `b` first and believes scores, the list rule ranks; AP@1 of three is 1/3, or 1 by LAReQA's rule."""
    qrels = {"q": {"b": 1}}
    tied = {"q": Ranking("q", ("a", "b"), (1.0, 1.0))}
    measures = parse_many("RR@10 Success@1")
    assert evaluate(qrels, tied, measures, "trec").means == {"RR@10": 1.0, "Success@1": 1.0}
    assert evaluate(qrels, tied, measures, "list").means == {"RR@10": 0.5, "Success@1": 0.0}
    rising = {"q": Ranking("q", ("a", "b"), (1.0, 2.0))}
    assert evaluate(qrels, rising, measures, "trec").means["RR@10"] == 1.0
    assert evaluate(qrels, rising, measures, "list").means["RR@10"] == 0.5
    three, run = {"q": {"a": 1, "b": 1, "c": 1}}, {"q": ranking("q", "a", "x")}
    assert evaluate(three, run, parse_many("AP@1"), "trec").means["AP@1"] == pytest.approx(1 / 3, abs=1e-15)
    assert evaluate(three, run, parse_many("AP@1"), "list").means["AP@1"] == 1.0


def test_many_queries_pass_through_in_batches() -> None:
    """2,345 queries: each its own value in qrels order; scores may be numpy's; coverage names queries in order."""
    qrels = {f"q{i}": {f"d{i % 5}": 1} for i in range(2345)}
    run = {query: ranking(query, "d0", "d1", "d2", "d3", "d4") for query in reversed(qrels)}
    values = evaluate(qrels, run, parse_many("RR@5"), "trec").values["RR@5"]
    assert values == tuple((1.0, 1 / 2, 1 / 3, 1 / 4, 1 / 5)[i % 5] for i in range(2345))
    plain = {"q": Ranking("q", ("a", "b"), np.array([1, 2], np.float32).tolist())}
    array = {"q": Ranking("q", ("a", "b"), np.array([1, 2], np.float32))}  # type: ignore[arg-type]  # duck-typed
    measures = parse_many("RR nDCG@3")
    assert evaluate({"q": {"a": 1}}, array, measures, "trec") == evaluate({"q": {"a": 1}}, plain, measures, "trec")
    assert coverage({"a": {}, "b": {}, "c": {}}, {"c": 0, "z": 0, "y": 0}) == Coverage(("a", "b"), ("z", "y"))


def last_rank(documents: Sequence[str], grades: Mapping[str, int], cut: int | None) -> float:
    """Return the deepest rank of a relevant document, as a share of the ranking."""
    ranks = [rank for rank, document in enumerate(documents[:cut], start=1) if grades.get(document, 0) >= 1]
    return max(ranks, default=0) / len(documents)


def test_a_plugins_measure_sees_the_order_of_the_tie_rule() -> None:
    """Along with ours, with and without cut; trec order b, a; list order a, b; a missing query is 0 for it too."""
    extra = {"Last": Measure("Last", last_rank, "deepest relevant rank / length")}
    qrels = {"q": {"b": 1}, "missing": {"b": 1}}
    run = {"q": Ranking("q", ("a", "b"), (1.0, 1.0))}
    measures = parse_many("Last Last@1 RR", extra)
    expected: dict[Tie, tuple[float, ...]] = {"trec": (0.5, 0.5, 1.0), "list": (1.0, 0.0, 0.5)}
    for tie, values in expected.items():
        scores = evaluate(qrels, run, measures, tie, extra).values
        assert scores == dict(zip(("Last", "Last@1", "RR"), ((value, 0.0) for value in values), strict=True))


def test_a_plugins_measure_that_fails_or_gives_no_fraction_is_named() -> None:
    """A NaN would spoil the mean in silence; its own error is in the sentence, and behind it."""
    run = {"q2": ranking("q2", "c")}
    for value in (math.nan, math.inf, 1.5, -0.1):
        wild = {"Bad": Measure("Bad", lambda *_, value=value: value, "")}
        with pytest.raises(PluginError, match=r"plugin measure Bad@3 gave .*expected a number from 0 to 1"):
            evaluate(QRELS, run, parse_many("Bad@3", wild), "list", wild)

    def broken(_documents: Sequence[str], grades: Mapping[str, int], _cut: int | None) -> float:
        return grades["no such document"]

    extra = {"Bad": Measure("Bad", broken, "")}
    with pytest.raises(PluginError, match=r"Bad failed on a ranking of 1 documents: KeyError") as caught:
        evaluate(QRELS, run, parse_many("Bad", extra), "trec", extra)
    assert isinstance(caught.value.__cause__, KeyError)


@pytest.mark.parametrize("tie", TIES)
@pytest.mark.parametrize(
    ("qrels", "message"),
    [
        ({}, "no judgements"),
        ({"q": {"a": 2**40}}, r"query 'q', document 'a': found the grade 1099511627776, expected a whole number"),
        ({"q": {"a": -LARGEST_GRADE - 1}}, "found the grade -1000001"),
        ({"q": {"a": 1.0}}, r"found the grade 1\.0"),
        ({"q": {"a b": 1}}, r"judgements of query 'q': found the id 'a b'"),
        ({"q": {"": 1}}, r"found the id ''"),
        ({"q": {"a\0b": 1}}, r"found the id 'a\\x00b'"),
        ({"q": {"\ud800": 1}}, r"found the id '\\ud800'"),
        ({"q r": {"a": 1}}, r"the qrels: found the id 'q r'"),
        ({"\ud800": {"a": 1}}, r"the qrels: found the id '\\ud800'"),
    ],
)
def test_judgements_that_would_crash_or_mislead_are_refused(
    qrels: dict[str, dict[str, int]], message: str, tie: Tie
) -> None:
    """The C code cuts grades to 32 bits and ids at a NUL, and dies of a lone surrogate."""
    with pytest.raises(UsageError, match=message):
        evaluate(qrels, {}, ALL, tie)


@pytest.mark.parametrize("tie", TIES)
@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (Ranking("q2", ("a", "b"), (1.0, math.nan)), r"query 'q2': candidate 2 of 2: found the score nan"),
        (Ranking("q2", ("a", "b"), (1.0,)), r"query 'q2': found 1 scores for 2 documents"),
        (Ranking("q2", ("a", "b", "a"), (3.0, 2.0, 1.0)), r"query 'q2': document 'a' is ranked twice"),
        (Ranking("q2", ("a", "\ud800"), (3.0, 2.0)), r"ranking of query 'q2': found the id '\\ud800'"),
        (Ranking("q2", ("a", "b\0"), (3.0, 2.0)), r"found the id 'b\\x00'"),
        (Ranking("q2", ("a", ""), (3.0, 2.0)), r"found the id ''"),
        (Ranking("q1", ("a",), (3.0,)), r"filed under query 'q2' says that it is of query 'q1'"),
    ],
)
def test_rankings_that_would_crash_or_mislead_are_refused(refused: Ranking, message: str, tie: Tie) -> None:
    """Each sentence names the query and what was found."""
    with pytest.raises(UsageError, match=message):
        evaluate(QRELS, {"q2": refused}, ALL, tie)


@pytest.mark.parametrize(
    ("measures", "message"),
    [
        ([], "no measure to compute"),
        ([MeasureSpec("Foo", 3)], r"unknown measure Foo@3; there are nDCG"),
        ([MeasureSpec("R")], r"measure R has no cut; .*e\.g\. R@100"),
        ([MeasureSpec("accuracy", 1)], r"measure accuracy@1 has a cut, expected none .*; write accuracy$"),
    ],
)
def test_measures_that_do_not_exist_are_refused(measures: list[MeasureSpec], message: str) -> None:
    """Also those that were not made by `parse`."""
    with pytest.raises(UsageError, match=message):
        evaluate(QRELS, {}, measures, "trec")


def test_every_measure_is_computed_under_both_rules() -> None:
    """No name in the table lacks an implementation; whatever scoring refuses, the command line can print."""
    specs = [MeasureSpec(name, 2) for name, measure in BUILTIN.items() if measure.takes_cut]
    specs += [MeasureSpec(name) for name, measure in BUILTIN.items() if not measure.needs_cut]
    for tie in TIES:
        means = evaluate({"q": {"a": 1}}, {"q": ranking("q", "a")}, specs, tie).means
        assert means == {str(spec): 0.5 if spec == MeasureSpec("P", 2) else 1.0 for spec in specs}
    with pytest.raises(BenchError) as caught:
        evaluate({}, {}, ALL, "trec")
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("scale", [1.0, 1e-44, 1e37])
@pytest.mark.parametrize("judged", [1, 3, 20])
def test_a_run_that_a_reader_has_checked_scores_as_any_other(judged: int, scale: float) -> None:
    """The values are the same, whatever ties in 32 bits alone, and so is what leaves out the query's own document."""
    rng = np.random.default_rng(0)
    scores = scale * (rng.integers(-4, 5, (120, 30)) + 1e-9 * rng.random((120, 30)))
    run = {
        f"q{query}": Ranking(f"q{query}", tuple(f"q{document}" for document in rng.permutation(30)), tuple(falling))
        for query, falling in enumerate((-np.sort(-scores)).tolist())
    }
    qrels = {query: {f"q{document}": int(rng.integers(-1, 3)) for document in range(judged)} for query in run}
    qrels["q999"] = {"q0": 1}
    measures = parse_many("nDCG nDCG@10 R@100 RR RR@5 AP AP@7 P@5 Success@2 Rcap@3 accuracy")
    assert evaluate(qrels, CleanRun(run), measures, "trec") == evaluate(qrels, run, measures, "trec")
    assert isinstance(without_identical(CleanRun(run)), CleanRun)
    assert without_identical(CleanRun(run)) == without_identical(run)
