"""Quick-Thoughts: its loss, its batches, its two encoders, and a training end to end."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from bench.data.corpora.shards import Shards
from methods.quickthought import QuickThoughtConfig
from methods.quickthought.loss import neighbours, quickthought
from methods.quickthought.trainer import QuickThoughtTrainer, RunsOfSentences

SMALL: dict[str, Any] = {"pairs": 5, "learning_rate": 5e-3, "log_every": 5, "probe_every": 20, "probe_pairs": 4}


def test_neighbours_and_the_loss_written_out() -> None:
    """Neighbours stay within their document; soft targets over them, the own score is 0; a lone sentence is refused."""
    documents = torch.tensor([4, 4, 4, 9, 9])
    expected = [[0, 1, 0, 0, 0], [1, 0, 1, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 1], [0, 0, 0, 1, 0]]
    assert neighbours(5, 5, context=1, documents=documents).int().tolist() == expected
    assert neighbours(2, 5, context=1, documents=documents, first=3).int().tolist() == expected[3:]
    assert neighbours(5, 5, context=2, documents=documents).int().tolist()[0] == [0, 1, 1, 0, 0]
    chance = torch.Generator().manual_seed(1)
    f, g = torch.randn(2, 5, 4, generator=chance, dtype=torch.float64)
    documents = torch.tensor([0, 0, 0, 7, 7])
    near = {0: [1], 1: [0, 2], 2: [1], 3: [4], 4: [3]}
    total = 0.0
    for i, neighbours_of_i in near.items():
        scores = (g @ f[i] / 0.5).clone()
        scores[i] = 0
        total -= sum(float(scores[j] - scores.logsumexp(0)) for j in neighbours_of_i) / len(neighbours_of_i) / 5
    assert float(quickthought(f, g, documents=documents, temperature=0.5)) == pytest.approx(total, abs=1e-12)
    moved = g.clone()
    moved[2] += 3 * torch.ones(4, dtype=torch.float64)
    before, after = (float(quickthought(f, vectors, documents=documents)) for vectors in (g, moved))
    assert after != pytest.approx(before)
    with pytest.raises(ValueError, match="found a sentence without a neighbour"):
        quickthought(torch.ones(3, 2), torch.ones(3, 2), documents=torch.tensor([0, 0, 1]))


def test_runs_are_consecutive_sentences(shards: Shards, rng: np.random.Generator) -> None:
    """In order, of one language, at most so many of a document and never one alone."""
    runs = RunsOfSentences(shards, QuickThoughtConfig(pairs=4), 3, 1)
    for _ in range(20):
        batch = runs.batch(rng)
        assert len({shards.language_of(int(document)) for document in batch.documents}) == 1
        for document in dict.fromkeys(batch.documents.tolist()):
            mine = np.flatnonzero(batch.documents == document)
            assert 2 <= len(mine) <= 3
            assert (np.diff(mine) == 1).all()
            sentences = [shards.sentence(document, at).tolist() for at in range(shards.sentence_count(document))]
            run = [np.asarray(batch.sentences[at])[1:-1].tolist() for at in mine.tolist()]
            assert any(sentences[at : at + len(run)] == run for at in range(len(sentences)))


def test_f_is_exported_and_g_is_trained_with_it(train_method: Callable[..., Any]) -> None:
    """Both move, apart from each other; the export has one encoder; both passes count."""
    config = QuickThoughtConfig(**SMALL, checkpoint_tokens=300)
    two_encoders = train_method("two", QuickThoughtTrainer(config), config.encoder_config(), tokens=3000)
    exported = load_file(two_encoders.out / "encoder/model.safetensors")
    assert all(key.startswith(("embeddings.", "encoder.")) for key in exported)
    newest = load_file(sorted(two_encoders.parts.glob("checkpoint-*.safetensors"))[-1])
    name = "encoder.layer.0.output.dense.weight"
    f, g = newest[f"weights/encoder.{name}"], newest[f"weights/method.{name}"]
    assert not torch.allclose(f, g, atol=1e-4)
    assert two_encoders.metadata["passes"] == 2 * two_encoders.metadata["steps"]
