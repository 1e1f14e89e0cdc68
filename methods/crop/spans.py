"""Variant span, as coCondenser trains: spans with hidden tokens, told by contrast and predicted from two places.

Source: Gao and Callan 2022 (coCondenser), section 3.2, and luyug/Condenser.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from bench.encoding.packed import Ids, pool
from bench.training.batches import Masked, Pairs
from bench.training.distributed import gather
from bench.training.encoder import TrainableEncoder
from bench.training.losses import paired_info_nce
from bench.training.masking import Masking
from bench.training.mlm import MlmHead, masked_prediction
from bench.training.probes import accuracy
from bench.training.transformer import Shape
from bench.types import Json
from methods.crop.condenser import CondenserHead
from methods.crop.config import CropConfig
from methods.crop.views import CropViews


@dataclass(frozen=True)
class Spans:
    """Two spans of each of n documents, some of their tokens hidden.

    Args:
        masked: 2n sequences; 2i and 2i + 1 are of one document.
    """

    masked: Masked

    def __len__(self) -> int:
        """Number of documents."""
        return len(self.masked) // 2


class SpanSource:
    """Hides tokens of the spans of each batch.

    Args:
        views: draws the spans.
        masking: hides tokens.
    """

    def __init__(self, views: CropViews, masking: Masking) -> None:
        self._views, self._masking, self.shards = views, masking, views.shards

    def batch(self, rng: np.random.Generator) -> Spans:
        """Return spans of several documents, masked."""
        return Spans(self._masking(rows_of(self._views.batch(rng)), rng))

    def held_out(self) -> Sequence[Pairs]:
        """Return neighbouring sentences, as every method is probed."""
        return self._views.held_out()

    def state(self) -> Mapping[str, Json]:
        """Return where each language stands."""
        return self._views.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken."""
        self._views.restore(state)


class SpanModules(nn.Module):
    """Condenser's head, and what predicts tokens from it and from the last layer alike.

    Args:
        encoder: whose sizes they have.
        config: how many layers.
    """

    def __init__(self, encoder: TrainableEncoder, config: CropConfig) -> None:
        super().__init__()
        self.condenser = CondenserHead(Shape.of(encoder.model.config), config.span.head_layers)
        self.mlm = MlmHead.for_(encoder)


def rows_of(pairs: Pairs) -> list[Ids]:
    """Return the two views of each document one after the other, 2n sequences."""
    return [view for pair in zip(*pairs, strict=True) for view in pair]


def span_loss(
    encode: TrainableEncoder, own: SpanModules, spans: Spans, config: CropConfig
) -> tuple[torch.Tensor, Mapping[str, float]]:
    """Add up contrast, prediction from the head and, where wanted, from the last layer: one pass over masked spans.

    Args:
        encode: the encoder.
        own: the heads.
        spans: of n documents.
        config: of crop.

    Returns:
        The loss, a scalar, and its parts to log.
    """
    masked, deep = spans.masked, encode.model.config.num_hidden_layers
    early_layer = deep // 2 if config.span.early_layer is None else config.span.early_layer
    (early, late), packed = encode.layers(masked.inputs, (early_layer, encode.contract.layer))  # [T, d] each
    vectors = pool(late, packed, encode.contract.pooling)  # [2n, d]
    contrast = contrast_of(vectors, config)
    places = packed.starts[torch.from_numpy(masked.sequence).to(encode.device)]
    places = places + torch.from_numpy(masked.place).to(encode.device)  # [m]
    targets = torch.from_numpy(encode.rows(masked.targets)).to(encode.device)

    def predict(states: torch.Tensor) -> torch.Tensor:
        count, width = encode.embeddings.shape
        encode.meter.multiplied(len(places) * width * (width + count))
        return masked_prediction(states[places], targets, encode.embeddings, own.mlm.bias, head=own.mlm)

    with encode.autocast():
        encode.meter.multiplied(own.condenser.operations(packed))
        parts = {"head_mlm_loss": predict(own.condenser(early, late, packed))}
        if config.span.late_mlm:
            parts["late_mlm_loss"] = predict(late)
    loss = contrast + torch.stack(list(parts.values())).sum()
    told = {name: float(part.detach()) for name, part in parts.items()}
    return loss, {"accuracy": accuracy(vectors[::2], vectors[1::2]), "contrast": float(contrast.detach()), **told}


def contrast_of(vectors: torch.Tensor, config: CropConfig) -> torch.Tensor:
    """Tell each span's partner from all other spans, `[2n, d]` → a scalar.

    Every process computes the loss of all anchors; `gather` adds their gradients up and averaging divides them again.
    """
    rows = gather(vectors) if config.gather_negatives else vectors
    return paired_info_nce(rows, temperature=config.temperature, similarity=config.similarity)
