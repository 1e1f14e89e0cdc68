"""The pool of passages, and the hard negatives that are chosen from it."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.core.errors import UsageError
from bench.data.pairs.mining import ENOUGH, POSITIVE, SAME_TEXT, SCORE, JudgedPassages, MiningRules, choose
from bench.data.pairs.pool import Pool, write_pool
from bench.testing import fields
from bench.types import Item, TrainingPair


def pair(query: Item, positives: Sequence[Item], negatives: Sequence[Item] = ()) -> TrainingPair:
    return TrainingPair(query, tuple(positives), tuple(negatives))


PAIRS = (
    pair(Item("q1", "Who wrote it?"), [Item("a", "Goethe.", "Faust", "en")], [Item("b", "Schiller.", "", "en")]),
    pair(Item("q2", "When?"), [Item("c", "Goethe.", "Faust", "en"), Item("d", "1808.", "Faust", "en")]),
    pair(Item("q3", "who  wrote IT?"), [Item("a", "Klopstock.", "", "en")], [Item("e", "GOETHE.", "", "en")]),
)


def test_passages_are_distinct_by_title_and_text(tmp_path: Path) -> None:
    """One under two ids is one, two under one id are two; ids are numbers while they are searched."""
    assert write_pool(tmp_path, PAIRS) == {"passages": 5, "given": 6, "language": "en"}
    pool = Pool(tmp_path)
    assert [pool.passage(at).id for at in range(len(pool))] == ["a", "b", "d", "a", "e"]
    assert list(pool)[2] == pool[2] == pool[-3] == Item("2", "1808.", "Faust", "en")
    assert pool[:2] == [pool[0], pool[1]]
    with pytest.raises(IndexError):
        pool[5]
    assert pool.language == "en"
    pairs = [pair(Item("q", "x"), [Item("a", "y", language="en")], [Item("b", "z")])]
    assert write_pool(tmp_path, pairs)["language"] == ""
    assert Pool(tmp_path).language == ""
    with pytest.raises(UsageError, check=fields(expected="a pool of passages on disk")):
        Pool(tmp_path / "none")


def test_what_is_judged_for_a_query(tmp_path: Path) -> None:
    """Positives of all pairs that ask the same; what has their ids; what says the same, whatever its case and title."""
    write_pool(tmp_path, PAIRS)
    pool = Pool(tmp_path)
    first = pool.judged(0)
    assert first == pool.judged(2), "q3 asks what q1 asks"
    assert first.rows == {0, 3}
    assert first.same_ids == {0, 3}
    assert {at for at in range(len(pool)) if int(pool.texts[at]) in first.texts} == {0, 3, 4}
    second = pool.judged(1)
    assert second.rows == second.same_ids == {0, 2}, "c is the passage that came first as a"


ITEMS = st.builds(Item, st.sampled_from("abc"), st.sampled_from(["x", "X ", "y", "z"]), st.sampled_from(["", "t"]))
PAIR_LISTS = st.lists(
    st.builds(
        pair,
        st.builds(Item, st.sampled_from("pq"), st.sampled_from(["who", "WHO", "when"])),
        st.lists(ITEMS, min_size=1, max_size=2),
        st.lists(ITEMS, max_size=2),
    ),
    min_size=1,
    max_size=5,
)


def says(item: Item) -> str:
    """What a passage says, for eyes that see neither case nor blanks."""
    return item.text.strip().lower()


@settings(max_examples=30)
@given(PAIR_LISTS)
def test_judged_is_what_a_reader_of_all_pairs_would_say(pairs: list[TrainingPair]) -> None:
    """By brute force over the pairs: ids that any positive of the query has, and what such positives say."""
    with TemporaryDirectory() as folder:
        write_pool(Path(folder), pairs)
        pool = Pool(Path(folder))
        passages = [item for pair_ in pairs for item in (*pair_.positives, *pair_.negatives)]
        distinct = list(dict.fromkeys((item.title, item.text) for item in passages))
        assert [(item.title, item.text) for item in pool] == distinct
        for number, pair_ in enumerate(pairs):
            equal_queries = [o for o in pairs if o.query.id == pair_.query.id or says(o.query) == says(pair_.query)]
            positives = [item for equal in equal_queries for item in equal.positives]
            ids = {item.id for item in positives}
            judged = pool.judged(number)
            assert judged.rows == {distinct.index((item.title, item.text)) for item in positives}
            assert judged.same_ids == {distinct.index((item.title, item.text)) for item in passages if item.id in ids}
            same_texts = {at for at in range(len(pool)) if int(pool.texts[at]) in judged.texts}
            assert same_texts == {
                at for at, item in enumerate(pool) if says(item) in {says(positive) for positive in positives}
            }


TEXTS = (100, 101, 102, 103, 100, 105, 106, 107)  # 4 says what 0 says
JUDGED = JudgedPassages(frozenset({0}), frozenset({0, 1}), frozenset({100}))  # 1 has the id of 0


def never() -> float:
    """Score a positive that nobody should have to look up."""
    raise AssertionError


def test_choices_by_hand() -> None:
    """In rank order, by every reason; ranks count positives, and a ranking may end early or begin too late."""
    rows, scores = (0, 1, 2, 4, 3, 5, 6), (8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0)
    mined = choose(rows, scores, JUDGED, TEXTS, MiningRules(1, 7, 2, 0.5), never)
    assert mined.rows == (3, 5)
    assert mined.left_out == {POSITIVE: 2, SCORE: 1, SAME_TEXT: 1, ENOUGH: 1}
    ranked, falling = (0, 2, 1, 3, 5), (5.0, 4.0, 3.0, 2.0, 1.0)
    assert choose(ranked, falling, JUDGED, TEXTS, MiningRules(2, 4, 9), never).rows == (2, 3)
    assert choose(ranked[:2], falling[:2], JUDGED, TEXTS, MiningRules(2, 4, 9), never).rows == (2,)
    assert choose(ranked[:1], falling[:1], JUDGED, TEXTS, MiningRules(2, 4, 9, 0.9), never).rows == ()
    assert choose((), (), JUDGED, TEXTS, MiningRules(1, 4, 9, 0.9), never).rows == ()


def test_a_positive_is_looked_up_only_where_the_ranking_does_not_tell() -> None:
    """Below the last of the ranking, 2: of a margin of 0.9 nothing is left; of 1.5 it depends on where."""
    rows, scores = (2, 3, 5), (4.0, 2.5, 2.0)
    assert choose(rows, scores, JUDGED, TEXTS, MiningRules(1, 3, 9, 0.9), never).left_out == {SCORE: 3}
    looked_up: list[int] = []

    def best() -> float:
        looked_up.append(1)
        return 1.4

    assert choose(rows, scores, JUDGED, TEXTS, MiningRules(1, 3, 9, 1.5), best).rows == (5,)  # 2.0 ≤ 2.1 < 2.5
    assert len(looked_up) == 1


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
    rows: Sequence[int],
    scores: Sequence[float],
    best: float,
    judged: JudgedPassages,
    texts: Sequence[int],
    rules: MiningRules,
) -> tuple[int, ...]:
    """Choose as the rule is worded."""
    window = list(zip(rows, scores, strict=True))[rules.first - 1 : rules.last]
    free = [
        row
        for row, score in window
        if row not in judged.same_ids
        and texts[row] not in judged.texts
        and (rules.margin is None or score <= rules.margin * best)
    ]
    return tuple(free[: rules.keep])


RULES = st.builds(
    lambda first, deeper, keep, margin: MiningRules(first, first + deeper, keep, margin),
    *(st.integers(1, 8), st.integers(0, 7), st.integers(1, 8), st.sampled_from([None, 0.5, 1.0, 1.5])),
)
TEXTS_OF_ROWS = st.lists(st.integers(0, 5), min_size=8, max_size=8)
ALIASES = st.frozensets(st.integers(0, 7), max_size=2)


@given(rankings(), TEXTS_OF_ROWS, ALIASES, RULES)
def test_the_definition_and_nothing_judged(
    ranked: tuple[list[int], list[float], float, frozenset[int]],
    texts: list[int],
    alias: frozenset[int],
    rules: MiningRules,
) -> None:
    """Whatever the ranking, whether or not it holds a positive; every candidate is kept or left out once."""
    rows, scores, best, positives = ranked
    judged = JudgedPassages(positives, positives | alias, frozenset(texts[row] for row in positives))
    mined = choose(rows, scores, judged, texts, rules, lambda: best)
    assert mined.rows == by_definition(rows, scores, best, judged, texts, rules)
    assert not judged.same_ids & set(mined.rows)
    assert not judged.texts & {texts[row] for row in mined.rows}
    window = rows[rules.first - 1 : rules.last]
    assert len(mined.rows) + sum(Counter(mined.left_out).values()) == len(window)


@pytest.mark.parametrize("values", [(0, 5, 1, None), (3, 2, 1, None), (1, 5, 0, None), (1, 5, 1, 0.0)])
def test_rules_that_cannot_be_meant(values: tuple[int, int, int, float | None]) -> None:
    """Ranks from 1 upwards, something to keep, a margin above 0."""
    with pytest.raises(UsageError, check=fields(expected="ranks from 1 upwards")):
        MiningRules(*values)
