"""Crop: its contract, and its loss written out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from bench.core.contract import Contract
from bench.data.corpora.shards import Shards
from bench.training.encoder import TrainableEncoder
from methods.crop.config import CropConfig
from methods.crop.trainer import CropModules, CropTrainer
from methods.crop.views import CropViews


def test_the_contract_follows_the_config() -> None:
    """Unit vectors where cosine was trained; the pooling that was trained."""
    assert CropConfig().contract() == Contract(pooling="mean", normalise=True, similarity="cos")
    dot = CropConfig(similarity="dot", pooling="cls", query_tokens=32).contract()
    assert (dot.normalise, dot.similarity, dot.pooling, dot.query_length) == (False, "dot", "cls", 32)


def test_the_loss_is_that_of_both_directions(start_of: Callable[[Contract], Path], corpus: Path) -> None:
    """Against cross-entropies written out, from vectors of a model without dropout."""
    config = CropConfig(pairs=8, temperature=0.2)
    encode = TrainableEncoder.load(start_of(config.contract()), "cpu")
    encode.model.eval()
    views, heads = CropViews(Shards(corpus), config, 1).batch(np.random.default_rng(0)), CropModules(config, encode)
    loss, metrics = CropTrainer(config).loss(heads, encode, views)
    left, right = (torch.nn.functional.normalize(encode(view).detach().double(), dim=1) for view in views)
    logits = left @ right.T / 0.2
    own = logits.diagonal()
    expected = (logits.logsumexp(0) + logits.logsumexp(1) - 2 * own).mean() / 2
    assert float(loss.detach()) == pytest.approx(float(expected), abs=1e-5)
    assert metrics["accuracy"] == pytest.approx(float((logits.argmax(1) == torch.arange(8)).double().mean()))
    one_way, _ = CropTrainer(config.model_copy(update={"symmetric": False})).loss(heads, encode, views)
    assert float(one_way.detach()) == pytest.approx(float((logits.logsumexp(1) - own).mean()), abs=1e-5)
