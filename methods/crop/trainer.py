"""Crop on one page: views → forward → loss; other batches may mask tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import nn

from bench import Workspace
from bench.training import (
    BatchSource,
    CorpusTrainer,
    Facts,
    HeadPair,
    Masked,
    MaskedBlocks,
    Masking,
    MixtureSource,
    MlmHead,
    PairBatch,
    Shards,
    TrainableEncoder,
    TrainingJob,
    accuracy,
    fit,
    gather,
    info_nce,
    logged,
    mlm_loss,
    offset,
    sharpness,
    similarities,
    to_device,
    weight,
)
from methods.crop import CropConfig
from methods.crop.spans import SpanModules, Spans, SpanSource, contrast_of, rows_of, span_loss, spans_metrics
from methods.crop.views import CropViews

Batch = PairBatch | Spans | Masked
Value = tuple[torch.Tensor, Callable[[], Mapping[str, float]]]


class CropTrainer(CorpusTrainer[CropConfig]):
    """Trains an encoder to bring two views of a document together."""

    def train_on(self, encoder: TrainableEncoder, corpus: Shards, job: TrainingJob, work: Workspace) -> Facts:
        """Draw two views of each document, mixed with masked stretches where the config has them, and run the loop."""
        config = self.config
        views = CropViews(corpus, config, job.seed)
        hidden = config.variant == "span" and config.span.masked
        modules = CropModules(config, encoder).to(encoder.device)
        source: BatchSource[Batch] = SpanSource(views, Masking.for_corpus(corpus, config.mlm)) if hidden else views
        if config.mlm.probability:
            source = MixtureSource(source, MaskedBlocks(corpus, config, config.mlm, job.seed), config.mlm.probability)
        return fit(partial(self.loss, modules), source, encoder, config, job, work, modules=modules)

    def loss(self, modules: CropModules, encode: TrainableEncoder, batch: Batch) -> Value:
        """Return the loss of two views of each of n documents, or of masked stretches of the companion task."""
        if isinstance(batch, Spans):
            return span_loss(encode, modules.spans, batch, self.config)
        if isinstance(batch, Masked):
            return logged(mlm_loss(encode, modules.mlm, batch), "mlm_loss")
        if self.config.variant == "span":
            rows = encode(rows_of(batch))  # [2n, d]
            fixed = rows.detach()
            return contrast_of(rows, self.config), lambda: spans_metrics(fixed, self.config)
        first, second = modules.heads(*encode.encode_views(batch))  # each [n, d]
        encode.meter.multiplied(modules.heads.operations(2 * len(batch)))
        documents = torch.from_numpy(batch.documents)
        loss, softmax = self._contrast(first, second, documents)
        if self.config.symmetric:
            loss = (loss + self._contrast(second, first, documents)[0]) / 2
        first, second = first.detach(), second.detach()
        return loss * weight(len(first)), lambda: {"accuracy": accuracy(first, second), **softmax()}

    def _contrast(
        self, queries: torch.Tensor, keys: torch.Tensor, documents: torch.Tensor
    ) -> tuple[torch.Tensor, Callable[[], Mapping[str, float]]]:
        """Return the loss of each query's key, `[n, d]` each, among those of other documents, `[n]` on the host.

        And what measures how sharp its softmax is.
        """
        config, all_keys, key_documents, first = self.config, keys, documents, 0
        if config.gather_negatives:
            all_keys, key_documents, first = gather(keys), gather(documents), offset(len(keys))  # [m, d], [m]
        positives = first + torch.arange(len(queries))
        same_document = documents[:, None] == key_documents[None]
        same_document[torch.arange(len(queries)), positives] = False
        loss = info_nce(
            queries,
            all_keys,
            positives,
            temperature=config.temperature,
            similarity=config.similarity,
            forbidden=same_document,
        )
        fixed = queries.detach(), all_keys.detach()

        def softmax() -> Mapping[str, float]:
            logits = similarities(*fixed, config.similarity) / config.temperature
            return sharpness(logits.masked_fill(to_device(same_document, logits.device), float("-inf")))

        return loss, softmax


class CropModules(nn.Module):
    """What crop trains besides its encoder; empty by default."""

    spans: SpanModules
    mlm: MlmHead

    def __init__(self, config: CropConfig, encoder: TrainableEncoder) -> None:
        super().__init__()
        self.heads = HeadPair(config.heads, encoder.model.config.hidden_size, config.sync_bn)
        if config.variant == "span" and config.span.masked:
            self.spans = SpanModules(encoder, config)
        if config.mlm.probability:
            self.mlm = self.spans.mlm if hasattr(self, "spans") else MlmHead.for_(encoder)
