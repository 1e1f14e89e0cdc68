"""Pairs drawn by lot."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.core.errors import UsageError
from bench.data.pairs import drawn, joined, outcomes
from bench.data.pairs.rows import tsv_pairs
from bench.data.pairs.sources import NO_POSITIVE, PairOutcome, PairSource, pair_source
from bench.testing import fields
from bench.types import Item, Source, TrainingPair
from tests.conftest import Put


def of(names: Sequence[str], lacking: Sequence[str] = ()) -> PairSource:
    """A source in memory; the questions of `lacking` have no positive."""

    def found(name: str) -> PairOutcome:
        if name in lacking:
            return PairOutcome(name, None, (NO_POSITIVE,))
        return PairOutcome(name, TrainingPair(Item(name, f"{name}?"), (Item("d", "text"),), (), "a test"))

    return pair_source("made", "made/1", (), lambda: iter([(7 + at, found(name)) for at, name in enumerate(names)]))


def ids(source: Source[TrainingPair]) -> list[str]:
    """The questions of a source."""
    return [pair.query.id for pair in source.read()]


def test_the_lowest_hashes_win() -> None:
    """Held against hashes that are sorted here; what is drawn keeps its order and its place."""
    names = [f"q{number}" for number in range(50)]
    lots = {name: hashlib.blake2b(f"3 {name}".encode(), digest_size=16).digest() for name in names}
    winners = set(sorted(names, key=lambda name: lots[name])[:8])
    source = drawn(of(names), 8, 3)
    assert ids(source) == [name for name in names if name in winners]
    assert [at for at, _ in outcomes(source)] == [7 + at for at, name in enumerate(names) if name in winners]


@settings(deadline=None)  # the machine may be busy
@given(st.lists(st.text("abcdef", min_size=1, max_size=4), unique=True, min_size=2, max_size=30), st.data())
def test_smaller_draws_are_parts_of_larger_ones(names: list[str], data: st.DataObject) -> None:
    """Whatever the order of the file; and a draw of all is all."""
    large = data.draw(st.integers(1, len(names)))
    small = data.draw(st.integers(1, large))
    shuffled = data.draw(st.permutations(names))
    assert set(ids(drawn(of(names), small, 0))) <= set(ids(drawn(of(shuffled), large, 0)))
    assert len(ids(drawn(of(names), large, 0))) == large
    assert ids(drawn(of(names), len(names), 0)) == names


def test_seeds_draw_differently() -> None:
    """Over many seeds every question has the same chance: 20 of 40, binomial, six standard deviations."""
    names = [f"q{number}" for number in range(40)]
    counts = dict.fromkeys(names, 0)
    for seed in range(400):
        for name in ids(drawn(of(names), 20, seed)):
            counts[name] += 1
    assert all(140 <= count <= 260 for count in counts.values())


def test_the_key_knows_number_seed_and_source(put: Put) -> None:
    """Whatever decides the pairs decides the reader; the files are those of the source."""
    one = tsv_pairs(put("one.tsv", "a\tb\nc\td\n"))
    readers = [drawn(one, 1, 0), drawn(one, 2, 0), drawn(one, 1, 1), drawn(tsv_pairs(one.files[0], "x", "en"), 1, 0)]
    assert len({source.reader for source in readers}) == 4
    assert drawn(one, 1, 0).reader == readers[0].reader
    assert readers[0].files == one.files
    assert ids(pickle.loads(pickle.dumps(readers[0]))) == ids(readers[0])  # noqa: S301 (our own bytes)


def test_what_is_left_out_is_not_drawn(put: Put) -> None:
    """A question without a positive is no pair, so it neither counts nor comes."""
    names = ["a", "b", "c", "d"]
    assert ids(drawn(of(names, lacking=["b"]), 3, 0)) == ["a", "c", "d"]
    wanted = fields(
        found="3 training pairs", expected="at least tune.shots=4", hint="type --set tune.shots=3, or leave"
    )
    with pytest.raises(UsageError, check=wanted):
        ids(drawn(of(names, lacking=["b"]), 4, 0))
    with pytest.raises(UsageError, check=fields(found="0 training pairs", hint="it holds no pair")):
        ids(drawn(of(names, lacking=names), 1, 0))
    both = joined({"x": tsv_pairs(put("one.tsv", "a\tb\n"))}, "both")
    assert ids(drawn(both, 1, 0)) == ["x:1"]
