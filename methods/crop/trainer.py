"""Crop on one page: views → forward → loss."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from bench.data.shards import Shards
from bench.dense import TrainingJob
from bench.training.encoder import TrainableEncoder, Views
from bench.training.loop import fit
from bench.training.losses import info_nce
from bench.training.probes import accuracy
from bench.training.views import SentencePairs
from bench.types import Json
from bench.workspace import Workspace
from methods.crop.config import CropConfig


class CropTrainer:
    """Trains an encoder to bring two sentences of a document together.

    Args:
        config: how.
    """

    def __init__(self, config: CropConfig) -> None:
        """Remember it."""
        self.config = config

    def train(self, start: Path, shards: Path, job: TrainingJob, work: Workspace) -> Mapping[str, Json]:
        """Train from `start` on `shards`; see `bench.dense.Trainer`."""
        encoder = TrainableEncoder.load(start, job.device, self.config.precision)
        pairs = SentencePairs(Shards(shards), self.config, job.seed, self.config.window)
        return fit(self.loss, pairs, encoder, self.config, job, work)

    def loss(self, encode: TrainableEncoder, views: Views) -> tuple[torch.Tensor, Mapping[str, float]]:
        """Tell each sentence's partner from those of the other documents; all documents are of one language.

        Args:
            encode: token ids → vectors.
            views: two sentences of each of n documents, as token ids.

        Returns:
            The loss, a scalar, and the share of sentences whose partner is nearest.
        """
        left, right = encode.together(views)  # each [n, d]
        loss = info_nce(
            left,
            right,
            temperature=self.config.temperature,
            similarity=self.config.similarity,
            symmetric=self.config.symmetric,
        )
        return loss, {"accuracy": accuracy(left, right)}
