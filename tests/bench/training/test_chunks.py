"""Chunks of a language's stream: where they lie, in which order they come, and what is left out."""

import json
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.data.corpora.shards import Shards
from bench.training.chunks import Chunk, Chunks, Stream
from bench.training.config import TrainingConfig


def config_of(**changed: Any) -> TrainingConfig:
    """Mixed batches of languages that are all alike."""
    values: dict[str, Any] = {"language_exponent": 0.0, "language_pure": False, "probe_pairs": 4, "probe_languages": 2}
    return TrainingConfig(**{**values, **changed})


def tokens_of(shards: Shards, language: str, without: set[int]) -> list[int]:
    return [
        int(token)
        for document in shards.documents(language)
        if document not in without
        for at in range(shards.sentence_count(document))
        for token in shards.sentence(document, at)
    ]


@pytest.mark.parametrize("without", [set(), {0}, {1}, {0, 1}, {3, 5}, {29, 60}, {88, 89}])
def test_a_stream_has_all_documents_but_some(shards: Shards, without: set[int]) -> None:
    """Against the documents put end to end, the first, the last and neighbouring ones left out."""
    first = shards.documents("en").start
    left_out = {first + at for at in without}
    stream, expected = Stream(shards, "en", sorted(left_out)), tokens_of(shards, "en", left_out)
    assert len(stream) == len(expected)
    assert stream.read(0, len(stream)).tolist() == expected
    for start in range(0, len(stream) - 30, 17):
        assert stream.read(start, 30).tolist() == expected[start : start + 30]
    with pytest.raises(IndexError, match=f"there are no 2 from {len(stream) - 1} on"):
        stream.read(len(stream) - 1, 2)
    with pytest.raises(IndexError, match="from -1 on"):
        stream.read(-1, 2)


def test_an_epoch_cuts_the_stream_once_through(corpus: Path, rng: np.random.Generator) -> None:
    """Chunks of an epoch do not overlap, leave less than a chunk at each end, and are cut elsewhere in the next."""
    config = config_of(language_pure=True, language_exponent=0.0)
    chunks, length = Chunks(Shards(corpus), config, 32, seed=3), 32
    starts: dict[str, list[int]] = {"en": [], "fi": [], "sw": []}
    sizes: dict[str, int] = {}
    for _ in range(90):
        for chunk in chunks.draw(4, rng):
            assert chunk.length == length
            starts[chunk.language].append(chunk.start)
            sizes[chunk.language] = len(chunk.stream)
    for language, language_starts in starts.items():
        size, offset = sizes[language], language_starts[0] % length
        count = (size - offset) // length
        assert len(language_starts) > count, "the test needs more than an epoch"
        assert sorted(language_starts[:count]) == [offset + at * length for at in range(count)]
        assert language_starts[:count] != sorted(language_starts[:count])
        assert language_starts[count] % length != offset
    assert len({language_starts[0] % length for language_starts in starts.values()}) > 1


def next_chunks(chunks: Chunks, count: int, seed: int) -> list[tuple[str, int]]:
    """Language and start of the next chunks."""
    return [(chunk.language, chunk.start) for chunk in chunks.draw(count, np.random.default_rng(seed))]


def test_the_seed_and_the_state_decide_the_order(corpus: Path) -> None:
    """Equal seeds give equal chunks, others other offsets in the same languages; the state goes on in an epoch."""
    first, same_seed, other_seed = (
        next_chunks(Chunks(Shards(corpus), config_of(), 16, seed), 12, 0) for seed in (1, 1, 2)
    )
    assert first == same_seed != other_seed
    assert [language for language, _ in first] == [language for language, _ in other_seed]
    chunks, restored = (Chunks(Shards(corpus), config_of(), 16, 1) for _ in range(2))
    for at in range(11):
        next_chunks(chunks, 7, at)
    restored.restore(chunks.state())
    for at in range(20):
        assert next_chunks(restored, 7, at) == next_chunks(chunks, 7, at)


def test_languages_are_drawn_alike_each_by_itself(corpus: Path) -> None:
    """Exponent 0: a third each (5σ), mixed in a batch; pure: one a batch; a small language is one chunk."""
    chunks, rng = Chunks(Shards(corpus), config_of(), 16, 1), np.random.default_rng(0)
    batches = [[chunk.language for chunk in chunks.draw(10, rng)] for _ in range(300)]
    counts = Counter(language for batch in batches for language in batch)
    assert all(abs(count - 1000) < 5 * np.sqrt(3000 * 2 / 9) for count in counts.values())
    assert sum(len(set(batch)) > 1 for batch in batches) > 290
    pure = Chunks(Shards(corpus), config_of(language_pure=True), 16, 1)
    assert all(len({chunk.language for chunk in pure.draw(10, rng)}) == 1 for _ in range(30))
    large = Chunks(Shards(corpus), config_of(), 100_000, 1).draw(20, rng)
    assert {(chunk.start, chunk.length == len(chunk.stream)) for chunk in large} == {(0, True)}
    assert {chunk.language for chunk in large} == {"en", "fi", "sw"}


@pytest.fixture
def mixture(corpus: Path, tmp_path: Path) -> Path:
    """The planted corpus, the first third of its English and all of its Finnish from `books`, the rest from `web`."""
    folder = shutil.copytree(corpus, tmp_path / "mixture")
    meta = json.loads((folder / "meta.json").read_text())
    for row in meta["languages"]:
        count = row["end"] - row["first"]
        books = {"en": count // 3, "fi": count}.get(row["language"], 0)
        row["sources"] = {name: size for name, size in (("books", books), ("web", count - books)) if size}
    meta["sources"] = {"books": 1.0, "web": 3.0}
    (folder / "meta.json").write_text(json.dumps(meta))
    return folder


def test_a_stream_of_a_source_has_its_documents(mixture: Path) -> None:
    """Those of both put end to end are those of the language; what is left out is left out of one of them."""
    shards = Shards(mixture)
    books, web = (shards.documents_from("en", source) for source in ("books", "web"))
    assert [*books, *web] == [*shards.documents("en")]
    for source, documents in (("books", books), ("web", web)):
        without = [books[-1], web[0]]
        stream = Stream(shards, "en", without, source)
        expected = tokens_of(shards, "en", {*shards.documents("en")} - {*documents} | {*without})
        assert stream.read(0, len(stream)).tolist() == expected


def test_a_step_is_of_one_source(mixture: Path) -> None:
    """All batches of a step; steps by the weights (5σ), languages alike within a source; as chance alone decides."""
    shards, rng, accumulate = Shards(mixture), np.random.default_rng(0), 3
    chunks = Chunks(shards, config_of(accumulate=accumulate), 16, 1)
    ends = {language: shards.documents_from(language, "books") for language in ("en", "fi")}
    bounds = {language: shards.place(documents[-1])[1] for language, documents in ends.items()}

    def source_of(chunk: Chunk) -> str:
        end = int(chunk.stream._starts[0])
        return "books" if chunk.language in bounds and end < bounds[chunk.language] else "web"

    steps = [[chunk for _ in range(accumulate) for chunk in chunks.draw(4, rng)] for _ in range(400)]
    sources = [{source_of(chunk) for chunk in step} for step in steps]
    assert all(len(of_step) == 1 for of_step in sources)
    of_books = sum(of_step == {"books"} for of_step in sources)
    assert abs(of_books - 100) < 5 * np.sqrt(400 * 3 / 16)
    for source, languages in (("books", {"en", "fi"}), ("web", {"en", "sw"})):
        counts = Counter(chunk.language for step in steps for chunk in step if source_of(chunk) == source)
        assert set(counts) == languages
        total = sum(counts.values())
        assert all(abs(count - total / 2) < 5 * np.sqrt(total / 4) for count in counts.values())


def test_the_state_goes_on_within_a_step(mixture: Path) -> None:
    """After any number of batches the rest of the step is of its source; order and chance are as without a stop."""
    config = config_of(accumulate=3)
    for before in range(1, 7):
        chunks, restored = (Chunks(Shards(mixture), config, 16, 1) for _ in range(2))
        for at in range(before):
            next_chunks(chunks, 5, at)
        restored.restore(json.loads(json.dumps(chunks.state())))
        for at in range(9):
            assert next_chunks(restored, 5, 100 + at) == next_chunks(chunks, 5, 100 + at)


def test_held_out_documents_are_in_no_chunk(shards: Shards) -> None:
    """Read all of an epoch and more: no sentence of a held-out document is seen, nearly all others are."""
    chunks, rng = Chunks(shards, config_of(), 16, 1), np.random.default_rng(0)
    held_out = {int(document) for pairs in chunks.held_out() for document in pairs.documents}
    assert len(held_out) == 8
    for _ in range(400):
        for chunk in chunks.draw(10, rng):
            chunk.read(slice(0, chunk.length))
    total = sum(shards.tokens_of(language) for language in shards.languages)
    held_out_tokens = sum(len(shards.sentence(d, at)) for d in held_out for at in range(shards.sentence_count(d)))
    assert shards.distinct_tokens == total - held_out_tokens
