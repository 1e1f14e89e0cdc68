"""The pool of some pairs: what is one passage and what two, and what is judged to answer a query."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.core.errors import UsageError
from bench.data.pairs.pool import Pool, write_pool
from bench.testing import fields
from bench.types import Item, TrainingPair


def pair(query: Item, positives: Sequence[Item], negatives: Sequence[Item] = ()) -> TrainingPair:
    """Make a pair."""
    return TrainingPair(query, tuple(positives), tuple(negatives))


PAIRS = (
    pair(Item("q1", "Who wrote it?"), [Item("a", "Goethe.", "Faust", "en")], [Item("b", "Schiller.", "", "en")]),
    pair(Item("q2", "When?"), [Item("c", "Goethe.", "Faust", "en"), Item("d", "1808.", "Faust", "en")]),
    pair(Item("q3", "who  wrote IT?"), [Item("a", "Klopstock.", "", "en")], [Item("e", "GOETHE.", "", "en")]),
)


def test_passages_are_told_apart_by_title_and_text(tmp_path: Path) -> None:
    """One under two ids is one, two under one id are two; ids are numbers while they are searched."""
    assert write_pool(tmp_path, PAIRS) == {"passages": 5, "given": 6, "language": "en"}
    pool = Pool(tmp_path)
    assert [pool.passage(at).id for at in range(len(pool))] == ["a", "b", "d", "a", "e"]
    assert list(pool)[2] == pool[2] == pool[-3] == Item("2", "1808.", "Faust", "en")
    assert pool[:2] == [pool[0], pool[1]]
    with pytest.raises(IndexError):
        pool[5]
    assert pool.language == "en"


def test_what_is_judged_for_a_query(tmp_path: Path) -> None:
    """Positives of all pairs that ask the same; what has their ids; what says the same, whatever its case and title."""
    write_pool(tmp_path, PAIRS)
    pool = Pool(tmp_path)
    first = pool.judged(0)
    assert first == pool.judged(2), "q3 asks what q1 asks"
    assert first.rows == {0, 3}
    assert first.named == {0, 3}
    assert {at for at in range(len(pool)) if int(pool.texts[at]) in first.texts} == {0, 3, 4}
    second = pool.judged(1)
    assert second.rows == second.named == {0, 2}, "c is the passage that came first as a"


def test_several_languages_are_none(tmp_path: Path) -> None:
    """A pool of one language says which; a passage without a language is of another."""
    pairs = [pair(Item("q", "x"), [Item("a", "y", language="en")], [Item("b", "z")])]
    assert write_pool(tmp_path, pairs)["language"] == ""
    assert Pool(tmp_path).language == ""


ITEMS = st.builds(Item, st.sampled_from("abc"), st.sampled_from(["x", "X ", "y", "z"]), st.sampled_from(["", "t"]))
MANY = st.lists(
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


@settings(max_examples=60, deadline=None)
@given(MANY)
def test_judged_is_what_a_reader_of_all_pairs_would_say(pairs: list[TrainingPair]) -> None:
    """By brute force over the pairs: ids that any positive of the query has, and what such positives say."""
    with TemporaryDirectory() as folder:
        write_pool(Path(folder), pairs)
        pool = Pool(Path(folder))
        every = [item for one in pairs for item in (*one.positives, *one.negatives)]
        distinct = list(dict.fromkeys((item.title, item.text) for item in every))
        assert [(item.title, item.text) for item in pool] == distinct
        for number, one in enumerate(pairs):
            alike = [o for o in pairs if o.query.id == one.query.id or says(o.query) == says(one.query)]
            positives = [item for other in alike for item in other.positives]
            ids = {item.id for item in positives}
            found = pool.judged(number)
            assert found.rows == {distinct.index((item.title, item.text)) for item in positives}
            assert found.named == {distinct.index((item.title, item.text)) for item in every if item.id in ids}
            same = {at for at in range(len(pool)) if int(pool.texts[at]) in found.texts}
            assert same == {at for at, item in enumerate(pool) if says(item) in {says(own) for own in positives}}


def test_a_folder_that_holds_none(tmp_path: Path) -> None:
    """Refused in a sentence."""
    with pytest.raises(UsageError, check=fields(expected="a pool of passages on disk")):
        Pool(tmp_path)
