"""Auto-MLM on one page: pairs and hidden tokens → two passes → contrast + prediction."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import torch

from bench.data.shards import Shards
from bench.dense import TrainingJob
from bench.training.distributed import gather, offset
from bench.training.draws import adjacent, in_a_window
from bench.training.encoder import TrainableEncoder
from bench.training.loop import fit
from bench.training.masking import Masking
from bench.training.mlm import MaskedPairs, MlmHead, PairsAndMasks, mlm_loss
from bench.training.probes import accuracy
from bench.training.views import SentencePairs
from bench.types import Json
from bench.workspace import Workspace
from methods.auto_mlm.config import AutoMlmConfig
from methods.auto_mlm.loss import additive_margin, hinge, together


class AutoMlmTrainer:
    """Trains an encoder whose vectors tell pairs apart, and what was hidden in their sentences.

    Args:
        config: how.
    """

    def __init__(self, config: AutoMlmConfig) -> None:
        """Remember it."""
        self.config = config

    def train(self, start: Path, shards: Path, job: TrainingJob, work: Workspace) -> Mapping[str, Json]:
        """Train from `start` on `shards`; see `bench.dense.Trainer`."""
        config, corpus = self.config, Shards(shards)
        encoder = TrainableEncoder.begin(start, corpus, config, job)
        predicts = config.automlm or config.mlm
        head = MlmHead.for_(encoder) if predicts else None
        draw = adjacent if config.pairing == "dialogue" else partial(in_a_window, window=config.window)
        pairs = SentencePairs(corpus, config, job.seed, draw)
        masking = Masking.of(corpus, config.masking) if predicts else None
        source = MaskedPairs(pairs, masking, "both" if config.automlm_side == "both" else "left")
        return fit(partial(self.loss, head), source, encoder, config, job, work, modules=head)

    def loss(
        self, head: MlmHead | None, encode: TrainableEncoder, batch: PairsAndMasks
    ) -> tuple[torch.Tensor, Mapping[str, float]]:
        """Compute eq. 8: `L_ctl + λ L_automlm`.

        Args:
            head: what predicts hidden tokens; None where nothing does.
            encode: token ids → vectors.
            batch: n pairs of different documents, and their sequences with hidden tokens.
        """
        config, seen = self.config, dict[str, float]()
        total = encode.embeddings.new_zeros(())
        vectors = None
        if config.ctl or config.automlm:
            left, right = encode.together(batch.pairs)  # each [n, d], of sentences in which nothing is hidden
            vectors = torch.cat([left, right]) if config.automlm_side == "both" else left
            seen["accuracy"] = accuracy(left, right)
            if config.ctl:
                contrast, active = self.contrast(left, right)
                total, seen = total + contrast, {**seen, **active, "ctl": float(contrast.detach())}
        if head is not None and batch.masked is not None:
            if vectors is not None and config.automlm_detach:
                vectors = vectors.detach()
            added = vectors if config.automlm else None
            predicted = mlm_loss(encode, head, batch.masked, vectors=added, reduction=config.mlm_reduction)
            total = together(total, predicted, config.weight)
            seen["automlm" if config.automlm else "mlm"] = float(predicted.detach())
        return total, seen

    def contrast(self, left: torch.Tensor, right: torch.Tensor) -> tuple[torch.Tensor, Mapping[str, float]]:
        """Compute the contrastive loss of pairs `[n, d]`, the first ones asking; negatives of all processes."""
        config = self.config
        first = offset(len(left)) if config.gather_negatives else 0
        candidates = gather(right) if config.gather_negatives else right
        if config.loss == "labse_ams":
            anchors = gather(left) if config.gather_negatives else left
            both = anchors, candidates
            scale = 1 / config.temperature
            return additive_margin(left, right, margin=config.margin, scale=scale, gathered=both, first=first), {}
        loss, active = hinge(left, candidates, margin=config.margin, sign=config.margin_sign, first=first)
        return loss, {"active_hinges": active}
