"""Fusion: worked cases, the end points, and what no order of anything may change."""

import math
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.core.errors import UsageError
from bench.core.order import best
from bench.retrieval.fusion import Scale, interpolate, join, reciprocal_rank
from bench.types import Ranking, Tie

TIES = st.sampled_from(["trec", "list"])
SCALES = st.sampled_from(["none", "min-max"])
CUTS = st.integers(min_value=1, max_value=12)


def ranked(tie: Tie = "trec", **scores: float) -> Ranking:
    """A ranking of query q, in order."""
    return best("q", list(scores), list(scores.values()), len(scores), tie) if scores else Ranking("q", (), ())


@st.composite
def rankings(draw: st.DrawFn, tie: Tie) -> Ranking:
    """Draw a ranking of a few documents with few distinct scores."""
    score = st.sampled_from([-3.0, 0.0, 0.1, 0.5, 1.0, 2.0, 70.0])
    return ranked(tie, **draw(st.dictionaries(st.sampled_from("abcdefgh"), score)))


def listed(ranking: Ranking) -> Mapping[str, float]:
    return dict(zip(ranking.documents, ranking.scores, strict=True))


def test_scores_are_mixed_by_hand() -> None:
    """0.75 · first + 0.25 · second, the lowest for what one lacks; on one scale a 1, b ½, c 0 and c 1, d ½, e 0."""
    first, second = ranked(a=10.0, b=6.0, c=2.0), ranked(c=7.0, d=3.0, e=-1.0)
    mixed = interpolate(first, second, 0.25, 10, "trec", "none")
    assert listed(mixed) == {"a": 7.25, "b": 4.25, "c": 3.25, "d": 2.25, "e": 1.25}
    assert list(mixed.documents) == ["a", "b", "c", "d", "e"]
    mixed = interpolate(first, second, 0.25, 3, "list", "min-max")
    assert listed(mixed) == {"a": 0.75, "b": 0.375, "c": 0.25}
    assert listed(interpolate(first, second, 0.5, 2, "list", "min-max")) == {"a": 0.5, "c": 0.5}
    first, second = ranked(a=3.0, b=2.0), ranked(b=1.0, c=0.5)
    joint = join(first, second, "min-max")
    for weight in (0.0, 0.3, 0.6, 1.0):
        assert joint.mix(weight, 2, "trec") == interpolate(first, second, weight, 2, "trec", "min-max")


def pyserini(first: Ranking, second: Ranking, alpha: float) -> dict[str, float]:
    """Sparse + α · dense as the hybrids of Pyserini and Mr. TyDi define it, scores scaled to −½ … ½."""
    scores = {}
    for name in {*first.documents, *second.documents}:
        parts = []
        for ranking in (first, second):
            low, high = min(ranking.scores), max(ranking.scores)
            score = listed(ranking).get(name, low)
            parts.append(0.0 if low == high else (score - (low + high) / 2) / (high - low))
        scores[name] = parts[0] + alpha * parts[1]
    return scores


@given(rankings("list"), rankings("list"), st.sampled_from([0.01, 0.3, 0.71, 1.0]))
def test_the_order_is_that_of_mr_tydi(first: Ranking, second: Ranking, alpha: float) -> None:
    """Weight α / (1 + α) ranks as their formula: its values never rise along our ranking."""
    if first.documents and second.documents:
        theirs = pyserini(first, second, alpha)
        ours = interpolate(first, second, alpha / (1 + alpha), 20, "list", "min-max").documents
        assert set(ours) == set(theirs)
        values = [theirs[name] for name in ours]
        assert all(after <= before + 1e-9 for before, after in pairwise(values))


@given(st.data(), TIES, SCALES, CUTS)
def test_end_points_are_the_runs_themselves(data: st.DataObject, tie: Tie, scale: Scale, k: int) -> None:
    """Weight 0 is the first and weight 1 the second: documents, order and scores, cut at k."""
    first, second = data.draw(rankings(tie)), data.draw(rankings(tie))
    for weight, run in ((0.0, first), (1.0, second), (0, first), (1, second)):
        fused = interpolate(first, second, weight, k, tie, scale)
        assert (list(fused.documents), list(fused.scores)) == (list(run.documents)[:k], list(run.scores)[:k])


@given(st.data(), TIES, SCALES, CUTS, st.sampled_from([0.25, 0.5, 0.75]))
def test_turning_the_runs_round_turns_the_weight(
    data: st.DataObject, tie: Tie, scale: Scale, k: int, weight: float
) -> None:
    """1 − weight of the exchanged runs is the same; the result is within the pool, unique, falling, at most k."""
    first, second = data.draw(rankings(tie)), data.draw(rankings(tie))
    fused = interpolate(first, second, weight, k, tie, scale)
    assert fused == interpolate(second, first, 1 - weight, k, tie, scale)
    pool = {*first.documents, *second.documents}
    assert set(fused.documents) <= pool
    assert len(fused.documents) == len(set(fused.documents)) == min(k, len(pool))
    assert list(fused.scores) == sorted(fused.scores, reverse=True)


@given(st.data(), TIES, CUTS, st.permutations(range(3)))
def test_reciprocal_ranks_are_exact_sums_in_any_order(data: st.DataObject, tie: Tie, k: int, turned: list[int]) -> None:
    """Agree with fractions; whoever comes first does not matter; never more than k, nor any but the pool."""
    runs = [data.draw(rankings(tie)) for _ in range(3)]
    fused = reciprocal_rank(runs, k, tie)
    assert fused == reciprocal_rank([runs[at] for at in turned], k, tie)
    sums: dict[str, Fraction] = {}
    for ranking in runs:
        for rank, document in enumerate(ranking.documents, 1):
            sums[document] = sums.get(document, Fraction(0)) + Fraction(1, 60 + rank)
    assert len(fused.documents) == min(k, len(sums))
    assert list(fused.scores) == pytest.approx(sorted(map(float, sums.values()), reverse=True)[:k], rel=1e-6)
    assert all(math.isclose(score, sums[name], rel_tol=1e-6) for name, score in listed(fused).items())


def test_reciprocal_ranks_and_ties_by_hand() -> None:
    """Of two lists, b is second and first, c third and second; ties by the best rank, by id under trec."""
    first, second = ranked(a=9.0, b=8.0, c=7.0), ranked(b=0.3, c=0.2, d=0.1)
    fused = reciprocal_rank([first, second], 3, "list")
    assert list(fused.documents) == ["b", "c", "a"]
    assert list(fused.scores) == [1 / 62 + 1 / 61, 1 / 63 + 1 / 62, 1 / 61]
    assert list(reciprocal_rank([first, second], 4, "list", constant=0).scores) == [1.5, 1.0, 1 / 3 + 1 / 2, 1 / 3]
    first, second = ranked(b=3.0, c=2.0, a=1.0), ranked(a=3.0, c=2.0, b=1.0)
    assert reciprocal_rank([first, second], 3, "list").documents == ("a", "b", "c")
    assert reciprocal_rank([first, second], 3, "trec").documents == ("b", "a", "c")
    third = ranked(z=2.0)
    assert interpolate(ranked(a=2.0), third, 0.5, 9, "list", "none").documents == ("a", "z")
    assert interpolate(ranked(a=2.0), third, 0.5, 9, "trec", "none").documents == ("z", "a")


def test_an_empty_ranking_leaves_the_other_in_its_order() -> None:
    """Nothing found by one side: the other's order at any weight between; nothing by both: nothing."""
    first, nothing = ranked(a=3.0, b=2.0, c=2.0), ranked()
    for weight in (0.1, 0.9):
        assert interpolate(first, nothing, weight, 9, "trec", "none").documents == first.documents
        assert interpolate(nothing, first, weight, 9, "trec", "min-max").documents == first.documents
    assert interpolate(nothing, nothing, 0.5, 9, "trec", "min-max") == Ranking("q", (), ())
    assert reciprocal_rank([nothing, first], 9, "trec").documents == first.documents


def test_what_cannot_be_meant_is_refused() -> None:
    """Weights outside 0 to 1, cuts below 1, other queries, unknown scales, no rankings, constants below 0."""
    first, other_query = ranked(a=1.0), Ranking("r", ("a",), (1.0,))
    for weight in (-0.1, 1.5, math.nan):
        with pytest.raises(UsageError, match="expected a number from 0"):
            interpolate(first, first, weight, 1, "trec", "none")
    for weight in (0.0, 0.5):
        with pytest.raises(UsageError, match="at least 1"):
            interpolate(first, first, weight, 0, "trec", "none")
    with pytest.raises(UsageError, match="rankings of 2 queries"):
        interpolate(first, other_query, 0.5, 1, "trec", "none")
    with pytest.raises(UsageError, match="expected none or min-max"):
        interpolate(first, first, 0.5, 1, "trec", "z-score")  # type: ignore[arg-type]  # the fault that is tested
    with pytest.raises(UsageError, match="rankings of 0 queries"):
        reciprocal_rank([], 1, "trec")
    with pytest.raises(UsageError, match="constant -1"):
        reciprocal_rank([first], 1, "trec", constant=-1)
