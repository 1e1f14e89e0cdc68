"""Variant span, as coCondenser trains: contrast of masked spans, and prediction of their tokens at two depths.

Condenser's head predicts hidden tokens from early layers and one late vector, so that the vector must hold the text.

Source: Gao and Callan 2022 (coCondenser); Gao and Callan 2021 (Condenser); both as in luyug/Condenser.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from bench.training import (
    CondenserHead,
    Ids,
    Masked,
    Masking,
    MlmHead,
    PairBatch,
    RandomSource,
    Shape,
    Shards,
    TrainableEncoder,
    accuracy,
    gather,
    masked_prediction,
    paired_info_nce,
    pool,
    sharpness,
    similarities,
    to_device,
)
from methods.crop import CropConfig
from methods.crop.views import CropViews


@dataclass(frozen=True)
class Spans:
    """Two spans of each of n documents, some of their tokens hidden."""

    masked: Masked  # 2n sequences; 2i and 2i + 1 are of one document

    def __len__(self) -> int:
        """Return n."""
        return len(self.masked) // 2


class SpanSource(RandomSource[Shards, CropViews]):
    """Hides tokens of the spans of each batch."""

    def __init__(self, views: CropViews, masking: Masking) -> None:
        super().__init__(views.shards, views)
        self._masking = masking

    def batch(self, rng: np.random.Generator) -> Spans:
        """Return spans of several documents, masked."""
        return Spans(self._masking(rows_of(self._sampler.batch(rng)), rng))


class SpanModules(nn.Module):
    """Condenser's head, and one prediction head for it and for the last layer."""

    def __init__(self, encoder: TrainableEncoder, config: CropConfig) -> None:
        super().__init__()
        self.condenser = CondenserHead(Shape.from_config(encoder.model.config), config.span.head_layers)
        self.mlm = MlmHead.for_(encoder)


def rows_of(pairs: PairBatch) -> list[Ids]:
    """Return the two views of each document one after the other, 2n sequences."""
    return [view for pair in zip(*pairs, strict=True) for view in pair]


def span_loss(
    encode: TrainableEncoder, modules: SpanModules, spans: Spans, config: CropConfig
) -> tuple[torch.Tensor, Callable[[], Mapping[str, float]]]:
    """Return contrast plus prediction from the head and, where the config says so, the last layer, in one pass.

    Args:
        encode: the encoder that is trained.
        modules: Condenser's head and the prediction head.
        spans: two masked spans of each of n documents.
        config: which layers are read, temperature and similarity.

    Returns:
        The sum, a scalar; and what makes its parts, to be logged.
    """
    masked, deep = spans.masked, encode.model.config.num_hidden_layers
    early_layer = deep // 2 if config.span.early_layer is None else config.span.early_layer
    (early, late), packed = encode.layers(masked.inputs, (early_layer, encode.encoder_config.layer))  # [T, d] each
    vectors = pool(late, packed, encode.encoder_config.pooling)  # [2n, d]
    contrast = contrast_of(vectors, config)
    hidden = np.stack([packed.first_rows[masked.sequence] + masked.place, encode.rows(masked.targets)])
    places, targets = to_device(hidden, encode.device)  # each [m]

    def predict(states: torch.Tensor) -> torch.Tensor:
        count, width = encode.embeddings.shape
        encode.meter.multiplied(len(places) * width * (width + count))
        return masked_prediction(states[places], targets, encode.embeddings, modules.mlm.bias, head=modules.mlm)

    with encode.autocast():
        encode.meter.multiplied(modules.condenser.operations(packed))
        parts = {"head_mlm_loss": predict(modules.condenser(early, late, packed))}
        if config.span.late_mlm:
            parts["late_mlm_loss"] = predict(late)
    loss = contrast + torch.stack(list(parts.values())).sum()
    values = {name: part.detach() for name, part in {"contrast": contrast, **parts}.items()}
    fixed = vectors.detach()

    def metrics() -> Mapping[str, float]:
        return {**spans_metrics(fixed, config), **{name: float(part) for name, part in values.items()}}

    return loss, metrics


def spans_metrics(vectors: torch.Tensor, config: CropConfig) -> dict[str, float]:
    """Return how many of this process's spans, `[2n, d]`, find their partner, and how sharp their softmax is."""
    logits = similarities(vectors, vectors, config.similarity) / config.temperature
    return {"accuracy": accuracy(vectors[::2], vectors[1::2]), **sharpness(logits.fill_diagonal_(float("-inf")))}


def contrast_of(vectors: torch.Tensor, config: CropConfig) -> torch.Tensor:
    """Return the loss of each span's partner among all spans, `[2n, d]` → a scalar.

    Every process computes the loss of all anchors; `gather` adds their gradients up and averaging divides them again.
    """
    rows = gather(vectors) if config.gather_negatives else vectors
    return paired_info_nce(rows, temperature=config.temperature, similarity=config.similarity)
