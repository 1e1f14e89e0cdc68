"""Masked language modelling as a plugin, and trained end to end."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open

from bench.config import check_config, resolve
from bench.data.shards import Shards
from bench.dense import TrainingJob
from bench.errors import ConfigError
from bench.promises import method_faults
from bench.training.batches import Masked
from bench.training.config import BlocksConfig
from bench.training.encoder import TrainableEncoder
from bench.training.mlm import MlmHead
from methods.mlm import MLM, bench_methods
from methods.mlm.config import UNUSED, MlmMethodConfig
from methods.mlm.trainer import MlmTrainer

SMALL: dict[str, Any] = {"learning_rate": 1e-2, "log_every": 5, "probe_every": 20, "probe_pairs": 4}


def test_the_method_keeps_its_promises() -> None:
    """Config, card, one method."""
    assert check_config(MlmMethodConfig) == []
    assert method_faults(MLM) == []
    assert [*bench_methods()] == [MLM]
    assert all(f"`{key}`" in MLM.card() for key in UNUSED)


@pytest.mark.parametrize("given", ["method.pairs=32", "method.temperature=0.05", "method.sentence_tokens=32"])
def test_what_changes_nothing_is_refused(given: str) -> None:
    """With what to set in its place."""
    with pytest.raises(ConfigError, match=r"changes nothing in mlm.*set mlm.sequences, mlm.tokens"):
        resolve([MLM], sets=[given])


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


def test_it_learns_exports_the_encoder_alone_and_resumes(train_method: Callable[..., Any]) -> None:
    """Better than guessing among the words of a language; no key of the head; killed and resumed, the same bytes."""
    config = MlmMethodConfig(**SMALL, mlm=BlocksConfig(tokens=24, sequences=6), checkpoint_tokens=3000)
    done = train_method("run", MlmTrainer(config), config.contract(), tokens=12_000)
    assert done.log[-1]["loss"] < math.log(120) - 0.25 < done.log[1]["loss"]
    with safe_open(done.out / "encoder/model.safetensors", framework="pt") as opened:
        assert all(key.startswith(("embeddings.", "encoder.")) for key in opened.keys())  # noqa: SIM118 (no mapping)
    told: list[float] = []

    def kill(tokens: float) -> None:
        told.append(tokens)
        if sum(told) > 8000:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        train_method("killed", MlmTrainer(config), config.contract(), tokens=12_000, advance=kill)
    again = train_method("killed", MlmTrainer(config), config.contract(), tokens=12_000)
    assert again.files() == done.files()
