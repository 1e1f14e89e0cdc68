"""Contriever, the inverse cloze task and SimCSE on two processes: the same as one on the joined batch, in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import nn

from bench.core.contract import Contract
from bench.retrieval.packed import Ids
from bench.training.batches import PairBatch
from bench.training.distributed import average_gradients, rank, total, world
from bench.training.encoder import TrainableEncoder
from methods.contriever.config import ContrieverConfig
from methods.contriever.moco import Moco
from methods.contriever.trainer import ContrieverTrainer
from methods.ict.config import IctConfig
from methods.ict.trainer import IctTrainer, projection
from methods.ict.views import Clozes
from methods.simcse import SimcseConfig
from methods.simcse.trainer import SimcseTrainer

PAIRS, CUT = 6, {"contriever": 3, "in-batch": 3, "ict": 2, "simcse": 4}
"""Pairs in all; how many of them the first process has. The queue wants as many from each."""


@dataclass(frozen=True)
class Plain(TrainableEncoder):
    """An encoder whose vectors are means of token embeddings, in float64: everything after it is what is tested."""

    def __call__(self, sequences: Sequence[Ids]) -> torch.Tensor:
        """Return `[n, d]`."""
        return torch.stack([self.embeddings[torch.as_tensor(sequence)].mean(0) for sequence in sequences])


def halves(name: str) -> tuple[slice, ...]:
    """Which pairs a process has; all of them where it is alone."""
    if world() == 1:
        return (slice(0, PAIRS),)
    return (slice(0, CUT[name]), slice(CUT[name], PAIRS))


def computed(name: str, folder: str) -> dict[str, Any]:
    """Compute loss and gradients of this process's pairs; averaged over processes."""
    start = Path(folder)
    loaded = TrainableEncoder.load(start, "cpu")
    encode = Plain(loaded.model.double(), start, Contract.load(start))
    rng = np.random.default_rng(0)
    sequences = [rng.integers(5, 100, 5).astype(np.int64) for _ in range(2 * PAIRS)]
    mine = halves(name)[rank()]
    left, right = sequences[:PAIRS][mine], sequences[PAIRS:][mine]
    documents, languages = np.arange(PAIRS)[mine], ("en",) * len(left)
    torch.manual_seed(0)
    head = projection(16, 128, 0.0).double()
    queue = torch.empty(0)
    pairs = PairBatch(left, right, documents, languages)
    if name == "contriever":
        config = ContrieverConfig(pairs=len(left), queue=12, momentum=0.5, temperature=0.5)
        moco = Moco(config, encode, ("en",))
        moco.queue.double()
        loss, _ = moco.loss(encode, pairs)
        loss.backward()
        moco.after_step(1)
        queue = moco.queue.rows
    elif name == "in-batch":
        loss, _ = ContrieverTrainer(ContrieverConfig(loss="in-batch", temperature=0.5)).in_batch(encode, pairs)
        loss.backward()
    elif name == "ict":
        clozes = Clozes(left, right, documents, languages, documents % 2 == 0)
        loss, _ = IctTrainer(IctConfig()).loss(head, encode, clozes)
        loss.backward()
    else:
        loss, _ = SimcseTrainer(SimcseConfig()).loss(None, encode, pairs)
        loss.backward()
    read = cast(nn.Parameter, encode.embeddings)
    weights: list[nn.Parameter] = [read, *(head.parameters() if name == "ict" else ())]
    average_gradients(weights)
    return {"loss": total(loss.detach()) / world(), "gradients": [weight.grad for weight in weights], "queue": queue}


@pytest.mark.parametrize("name", list(CUT))
def test_two_processes_are_one(
    name: str, two_processes: Callable[..., list[dict[str, Any]]], start_of: Callable[[Contract], Path]
) -> None:
    """Mean loss, averaged gradients, the queue afterwards; batches of different size where that may be."""
    folder = str(start_of(Contract(pooling="mean")))
    alone = computed(name, folder)
    for one in two_processes(computed, name, folder):
        torch.testing.assert_close(one["loss"], alone["loss"], rtol=0, atol=1e-9)
        for found, expected in zip(one["gradients"], alone["gradients"], strict=True):
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)
        torch.testing.assert_close(one["queue"], alone["queue"], rtol=0, atol=1e-9)
    assert any(float(gradient.abs().sum()) > 0 for gradient in alone["gradients"])
