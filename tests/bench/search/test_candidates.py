"""Ranking among given candidates."""

from __future__ import annotations

import numpy as np
import pytest

from bench.errors import UsageError
from bench.search.candidates import rank
from bench.search.dense import Block
from bench.types import Candidates, Ranking

PASSAGES = Block(["a", "b", "c", "d"], np.asarray([[1, 0], [2, 0], [1, 0], [0, 3]], np.float32))
QUERIES = Block(["q", "r"], np.asarray([[1, 0], [1, 1]], np.float32))


def lists(**given: tuple[str, ...]) -> dict[str, Candidates]:
    """Candidates by query."""
    return {query: Candidates(query, documents) for query, documents in given.items()}


def test_each_query_has_its_own() -> None:
    """By hand: only what was given is ranked, ties by id or by the candidates' order, cut at k."""
    given = lists(q=("d", "c", "a", "b"), r=("a", "d"))
    assert list(rank(QUERIES, PASSAGES, given, 3, "trec", "dot")) == [
        Ranking("q", ("b", "c", "a"), (2.0, 1.0, 1.0)),
        Ranking("r", ("d", "a"), (3.0, 1.0)),
    ]
    first = next(rank(QUERIES, PASSAGES, lists(q=("a", "d", "c")), 2, "list", "dot"))
    assert first == Ranking("q", ("a", "c"), (1.0, 1.0))


def test_cosine() -> None:
    """Length counts for nothing."""
    first = next(rank(QUERIES, PASSAGES, lists(q=("a", "b", "d")), 3, "trec", "cos"))
    assert first == Ranking("q", ("b", "a", "d"), (1.0, 1.0, 0.0))


def test_no_candidate_at_all() -> None:
    """An empty list is an empty ranking."""
    assert next(rank(QUERIES, PASSAGES, lists(q=()), 3, "trec", "dot")) == Ranking("q", (), ())


def test_what_is_missing() -> None:
    """A list, or a document."""
    with pytest.raises(UsageError, match="query 'q' has no candidates"):
        list(rank(QUERIES, PASSAGES, lists(r=("a",)), 3, "trec", "dot"))
    with pytest.raises(UsageError, match="candidate 'z' of query 'q' is not in the corpus"):
        list(rank(QUERIES, PASSAGES, lists(q=("a", "z"), r=("a",)), 3, "trec", "dot"))
