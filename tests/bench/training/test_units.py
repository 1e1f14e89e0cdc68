"""Units: sentences packed while they fit; nothing lost, nothing twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bench.data.shards import Shards
from bench.training.units import pack_sentences, read_unit, serving, unit_counts, units_of


def test_sentences_are_packed_while_they_fit() -> None:
    """By hand: 4 + 5 fit in 10, 2 more do not; 12 stands alone; exactly 10 fits."""
    assert pack_sentences(np.array([4, 5, 2, 12, 7, 3, 1]), 10) == [(0, 2), (2, 3), (3, 4), (4, 6), (6, 7)]
    assert pack_sentences(np.array([12, 12]), 10) == [(0, 1), (1, 2)]
    assert pack_sentences(np.array([], np.int64), 10) == []
    with pytest.raises(ValueError, match="found room for 0 tokens"):
        pack_sentences(np.array([1]), 0)


@pytest.mark.parametrize("room", [1, 4, 9, 14, 100])
def test_counts_are_those_of_packing_each_document(corpus: Path, room: int) -> None:
    """All documents at once, against one by one; every sentence is in exactly one unit."""
    shards = Shards(corpus)
    for language in shards.languages:
        each = []
        for document in shards.documents(language):
            units = units_of(shards, document, room + 2)
            assert [at for unit in units for at in range(*unit)] == list(range(shards.sentence_count(document)))
            each.append(len(units))
        assert unit_counts(shards, language, room).tolist() == each
        assert serving(shards, language, room + 2, 2).tolist() == [count >= 2 for count in each]


def test_without_packing_every_sentence_is_a_unit(corpus: Path) -> None:
    """As many units as sentences."""
    shards = Shards(corpus)
    assert units_of(shards, 0, 64, pack=False) == [(at, at + 1) for at in range(shards.sentence_count(0))]
    counts = shards.sentence_counts(shards.documents("en"))
    assert serving(shards, "en", 64, 4, pack=False).tolist() == (counts >= 4).tolist()


def test_a_unit_is_framed_cut_and_seen(corpus: Path) -> None:
    """First token, sentences one after the other, last token; only what is taken counts as seen."""
    shards = Shards(corpus)
    both = [*shards.sentence(0, 0).tolist(), *shards.sentence(0, 1).tolist()]
    assert read_unit(shards, 0, (0, 2), 64, seen=False).tolist() == [1, *both, 2]
    assert shards.distinct_tokens == 0
    assert read_unit(shards, 0, (0, 2), 5).tolist() == [1, *both[:3], 2]
    assert shards.distinct_tokens == len(both)
