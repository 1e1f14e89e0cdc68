"""Transformer layers for heads in training: post-norm, gelu, sized as the encoder; some rows may ask, all are read."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional
from transformers import PreTrainedConfig

_SPREAD = 0.02  # of new weights, as in BERT


@dataclass(frozen=True)
class Shape:
    """The sizes of a layer.

    Args:
        width: d.
        heads: of attention; d is a multiple.
        inner: width between the two linear layers.
        dropout: share dropped, in training.
        eps: of the normalisations.
    """

    width: int
    heads: int
    inner: int
    dropout: float
    eps: float

    @staticmethod
    def of(config: PreTrainedConfig) -> Shape:
        """The sizes of an encoder's own layers; where its config does not name one: BERT's."""
        width = config.hidden_size
        return Shape(
            width,
            config.num_attention_heads,
            getattr(config, "intermediate_size", 4 * width),
            getattr(config, "hidden_dropout_prob", 0.1),
            getattr(config, "layer_norm_eps", 1e-12),
        )

    def operations(self, asking: int, read: int) -> int:
        """Multiply-adds of one layer for one sequence: `asking` rows attend to `read` rows."""
        own = 2 * self.width**2 + 2 * self.width * self.inner  # query, output and the two inner layers, a row
        return asking * own + read * 2 * self.width**2 + 2 * asking * read * self.width


class Layer(nn.Module):
    """Attention and two inner layers, each added to what came in and normalised afterwards.

    Args:
        shape: its sizes.

    Source: Vaswani et al. 2017, as BERT has it.
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(shape.width, shape.heads, dropout=shape.dropout, batch_first=True)
        self.first, self.second = nn.Linear(shape.width, shape.inner), nn.Linear(shape.inner, shape.width)
        self.norm_attention = nn.LayerNorm(shape.width, eps=shape.eps)
        self.norm = nn.LayerNorm(shape.width, eps=shape.eps)
        self.dropout = nn.Dropout(shape.dropout)
        initialise(self)

    @torch.no_grad()
    def begin_as_average(self) -> None:
        """Let attention begin by adding the plain average of what it reads: value and output change nothing yet."""
        width = self.norm.weight.numel()
        self.attention.in_proj_weight[2 * width :] = torch.eye(width)
        self.attention.out_proj.weight.copy_(torch.eye(width))

    def forward(self, rows: torch.Tensor, context: torch.Tensor, hidden: torch.Tensor | None) -> torch.Tensor:
        """Let rows `[n, m, d]` attend to a context `[n, l, d]`.

        Args:
            rows: what asks, and what is changed.
            context: what is read.
            hidden: bool `[n, l]`, places that must not be read; None: none.

        Returns:
            `[n, m, d]`.
        """
        read, _ = self.attention(rows, context, context, key_padding_mask=hidden, need_weights=False)
        rows = self.norm_attention(rows + self.dropout(read))
        inner = self.second(functional.gelu(self.first(rows)))
        made: torch.Tensor = self.norm(rows + self.dropout(inner))
        return made


def initialise(module: nn.Module) -> None:
    """Draw every weight of more than one dimension from N(0, 0.02²) and set every bias to 0, as BERT does."""
    for name, weight in module.named_parameters():
        if weight.ndim > 1:
            nn.init.normal_(weight, std=_SPREAD)
        elif name.endswith("bias"):
            nn.init.zeros_(weight)
