"""Masked language modelling on one page: stretches with hidden tokens → states → prediction."""

from collections.abc import Mapping
from functools import partial

import torch

from bench import Workspace
from bench.training import (
    CorpusTrainer,
    Facts,
    Masked,
    MaskedBlocks,
    MlmHead,
    Shards,
    TrainableEncoder,
    TrainingJob,
    fit,
    mlm_loss,
)
from methods.mlm import MlmMethodConfig


class MlmTrainer(CorpusTrainer[MlmMethodConfig]):
    """Continues a backbone's own pretraining."""

    def train_on(self, encoder: TrainableEncoder, corpus: Shards, job: TrainingJob, work: Workspace) -> Facts:
        """Draw stretches of documents, hide some of their tokens, and run the loop."""
        head = MlmHead.for_(encoder)
        blocks = MaskedBlocks(corpus, self.config, self.config.mlm, job.seed)
        return fit(partial(self.loss, head), blocks, encoder, self.config, job, work, modules=head)

    def loss(self, head: MlmHead, encode: TrainableEncoder, masked: Masked) -> tuple[torch.Tensor, Mapping[str, float]]:
        """Predict the hidden tokens of n stretches: the mean of −log p over them."""
        return mlm_loss(encode, head, masked), {"hidden": float(len(masked.targets))}
