"""Dev pairs beside training pairs, and questions of a test that are left out of them."""

from __future__ import annotations

import pickle

from bench.data.pairs import dev_of, drawn, joined, outcomes, unasked, with_dev
from bench.data.pairs.leaks import LEAKED
from bench.data.pairs.rows import tsv_pairs
from bench.types import Item, Source, TrainingPair
from tests.conftest import Put


def test_dev_pairs_decide_nothing_about_training_pairs(put: Put) -> None:
    """Name, reader, files and records are as they were; without any, the source itself comes back."""
    train, dev = tsv_pairs(put("train.tsv", "a\tb\n")), tsv_pairs(put("dev.tsv", "c\td\n"))
    both = with_dev(train, dev)
    assert (both.name, both.reader, both.files) == (train.name, train.reader, train.files)
    assert list(both.read()) == list(train.read())
    assert dev_of(both) is dev
    assert dev_of(train) is None
    assert with_dev(train, None) is train
    assert dev_of(pickle.loads(pickle.dumps(both))) is not None  # noqa: S301 (our own bytes)


def test_any_source_may_have_dev_pairs(put: Put) -> None:
    """One that cannot say what it left out gets its records counted."""
    pair = TrainingPair(Item("q", "a question"), (Item("d", "a passage"),))
    plain: Source[TrainingPair] = Source("made", "made/1", (), lambda: iter([pair]))
    both = with_dev(plain, tsv_pairs(put("dev.tsv", "c\td\n")))
    assert [(at, one.query, one.pair) for at, one in outcomes(both)] == [(1, "q", pair)]
    assert list(both.read()) == [pair]


def test_joined_sources_have_dev_pairs_where_each_has(put: Put) -> None:
    """Labelled as the training pairs are; one source without any, and a share of all is held out instead."""
    dev = tsv_pairs(put("dev.tsv", "c\td\n"))
    one, other = (with_dev(tsv_pairs(put(f"{name}.tsv", f"{name}\tb\n")), dev) for name in ("one", "other"))
    held = dev_of(joined({"en": one, "sw": other}, "both"))
    assert held is not None
    assert held.name == "both dev"
    assert [pair.query.id for pair in held.read()] == ["en:1", "sw:1"]
    assert dev_of(joined({"en": one, "sw": tsv_pairs(other.files[0])}, "both")) is None


def test_pairs_that_were_drawn_have_none(put: Put) -> None:
    """Who has so few pairs has no more of them to choose weights by."""
    train = tsv_pairs(put("train.tsv", "a\tb\nc\td\n"))
    assert dev_of(drawn(with_dev(train, train), 1, 0)) is None


def test_questions_of_a_test_are_left_out(put: Put) -> None:
    """Letter for letter, whatever their case, blanks and marks; other questions about the same stay."""
    source = tsv_pairs(put("dev.tsv", "Who was Ada?\tb\nwho was Ada Lovelace\tb\nwhere?\tb\n"))
    test = Source(
        "test", "test/1", (put("test.txt", ""),), lambda: iter([Item("x", "who  was ADA"), Item("y", "Where")])
    )
    found = unasked(source, test)
    assert [pair.query.text for pair in found.read()] == ["who was Ada Lovelace"]
    assert [one.left_out for _, one in outcomes(found)] == [(LEAKED,), (), (LEAKED,)]
    assert found.files == (*source.files, *test.files)
    assert found.reader != unasked(source, Source("test", "test/2", test.files, test.read)).reader
