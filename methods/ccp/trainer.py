"""CCP on one page: views → forward → head → loss → bank."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import torch
from torch import nn

from bench.data.shards import Shards
from bench.dense import TrainingJob
from bench.training.banks import TaggedBank
from bench.training.batches import Masked, Mixed, Pairs
from bench.training.distributed import gather, offset, weight, world
from bench.training.draws import in_a_window
from bench.training.encoder import TrainableEncoder
from bench.training.heads import Projection
from bench.training.loop import fit
from bench.training.mlm import MaskedBlocks, MlmHead, mlm_loss
from bench.training.probes import accuracy
from bench.training.views import SentencePairs, two_sentences
from bench.types import Json
from bench.workspace import Workspace
from methods.ccp.config import CcpConfig
from methods.ccp.head import ViewsHead
from methods.ccp.look import Witnesses, looked_at
from methods.ccp.loss import Contrast, ccp_loss, masses


class Beside(nn.Module):
    """What is trained, or kept between batches, beside the encoder; none of it is exported.

    Args:
        config: which of it there is.
        width: d of the encoder.
        languages: how many the corpus has.
        words: the head of masked language modelling.
    """

    def __init__(self, config: CcpConfig, width: int, languages: int, words: MlmHead | None) -> None:
        super().__init__()
        head, bank = config.head, config.bank
        self.head = None
        if head.enabled:
            project = Projection(
                width,
                norm="none" if head.bn == "none" else "batch",
                activation=head.activation,
                bias=head.bias,
                final_norm=head.final_bn,
                sync=head.sync_bn,
            )
            self.head = ViewsHead(project, head.bn, config.abn.order)
        self.bank = TaggedBank(bank.capacity, width, languages, bank.layout) if bank.enabled else None
        self.witnesses = Witnesses(config.sentence_tokens, width, bank.capacity) if bank.enabled else None
        self.words = words


class CcpTrainer:
    """Trains an encoder to predict a sentence's context.

    Args:
        config: how.
    """

    def __init__(self, config: CcpConfig) -> None:
        """Remember it."""
        self.config = config

    def train(self, start: Path, shards: Path, job: TrainingJob, work: Workspace) -> Mapping[str, Json]:
        """Train from `start` on `shards`; see `bench.dense.Trainer`."""
        config, corpus = self.config, Shards(shards)
        encoder = TrainableEncoder.begin(start, corpus, config, job)
        near = in_a_window if config.window_semantics == "consecutive" else two_sentences
        pairs = SentencePairs(corpus, config, job.seed, partial(near, window=config.window))
        words = MlmHead.for_(encoder) if config.mlm.probability else None
        beside = Beside(config, encoder.model.config.hidden_size, len(corpus.languages), words)
        loss = partial(self.loss, beside, tuple(corpus.languages))
        look = partial(looked_at, encoder, pairs.held_out(), beside.head, beside.witnesses)
        if words is None:
            return fit(loss, pairs, encoder, config, job, work, modules=beside, look=look)
        mixed = Mixed(pairs, MaskedBlocks(corpus, config, config.mlm, job.seed), config.mlm.probability)
        return fit(loss, mixed, encoder, config, job, work, modules=beside, look=look)

    def loss(
        self, beside: Beside, languages: tuple[str, ...], encode: TrainableEncoder, batch: Pairs | Masked
    ) -> tuple[torch.Tensor, Mapping[str, float]]:
        """Predict hidden tokens, or tell each sentence's partner from all others.

        Args:
            beside: head and bank.
            languages: of the corpus, in the order of their numbers.
            encode: token ids → vectors.
            batch: of either task.

        Returns:
            The loss, a scalar, and what to log.
        """
        if isinstance(batch, Masked):
            assert beside.words is not None  # noqa: S101 (there is one wherever such batches are)
            predicted = mlm_loss(encode, beside.words, batch)
            return predicted, {"mlm_loss": float(predicted.detach())}
        left, right = encode.together(batch)  # each [n, d]
        if beside.head is not None:
            encode.meter.multiplied(4 * len(batch) * left.shape[1] ** 2)
            left, right = beside.head(left, right)
        tags = torch.tensor([languages.index(one) for one in batch.languages], device=left.device)  # [n]
        contrast, seen = self.contrast(beside.bank, left, right, tags)
        encode.meter.multiplied(contrast.logits.numel() * left.shape[1])
        if beside.bank is not None and beside.witnesses is not None:
            count = self.push(beside.bank, left, right, tags)  # after the loss: nobody meets a copy of itself
            beside.witnesses.pushed(batch.right, right.detach(), count)
        return self.scaled(contrast), {
            "contrast_loss": float(contrast.loss.detach()),
            "accuracy": accuracy(left, right),
            **seen,
        }

    def contrast(
        self, bank: TaggedBank | None, left: torch.Tensor, right: torch.Tensor, tags: torch.Tensor
    ) -> tuple[Contrast, Mapping[str, float]]:
        """Hold projections of both views, each `[n, d]`, against each other, other processes' and the bank's.

        Args:
            bank: earlier ones, not yet with these.
            left: of the first view.
            right: of the second view.
            tags: numbers of their languages, `[n]`.
        """
        config, n = self.config, len(left)
        own = torch.arange(n, device=left.device)
        rows = torch.cat([left, right])  # [2n, d]
        view = torch.arange(2, device=left.device).repeat_interleave(n)
        windows, languages, anchors = own.repeat(2), tags.repeat(2), torch.arange(2 * n, device=left.device)
        if config.gather_negatives and world() > 1:
            windows, anchors = gather(windows + offset(n)), anchors + offset(2 * n)
            rows, languages, view = gather(rows), gather(languages), gather(view)
        specific = config.bank.language_specific
        kept = (None, None) if bank is None else bank.ordered(tags.unique() if specific else None)
        contrast = ccp_loss(
            rows,
            windows,
            languages,
            temperature=config.temperature,
            bank=kept[0],
            bank_languages=kept[1],
            l2_norm=config.l2_norm,
            inbatch_cross_language=config.inbatch_cross_language,
            bank_language_specific=specific,
            reduction=config.reduction,
            anchors=anchors,
        )
        return contrast, masses(contrast.logits, len(rows), view, languages, anchors)

    def push(self, bank: TaggedBank, left: torch.Tensor, right: torch.Tensor, tags: torch.Tensor) -> int:
        """Put projections of all processes into the bank, the same rows everywhere; return how many."""
        both = self.config.bank.push == "both"
        rows = gather((torch.cat([left, right]) if both else right).detach())
        bank.push(rows, gather(tags.repeat(2) if both else tags))
        return len(rows)

    def scaled(self, contrast: Contrast) -> torch.Tensor:
        """Return the loss times what makes its mean over processes that of all their terms, or the sum of these."""
        if self.config.reduction == "sum":
            return contrast.loss * world()
        return contrast.loss * weight(len(contrast.terms))
