"""SimCSE on one page: the same sentence twice → forward with dropout → head → loss."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import torch
from torch import nn

from bench.data.shards import Shards
from bench.dense import TrainingJob
from bench.training.batches import Pairs
from bench.training.distributed import candidates, weight
from bench.training.encoder import TrainableEncoder
from bench.training.loop import fit
from bench.training.losses import info_nce
from bench.training.probes import accuracy
from bench.types import Json
from bench.workspace import Workspace
from methods.simcse.config import SimcseConfig
from methods.simcse.views import SentencesTwice


class SimcseTrainer:
    """Trains an encoder to make the same of a sentence whatever dropout leaves out.

    Args:
        config: how.
    """

    def __init__(self, config: SimcseConfig) -> None:
        """Remember it."""
        self.config = config

    def train(self, start: Path, shards: Path, job: TrainingJob, work: Workspace) -> Mapping[str, Json]:
        """Train from `start` on `shards`; see `bench.dense.Trainer`."""
        config, corpus = self.config, Shards(shards)
        encoder = TrainableEncoder.begin(start, corpus, config, job)
        width = encoder.model.config.hidden_size
        head = nn.Sequential(nn.Linear(width, width), nn.Tanh()) if config.head == "mlp" else None
        sentences = SentencesTwice(corpus, config, job.seed)
        return fit(partial(self.loss, head), sentences, encoder, config, job, work, modules=head)

    def loss(
        self, head: nn.Module | None, encode: TrainableEncoder, pairs: Pairs
    ) -> tuple[torch.Tensor, Mapping[str, float]]:
        """Tell each sentence's other pass from those of the other sentences, in one direction.

        Args:
            head: of training alone; None: none.
            encode: token ids → vectors.
            pairs: n sentences, twice.

        Returns:
            The loss, a scalar, and the share of sentences whose other pass is nearest.

        Source: Gao et al. 2021 (SimCSE), eq. 4.
        """
        rows = torch.cat(encode.together(pairs))  # [2n, d]
        if head is not None:
            encode.meter.multiplied(rows.numel() * rows.shape[1])
            rows = head(rows)
        left, right = rows.chunk(2)  # each [n, d]
        every, places = candidates(right, gathered=self.config.gather_negatives)  # [m, d], [n]
        loss = info_nce(left, every, places, temperature=self.config.temperature, similarity=self.config.similarity)
        return loss * weight(len(left)), {"accuracy": accuracy(left, right)}
