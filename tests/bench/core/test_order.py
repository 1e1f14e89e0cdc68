"""The order of documents: tie rules, cuts, lazy ids, and what is refused."""

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.core.errors import UsageError
from bench.core.order import best, cast_scores, order, top_k_positions
from bench.testing import fields
from bench.types import Tie

TIES = st.sampled_from(["trec", "list"])
IDS = st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=3), max_size=30, unique=True)


@st.composite
def candidates(draw: st.DrawFn) -> tuple[list[str], list[float]]:
    """Draw documents with few distinct scores, some of which differ only beyond 32 bits."""
    documents = draw(IDS)
    score = st.sampled_from([0.0, -0.0, 1.0, 1.00000001, 1.000001, 70.0, 70.000001, -2.5, 1e-30])
    return documents, draw(st.lists(score, min_size=len(documents), max_size=len(documents)))


def by_definition(documents: Sequence[str], scores: Sequence[float], tie: Tie) -> list[int]:
    """Sort as the specification words it, in two stable passes of plain Python."""
    positions = list(range(len(documents)))
    if tie == "trec":
        positions.sort(key=lambda at: documents[at].encode(), reverse=True)
        return sorted(positions, key=lambda at: float(np.float32(scores[at])), reverse=True)
    return sorted(positions, key=lambda at: scores[at], reverse=True)


def test_ties_by_hand() -> None:
    """By id descending in byte order under `trec`, which compares 32-bit scores; by position under `list`."""
    documents = ["d1", "d10", "d2", "é", "z"]
    assert [documents[at] for at in order(documents, [1.0] * 5, "trec")] == ["é", "z", "d2", "d10", "d1"]
    assert order(["b", "c", "a"], [1.0, 2.0, 1.0], "list") == [1, 0, 2]
    assert order(["a", "b"], [1.00000001, 1.0], "trec") == [1, 0]
    assert order(["b", "a"], [1.0, 1.00000001], "list") == [1, 0]


@given(candidates(), TIES)
def test_order_is_that_of_the_definition(scored: tuple[list[str], list[float]], tie: Tie) -> None:
    """Agree with two stable sorts of plain Python on any candidates."""
    documents, scores = scored
    assert order(documents, scores, tie) == by_definition(documents, scores, tie)


@given(candidates(), TIES, st.integers(min_value=1, max_value=40))
def test_best_is_a_prefix_of_the_whole_order(scored: tuple[list[str], list[float]], tie: Tie, k: int) -> None:
    """A cut never changes who stands before whom, ties at the cut included."""
    documents, scores = scored
    ranking = best("q", documents, scores, k, tie)
    expected = by_definition(documents, scores, tie)[:k]
    precision = np.float32 if tie == "trec" else np.float64
    assert list(ranking.documents) == [documents[at] for at in expected]
    assert list(ranking.scores) == [float(precision(scores[at])) for at in expected]
    assert ranking.query == "q"


def test_best_and_cut_by_hand() -> None:
    """Scores are what was compared; a cut at 2 keeps three where two tie; a query without matches has a ranking."""
    ranking = best("q", ["a"], np.array([0.1]), 1, "trec")
    assert ranking.scores == (float(np.float32(0.1)),)
    assert type(ranking.scores[0]) is float
    assert best("q", ["a"], np.array([0.1]), 1, "list").scores == (0.1,)
    assert top_k_positions(np.array([1.0, 3.0, 2.0, 2.0, 0.0]), 2).tolist() == [1, 2, 3]
    assert top_k_positions(np.array([1.0, 3.0]), 5).tolist() == [0, 1]
    assert top_k_positions(np.array([]), 1).tolist() == []
    ranking = best("q", [], [], 3, "trec")
    assert (len(ranking.documents), len(ranking.scores)) == (0, 0)


class CountedReads(Sequence[str]):
    """A lazy sequence of ids that notes which were looked up."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.looked_up: set[int] = set()

    def __len__(self) -> int:
        """Return how many there are."""
        return self.size

    def __getitem__(self, at: Any) -> Any:
        """Return the id at a position; slices are not asked for."""
        assert isinstance(at, int)
        self.looked_up.add(at)
        return f"d{at}"


def test_best_looks_up_only_the_ids_that_compete() -> None:
    """Of a million candidates, those that reach the 10th best score are asked for their ids: here 9 + 3 tied ones."""
    scores = np.zeros(1_000_000, np.float32)
    scores[:9] = np.arange(20, 11, -1)
    scores[[500, 700, 900]] = 5
    documents = CountedReads(len(scores))
    ranking = best("q", documents, scores, 10, "trec")
    assert documents.looked_up == {*range(9), 500, 700, 900}
    assert ranking.documents == (*(f"d{at}" for at in range(9)), "d900")
    assert best("q", documents, scores, 10, "list").documents[-1] == "d500"


@pytest.mark.parametrize("score", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("tie", ["trec", "list"])
def test_a_score_that_is_not_finite_is_refused(score: float, tie: Tie) -> None:
    """NaN has no place in an order; the message says which candidate and what to do."""
    with pytest.raises(UsageError, check=fields(where="candidate 2 of 2", expected="a finite", hint="leave out")):
        order(["a", "b"], [1.0, score], tie)


def test_wrong_arguments_are_refused() -> None:
    """Lengths that differ, a cut below 1, an unknown rule; 1e300 would tie with every other overflow of 32 bits."""
    with pytest.raises(UsageError, check=fields(found="1 scores for 2 documents")):
        order(["a", "b"], [1.0], "trec")
    with pytest.raises(UsageError, check=fields(found="1 scores for 2 documents")):
        best("q", ["a", "b"], [1.0], 1, "trec")
    with pytest.raises(UsageError, check=fields(where="k", found="0")):
        best("q", ["a"], [1.0], 0, "trec")
    with pytest.raises(UsageError, check=fields(found="tie rule 'random'")):
        cast_scores([1.0], cast(Tie, "random"))
    with pytest.raises(UsageError, check=fields(found="1e+300", expected="a finite 32-bit number")):
        best("q", ["a"], [1e300], 1, "trec")
    assert best("q", ["a"], [1e300], 1, "list").scores == (1e300,)
