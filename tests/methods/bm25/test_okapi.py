"""The variant rank_bm25: equal to the library, and the library equal to its formula."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from methods.bm25.okapi import Okapi

DOCUMENTS = st.lists(st.lists(st.integers(0, 5), max_size=8), min_size=1, max_size=10).filter(any)


def by_hand(query: Sequence[int], documents: Sequence[Sequence[int]]) -> list[float]:
    """Score with k1 1.5, b 0.75, epsilon 0.25: (k1 + 1) above, and idf below zero replaced by epsilon of the mean."""
    mean = sum(map(len, documents)) / len(documents)
    df = {term: sum(term in one for one in documents) for one in documents for term in one}
    idf = {term: math.log(len(documents) - n + 0.5) - math.log(n + 0.5) for term, n in df.items()}
    floor = 0.25 * sum(idf.values()) / len(idf)  # the mean over the vocabulary, negative ones included
    weight = {term: value if value >= 0 else floor for term, value in idf.items()}
    return [
        sum(
            weight.get(term, 0.0) * document.count(term) * 2.5
            / (document.count(term) + 1.5 * (0.25 + 0.75 * len(document) / mean))
            for term in query
        )
        for document in documents
    ]  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(DOCUMENTS, st.lists(st.integers(0, 5), min_size=1, max_size=5))
def test_scores_are_the_library_s_and_the_formula_s(documents: list[list[int]], query: list[int]) -> None:
    """Every document that holds a term, with the library's score; scores of 0 and below are kept."""
    positions, scores = Okapi(documents, k1=1.5, b=0.75, epsilon=0.25).matches(query, 3)
    words = [[f"w{term}" for term in document] for document in documents]
    assert positions.tolist() == [at for at, document in enumerate(documents) if set(document) & set(query)]
    expected = BM25Okapi(words).get_scores([f"w{term}" for term in query])[positions]
    assert scores.tolist() == expected.tolist()
    np.testing.assert_allclose(scores, np.array(by_hand(query, documents))[positions], rtol=1e-12, atol=1e-14)


def test_a_term_in_more_than_half_of_the_documents() -> None:
    """Its idf is a quarter of the mean idf: worked out with a pocket calculator."""
    documents = [[0, 1], [0, 2], [0, 3]]
    positions, scores = Okapi(documents, k1=1.5, b=0.75, epsilon=0.25).matches([0], 3)
    assert positions.tolist() == [0, 1, 2]
    # idf of 0: ln .5 − ln 3.5 = −1.945910149; of the others: ln 2.5 − ln 1.5 = .510825624; all lengths are the mean
    assert scores == pytest.approx([0.25 * (3 * 0.510825624 - 1.945910149) / 4] * 3, abs=1e-9)
    assert scores[0] < 0
