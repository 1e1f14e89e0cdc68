"""CMLM on one page: neighbouring sentences → vector of the first → hidden tokens of the second."""

from collections.abc import Mapping
from functools import partial

import torch
from torch import nn
from torch.nn import functional

from bench import Workspace
from bench.training import (
    CorpusTrainer,
    Facts,
    MaskedPairs,
    Masking,
    MlmHead,
    PairsAndMasks,
    SentencePairs,
    Shards,
    TrainableEncoder,
    TrainingJob,
    adjacent,
    fit,
    mlm_loss,
)
from methods.cmlm import CmlmConfig


class Projections(nn.Module):
    """A vector `[d]` → k positions of input: itself and k − 1 projections (Yang et al. 2021, CMLM, section 2)."""

    def __init__(self, width: int, count: int) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)
        self.third = nn.Linear(width, width * (count - 1)) if count > 1 else None

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Project `[n, d]` → `[n, k, d]`."""
        identity = vectors[:, None]
        if self.third is None:
            return identity
        inner = functional.relu(self.second(functional.relu(self.first(vectors))))
        return torch.cat([identity, self.third(inner).unflatten(1, (-1, vectors.shape[1]))], dim=1)

    def operations(self, count: int) -> float:
        """Return the multiply-adds of projecting a number of vectors."""
        layers = (self.first, self.second, self.third) if self.third is not None else ()
        return float(count * sum(layer.weight.numel() for layer in layers))


class CmlmTrainer(CorpusTrainer[CmlmConfig]):
    """Trains an encoder whose vectors help to predict hidden tokens of the following sentence."""

    def train_on(self, encoder: TrainableEncoder, corpus: Shards, job: TrainingJob, work: Workspace) -> Facts:
        """Draw neighbouring sentences, hide tokens of the second, and run the loop."""
        config = self.config
        head, projections = MlmHead.for_(encoder), Projections(encoder.embeddings.shape[1], config.projections)
        pairs = SentencePairs(corpus, config, job.seed, adjacent)
        source = MaskedPairs(pairs, Masking.for_corpus(corpus, config.masking), "right")
        modules = nn.ModuleDict({"head": head, "projections": projections})
        return fit(partial(self.loss, head, projections), source, encoder, config, job, work, modules=modules)

    def loss(
        self, head: MlmHead, projections: Projections, encode: TrainableEncoder, batch: PairsAndMasks
    ) -> tuple[torch.Tensor, Mapping[str, float]]:
        """Predict the hidden tokens of n sentences, each preceded by the vector of the sentence before it."""
        assert batch.masked is not None  # noqa: S101 (for the type checker: the source hides always)
        vectors = encode(batch.pairs.left)  # [n, d]
        before = projections(vectors)  # [n, k, d]
        encode.meter.multiplied(projections.operations(len(vectors)))
        return mlm_loss(encode, head, batch.masked, before=before), {}
