"""Lucene's BM25: the golden scores, the formula by hand, its invariants, and which documents are looked at."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.core.order import cut
from methods.bm25.lucene import build, contenders

DOCUMENTS = st.lists(st.lists(st.integers(0, 9), max_size=12), min_size=1, max_size=12).filter(any)
QUERIES = st.lists(st.integers(0, 9), min_size=1, max_size=6)


def by_hand(query: Sequence[int], documents: Sequence[Sequence[int]], k1: float, b: float) -> list[float]:
    """Score every document as the specification writes the formula, one term after the other."""
    mean = sum(map(len, documents)) / len(documents)
    scores = []
    for document in documents:
        score = 0.0
        for term in query:
            df = sum(term in one for one in documents)
            idf = math.log(1 + (len(documents) - df + 0.5) / (df + 0.5))
            tf = document.count(term)
            score += idf * tf / (tf + k1 * (1 - b + b * len(document) / mean)) if tf else 0.0
        scores.append(score)
    return scores


def scored(query: Sequence[int], documents: Sequence[Sequence[int]], k1: float = 0.9, b: float = 0.4) -> list[float]:
    """Score every document with the index, in 64-bit floats."""
    scores: list[float] = build(documents, 10, k1=k1, b=b, dtype="float64").scores(query).tolist()
    return scores


@settings(max_examples=10, deadline=None)
@given(DOCUMENTS, QUERIES, st.floats(0, 3), st.floats(0, 1))
def test_the_formula_by_hand(documents: list[list[int]], query: list[int], k1: float, b: float) -> None:
    """On any small corpus, for any constants; empty documents count in N and in the mean length."""
    np.testing.assert_allclose(scored(query, documents, k1, b), by_hand(query, documents, k1, b), rtol=1e-12)


def test_more_of_a_term_scores_higher() -> None:
    """At equal length, a document with the term more often stands higher, and gains less each time."""
    documents = [[0] * tf + [1] * (6 - tf) for tf in range(7)]
    scores = scored([0], documents)
    gains = np.diff(scores)
    assert scores[0] == 0
    assert (gains > 0).all()
    assert (np.diff(gains) < 0).all()


def test_a_term_that_comes_twice_counts_twice() -> None:
    """Scores add up over the query's terms, each as often as it comes."""
    documents = [[0, 1, 1, 2], [0, 0, 3], [2, 3]]
    once, other = np.array(scored([0], documents)), np.array(scored([1], documents))
    np.testing.assert_allclose(scored([0, 1, 0], documents), 2 * once + other, rtol=1e-14)


def test_scores_do_not_depend_on_the_order_of_documents() -> None:
    """A document keeps its score, bit for bit, wherever it stands."""
    documents = [[0, 1, 1, 2], [0, 0, 3], [2, 3], [1], [0, 4, 5, 6, 7, 8]]
    assert scored([0, 1, 2], documents[::-1]) == scored([0, 1, 2], documents)[::-1]


def test_a_document_without_the_terms_acts_through_counts_only() -> None:
    """One more document of mean length, without the term: all other scores change by the one factor of the idf."""
    documents = [[0, 1, 1, 2], [0, 0, 3], [2, 3, 3, 3, 3]]  # mean length 4
    before, after = scored([0], documents), scored([0], [*documents, [9, 9, 9, 9]])
    factor = math.log(1 + 2.5 / 2.5) / math.log(1 + 1.5 / 2.5)
    np.testing.assert_allclose(after, [*(score * factor for score in before), 0], rtol=1e-12)


@given(st.integers(0, 1500), st.integers(1, 40), st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_contenders_miss_nobody(length: int, levels: int, k: int, seed: int) -> None:
    """Every positive score that is at least the k-th best is among them, also with ties; they lie in corpus order."""
    scores = np.random.default_rng(seed).integers(0, levels, length).astype(np.float32)
    found = contenders(scores, k)
    needed = {int(at) for at in cut(scores, k) if scores[at] > 0}
    assert needed <= set(found.tolist())
    assert (scores[found] > 0).all()
    assert (np.diff(found) > 0).all()


def test_contenders_are_few_where_blocks_allow() -> None:
    """Of 100,000 different scores, about as many are looked at as were asked for."""
    scores = np.random.default_rng(2).random(100_000, dtype=np.float32)
    assert 100 <= len(contenders(scores, 100)) <= 130
