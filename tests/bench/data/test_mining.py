"""Which candidates become negatives: each reason by hand, the margin by the definition, and never what is judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.core.errors import UsageError
from bench.data.pairs.mining import ENOUGH, POSITIVE, SAME_TEXT, SCORE, Judged, MiningRules, choose
from bench.testing import fields

TEXTS = (100, 101, 102, 103, 100, 105, 106, 107)  # 4 says what 0 says
JUDGED = Judged(frozenset({0}), frozenset({0, 1}), frozenset({100}))  # 1 has the id of 0


def never() -> float:
    """Score a positive that nobody should have to look up."""
    raise AssertionError


def test_every_reason_by_hand() -> None:
    """In rank order: the positive, its id, above 0.5 × 8, its text, two kept, one too many."""
    rows, scores = (0, 1, 2, 4, 3, 5, 6), (8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0)
    mined = choose(rows, scores, JUDGED, TEXTS, MiningRules(1, 7, 2, 0.5), never)
    assert mined.rows == (3, 5)
    assert mined.left_out == {POSITIVE: 2, SCORE: 1, SAME_TEXT: 1, ENOUGH: 1}


def test_ranks_count_positives_and_end_where_they_shall() -> None:
    """Ranks 2 to 4 of the ranking as it is; a ranking that ends before is no fault, nor one that begins too late."""
    rows, scores = (0, 2, 1, 3, 5), (5.0, 4.0, 3.0, 2.0, 1.0)
    assert choose(rows, scores, JUDGED, TEXTS, MiningRules(2, 4, 9), never).rows == (2, 3)
    assert choose(rows[:2], scores[:2], JUDGED, TEXTS, MiningRules(2, 4, 9), never).rows == (2,)
    assert choose(rows[:1], scores[:1], JUDGED, TEXTS, MiningRules(2, 4, 9, 0.9), never).rows == ()
    assert choose((), (), JUDGED, TEXTS, MiningRules(1, 4, 9, 0.9), never).rows == ()


def test_a_positive_is_looked_up_only_where_the_ranking_does_not_tell() -> None:
    """Below the last of the ranking, 2: of a margin of 0.9 nothing is left; of 1.5 it depends on where."""
    rows, scores = (2, 3, 5), (4.0, 2.5, 2.0)
    assert choose(rows, scores, JUDGED, TEXTS, MiningRules(1, 3, 9, 0.9), never).left_out == {SCORE: 3}
    asked: list[int] = []

    def best() -> float:
        asked.append(1)
        return 1.4

    assert choose(rows, scores, JUDGED, TEXTS, MiningRules(1, 3, 9, 1.5), best).rows == (5,)  # 2.0 ≤ 2.1 < 2.5
    assert len(asked) == 1


@st.composite
def rankings(draw: st.DrawFn) -> tuple[list[int], list[float], float, frozenset[int]]:
    """Draw a ranking of whole numbers, cut somewhere; the best score of a positive, and the positives."""
    rows = draw(st.permutations(range(8)))
    scores = sorted(draw(st.lists(st.integers(-4, 4), min_size=8, max_size=8)), reverse=True)
    positives = draw(st.frozensets(st.integers(0, 7), min_size=1, max_size=3))
    best = max(score for row, score in zip(rows, scores, strict=True) if row in positives)
    end = draw(st.integers(0, 8))
    return list(rows[:end]), [float(score) for score in scores[:end]], float(best), positives


def by_definition(
    rows: Sequence[int], scores: Sequence[float], best: float, judged: Judged, texts: Sequence[int], rules: MiningRules
) -> tuple[int, ...]:
    """Choose as the rule is worded."""
    window = list(zip(rows, scores, strict=True))[rules.first - 1 : rules.last]
    free = [
        row
        for row, score in window
        if row not in judged.named
        and texts[row] not in judged.texts
        and (rules.margin is None or score <= rules.margin * best)
    ]
    return tuple(free[: rules.keep])


@settings(deadline=None)  # the machine may be busy
@given(
    rankings(),
    st.lists(st.integers(0, 5), min_size=8, max_size=8),
    st.frozensets(st.integers(0, 7), max_size=2),
    st.integers(1, 8),
    st.integers(0, 7),
    st.integers(1, 8),
    st.one_of(st.none(), st.sampled_from([0.5, 1.0, 1.5])),
)
def test_the_definition_and_nothing_judged(
    ranked: tuple[list[int], list[float], float, frozenset[int]],
    texts: list[int],
    alias: frozenset[int],
    first: int,
    deeper: int,
    keep: int,
    margin: float | None,
) -> None:
    """Whatever the ranking, whether or not it holds a positive; every candidate is kept or left out once."""
    rows, scores, best, positives = ranked
    judged = Judged(positives, positives | alias, frozenset(texts[row] for row in positives))
    rules = MiningRules(first, first + deeper, keep, margin)
    mined = choose(rows, scores, judged, texts, rules, lambda: best)
    assert mined.rows == by_definition(rows, scores, best, judged, texts, rules)
    assert not judged.named & set(mined.rows)
    assert not judged.texts & {texts[row] for row in mined.rows}
    window = rows[rules.first - 1 : rules.last]
    assert len(mined.rows) + sum(Counter(mined.left_out).values()) == len(window)


@pytest.mark.parametrize("values", [(0, 5, 1, None), (3, 2, 1, None), (1, 5, 0, None), (1, 5, 1, 0.0)])
def test_rules_that_cannot_be_meant(values: tuple[int, int, int, float | None]) -> None:
    """Ranks from 1 upwards, something to keep, a margin above 0."""
    with pytest.raises(UsageError, check=fields(expected="ranks from 1 upwards")):
        MiningRules(*values)
