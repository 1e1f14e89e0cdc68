"""The benchmarks' own scorers; what they give is compared with the official code in `tests/golden`."""

import math
from collections.abc import Mapping

import pytest

from bench.core.errors import UsageError
from bench.types import Ranking
from suites.scorers import OFFICIAL, UndefinedError, beir, beir_capped_recall, mrtydi_ccp, predicted_questions
from tests.conftest import present

QRELS = {"q1": {"a": 2, "b": 1, "c": 0}, "q2": {"c": 1}, "q3": {"d": 0}}


def ranking(query: str, *documents: str) -> Ranking:
    return Ranking(query, documents, tuple(float(-at) for at in range(len(documents))))


def shown(name: str, qrels: Mapping[str, Mapping[str, int]], run: Mapping[str, Ranking]) -> Mapping[str, float]:
    """Return what a scorer of documents shows."""
    scorer = present(OFFICIAL[name].documents)
    return scorer(qrels, run)


def test_official_scorers_answer_in_words_where_the_official_code_stops() -> None:
    """BEIR's mean over no query, and R_cap for a query without a relevant document; then nothing is shown by our 0."""
    with pytest.raises(UndefinedError, match="nothing to average"):
        beir(QRELS, {})
    with pytest.raises(UndefinedError, match=r"without a relevant document; there are 1, e\.g\. 'q3'; use Rcap"):
        beir_capped_recall(QRELS, {"q3": ranking("q3", "d")})
    # A NaN is an error all the same.
    assert shown("beir", QRELS, {}) == {}
    assert shown("beir-capped", QRELS, {"q3": ranking("q3", "d")}) == {}
    with pytest.raises(UsageError, match="the score nan"):
        shown("beir", QRELS, {"q2": Ranking("q2", ("a",), (math.nan,))})
    # CCP's script never looks at the grade, so the document judged 0 is a hit at rank 1.
    assert mrtydi_ccp({"q": {"a": 0, "b": 1}}, {"q": ranking("q", "a")}) == {"MRR@100": 1.0, "Recall@100": 0.5}


def test_official_values_are_named_after_their_scorer() -> None:
    """Each scorer of documents gives fractions whose names end in the scorer's; BEIR leaves out its missing query."""
    qrels, run = {"q1": {"a": 1}, "q2": {"b": 1}}, {"q1": ranking("q1", "a", "q1", "b")}
    for scorer in OFFICIAL.values():
        values = shown(scorer.name, qrels, run) if scorer.documents else {}
        assert bool(values) == (scorer.name != "xor-asked")
        assert all(name.endswith(")") and 0 <= value <= 1 for name, value in values.items())
    assert shown("beir", qrels, run)["NDCG@10 (BEIR)"] == 1.0
    assert shown("beir", qrels, run)["P@10 (BEIR)"] == 0.1
    assert shown("beir-capped", qrels, run)["R_cap@100 (BEIR)"] == 0.5
    assert shown("lareqa", qrels, run)["mAP@20 (LAReQA)"] == 0.5


def test_xor_averages_over_the_questions_that_are_named() -> None:
    """A question without a prediction leaves the mean, which ours counts as 0; other measures have no such value."""
    values = {"R@2kt": {"q1": 1.0, "q2": 0.0, "q3": 0.0}, "RR@100": {"q1": 1.0}}
    assert predicted_questions(values, {"q1": ranking("q1", "a"), "q2": ranking("q2")}) == {"R@2kt (XOR)": 0.5}
    assert predicted_questions(values, {}) == {}
