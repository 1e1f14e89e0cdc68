"""Lucene's formula by hand, and rank_bm25's as the library has it."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from bench.core.order import top_k_positions
from methods.bm25.lucene import build, contenders
from methods.bm25.okapi import Okapi

DOCUMENTS = st.lists(st.lists(st.integers(0, 9), max_size=12), min_size=1, max_size=12).filter(any)
FEW_TERMS = st.lists(st.lists(st.integers(0, 5), max_size=8), min_size=1, max_size=10).filter(any)
QUERIES = st.lists(st.integers(0, 9), min_size=1, max_size=6)


def by_hand(query: Sequence[int], documents: Sequence[Sequence[int]], k1: float, b: float) -> list[float]:
    """Score every document as the specification writes the formula, one term after the other."""
    mean = sum(map(len, documents)) / len(documents)
    scores = []
    for document in documents:
        score = 0.0
        for term in query:
            df = sum(term in text for text in documents)
            idf = math.log(1 + (len(documents) - df + 0.5) / (df + 0.5))
            tf = document.count(term)
            score += idf * tf / (tf + k1 * (1 - b + b * len(document) / mean)) if tf else 0.0
        scores.append(score)
    return scores


def scored(query: Sequence[int], documents: Sequence[Sequence[int]], k1: float = 0.9, b: float = 0.4) -> list[float]:
    """Score every document with the index, in 64-bit floats."""
    scores: list[float] = build(documents, 10, k1=k1, b=b, dtype="float64").scores(query).tolist()
    return scores


@settings(max_examples=10)
@given(DOCUMENTS, QUERIES, st.floats(0, 3), st.floats(0, 1))
def test_the_formula_by_hand(documents: list[list[int]], query: list[int], k1: float, b: float) -> None:
    """On any small corpus, for any constants; empty documents count in N and in the mean length."""
    np.testing.assert_allclose(scored(query, documents, k1, b), by_hand(query, documents, k1, b), rtol=1e-12)


@given(st.integers(0, 1500), st.integers(1, 40), st.integers(1, 20), st.integers(0, 2**32 - 1))
def test_contenders_miss_nobody(length: int, levels: int, k: int, seed: int) -> None:
    """Every positive score that is at least the k-th best is among them, also with ties; they lie in corpus order."""
    scores = np.random.default_rng(seed).integers(0, levels, length).astype(np.float32)
    positions = contenders(scores, k)
    top = {int(at) for at in top_k_positions(scores, k) if scores[at] > 0}
    assert top <= set(positions.tolist())
    assert (scores[positions] > 0).all()
    assert (np.diff(positions) > 0).all()


def test_contenders_are_few_where_blocks_allow() -> None:
    """Of 100,000 different scores, about as many are looked at as were asked for."""
    scores = np.random.default_rng(2).random(100_000, dtype=np.float32)
    assert 100 <= len(contenders(scores, 100)) <= 130


@settings(max_examples=100)
@given(FEW_TERMS, st.lists(st.integers(0, 5), min_size=1, max_size=5))
def test_scores_are_the_library_s(documents: list[list[int]], query: list[int]) -> None:
    """Every document that holds a term, with the library's score; scores of 0 and below are kept."""
    positions, scores = Okapi(documents, k1=1.5, b=0.75, epsilon=0.25).matches(query, 3)
    words = [[f"w{term}" for term in document] for document in documents]
    assert positions.tolist() == [at for at, document in enumerate(documents) if set(document) & set(query)]
    expected = BM25Okapi(words).get_scores([f"w{term}" for term in query])[positions]
    assert scores.tolist() == expected.tolist()


def test_a_term_in_more_than_half_of_the_documents() -> None:
    """Its idf is a quarter of the mean idf: worked out with a pocket calculator."""
    documents = [[0, 1], [0, 2], [0, 3]]
    positions, scores = Okapi(documents, k1=1.5, b=0.75, epsilon=0.25).matches([0], 3)
    assert positions.tolist() == [0, 1, 2]
    # idf of 0: ln .5 − ln 3.5 = −1.945910149; of the others: ln 2.5 − ln 1.5 = .510825624; all lengths are the mean
    assert scores == pytest.approx([0.25 * (3 * 0.510825624 - 1.945910149) / 4] * 3, abs=1e-9)
    assert scores[0] < 0
