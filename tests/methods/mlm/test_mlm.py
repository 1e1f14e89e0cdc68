"""Masked language modelling as a plugin, and trained end to end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from bench.core.contract import TrainingJob
from bench.data.corpora.shards import Shards
from bench.training.batches import Masked
from bench.training.encoder import TrainableEncoder
from bench.training.mlm import MlmHead
from methods.mlm import MlmMethodConfig
from methods.mlm.trainer import MlmTrainer


def test_the_loss_is_the_mean_over_hidden_tokens(start: Path, corpus: Path) -> None:
    """Written out with the full logits of each sequence."""
    config = MlmMethodConfig()
    encode = TrainableEncoder.begin(start, Shards(corpus), config, TrainingJob(100, 1, "cpu", 1))
    encode.model.eval()
    head = MlmHead.for_(encode)
    masked = Masked(
        [np.array([1, 3, 11, 2]), np.array([1, 20, 3, 2])], np.array([0, 1]), np.array([1, 2]), np.array([10, 21])
    )
    losses = []
    with torch.no_grad():
        for sequence, place, target in zip(masked.inputs, masked.place, masked.targets, strict=True):
            states, packed = encode.hidden([sequence])
            logits = head(states) @ encode.embeddings.T + head.bias
            row = logits[packed.starts[0] + int(place)]
            losses.append(float(row.logsumexp(0) - row[int(encode.rows(np.array([target]))[0])]))
        found, seen = MlmTrainer(config).loss(head, encode, masked)
    assert float(found) == pytest.approx(sum(losses) / 2, abs=1e-5)
    assert seen == {"hidden": 2.0}
