"""The trainer of `nearby`: views → forward → projection → loss."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import torch

from bench.data.shards import Shards
from bench.dense import TrainingJob
from bench.training.batches import Pairs
from bench.training.encoder import TrainableEncoder
from bench.training.loop import fit
from bench.training.losses import info_nce
from bench.training.views import SentencePairs, two_sentences
from bench.types import Json
from bench.workspace import Workspace

from .nearby import NearbyConfig


class NearbyTrainer:
    """Trains an encoder and a projection; only the encoder is kept."""

    def __init__(self, config: NearbyConfig) -> None:
        """Remember the settings."""
        self.config = config

    def train(self, start: Path, shards: Path, job: TrainingJob, work: Workspace) -> Mapping[str, Json]:
        """Train from `start` on `shards`; see `bench.dense.Trainer`."""
        corpus = Shards(shards)
        encoder = TrainableEncoder.begin(start, corpus, self.config, job)
        head = torch.nn.Linear(encoder.model.config.hidden_size, self.config.width)
        pairs = SentencePairs(corpus, self.config, job.seed, partial(two_sentences, window=1))

        def loss(encode: TrainableEncoder, pairs: Pairs) -> tuple[torch.Tensor, Mapping[str, float]]:
            left, right = map(head, encode.together(pairs))  # each [pairs, width]
            scale = self.config.temperature
            return info_nce(left, right, temperature=scale, similarity="cos", symmetric=True), {}

        return fit(loss, pairs, encoder, self.config, job, work, modules=head)
