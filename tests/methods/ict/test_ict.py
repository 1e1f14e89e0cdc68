"""The inverse cloze task: its examples, its loss, and a training on the planted corpus."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bench.core.errors import UsageError
from bench.data.corpora.shards import DOCUMENTS, META, SENTENCES, TOKENS, Meta, Shards, Stretch
from methods.ict import IctConfig
from methods.ict.trainer import IctTrainer, accuracies, projection
from methods.ict.views import SentencesOfBlocks, cloze
from tests.conftest import present
from tests.methods.conftest import EncoderFor


def config_of(**changed: Any) -> IctConfig:
    return IctConfig(**{"pairs": 8, "block_tokens": 24, "pooling": "mean", "probe_pairs": 4, **changed})


def written(folder: Path, documents: list[list[int]]) -> Shards:
    """Documents of one language, by the lengths of their sentences; all ids differ."""
    special = {"cls": 0, "sep": 1, "pad": 2}
    lengths = [length for document in documents for length in document]
    stretch = Stretch("en", 0, len(documents), len(lengths), sum(lengths))
    (folder / META).write_bytes(Meta((stretch,), 60_000, special).dump())
    (folder / TOKENS).write_bytes(np.arange(10, 10 + sum(lengths)).astype("<u2").tobytes())
    np.save(folder / SENTENCES, np.cumsum([0, *lengths]))
    np.save(folder / DOCUMENTS, np.cumsum([0, *map(len, documents)]))
    return Shards(folder)


def test_a_removed_sentence_leaves_its_place() -> None:
    """By hand; the block is as long as all less the sentence."""
    tokens, starts = np.arange(10), [0, 3, 7]
    removed = present(cloze(tokens, starts, 1, remove=True))
    assert [part.tolist() for part in removed] == [[3, 4, 5, 6], [0, 1, 2, 7, 8, 9]]
    complete = present(cloze(tokens, starts, 2, remove=False))
    assert [part.tolist() for part in complete] == [[7, 8, 9], list(range(10))]
    assert cloze(tokens, [0], 0, remove=True) is None
    assert cloze(tokens, [0], 0, remove=False) is not None


def test_examples_are_sentences_of_blocks_of_whole_sentences(tmp_path: Path) -> None:
    """Of six sentences of five tokens, four fit in a block of 22; a removed one is not in it, its neighbours are."""
    shards = written(tmp_path, [[5] * 6 for _ in range(40)])
    source, rng = SentencesOfBlocks(shards, config_of(block_tokens=22), 1), np.random.default_rng(0)
    lengths = set()
    for _ in range(60):
        batch = source.batch(rng)
        for query, block, document, removed in zip(*batch, batch.documents, batch.removed, strict=True):
            document_tokens = {int(token) for at in range(6) for token in shards.sentence(int(document), at)}
            sentence, block_tokens = set(query[1:-1].tolist()), block[1:-1].tolist()
            assert len(sentence) == 5
            assert sentence <= document_tokens
            assert set(block_tokens) <= document_tokens
            assert bool(sentence & set(block_tokens)) != removed
            tokens = sorted(sentence | set(block_tokens))
            assert tokens == list(range(tokens[0], tokens[-1] + 1)), "a block is one piece"
            lengths.add((len(block_tokens), bool(removed)))
            assert (query[0], query[-1], block[0], block[-1]) == (0, 1, 0, 1)
    assert lengths == {(15, True), (20, False), (5, True), (10, False)}  # blocks of four, and of two


def test_a_tenth_of_the_sentences_stays(tmp_path: Path) -> None:
    """Within three standard deviations over 10,000; every sentence of a block is as likely."""
    shards = written(tmp_path, [[2, 2, 2, 2] for _ in range(200)])
    source, rng = SentencesOfBlocks(shards, config_of(pairs=100), 1), np.random.default_rng(5)
    unremoved, total, places = 0, 0, np.zeros(4)
    for _ in range(100):
        batch = source.batch(rng)
        unremoved, total = unremoved + int((~batch.removed).sum()), total + len(batch)
        for query, document in zip(batch.left, batch.documents, strict=True):
            places[(int(query[1]) - 10 - 8 * int(document)) // 2] += 1
    assert total == 10_000
    assert abs(unremoved / total - 0.1) < 3 * math.sqrt(0.1 * 0.9 / total)
    assert np.abs(places / total - 0.25).max() < 4 * math.sqrt(0.25 * 0.75 / total)


def test_a_block_of_one_sentence_survives_where_it_is_kept(tmp_path: Path) -> None:
    """Half of the documents are one sentence: nearly all their examples are dropped, and the batch is smaller."""
    shards = written(tmp_path, [[3], [3, 3]] * 40)
    source, rng = SentencesOfBlocks(shards, config_of(pairs=20), 1), np.random.default_rng(0)
    batches = [source.batch(rng) for _ in range(100)]
    short = [
        bool(removed)
        for batch in batches
        for row, removed in zip(batch.documents, batch.removed, strict=True)
        if row % 2 == 0
    ]
    assert short
    assert not any(short)
    assert len(short) == pytest.approx(0.1 * 1000, abs=4 * math.sqrt(1000 * 0.1 * 0.9))
    assert 2 <= min(map(len, batches)) < 20


def test_texts_of_one_sentence_are_refused_and_long_ones_cut(tmp_path: Path) -> None:
    """Rather than drawn for ever; a query is cut to `sentence_tokens`, a long sentence to the block."""
    shards = written(tmp_path, [[3]] * 30)
    with pytest.raises(UsageError, match=r"nearly all documents .* type --set method\.mask_rate=0\.5"):
        SentencesOfBlocks(shards, config_of(mask_rate=1.0), 1).batch(np.random.default_rng(0))
    assert len(SentencesOfBlocks(shards, config_of(mask_rate=0.0), 1).batch(np.random.default_rng(0))) == 8
    (tmp_path / "long").mkdir()
    shards = written(tmp_path / "long", [[40, 3] for _ in range(30)])
    config = config_of(mask_rate=0.0, sentence_tokens=12)
    batch = SentencesOfBlocks(shards, config, 1).batch(np.random.default_rng(0))
    assert {len(query) for query in batch.left} == {5, 12}
    assert {len(block) for block in batch.right} == {5, 24}


def test_the_loss_is_a_cross_entropy_of_projections(corpus: Path, encoder_for: EncoderFor) -> None:
    """Written out, without dropout: dot products over all blocks, one direction; gradients reach both sides."""
    config = config_of()
    encode = encoder_for(config)
    encode.model.double()
    head = projection(16, 128, 0.0).double()
    batch = SentencesOfBlocks(Shards(corpus), config, 1).batch(np.random.default_rng(0))
    loss, metrics = IctTrainer(config).loss(head, encode, batch)
    sentences, blocks = (head(encode(view)).detach() for view in batch)
    logits = sentences @ blocks.T
    expected = (logits.logsumexp(1) - logits.diagonal()).mean()
    assert float(loss.detach()) == pytest.approx(float(expected), rel=1e-9)
    assert metrics()["block_chance"] == 1 / 8
    for frozen in (0, 1):
        encode.model.zero_grad()
        vectors = [encode(view) for view in batch]
        vectors[frozen] = vectors[frozen].detach()
        scores = head(vectors[0]) @ head(vectors[1]).T
        torch.nn.functional.cross_entropy(scores, torch.arange(8)).backward()
        assert float(present(encode.embeddings.grad).abs().sum()) > 0


def test_the_projection_and_accuracies() -> None:
    """Mean 0, variance 1 in each row, dropout in training; by hand, the first and third find their block."""
    head = projection(16, 128, 0.5)
    rows = torch.randn(5, 16)
    assert bool((head(rows) == 0).any())
    head.eval()
    projected = head(rows)
    assert projected.shape == (5, 128)
    torch.testing.assert_close(projected.mean(1), torch.zeros(5), atol=1e-5, rtol=0)
    torch.testing.assert_close(projected.var(1, correction=0), torch.ones(5), atol=1e-3, rtol=0)
    blocks = torch.eye(4)
    sentences = torch.tensor([[0.9, 0, 0, 0], [0, 0.5, 0.6, 0], [0, 0, 1.0, 0]])
    metrics = accuracies(sentences, blocks, torch.arange(3), torch.tensor([True, True, False]))
    assert metrics == {"masked_accuracy": 0.5, "unmasked_accuracy": 1.0, "block_chance": 0.25}
    tie = accuracies(torch.ones(1, 4), blocks, torch.tensor([2]), torch.tensor([True]))
    assert tie == {"masked_accuracy": 0.0, "block_chance": 0.25}
