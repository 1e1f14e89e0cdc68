"""SimCSE as a plugin: the same sentence twice, and a training on the planted corpus."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bench.data.corpora.shards import Shards
from methods.simcse import SimcseConfig
from methods.simcse.trainer import SentencesTwice, SimcseTrainer
from tests.methods.conftest import EncoderFor


def config_of(**changed: Any) -> SimcseConfig:
    return SimcseConfig(**{"pairs": 8, "probe_pairs": 4, **changed})


def test_both_views_are_the_same_sentence(shards: Shards) -> None:
    """Of different documents of one language; a sentence of one document may be any."""
    source, rng = SentencesTwice(shards, config_of(), 1), np.random.default_rng(0)
    places = set()
    for _ in range(20):
        pairs = source.batch(rng)
        assert len(set(pairs.languages)) == 1
        assert len(set(pairs.documents.tolist())) == 8
        for first, second, document in zip(*pairs, pairs.documents.tolist(), strict=True):
            assert first.tolist() == second.tolist()
            sentences = [shards.sentence(document, at).tolist() for at in range(shards.sentence_count(document))]
            places.add(sentences.index(first[1:-1].tolist()))
    assert len(places) > 3


@pytest.mark.parametrize("head", ["mlp", "none"])
def test_the_loss_written_out(corpus: Path, encoder_for: EncoderFor, head: Any) -> None:
    """Without dropout both passes agree: each positive has a cosine of 1, over the temperature."""
    config = config_of(head=head)
    encode = encoder_for(config)
    layer = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.Tanh()) if head == "mlp" else None
    pairs = SentencesTwice(Shards(corpus), config, 1).batch(np.random.default_rng(0))
    loss, _ = SimcseTrainer(config).loss(layer, encode, pairs)
    rows = encode(pairs.left).detach()
    unit = torch.nn.functional.normalize((rows if layer is None else layer(rows)).detach().double(), dim=1)
    logits = unit @ unit.T / 0.05
    expected = (logits.logsumexp(1) - 1 / 0.05).mean()
    assert float(loss.detach()) == pytest.approx(float(expected), abs=1e-4)
