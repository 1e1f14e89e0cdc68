"""nDCG@20 and Success@5, which new suites score by: worked out by hand, and by trec_eval and ir_measures."""

from math import log2

import ir_measures
import pytest
import pytrec_eval

from bench.evaluation.measures.evaluate import evaluate
from bench.evaluation.measures.specs import parse_many
from bench.types import Ranking

GRADES = {"d1#0": 3, "d2#0": 1, "d3#0": 0, "d4#0": 1}
"""Of a topic of NeuCLIR's kind: grades 0, 1 and 3, ids as MIRACL's."""


def ranking(*documents: str) -> Ranking:
    """Return a ranking in this order."""
    return Ranking("q#1", documents, [float(len(documents) - at) for at in range(len(documents))])


FILLED = tuple(f"x{at:02}" for at in range(30))
CASES = {
    "graded": (
        ranking("d2#0", "d3#0", "d1#0"),
        (1 / log2(2) + 3 / log2(4)) / (3 / log2(2) + 1 / log2(3) + 1 / log2(4)),
        1.0,
    ),
    "the twentieth place counts": (
        ranking(*FILLED[:19], "d1#0"),
        (3 / log2(21)) / (3 / log2(2) + 1 / log2(3) + 1 / log2(4)),
        0.0,
    ),
    "the next does not": (ranking(*FILLED[:20], "d1#0"), 0.0, 0.0),
    "the fifth place is a success": (
        ranking(*FILLED[:4], "d4#0"),
        (1 / log2(6)) / (3 / log2(2) + 1 / log2(3) + 1 / log2(4)),
        1.0,
    ),
    "the sixth is none": (
        ranking(*FILLED[:5], "d4#0"),
        (1 / log2(7)) / (3 / log2(2) + 1 / log2(3) + 1 / log2(4)),
        0.0,
    ),
    "a judged document that is not relevant is none": (ranking("d3#0"), 0.0, 0.0),
    "nothing was found": (ranking(), 0.0, 0.0),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("tie", ["trec", "list"])
def test_by_hand_and_by_others(name: str, tie: str) -> None:
    """Under both rules for ties, of which there are none."""
    ranked, ndcg, success = CASES[name]
    run, qrels = {"q#1": ranked}, {"q#1": GRADES}
    means = evaluate(qrels, run, parse_many("nDCG@20 Success@5"), tie).means  # type: ignore[arg-type]
    assert means == pytest.approx({"nDCG@20": ndcg, "Success@5": success}, abs=1e-12)
    scores = {"q#1": dict(zip(ranked.documents, ranked.scores, strict=True))}
    if scores["q#1"]:
        trec = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.20", "success.5"}).evaluate(scores)["q#1"]
        assert means == pytest.approx({"nDCG@20": trec["ndcg_cut_20"], "Success@5": trec["success_5"]}, abs=1e-12)
        theirs = ir_measures.calc_aggregate([ir_measures.nDCG @ 20, ir_measures.Success @ 5], qrels, scores)
        assert means == pytest.approx({str(measure): value for measure, value in theirs.items()}, abs=1e-12)
