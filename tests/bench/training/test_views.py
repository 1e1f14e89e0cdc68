"""Views: batches of one language, pairs of one document, crops and units, all drawn as the settings say."""

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from bench.config.layers import identity
from bench.core.errors import UsageError
from bench.data.corpora.shards import Shards
from bench.training.config import TrainingConfig
from bench.training.views import (
    Documents,
    SentencePairs,
    add_special_tokens,
    adjacent,
    crop_length,
    in_a_window,
    pack_sentences,
    read_segment,
    segment_counts,
    segments,
    token_crop,
    two_sentences,
)

SPECIAL = {"cls": 1, "sep": 2}


def config(**changed: Any) -> TrainingConfig:
    """Small batches, few held-out pairs."""
    return TrainingConfig(**{"pairs": 6, "probe_pairs": 4, **changed})


def test_pairs_of_places_are_drawn_alike(rng: np.random.Generator) -> None:
    """12 pairs of 4 places, each 2,000 ± 4σ; all within a window and none beyond; neighbours each 1,000 ± 150."""
    counts = Counter(two_sentences(4, rng) for _ in range(24_000))
    assert set(counts) == set(itertools.permutations(range(4), 2))
    sigma = math.sqrt(24_000 * 1 / 12 * 11 / 12)
    assert all(abs(count - 2000) < 4 * sigma for count in counts.values())
    pairs = {two_sentences(6, rng, 2) for _ in range(3000)}
    assert pairs == {(a, b) for a, b in itertools.permutations(range(6), 2) if abs(a - b) <= 2}
    assert {two_sentences(2, rng, 1) for _ in range(50)} == {(0, 1), (1, 0)}
    forth, back = {(0, 1), (1, 2), (2, 3)}, {(1, 0), (2, 1), (3, 2)}
    for expected, draw in ((forth | back, partial(in_a_window, window=2)), (forth, adjacent)):
        frequencies = Counter(draw(4, rng) for _ in range(1000 * len(expected)))
        assert set(frequencies) == expected
        assert all(abs(count - 1000) < 150 for count in frequencies.values())


@pytest.mark.parametrize(
    "draw", [two_sentences, partial(two_sentences, window=2), adjacent, partial(in_a_window, window=5)]
)
def test_a_pair_needs_two_places(draw: Callable[..., tuple[int, int]]) -> None:
    """One sentence is no pair, whatever draws it; nor are three, none of which is near another."""
    for count in (0, 1):
        with pytest.raises(ValueError, match="expected at least 2"):
            draw(count, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="expected at least 2"):
        two_sentences(3, np.random.default_rng(0), window=0)


def test_batches_are_of_one_language_and_of_different_documents(shards: Shards, rng: np.random.Generator) -> None:
    """Drawn 200 times, all three languages come; a corpus whose documents are too short for that is refused."""
    documents = Documents(shards, config(), least=2, seed=1)
    languages = set()
    for _ in range(200):
        batch = documents.draw(6, rng)
        assert len(set(batch)) == 6
        (language,) = {shards.language_of(document) for document in batch}
        languages.add(language)
    assert languages == set(shards.languages)
    with pytest.raises(UsageError, match="no language with 2 documents of at least 99 sentences"):
        Documents(shards, config(), least=99, seed=1)


@pytest.mark.parametrize("size", [4, 6, 20, 27])
def test_an_epoch_has_every_document_once(shards: Shards, size: int, rng: np.random.Generator) -> None:
    """Its tail too: however batches cut it, none comes a time more than another; in another order each time."""
    documents = Documents(shards, config(pairs=size, language_exponent=1.0), least=2, seed=1)
    training = sorted(set(shards.documents("sw")) - set(documents.held["sw"]))
    counts, order = dict.fromkeys(training, 0), list[int]()
    for _ in range(400):
        batch = documents.draw(size, rng)
        assert len(set(batch)) == size
        if shards.language_of(batch[0]) == "sw":
            restored = Documents(shards, config(pairs=size, language_exponent=1.0), least=2, seed=1)
            restored.restore(json.loads(json.dumps(documents.state())))
            assert restored.state() == documents.state()
            order += batch
            for document in batch:
                counts[document] += 1
            assert max(counts.values()) - min(counts.values()) <= 1
    assert min(counts.values()) > 5
    orders = {tuple(order[at : at + len(training)]) for at in range(0, 3 * len(training), len(training))}
    assert len(orders) == 3


def test_long_documents_come_as_often_as_they_have_blocks(shards: Shards, rng: np.random.Generator) -> None:
    """Three times the sentences, three times as often, within a tenth; never twice in a batch; other keys."""
    documents = Documents(shards, config(language_exponent=1.0, sampling="blocks"), least=1, seed=1)
    frequencies: Counter[int] = Counter()
    for _ in range(4000):
        batch = documents.draw(6, rng)
        assert len(set(batch)) == 6
        frequencies.update(batch if shards.language_of(batch[0]) == "en" else [])
    per_sentence = {document: frequencies[document] / shards.sentence_count(document) for document in frequencies}
    mean = sum(frequencies.values()) / sum(map(shards.sentence_count, frequencies))
    assert all(abs(often / mean - 1) < 0.1 for often in per_sentence.values())
    assert len({shards.sentence_count(document) for document in frequencies}) == 4
    assert identity(config())["sampling"] == "documents"
    assert identity(config(sampling="blocks"))["sampling"] == "blocks"


def test_languages_that_shrink_a_batch_are_named(shards: Shards) -> None:
    """With their numbers of documents; none where all have enough, or where languages are mixed."""
    notes = Documents(shards, config(pairs=64), least=1, seed=1).notes
    assert len(notes) == 1
    assert "fewer documents than the 64 of a batch have smaller batches: fi 56, sw 27;" in notes[0]
    assert Documents(shards, config(pairs=64), 1, 1, batch=20).notes == ()
    assert Documents(shards, config(pairs=64, language_pure=False), 1, 1).notes == ()


def test_languages_are_drawn_by_the_exponent_or_mixed(shards: Shards) -> None:
    """As tokens^α, or each document by itself: 4,000 draws within 4σ; no document twice in a batch."""
    for exponent in (0.0, 0.5, 1.0):
        documents, rng = Documents(shards, config(language_exponent=exponent), 2, seed=1), np.random.default_rng(0)
        frequencies = Counter(shards.language_of(documents.draw(2, rng)[0]) for _ in range(4000))
        weights = {language: shards.tokens_of(language) ** exponent for language in shards.languages}
        for language, weight in weights.items():
            share = weight / sum(weights.values())
            assert abs(frequencies[language] - 4000 * share) < 4 * math.sqrt(4000 * share * (1 - share))
    documents = Documents(shards, config(language_pure=False, language_exponent=0.0), least=2, seed=1)
    batches = [documents.draw(20, rng) for _ in range(200)]
    assert all(len(set(batch)) == 20 for batch in batches)
    frequencies = Counter(shards.language_of(document) for batch in batches for document in batch)
    for language in shards.languages:
        assert abs(frequencies[language] - 4000 / 3) < 4 * math.sqrt(4000 * 2 / 9)
    first = [shards.language_of(batch[0]) for batch in batches]
    assert len(set(first)) == 3  # in no fixed order


def test_held_out_pairs_are_neighbours_and_never_drawn(shards: Shards, rng: np.random.Generator) -> None:
    """The same for every method and seed, not counted as seen; of few languages, they are the largest ones'."""
    held_out_batches = [Documents(shards, config(), least=least, seed=least).held_out() for least in (1, 2)]
    for batch, other_batch in zip(*held_out_batches, strict=True):
        assert [list(map(list, view)) for view in batch] == [list(map(list, view)) for view in other_batch]
        for row, document in enumerate(batch.documents.tolist()):
            sentences = [[1, *shards.sentence(document, i).tolist(), 2] for i in range(shards.sentence_count(document))]
            query, key = (list(view[row]) for view in batch)
            assert any(query == a and key == b for a, b in itertools.pairwise(sentences))
    assert shards.distinct_tokens == 0
    first, second = (Documents(shards, config(), least=2, seed=seed) for seed in (1, 2))
    assert first.held == second.held
    assert {language: len(held_out) for language, held_out in first.held.items()} == {"en": 4, "fi": 4, "sw": 3}
    held_out = set(itertools.chain(*first.held.values()))
    training = {document for _ in range(300) for document in first.draw(6, rng)}
    assert training == set(range(180)) - held_out
    assert set(Documents(shards, config(probe_languages=2), least=2, seed=1).held) == {"en", "fi"}


def test_both_views_come_from_one_document(shards: Shards, rng: np.random.Generator) -> None:
    """Two different sentences of it, framed; held-out batches likewise."""
    pairs = SentencePairs(shards, config(), 1, two_sentences)
    sentences = {
        (document, i): [1, *shards.sentence(document, i).tolist(), 2]
        for document in range(180)
        for i in range(shards.sentence_count(document))
    }
    for queries, keys in [*(pairs.batch(rng) for _ in range(20)), *pairs.held_out()]:
        assert len(queries) == len(keys) > 1
        for query, key in zip(queries, keys, strict=True):
            places = [{at for at, text in sentences.items() if text == list(view)} for view in (query, key)]
            assert any(a[0] == b[0] and a[1] != b[1] for a in places[0] for b in places[1])


def test_state_goes_on_where_it_was(shards: Shards, rng: np.random.Generator) -> None:
    """The same batches follow, across epochs."""
    pairs = SentencePairs(shards, config(), 1, two_sentences)
    for _ in range(25):
        pairs.batch(rng)
    state, chance = pairs.state(), rng.bit_generator.state
    follow = [pairs.batch(rng) for _ in range(40)]
    restored, rng2 = SentencePairs(shards, config(), 1, two_sentences), np.random.default_rng(5)
    restored.restore(state)
    rng2.bit_generator.state = chance
    for pairs_before in follow:
        for view, expected_view in zip(pairs_before, restored.batch(rng2), strict=True):
            assert list(map(list, view)) == list(map(list, expected_view))


def test_crops_have_lengths_within_the_shares_and_any_start(rng: np.random.Generator) -> None:
    """5 to 50 % of 256 tokens: 12 to 128, at any start; half of eight at five places alike (5σ)."""
    crops = [token_crop(256, rng, 0.05, 0.5) for _ in range(20_000)]
    lengths = np.array([crop.stop - crop.start for crop in crops])
    assert (lengths.min(), lengths.max()) == (12, 127)  # 128 needs a share of exactly one half
    assert min(crop.start for crop in crops) >= 0
    assert max(crop.stop for crop in crops) == 256
    assert lengths.mean() == pytest.approx(256 * 0.275 - 0.5, abs=1)
    starts = np.bincount([token_crop(8, rng, 0.5, 0.5).start for _ in range(10_000)], minlength=5)
    assert len(starts) == 5
    assert np.abs(starts - 2000).max() < 5 * np.sqrt(10_000 * 0.2 * 0.8)
    assert crop_length(5, 0.1) == 0
    assert {(crop.stop - crop.start) for crop in (token_crop(5, rng, 0.1, 0.1) for _ in range(50))} == {1}
    assert token_crop(5, rng, 1, 1) == slice(0, 5)


@pytest.mark.parametrize(("count", "low", "high"), [(0, 0.1, 0.5), (5, 0.5, 0.1), (5, 0.1, 1.5), (5, -0.1, 0.5)])
def test_nonsense_is_refused(count: int, low: float, high: float) -> None:
    """No tokens, or shares out of order."""
    with pytest.raises(ValueError, match="expected tokens and 0 ≤ low ≤ high ≤ 1"):
        token_crop(count, np.random.default_rng(0), low, high)


def test_sentences_are_packed_and_framed() -> None:
    """By hand: 4 + 5 fit in 10, 2 more do not, 12 is alone, 10 fits; special tokens count, the text gives way."""
    assert pack_sentences(np.array([4, 5, 2, 12, 7, 3, 1]), 10) == [(0, 2), (2, 3), (3, 4), (4, 6), (6, 7)]
    assert pack_sentences(np.array([12, 12]), 10) == [(0, 1), (1, 2)]
    assert pack_sentences(np.array([], np.int64), 10) == []
    with pytest.raises(ValueError, match="found room for 0 tokens"):
        pack_sentences(np.array([1]), 0)
    tokens = np.array([10, 11, 12], np.uint16)
    assert add_special_tokens(tokens, SPECIAL, 64).tolist() == [1, 10, 11, 12, 2]
    assert add_special_tokens(tokens, SPECIAL, 4).tolist() == [1, 10, 11, 2]
    assert add_special_tokens(tokens, {"cls": 1}, 4).tolist() == [1, 10, 11]
    assert add_special_tokens(tokens, {"pad": 0}, 4).dtype == np.int64
    with pytest.raises(ValueError, match="room for 2 tokens"):
        add_special_tokens(tokens, SPECIAL, 2)


@pytest.mark.parametrize("room", [1, 4, 9, 14, 100])
def test_counts_are_those_of_packing_each_document(shards: Shards, room: int) -> None:
    """All documents at once, against one by one; every sentence is in exactly one unit."""
    for language in shards.languages:
        counts = []
        for document in shards.documents(language):
            units = segments(shards, document, room + 2)
            assert [at for unit in units for at in range(*unit)] == list(range(shards.sentence_count(document)))
            counts.append(len(units))
        assert segment_counts(shards, language, room + 2).tolist() == counts


def test_a_unit_is_framed_cut_and_seen(shards: Shards) -> None:
    """Without packing every sentence is one; first token, sentences, last token; only what is taken counts as seen."""
    assert segments(shards, 0, 64, pack=False) == [(at, at + 1) for at in range(shards.sentence_count(0))]
    counts = shards.sentence_counts(shards.documents("en"))
    assert segment_counts(shards, "en", 64, pack=False).tolist() == counts.tolist()
    both = [*shards.sentence(0, 0).tolist(), *shards.sentence(0, 1).tolist()]
    assert read_segment(shards, 0, (0, 2), 64, seen=False).tolist() == [1, *both, 2]
    assert shards.distinct_tokens == 0
    assert read_segment(shards, 0, (0, 2), 5).tolist() == [1, *both[:3], 2]
    assert shards.distinct_tokens == len(both)


def test_held_out_halves_are_every_other_sentence(shards: Shards) -> None:
    """Framed and cut as sentences are; read, they do not count as seen."""
    seen = shards.seen().tolist()
    for batch in Documents(shards, config(sentence_tokens=9), least=2, seed=1).held_out():
        assert batch.halves is not None
        for first, half in enumerate(batch.halves):
            for document, ids in zip(batch.documents.tolist(), half, strict=True):
                sentences = [shards.sentence(document, at).tolist() for at in range(shards.sentence_count(document))]
                text = [*itertools.chain.from_iterable(sentences[first::2])]
                assert [*ids] == [shards.special["cls"], *text[:7], shards.special["sep"]]
    assert shards.seen().tolist() == seen
