"""The benchmarks' own scorers; what they give is compared with the official code in `tests/golden`."""

import math
from collections.abc import Mapping

import pytest

from bench.core.errors import UsageError
from bench.types import Ranking
from suites.scorers import OFFICIAL, UndefinedError, beir, beir_capped_recall, mrtydi_ccp, named_questions, xor_retrieve
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
    assert shown("beir-custom", QRELS, {})["MRR@10 (BEIR)"] == 0
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
    assert shown("beir-custom", qrels, run)["MRR@10 (BEIR)"] == 0.5
    assert shown("beir-capped", qrels, run)["R_cap@100 (BEIR)"] == 0.5
    assert shown("lareqa", qrels, run)["mAP@20 (LAReQA)"] == 0.5


def test_xor_averages_over_the_questions_that_are_named() -> None:
    """A question without a prediction leaves the mean, which ours counts as 0; other measures have no such value."""
    values = {"R@2kt": {"q1": 1.0, "q2": 0.0, "q3": 0.0}, "RR@100": {"q1": 1.0}}
    assert named_questions(values, {"q1": ranking("q1", "a"), "q2": ranking("q2")}) == {"R@2kt (XOR)": 0.5}
    assert named_questions(values, {}) == {}


def test_xor_retrieve_on_records() -> None:
    """By hand: two languages, an unknown question, one that does not count and one without a prediction."""
    data = [
        {"id": "1", "answers": ["a b"]},
        {"id": "2", "answers": ["yes"]},
        {"id": "3", "answers": ["no", "z"]},
        {"id": "4", "answers": ["a"]},
    ]
    predictions = [
        {"id": "1", "lang": "fi", "ctxs": ["x a", "b"]},
        {"q_id": "3", "lang": "fi", "ctxs": ["x"]},
        {"id": "2", "lang": "ru", "ctxs": ["yes"]},
        {"id": "9", "lang": "ar", "ctxs": ["a"]},
        {"id": "1", "lang": "te", "ctxs": ["a b"]},
    ]
    found = xor_retrieve(data, predictions, 3, str.split)
    assert found["per_language"] == {
        "fi": {"count": 2, "hit": 1, "score": 50.0},
        "te": {"count": 1, "hit": 1, "score": 100.0},
    }
    assert found["macro_avg"] == 75.0
    assert found["per_item"] == {"1": True, "3": False, "2": None, "9": None}
    with pytest.raises(UsageError, match="no prediction for a question with an answer other than yes or no"):
        xor_retrieve(data, predictions[2:4], 3, str.split)
    with pytest.raises(UsageError, match=r"a prediction with the keys \['id', 'lang'\], expected \"ctxs\" among them"):
        xor_retrieve(data, [{"id": "1", "lang": "fi"}], 3, str.split)
    with pytest.raises(UsageError, match=r"prediction with the keys \['lang'\], expected \"id\" or \"q_id\" among"):
        xor_retrieve(data, [{"lang": "fi"}], 3, str.split)
