"""Masked language modelling on one page: stretches with hidden tokens → states → prediction."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import torch

from bench.data.shards import Shards
from bench.dense import TrainingJob
from bench.training.batches import Masked
from bench.training.encoder import TrainableEncoder
from bench.training.loop import fit
from bench.training.mlm import MaskedBlocks, MlmHead, mlm_loss
from bench.types import Json
from bench.workspace import Workspace
from methods.mlm.config import MlmMethodConfig


class MlmTrainer:
    """Goes on with a backbone's own pretraining.

    Args:
        config: how.
    """

    def __init__(self, config: MlmMethodConfig) -> None:
        """Remember it."""
        self.config = config

    def train(self, start: Path, shards: Path, job: TrainingJob, work: Workspace) -> Mapping[str, Json]:
        """Train from `start` on `shards`; see `bench.dense.Trainer`."""
        corpus = Shards(shards)
        encoder = TrainableEncoder.begin(start, corpus, self.config, job)
        head = MlmHead.for_(encoder)
        blocks = MaskedBlocks(corpus, self.config, self.config.mlm, job.seed)
        return fit(partial(self.loss, head), blocks, encoder, self.config, job, work, modules=head)

    def loss(self, head: MlmHead, encode: TrainableEncoder, masked: Masked) -> tuple[torch.Tensor, Mapping[str, float]]:
        """Predict the hidden tokens of n stretches: the mean of −log p over them."""
        return mlm_loss(encode, head, masked), {"hidden": float(len(masked.targets))}
