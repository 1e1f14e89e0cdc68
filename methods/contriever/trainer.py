"""Contriever on one page: crops → queries and keys → loss → queue."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch

from bench.data.shards import Shards
from bench.dense import TrainingJob
from bench.training.batches import Pairs
from bench.training.distributed import candidates
from bench.training.encoder import TrainableEncoder
from bench.training.loop import fit
from bench.training.losses import info_nce
from bench.training.probes import accuracy
from bench.types import Json
from bench.workspace import Workspace
from methods.contriever.config import ContrieverConfig
from methods.contriever.loss import normed
from methods.contriever.moco import Moco
from methods.contriever.views import CroppedPairs


class ContrieverTrainer:
    """Trains an encoder to tell crops of a text from crops of others.

    Args:
        config: how.
    """

    def __init__(self, config: ContrieverConfig) -> None:
        """Remember it."""
        self.config = config

    def train(self, start: Path, shards: Path, job: TrainingJob, work: Workspace) -> Mapping[str, Json]:
        """Train from `start` on `shards`; see `bench.dense.Trainer`."""
        config, corpus = self.config, Shards(shards)
        encoder = TrainableEncoder.begin(start, corpus, config, job)
        pairs = CroppedPairs(corpus, config, job.seed)
        if config.loss == "in-batch":
            return fit(self.in_batch, pairs, encoder, config, job, work)
        moco = Moco(config, encoder, corpus.languages)
        return fit(
            moco.loss,
            pairs,
            encoder,
            config,
            job,
            work,
            modules=moco.modules,
            after_step=moco.after_step,
            look=moco.look,
        )

    def in_batch(self, encode: TrainableEncoder, pairs: Pairs) -> tuple[torch.Tensor, Mapping[str, float]]:
        """Tell each query's key from those of the other texts, all made by the encoder itself, with gradients.

        Args:
            encode: token ids → vectors.
            pairs: queries and keys of n texts.

        Returns:
            The loss, a scalar, and the share of queries whose own key is nearest.
        """
        config = self.config
        queries, keys = encode.together(pairs)  # each [n, d]
        every, places = candidates(normed(keys, config.norm_doc), gathered=config.gather_negatives)  # [m, d], [n]
        loss = info_nce(
            normed(queries, config.norm_query),
            every,
            places,
            temperature=config.temperature,
            label_smoothing=config.label_smoothing,
        )
        return loss, {"accuracy": accuracy(queries, keys)}
