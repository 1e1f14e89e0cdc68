"""Sources of pairs: what makes a pair, several sources as one, dev pairs, counts, and random draws."""

import hashlib
import pickle
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.core.errors import UsageError
from bench.data.formats.archive import File, Member
from bench.data.formats.faults import RecordError
from bench.data.pairs import concatenate, dev_of, outcomes, sample_pairs, with_dev, without_test_questions
from bench.data.pairs.leaks import LEAKED
from bench.data.pairs.rows import tsv_pairs
from bench.data.pairs.sources import (
    ALSO_POSITIVE,
    NO_POSITIVE,
    TWICE,
    PairOutcome,
    PairSource,
    pair,
    pair_source,
    reader,
)
from bench.testing import fields
from bench.types import Item, Source, TrainingPair
from tests.conftest import WriteFile, present

QUERY = Item("q", "what?")
FIRST, SECOND, THIRD = Item("d1", "one"), Item("d2", "two", "Title"), Item("d3", "three")


def _stream(count: int) -> Iterator[tuple[int, PairOutcome]]:
    """Stream pairs, of which every second query has none."""
    for number in range(1, count + 1):
        pair = TrainingPair(Item(str(number), "?"), (FIRST,)) if number % 2 else None
        yield number, PairOutcome(str(number), pair, () if pair else ("reason",))


def test_a_pair() -> None:
    """Passages stay in order; a negative that is a positive by id or text goes, as do repetitions; all are counted."""
    outcome = pair(QUERY, [SECOND, FIRST], [THIRD], "made up")
    assert outcome == PairOutcome("q", TrainingPair(QUERY, (SECOND, FIRST), (THIRD,), "made up"), ())
    assert pair(QUERY, [Item("d", "", "Title")], [], "s").left_out == ()
    other_id, other_text = Item("d9", "two", "Title"), Item("d1", "other words")
    untitled = Item("d8", "two")  # another title is another passage
    outcome = pair(QUERY, [FIRST, SECOND, FIRST], [other_id, THIRD, other_text, untitled, Item("d7", "three")], "s")
    assert outcome.pair == TrainingPair(QUERY, (FIRST, SECOND), (THIRD, untitled), "s")
    assert outcome.left_out == (TWICE, ALSO_POSITIVE, ALSO_POSITIVE, TWICE)


@pytest.mark.parametrize(
    ("query", "positives", "negatives", "message"),
    [
        (Item("q", " \n"), [FIRST], [], "found an empty query, expected the query's text"),
        (QUERY, [], [SECOND], "found no positive, expected at least one passage that answers the query"),
        (QUERY, [FIRST, Item("d", " ")], [], "found an empty positive, expected a passage with a text"),
        (QUERY, [FIRST], [Item("d", "")], "found an empty negative, expected a passage with a text"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    query: Item, positives: list[Item], negatives: list[Item], message: str
) -> None:
    """Each in a sentence of its own."""
    with pytest.raises(RecordError) as caught:
        pair(query, positives, negatives, "s")
    assert str(caught.value) == message


def test_outcomes(tmp_path: Path) -> None:
    """A source reads pairs, keeps what was left out, names each file once and can be pickled; any other is numbered."""
    files: list[File] = [tmp_path / "a", Member(tmp_path / "b.tar", "x"), Member(tmp_path / "b.tar", "y")]
    source = pair_source("name", reader("code/1", "x", 3), files, partial(_stream, 4))
    assert [item.query.id for item in source.read()] == ["1", "3"]
    assert [(at, item.query) for at, item in outcomes(source)] == [(1, "1"), (2, "2"), (3, "3"), (4, "4")]
    assert source.files == (tmp_path / "a", tmp_path / "b.tar")
    assert list(pickle.loads(pickle.dumps(source)).read()) == list(source.read())  # noqa: S301 (our own bytes)
    pair = TrainingPair(QUERY, (FIRST,))
    plain = Source("name", "reader", (), partial(iter, [pair]))
    assert list(outcomes(plain)) == [(1, PairOutcome("q", pair))]
    assert reader("code/1", "x", 3).startswith("code/1:")
    assert len({reader("code/1", "x", 3), reader("code/1", "x", 4), reader("code/1", "x"), reader("code/1")}) == 4


def test_dev_pairs_decide_nothing_about_training_pairs(write: WriteFile) -> None:
    """Name, reader, files and records stay, without any the source itself comes back; drawn pairs have none."""
    train, dev = tsv_pairs(write("train.tsv", "a\tb\n")), tsv_pairs(write("dev.tsv", "c\td\n"))
    both = with_dev(train, dev)
    assert (both.name, both.reader, both.files) == (train.name, train.reader, train.files)
    assert list(both.read()) == list(train.read())
    assert dev_of(both) is dev
    assert dev_of(train) is None
    assert with_dev(train, None) is train
    assert dev_of(pickle.loads(pickle.dumps(both))) is not None  # noqa: S301 (our own bytes)
    pair = TrainingPair(Item("q", "a question"), (Item("d", "a passage"),))
    plain: Source[TrainingPair] = Source("made", "made/1", (), lambda: iter([pair]))
    both = with_dev(plain, tsv_pairs(write("dev.tsv", "c\td\n")))
    assert [(at, outcome.query, outcome.pair) for at, outcome in outcomes(both)] == [(1, "q", pair)]
    assert list(both.read()) == [pair]
    train = tsv_pairs(write("train.tsv", "a\tb\nc\td\n"))
    assert dev_of(sample_pairs(with_dev(train, train), 1, 0)) is None


def test_joined_sources_have_dev_pairs_where_each_has(write: WriteFile) -> None:
    """Labelled as the training pairs are; one source without any, and a share of all is held out instead."""
    dev = tsv_pairs(write("dev.tsv", "c\td\n"))
    english, swahili = (with_dev(tsv_pairs(write(f"{name}.tsv", f"{name}\tb\n")), dev) for name in ("one", "other"))
    dev_pairs = present(dev_of(concatenate({"en": english, "sw": swahili}, "both")))
    assert dev_pairs.name == "both dev"
    assert [pair.query.id for pair in dev_pairs.read()] == ["en:1", "sw:1"]
    assert dev_of(concatenate({"en": english, "sw": tsv_pairs(swahili.files[0])}, "both")) is None


def test_questions_of_a_test_are_left_out(write: WriteFile) -> None:
    """Letter for letter, whatever their case, blanks and marks; other questions about the same stay."""
    source = tsv_pairs(write("dev.tsv", "Who was Ada?\tb\nwho was Ada Lovelace\tb\nwhere?\tb\n"))
    test = Source(
        "test", "test/1", (write("test.txt", ""),), lambda: iter([Item("x", "who  was ADA"), Item("y", "Where")])
    )
    remaining = without_test_questions(source, test)
    assert [pair.query.text for pair in remaining.read()] == ["who was Ada Lovelace"]
    assert [outcome.left_out for _, outcome in outcomes(remaining)] == [(LEAKED,), (), (LEAKED,)]
    assert remaining.files == (*source.files, *test.files)
    assert remaining.reader != without_test_questions(source, Source("test", "test/2", test.files, test.read)).reader


def test_ids_stay_apart(write: WriteFile) -> None:
    """Equal ids of two sources do not meet, texts and sources stay; another label makes other ids."""
    english = tsv_pairs(write("one.tsv", "a\tb\tc\n"), language="en")
    swahili = tsv_pairs(write("two.tsv", "a\tb\nd\te\n"), language="sw")
    source = concatenate({"en": english, "sw": swahili}, "both")
    pairs = list(source.read())
    assert [pair.query.id for pair in pairs] == ["en:1", "sw:1", "sw:2"]
    assert [pair.source for pair in pairs] == ["one.tsv", "two.tsv", "two.tsv"]
    (first,) = english.read()
    assert [item.id for item in (*pairs[0].positives, *pairs[0].negatives)] == [
        f"en:{item.id}" for item in (*first.positives, *first.negatives)
    ]
    assert [(item.text, item.language) for pair in pairs[1:] for item in pair.positives] == [("b", "sw"), ("e", "sw")]
    assert [at for at, _ in outcomes(source)] == [1, 2, 3]
    assert source.files == (*english.files, *swahili.files)
    assert list(pickle.loads(pickle.dumps(source)).read()) == pairs  # noqa: S301 (our own bytes)
    english = tsv_pairs(write("one.tsv", "a\tb\n"))
    renamed = tsv_pairs(english.files[0], language="en")
    assert len({concatenate(parts, "x").reader for parts in ({"a": english}, {"b": english}, {"a": renamed})}) == 3


@pytest.mark.parametrize("label", ["", "a b", "a\n"])
def test_labels_that_no_id_can_begin_with(write: WriteFile, label: str) -> None:
    """White space would break ids."""
    with pytest.raises(UsageError, check=fields(expected="at least one, without white space")):
        concatenate({label: tsv_pairs(write("one.tsv", "a\tb\n"))}, "x")
    with pytest.raises(UsageError, check=fields(expected="at least one")):
        concatenate({}, "x")


def of(names: Sequence[str], lacking: Sequence[str] = ()) -> PairSource:
    """A source in memory; the questions of `lacking` have no positive."""

    def outcome(name: str) -> PairOutcome:
        if name in lacking:
            return PairOutcome(name, None, (NO_POSITIVE,))
        return PairOutcome(name, TrainingPair(Item(name, f"{name}?"), (Item("d", "text"),), (), "a test"))

    return pair_source("made", "made/1", (), lambda: iter([(7 + at, outcome(name)) for at, name in enumerate(names)]))


def ids(source: Source[TrainingPair]) -> list[str]:
    return [pair.query.id for pair in source.read()]


def test_the_lowest_hashes_win() -> None:
    """As hashes sorted here; over many seeds every question has the same chance (20 of 40, six deviations)."""
    names = [f"q{number}" for number in range(50)]
    lots = {name: hashlib.blake2b(f"3 {name}".encode(), digest_size=16).digest() for name in names}
    winners = set(sorted(names, key=lambda name: lots[name])[:8])
    source = sample_pairs(of(names), 8, 3)
    assert ids(source) == [name for name in names if name in winners]
    assert source.records == 8
    assert [at for at, _ in outcomes(source)] == [7 + at for at, name in enumerate(names) if name in winners]
    names = [f"q{number}" for number in range(40)]
    counts = dict.fromkeys(names, 0)
    for seed in range(400):
        for name in ids(sample_pairs(of(names), 20, seed)):
            counts[name] += 1
    assert all(140 <= count <= 260 for count in counts.values())


@given(st.lists(st.text("abcdef", min_size=1, max_size=4), unique=True, min_size=2, max_size=30), st.data())
def test_smaller_draws_are_parts_of_larger_ones(names: list[str], data: st.DataObject) -> None:
    """Whatever the order of the file; and a draw of all is all."""
    large = data.draw(st.integers(1, len(names)))
    small = data.draw(st.integers(1, large))
    shuffled = data.draw(st.permutations(names))
    assert set(ids(sample_pairs(of(names), small, 0))) <= set(ids(sample_pairs(of(shuffled), large, 0)))
    assert len(ids(sample_pairs(of(names), large, 0))) == large
    assert ids(sample_pairs(of(names), len(names), 0)) == names


def test_what_decides_a_draw(write: WriteFile) -> None:
    """The reader knows number, seed and source; a question without a positive neither counts nor comes."""
    source = tsv_pairs(write("one.tsv", "a\tb\nc\td\n"))
    readers = [
        sample_pairs(source, 1, 0),
        sample_pairs(source, 2, 0),
        sample_pairs(source, 1, 1),
        sample_pairs(tsv_pairs(source.files[0], "x", "en"), 1, 0),
    ]
    assert len({source.reader for source in readers}) == 4
    assert sample_pairs(source, 1, 0).reader == readers[0].reader
    assert readers[0].files == source.files
    assert ids(pickle.loads(pickle.dumps(readers[0]))) == ids(readers[0])  # noqa: S301 (our own bytes)
    names = ["a", "b", "c", "d"]
    assert ids(sample_pairs(of(names, lacking=["b"]), 3, 0)) == ["a", "c", "d"]
    check = fields(found="3 training pairs", expected="at least tune.shots=4", hint="type --set tune.shots=3, or leave")
    with pytest.raises(UsageError, check=check):
        ids(sample_pairs(of(names, lacking=["b"]), 4, 0))
    with pytest.raises(UsageError, check=fields(found="0 training pairs", hint="it holds no pair")):
        ids(sample_pairs(of(names, lacking=names), 1, 0))
    both = concatenate({"x": tsv_pairs(write("one.tsv", "a\tb\n"))}, "both")
    assert ids(sample_pairs(both, 1, 0)) == ["x:1"]
