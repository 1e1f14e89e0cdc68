"""Random runs with ties, missing and empty queries, graded and negative judgements, against other people's code."""

import random
from collections.abc import Mapping

import ir_measures
import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from bench.core.order import best, order
from bench.evaluation.measures.builtin import BUILTIN, relevant
from bench.evaluation.measures.evaluate import Qrels, evaluate
from bench.evaluation.measures.specs import MeasureSpec, parse
from bench.types import Ranking, Run, Tie
from tests.conftest import present

MEASURES = [
    MeasureSpec(name, cut)
    for name, builtin in BUILTIN.items()
    for cut in (None, 1, 3, 20, 100)
    if (builtin.takes_cut if cut else not builtin.needs_cut)
]
DOCUMENTS = ("d1", "d2", "d10", "D2", "d", "é", "日本", "z#0", "z#1", "z#10", "0", "00")
QUERIES = ("q1", "q2", "q10", "q3", "ü")
SCORES = (0.0, -0.0, 1.0, 1.00000001, 1.000001, 70.000001, 70.0, -3.5, 1e-40)

PYTREC_EVAL = {"nDCG@3": "ndcg_cut_3", "R@3": "recall_3", "AP@3": "map_cut_3", "P@3": "P_3", "Success@3": "success_3"}
PYTREC_EVAL |= {"nDCG": "ndcg", "AP": "map", "RR": "recip_rank"}

Plain = dict[str, dict[str, float]]

grades_of = st.dictionaries(st.sampled_from(DOCUMENTS), st.integers(min_value=-2, max_value=4), min_size=1)
qrels_of = st.dictionaries(st.sampled_from(QUERIES), grades_of, min_size=1)
# pytrec_eval itself dies of a query whose grades are all below -1, so nobody can be asked about those.
qrels_for_others = qrels_of.filter(lambda qrels: all(max(grades.values()) >= 0 for grades in qrels.values()))
scores_of = st.dictionaries(st.sampled_from(DOCUMENTS), st.sampled_from(SCORES))
runs = st.dictionaries(st.sampled_from([*QUERIES, "unjudged"]), scores_of)


def ranked(run: Mapping[str, Mapping[str, float]], tie: Tie) -> Run:
    return {query: best(query, list(scores), list(scores.values()), 100, tie) for query, scores in run.items()}


def raw(run: Mapping[str, Mapping[str, float]]) -> Run:
    """Make rankings in whatever order the scores came."""
    return {query: Ranking(query, tuple(scores), tuple(scores.values())) for query, scores in run.items()}


def by_query(qrels: Qrels, run: Run, measure: str, tie: Tie) -> dict[str, float]:
    scores = evaluate(qrels, run, [parse(measure)], tie)
    return dict(zip(scores.queries, scores.values[measure], strict=True))


@given(qrels=qrels_for_others, run=runs)
def test_trec_measures_are_pytrec_evals(qrels: Qrels, run: Plain) -> None:
    """Asked one query at a time without our checks, batches and names; what it leaves out is 0."""
    expected = {measure: dict.fromkeys(qrels, 0.0) for measure in PYTREC_EVAL}
    for query, scores in run.items():
        if query in qrels:
            evaluator = pytrec_eval.RelevanceEvaluator({query: qrels[query]}, set(PYTREC_EVAL.values()))
            answers = evaluator.evaluate({query: scores})[query]
            for measure, question in PYTREC_EVAL.items():
                expected[measure][query] = answers[question]
    assert {measure: by_query(qrels, raw(run), measure, "trec") for measure in PYTREC_EVAL} == expected


@given(qrels=qrels_for_others, run=runs, cut=st.integers(min_value=1, max_value=14))
def test_reciprocal_rank_at_a_cut_is_that_of_the_run_cut_there(qrels: Qrels, run: Plain, cut: int) -> None:
    """trec_eval's `-M k`: the run is cut to its k best documents, in trec order, before it is judged."""
    cut_run = {}
    for query, scores in run.items():
        best_places = order(list(scores), list(scores.values()), "trec")[:cut]
        cut_run[query] = {name: scores[name] for name in (list(scores)[at] for at in best_places)}
    answers = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(cut_run)
    expected = {query: answers.get(query, {"recip_rank": 0.0})["recip_rank"] for query in qrels}
    assert by_query(qrels, raw(run), f"RR@{cut}", "trec") == expected


def by_ir_measures(qrels: Qrels, run: Mapping[str, Mapping[str, float]], names: list[str]) -> dict[str, float]:
    """Return ir_measures' values, keyed by canonical name and query."""
    judgements = [ir_measures.Qrel(q, d, grade) for q, grades in qrels.items() for d, grade in grades.items()]
    retrieved = [ir_measures.ScoredDoc(q, d, score) for q, scores in run.items() for d, score in scores.items()]
    measures = [ir_measures.parse_measure(name) for name in names]
    metrics = ir_measures.iter_calc(measures, judgements, retrieved)
    return {f"{metric.measure} {metric.query_id}": metric.value for metric in metrics}


@given(qrels=qrels_for_others, run=runs)
def test_ir_measures_agrees(qrels: Qrels, run: Plain) -> None:
    """Every measure whose name we share, per query, under the same canonical spelling.

    RR at a cut goes to MS MARCO's script there, which orders ties by id ascending; it is given scores without ties.
    """
    names = [str(measure) for measure in MEASURES if measure.name not in ("Rcap", "accuracy")]
    scripts = [name for name in names if name.startswith("RR@")]
    in_order = ranked(run, "trec").items()
    untied = {query: {name: -float(at) for at, name in enumerate(ranking.documents)} for query, ranking in in_order}
    theirs = by_ir_measures(qrels, run, [name for name in names if name not in scripts])
    theirs |= by_ir_measures(qrels, untied, scripts)
    scores = evaluate(qrels, raw(run), MEASURES, "trec")
    rows = {name: zip(scores.queries, scores.values[name], strict=True) for name in names}
    assert {f"{name} {query}": value for name, row in rows.items() for query, value in row} == pytest.approx(
        theirs, abs=1e-12
    )


@given(qrels=qrels_of, run=runs)
def test_the_c_code_and_our_functions_agree_in_trec_order(qrels: Qrels, run: Plain) -> None:
    """Two implementations of every measure; AP at a cut differs by its divisor only."""
    by_c = evaluate(qrels, raw(run), MEASURES, "trec")
    by_us = evaluate(qrels, ranked(run, "trec"), MEASURES, "list")
    for measure in MEASURES:
        ours = by_us.values[str(measure)]
        if measure.name == "AP" and measure.cut is not None:
            counts = [relevant(grades) for grades in qrels.values()]
            ours = tuple(value * min(n, measure.cut) / n if n else 0.0 for value, n in zip(ours, counts, strict=True))
        assert by_c.values[str(measure)] == pytest.approx(ours, abs=1e-12), str(measure)


@given(qrels=qrels_of, run=runs)
def test_list_measures_are_the_functions_on_the_list(qrels: Qrels, run: Plain) -> None:
    """Scores are never read; a missing or empty query is 0."""
    scores = evaluate(qrels, raw(run), MEASURES, "list")
    for measure in MEASURES:
        value = present(BUILTIN[measure.name].value)
        assert scores.values[str(measure)] == tuple(
            value(tuple(run.get(query, {})), grades, measure.cut) for query, grades in qrels.items()
        )


@given(qrels=qrels_of, run=runs, seed=st.integers(min_value=0, max_value=2**32))
def test_no_order_of_dicts_or_ranks_matters_under_trec(qrels: Qrels, run: Plain, seed: int) -> None:
    """Shuffle queries, judgements and ranks: the same values and, to the last bit, the same means."""
    shuffle = random.Random(seed).shuffle

    def shuffled(table: Mapping[str, Mapping[str, float]]) -> Plain:
        rows = [(query, list(row.items())) for query, row in table.items()]
        for _, row in rows:
            shuffle(row)
        shuffle(rows)
        return {query: dict(row) for query, row in rows}

    other_qrels = {query: {name: int(grade) for name, grade in row.items()} for query, row in shuffled(qrels).items()}
    scores = evaluate(qrels, raw(run), MEASURES, "trec")
    shuffled_scores = evaluate(other_qrels, raw(shuffled(run)), MEASURES, "trec")
    assert scores.means == shuffled_scores.means
    for name, values in scores.values.items():
        assert dict(zip(scores.queries, values, strict=True)) == dict(
            zip(shuffled_scores.queries, shuffled_scores.values[name], strict=True)
        )


@given(qrels=qrels_of, tie=st.sampled_from(["trec", "list"]))
def test_a_perfect_run_scores_one_wherever_it_can(qrels: Qrels, tie: Tie) -> None:
    """Documents by grade: 1 where something is relevant and the cut can be filled or does not ask for it, else 0."""
    by_grade = {query: {name: float(grade) for name, grade in grades.items()} for query, grades in qrels.items()}
    run = ranked(by_grade, tie)
    for measure in MEASURES:
        for query, value in by_query(qrels, run, str(measure), tie).items():
            count, cut = relevant(qrels[query]), measure.cut or len(DOCUMENTS)
            # What is out of reach: P of a cut deeper than there are relevant documents, R and trec's AP of a shallower.
            reach = {"P": min(count, cut) / cut, "R": min(count, cut) / max(count, 1)}
            if tie == "trec":
                reach["AP"] = reach["R"]
            assert value == pytest.approx(reach.get(measure.name, 1.0) if count else 0.0, abs=1e-12), str(measure)


@given(qrels=qrels_of, run=runs, tie=st.sampled_from(["trec", "list"]))
def test_a_missing_query_is_an_empty_one_and_counts_zero(qrels: Qrels, run: Plain, tie: Tie) -> None:
    """Take the first judged query out of the run, or empty it: the mean loses exactly its share."""
    removed = next(iter(qrels))
    complete = evaluate(qrels, raw(run), MEASURES, tie)
    missing = evaluate(qrels, raw({query: row for query, row in run.items() if query != removed}), MEASURES, tie)
    emptied = evaluate(qrels, raw(run | {removed: {}}), MEASURES, tie)
    assert missing == emptied
    for name, mean in missing.means.items():
        assert missing.values[name][0] == 0
        assert mean == pytest.approx(complete.means[name] - complete.values[name][0] / len(qrels), abs=1e-12)
