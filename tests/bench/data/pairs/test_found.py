"""What makes a pair, what is refused, and what is left out and counted."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from bench.data.formats.archive import File, Member
from bench.data.formats.faults import RecordError
from bench.data.pairs.sources import ALSO_POSITIVE, TWICE, PairOutcome, outcomes, pair, pair_source, reader
from bench.types import Item, Source, TrainingPair

ASKED = Item("q", "what?")
ONE, TWO, THREE = Item("d1", "one"), Item("d2", "two", "Title"), Item("d3", "three")


def _stream(count: int) -> Iterator[tuple[int, PairOutcome]]:
    """Stream pairs, of which every second query has none."""
    for number in range(1, count + 1):
        kept = TrainingPair(Item(str(number), "?"), (ONE,)) if number % 2 else None
        yield number, PairOutcome(str(number), kept, () if kept else ("reason",))


def test_a_pair() -> None:
    """Passages stay in their order, on their sides."""
    found = pair(ASKED, [TWO, ONE], [THREE], "made up")
    assert found == PairOutcome("q", TrainingPair(ASKED, (TWO, ONE), (THREE,), "made up"), ())


def test_passages_are_the_same_by_id_or_by_text() -> None:
    """A negative that is a positive goes, whichever of the two agrees, as does what comes twice; all are counted."""
    other_id, other_text = Item("d9", "two", "Title"), Item("d1", "other words")
    same_text_alone = Item("d8", "two")  # another title is another passage
    found = pair(ASKED, [ONE, TWO, ONE], [other_id, THREE, other_text, same_text_alone, Item("d7", "three")], "s")
    assert found.pair == TrainingPair(ASKED, (ONE, TWO), (THREE, same_text_alone), "s")
    assert found.left_out == (TWICE, ALSO_POSITIVE, ALSO_POSITIVE, TWICE)


@pytest.mark.parametrize(
    ("query", "positives", "negatives", "message"),
    [
        (Item("q", " \n"), [ONE], [], "found an empty query, expected the query's text"),
        (ASKED, [], [TWO], "found no positive, expected at least one passage that answers the query"),
        (ASKED, [ONE, Item("d", " ")], [], "found an empty positive, expected a passage with a text"),
        (ASKED, [ONE], [Item("d", "")], "found an empty negative, expected a passage with a text"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    query: Item, positives: list[Item], negatives: list[Item], message: str
) -> None:
    """Each in a sentence of its own."""
    with pytest.raises(RecordError) as caught:
        pair(query, positives, negatives, "s")
    assert str(caught.value) == message


def test_a_title_is_a_text() -> None:
    """A passage that has only a title says something."""
    assert pair(ASKED, [Item("d", "", "Title")], [], "s").left_out == ()


def test_source_of_pairs(tmp_path: Path) -> None:
    """It reads pairs, tells all that was found, names each file once, and can be pickled."""
    files: list[File] = [tmp_path / "a", Member(tmp_path / "b.tar", "x"), Member(tmp_path / "b.tar", "y")]
    source = pair_source("name", reader("code/1", "x", 3), files, partial(_stream, 4))
    assert [one.query.id for one in source.read()] == ["1", "3"]
    assert [(at, one.query) for at, one in outcomes(source)] == [(1, "1"), (2, "2"), (3, "3"), (4, "4")]
    assert source.files == (tmp_path / "a", tmp_path / "b.tar")
    assert list(pickle.loads(pickle.dumps(source)).read()) == list(source.read())  # noqa: S301 (our own bytes)


def test_outcomes_of_any_source() -> None:
    """Where nothing is told beside the pairs, all are numbered and nothing is left out."""
    made = TrainingPair(ASKED, (ONE,))
    source = Source("name", "reader", (), partial(iter, [made]))
    assert list(outcomes(source)) == [(1, PairOutcome("q", made))]


def test_reader_says_what_it_was_told() -> None:
    """The code stands in front; other settings make another word."""
    assert reader("code/1", "x", 3).startswith("code/1:")
    assert len({reader("code/1", "x", 3), reader("code/1", "x", 4), reader("code/1", "x"), reader("code/1")}) == 4
