"""Contriever on one page: crops → queries and keys → loss → queue."""

from collections.abc import Callable, Mapping

import torch

from bench import Workspace
from bench.training import (
    CorpusTrainer,
    Facts,
    PairBatch,
    Shards,
    TrainableEncoder,
    TrainingJob,
    accuracy,
    candidates,
    fit,
    info_nce,
    sharpness,
    similarities,
    weight,
)
from methods.contriever import ContrieverConfig
from methods.contriever.loss import normed
from methods.contriever.moco import Moco
from methods.contriever.views import CroppedPairs


class ContrieverTrainer(CorpusTrainer[ContrieverConfig]):
    """Trains an encoder to find the other crop of a text among crops of others."""

    def train_on(self, encoder: TrainableEncoder, corpus: Shards, job: TrainingJob, work: Workspace) -> Facts:
        """Draw crops of chunks, with a queue or without, and run the loop."""
        config = self.config
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
            probe=moco.probe,
        )

    def in_batch(
        self, encode: TrainableEncoder, pairs: PairBatch
    ) -> tuple[torch.Tensor, Callable[[], Mapping[str, float]]]:
        """Return the loss of each query's key among all keys, made by the encoder itself, with gradients."""
        config = self.config
        queries, keys = encode.encode_views(pairs)  # each [n, d]
        all_keys, places = candidates(normed(keys, config.norm_doc))  # [m, d], [n]
        scaled = normed(queries, config.norm_query)
        loss = info_nce(
            scaled,
            all_keys,
            places,
            temperature=config.temperature,
            label_smoothing=config.label_smoothing,
        )
        queries, keys, scaled, all_keys = (rows.detach() for rows in (queries, keys, scaled, all_keys))
        return loss * weight(len(queries)), lambda: {
            "accuracy": accuracy(queries, keys),
            **sharpness(similarities(scaled, all_keys) / config.temperature),
        }
