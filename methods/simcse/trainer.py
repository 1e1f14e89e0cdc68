"""SimCSE on one page: the same sentence twice → forward with dropout → head → loss."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import torch
from torch import nn

from bench import Workspace
from bench.training import (
    CorpusTrainer,
    Documents,
    Facts,
    PairBatch,
    RandomSource,
    Shards,
    TrainableEncoder,
    TrainingConfig,
    TrainingJob,
    accuracy,
    add_special_tokens,
    candidates,
    fit,
    info_nce,
    sharpness,
    similarities,
    weight,
)
from methods.simcse import SimcseConfig


class SentencesTwice(RandomSource[Shards, Documents]):
    """A sentence of each of several documents, twice. Raises `UsageError` if no language has two documents."""

    def __init__(self, shards: Shards, config: TrainingConfig, seed: int) -> None:
        super().__init__(shards, Documents(shards, config, least=1, seed=seed))
        self._config = config

    def batch(self, rng: np.random.Generator) -> PairBatch:
        """Return a sentence of each of several documents, twice."""
        documents = self._sampler.draw(self._config.pairs, rng)
        places = [int(rng.integers(self.shards.sentence_count(document))) for document in documents]
        read = [self.shards.take(document, at) for document, at in zip(documents, places, strict=True)]
        views = [add_special_tokens(ids, self.shards.special, self._config.sentence_tokens) for ids in read]
        languages = tuple(map(self.shards.language_of, documents))
        return PairBatch(views, views, np.asarray(documents, np.int64), languages)


class SimcseTrainer(CorpusTrainer[SimcseConfig]):
    """Trains an encoder to give a sentence the same vector whatever dropout leaves out."""

    def train_on(self, encoder: TrainableEncoder, corpus: Shards, job: TrainingJob, work: Workspace) -> Facts:
        """Draw sentences, each twice, and run the loop."""
        config = self.config
        width = encoder.model.config.hidden_size
        head = nn.Sequential(nn.Linear(width, width), nn.Tanh()) if config.head == "mlp" else None
        sentences = SentencesTwice(corpus, config, job.seed)
        return fit(partial(self.loss, head), sentences, encoder, config, job, work, modules=head)

    def loss(
        self, head: nn.Module | None, encode: TrainableEncoder, pairs: PairBatch
    ) -> tuple[torch.Tensor, Callable[[], Mapping[str, float]]]:
        """Return the loss of each sentence's other pass among all, in one direction (Gao et al. 2021, eq. 4)."""
        rows = torch.cat(encode.encode_views(pairs))  # [2n, d]
        if head is not None:
            encode.meter.multiplied(rows.numel() * rows.shape[1])
            rows = head(rows)
        z1, z2 = rows.chunk(2)  # each [n, d]
        all_z2, places = candidates(z2)  # [m, d], [n]
        config = self.config
        loss = info_nce(z1, all_z2, places, temperature=config.temperature, similarity=config.similarity)
        z1, z2, all_z2 = z1.detach(), z2.detach(), all_z2.detach()
        return loss * weight(len(z1)), lambda: {
            "accuracy": accuracy(z1, z2),
            **sharpness(similarities(z1, all_z2, config.similarity) / config.temperature),
        }
