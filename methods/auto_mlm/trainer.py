"""Auto-MLM on one page: pairs and hidden tokens → two passes → contrast + prediction."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import torch

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
    accuracy,
    adjacent,
    fit,
    gather,
    in_a_window,
    mlm_loss,
    offset,
    sharpness,
    similarities,
    weight,
)
from methods.auto_mlm import AutoMlmConfig
from methods.auto_mlm.loss import additive_margin, hinge, together

Draw = Callable[[int, np.random.Generator], tuple[int, int]]


def user_and_agent(count: int, rng: np.random.Generator) -> tuple[int, int]:
    """Draw a user's turn (even) and an agent's (odd) of `count` ≥ 2, uniformly (arXiv 2203.16187, section 3.1)."""
    return 2 * int(rng.integers((count + 1) // 2)), 2 * int(rng.integers(count // 2)) + 1


class AutoMlmTrainer(CorpusTrainer[AutoMlmConfig]):
    """Trains an encoder whose vectors identify pairs and help to predict hidden tokens of their sentences."""

    def train_on(self, encoder: TrainableEncoder, corpus: Shards, job: TrainingJob, work: Workspace) -> Facts:
        """Draw pairs, hide some of their tokens where they are predicted, and run the loop."""
        config = self.config
        predicts = config.automlm or config.mlm
        head = MlmHead.for_(encoder) if predicts else None
        window: Draw = partial(in_a_window, window=config.window)
        draw = {"window": window, "dialogue": adjacent, "session": user_and_agent}[config.pairing]
        pairs = SentencePairs(corpus, config, job.seed, draw)
        masking = Masking.for_corpus(corpus, config.masking) if predicts else None
        source = MaskedPairs(pairs, masking, "both" if config.automlm_side == "both" else "left")
        return fit(partial(self.loss, head), source, encoder, config, job, work, modules=head)

    def loss(
        self, head: MlmHead | None, encode: TrainableEncoder, batch: PairsAndMasks
    ) -> tuple[torch.Tensor, Callable[[], Mapping[str, float]]]:
        """Compute eq. 8, `L_ctl + λ L_automlm`, of n pairs of different documents; without a head, `L_ctl` alone."""
        config, values, views = self.config, dict[str, torch.Tensor](), list[torch.Tensor]()
        measure: Callable[[], Mapping[str, float]] = dict
        total = encode.embeddings.new_zeros(())
        vectors = None
        if config.ctl or config.automlm:
            queries, keys = encode.encode_views(batch.pairs)  # each [n, d], of sentences in which nothing is hidden
            vectors = torch.cat([queries, keys]) if config.automlm_side == "both" else queries
            views = [queries.detach(), keys.detach()]
            if config.ctl:
                contrast, measure = self.contrast(queries, keys)
                total = total + contrast * weight(len(queries))
                values["ctl"] = contrast.detach()
        if head is not None and batch.masked is not None:
            if vectors is not None and config.automlm_detach:
                vectors = vectors.detach()
            added = vectors if config.automlm else None
            predicted = mlm_loss(encode, head, batch.masked, vectors=added)
            total = together(total, predicted, config.weight)
            values["automlm" if config.automlm else "mlm"] = predicted.detach()

        def metrics() -> Mapping[str, float]:
            similar = {"accuracy": accuracy(*views), **measure()} if views else {}
            return {**similar, **{name: float(value) for name, value in values.items()}}

        return total, metrics

    def contrast(
        self, queries: torch.Tensor, keys: torch.Tensor
    ) -> tuple[torch.Tensor, Callable[[], Mapping[str, float]]]:
        """Return the contrastive loss of pairs `[n, d]`, the left ones as queries, and what makes values to log.

        Negatives are those of all processes.
        """
        config, first, candidates = self.config, offset(len(queries)), gather(keys)
        fixed = queries.detach(), candidates.detach()
        if config.loss == "labse_ams":
            both = gather(queries), candidates
            scale = 1 / config.temperature
            loss = additive_margin(queries, keys, margin=config.margin, scale=scale, gathered=both, first=first)
            return loss, lambda: sharpness(scale * similarities(*fixed, "cos"))
        loss, active = hinge(queries, candidates, margin=config.margin, sign=config.margin_sign, first=first)
        return loss, lambda: {"active_hinges": float(active), "candidates": float(len(fixed[1]))}
