"""The trainer of `nearby`: views → forward → projection → loss."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import torch

from bench import Json, Workspace
from bench.training import PairBatch, SentencePairs, Shards, TrainableEncoder, TrainingJob, fit, info_nce, two_sentences

from .nearby import NearbyConfig


class NearbyTrainer:
    """Trains an encoder and a projection; only the encoder is kept."""

    def __init__(self, config: NearbyConfig) -> None:
        """Remember the settings."""
        self.config = config

    def train(self, start: Path, shards: Path, job: TrainingJob, work: Workspace) -> Mapping[str, Json]:
        """Train from `start` on `shards`; see `bench.training.Trainer`."""
        corpus = Shards(shards)
        encoder = TrainableEncoder.begin(start, corpus, self.config, job)
        head = torch.nn.Linear(encoder.model.config.hidden_size, self.config.width)
        pairs = SentencePairs(corpus, self.config, job.seed, partial(two_sentences, window=1))

        def loss(encode: TrainableEncoder, pairs: PairBatch) -> tuple[torch.Tensor, Mapping[str, float]]:
            left, right = map(head, encode.encode_views(pairs))  # each [pairs, width]
            scale = self.config.temperature
            return info_nce(left, right, temperature=scale, similarity="cos", symmetric=True), {}

        return fit(loss, pairs, encoder, self.config, job, work, modules=head)
