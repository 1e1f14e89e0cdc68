"""CCP on one page: views → forward → head → loss → bank."""

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import nn

from bench import Workspace
from bench.training import (
    CorpusTrainer,
    Facts,
    Masked,
    MaskedBlocks,
    MixtureSource,
    MlmHead,
    PairBatch,
    Projection,
    SentencePairs,
    Shards,
    TaggedBank,
    TrainableEncoder,
    TrainingJob,
    accuracy,
    fit,
    gather,
    in_a_window,
    logged,
    mlm_loss,
    offset,
    two_sentences,
    weight,
    world_size,
)
from methods.ccp import CcpConfig
from methods.ccp.head import ViewsHead
from methods.ccp.loss import ContrastiveOutput, ccp_loss, softmax_mass
from methods.ccp.probes import BankStalenessProbe, evaluate_probes


class CcpModules(nn.Module):
    """What is trained, or kept between batches, besides the encoder; none of it is exported."""

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
        self.witnesses = BankStalenessProbe(config.sentence_tokens, width, bank.capacity) if bank.enabled else None
        self.words = words


class CcpTrainer(CorpusTrainer[CcpConfig]):
    """Trains an encoder to predict a sentence's context."""

    def train_on(self, encoder: TrainableEncoder, corpus: Shards, job: TrainingJob, work: Workspace) -> Facts:
        """Draw pairs from windows, mixed with masked stretches where the config has them, and run the loop."""
        config = self.config
        near = in_a_window if config.window_semantics == "consecutive" else two_sentences
        pairs = SentencePairs(corpus, config, job.seed, partial(near, window=config.window))
        words = MlmHead.for_(encoder) if config.mlm.probability else None
        modules = CcpModules(config, encoder.model.config.hidden_size, len(corpus.languages), words)
        loss = partial(self.loss, modules, tuple(corpus.languages))
        probe = partial(evaluate_probes, encoder, pairs.held_out(), modules.head, modules.witnesses)
        if words is None:
            return fit(loss, pairs, encoder, config, job, work, modules=modules, probe=probe)
        mixed = MixtureSource(pairs, MaskedBlocks(corpus, config, config.mlm, job.seed), config.mlm.probability)
        return fit(loss, mixed, encoder, config, job, work, modules=modules, probe=probe)

    def loss(
        self, modules: CcpModules, languages: tuple[str, ...], encode: TrainableEncoder, batch: PairBatch | Masked
    ) -> tuple[torch.Tensor, Callable[[], Mapping[str, float]]]:
        """Return the loss of a batch, of hidden tokens or of each sentence's partner among all candidates."""
        if isinstance(batch, Masked):
            assert modules.words is not None  # noqa: S101 (there is one wherever such batches are)
            return logged(mlm_loss(encode, modules.words, batch), "mlm_loss")
        first, second = encode.encode_views(batch)  # each [n, d]
        if modules.head is not None:
            encode.meter.multiplied(4 * len(batch) * first.shape[1] ** 2)
            first, second = modules.head(first, second)
        tags = torch.tensor([languages.index(language) for language in batch.languages])  # [n]
        contrast, masses = self.contrast(modules.bank, first, second, tags)
        encode.meter.multiplied(contrast.logits.numel() * first.shape[1])
        if modules.bank is not None and modules.witnesses is not None:
            count = self.push(modules.bank, first, second, tags)  # after the loss: no row meets a copy of itself
            modules.witnesses.pushed(batch.right, second.detach(), count)
        loss, views = contrast.loss.detach(), (first.detach(), second.detach())
        return contrast.loss * weight(len(contrast.terms)), lambda: {
            "contrast_loss": float(loss),
            "accuracy": accuracy(*views),
            **masses(),
        }

    def contrast(
        self, bank: TaggedBank | None, first: torch.Tensor, second: torch.Tensor, tags: torch.Tensor
    ) -> tuple[ContrastiveOutput, Callable[[], Mapping[str, float]]]:
        """Contrast projections `[n, d]` of languages `tags` with the other view's and the bank's.

        Those of all processes are among them where the config gathers negatives.
        """
        config, n = self.config, len(first)
        rows = torch.cat([first, second])  # [2n, d]
        view = torch.arange(2).repeat_interleave(n)
        windows, languages = torch.arange(n).repeat(2), tags.repeat(2)
        anchors = torch.arange(n if config.directions == "first" else 2 * n)  # the first view's come first
        if config.gather_negatives and world_size() > 1:
            windows, anchors = gather(windows + offset(n)), anchors + offset(2 * n)
            rows, languages, view = gather(rows), gather(languages), gather(view)
        specific = config.bank.language_specific
        bank_rows, bank_languages = (None, None) if bank is None else bank.ordered(tags.unique() if specific else None)
        contrast = ccp_loss(
            rows,
            windows,
            languages,
            temperature=config.temperature,
            bank=bank_rows,
            bank_languages=bank_languages,
            l2_norm=config.l2_norm,
            inbatch_cross_language=config.inbatch_cross_language,
            bank_language_specific=specific,
            anchors=anchors,
            views=None if config.candidates == "all" else view,
        )
        return contrast, partial(softmax_mass, contrast.logits.detach(), len(rows), view, languages, anchors)

    def push(self, bank: TaggedBank, first: torch.Tensor, second: torch.Tensor, tags: torch.Tensor) -> int:
        """Put projections of both views, of all processes, into the bank, the same everywhere; return how many."""
        rows = gather(torch.cat([first, second]).detach())
        bank.push(rows, gather(tags.repeat(2)))
        return len(rows)
