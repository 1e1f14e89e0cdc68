"""Modules between an encoder and a loss, in training alone: batch normalisation, projections, transformer layers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import nn
from torch.nn import functional
from transformers import PreTrainedConfig

from bench.retrieval.packed import Packed, padded
from bench.training.distributed import all_reduce_sum, sums

Activation = Literal["relu", "gelu", "tanh", "none"]
_ACTIVATIONS: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "tanh": torch.tanh,
}


class BatchNorm(nn.Module):
    """Batch normalisation by the batch's or the running statistics, whichever a call asks for.

    `momentum` is the batch's share in these at each update; with `sync` a batch is that of all processes together.
    """

    running_mean: torch.Tensor
    running_var: torch.Tensor
    num_batches_tracked: torch.Tensor

    def __init__(
        self, width: int, *, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True, sync: bool = False
    ) -> None:
        super().__init__()
        self.eps, self.momentum, self.sync = eps, momentum, sync
        self.weight = nn.Parameter(torch.ones(width)) if affine else None
        self.bias = nn.Parameter(torch.zeros(width)) if affine else None
        self.register_buffer("running_mean", torch.zeros(width))
        self.register_buffer("running_var", torch.ones(width))
        self.register_buffer("num_batches_tracked", torch.zeros((), dtype=torch.int64))

    def forward(self, rows: torch.Tensor, *, running: bool = False) -> torch.Tensor:
        """Normalise `[n, d]`, by the batch (and update the running statistics) or by the running ones alone.

        These are copied first, for the gradient's sake. Raises `ValueError` for fewer than two rows by the batch.
        """
        if running or not self.training:
            mean, variance = self.running_mean.clone(), self.running_var.clone()
            return functional.batch_norm(rows, mean, variance, self.weight, self.bias, training=False, eps=self.eps)
        count = sums([len(rows)])[0] if self.sync else float(len(rows))
        if count < 2:
            raise ValueError(f"found {len(rows)} row, expected at least 2 to take statistics of")
        mean = (all_reduce_sum(rows.sum(0)) if self.sync else rows.sum(0)) / count  # [d]
        squares = (rows - mean).square().sum(0)
        variance = (all_reduce_sum(squares) if self.sync else squares) / count  # [d], biased
        with torch.no_grad():
            self.running_mean.lerp_(mean.to(self.running_mean.dtype), self.momentum)
            self.running_var.lerp_((variance * (count / (count - 1))).to(self.running_var.dtype), self.momentum)
            self.num_batches_tracked += 1
        normal = (rows - mean) * torch.rsqrt(variance + self.eps)
        return normal if self.weight is None or self.bias is None else normal * self.weight + self.bias


class Projection(nn.Module):
    """Linear → normalisation → activation → Linear [→ normalisation without scale and shift], `[n, d]` → `[n, out]`.

    Args:
        width: d, of the input and between the layers.
        out: of the output; default: width.
        norm: `batch` or `none`, between the layers.
        activation: `relu`, `gelu`, `tanh` or `none`.
        bias: of both linear layers.
        final_norm: whether batch normalisation follows.
        eps: of the normalisations.
        sync: whether a batch is that of all processes.

    Source: Chen et al. 2020 (SimCLR), section 2.1.

    Example:
        >>> Projection(16, 8)(torch.randn(4, 16)).shape
        torch.Size([4, 8])
    """

    def __init__(
        self,
        width: int,
        out: int | None = None,
        *,
        norm: Literal["batch", "none"] = "batch",
        activation: Activation = "relu",
        bias: bool = True,
        final_norm: bool = False,
        eps: float = 1e-5,
        sync: bool = False,
    ) -> None:
        super().__init__()
        self.first = nn.Linear(width, width, bias=bias)
        self.norm = BatchNorm(width, eps=eps, sync=sync) if norm == "batch" else None
        self.activation = activation
        self.second = nn.Linear(width, out or width, bias=bias)
        self.final = BatchNorm(out or width, eps=eps, affine=False, sync=sync) if final_norm else None

    def forward(self, rows: torch.Tensor, *, running: bool = False) -> torch.Tensor:
        """Project `[n, d]` → `[n, out]`; `running` normalises by running statistics and updates none."""
        rows = self.first(rows)
        if self.norm is not None:
            rows = self.norm(rows, running=running)
        if self.activation != "none":
            rows = _ACTIVATIONS[self.activation](rows)
        rows = self.second(rows)  # [n, out]
        return rows if self.final is None else self.final(rows, running=running)


Heads = Literal["separate", "shared", "none"]

_PAIR_EPS = 1e-12


class HeadPair(nn.Module):
    """Linear without bias → batch norm → ReLU → linear without bias → batch norm without scale, twice.

    Args:
        kind: `separate` heads, one module `shared` by both, or `none`, which leaves vectors as they are.
        width: d, of the vectors.
        sync: whether a batch is that of all processes.
        identical: whether separate heads begin with the same weights.

    Source: shunyuzh/MSM.
    """

    def __init__(self, kind: Heads, width: int, sync: bool = False, identical: bool = False) -> None:
        super().__init__()
        self.width, self.kind = width, kind
        head = partial(Projection, width, bias=False, final_norm=True, eps=_PAIR_EPS, sync=sync)
        self.query: nn.Module = nn.Identity() if kind == "none" else head()
        self.key: nn.Module = head() if kind == "separate" else self.query
        if identical and kind == "separate":
            self.key.load_state_dict(self.query.state_dict())

    def forward(self, queries: torch.Tensor, keys: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Project queries `[n, d]` and keys `[m, d]`, in this order (a shared head's statistics follow it)."""
        return self.query(queries), self.key(keys)

    def operations(self, rows: int) -> int:
        """Return the multiply-adds for a number of rows, queries and keys together."""
        return 0 if self.kind == "none" else 2 * rows * self.width**2


_SPREAD = 0.02  # of new weights, as in BERT


@dataclass(frozen=True)
class Shape:
    """The sizes of a `Layer`."""

    width: int  # a multiple of the heads
    heads: int  # of the attention
    inner: int  # width between the two linear layers
    dropout: float  # share
    eps: float  # of the normalisations

    @staticmethod
    def from_config(config: PreTrainedConfig) -> Shape:
        """Return the sizes of an encoder's own layers; where its config does not name one: BERT's."""
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
        per_row = 2 * self.width**2 + 2 * self.width * self.inner  # query, output and the two inner layers, a row
        return asking * per_row + read * 2 * self.width**2 + 2 * asking * read * self.width


class Layer(nn.Module):
    """Attention and two inner layers, each with a residual and normalised afterwards, as in BERT.

    Source: Vaswani et al. 2017, section 3.1; Devlin et al. 2019 (BERT), whose activation is gelu.

    Example:
        >>> layer = Layer(Shape(width=8, heads=2, inner=32, dropout=0.1, eps=1e-12))
        >>> rows = torch.randn(3, 5, 8)
        >>> layer(rows[:, :1], rows, None).shape  # the first of five rows attends to all
        torch.Size([3, 1, 8])
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
        """Let rows attend to a context.

        Args:
            rows: `[n, m, d]`.
            context: `[n, l, d]`.
            hidden: marks places of the context that no row reads, such as padding, bool `[n, l]`; or those that each
                row does not read, bool `[n, m, l]`, where something is left for every row.

        Returns:
            `[n, m, d]`.
        """
        of_each = hidden is not None and hidden.ndim == 3
        read, _ = self.attention(
            rows,
            context,
            context,
            key_padding_mask=None if of_each else hidden,
            attn_mask=hidden.repeat_interleave(self.attention.num_heads, 0) if hidden is not None and of_each else None,
            need_weights=False,
        )
        rows = self.norm_attention(rows + self.dropout(read))
        inner = self.second(functional.gelu(self.first(rows)))
        normalised: torch.Tensor = self.norm(rows + self.dropout(inner))
        return normalised


class CondenserHead(nn.Module):
    """Layers over the late state of the first token and the early states of all others.

    What is predicted from it has little but the first token's vector to know the text by.

    Source: Gao and Callan 2021 (Condenser, arXiv 2104.08253), as in luyug/Condenser.
    """

    def __init__(self, shape: Shape, layers: int) -> None:
        super().__init__()
        self.shape = shape
        self.layers = nn.ModuleList(Layer(shape) for _ in range(layers))

    def forward(self, early: torch.Tensor, late: torch.Tensor, packed: Packed) -> torch.Tensor:
        """Return states `[T, d]`, from early and late ones `[T, d]`, rows as in `packed`."""
        mixed = early.index_put((packed.starts,), late[packed.starts])
        states, present, places = padded(mixed, packed.lengths)  # [n, l, d], shortest first
        for layer in self.layers:
            states = layer(states, states, ~present)
        return states.flatten(0, 1)[places]

    def operations(self, packed: Packed) -> int:
        """Return the multiply-adds of a forward pass, padding included."""
        return (len(packed.cuts) - 1) * len(self.layers) * self.shape.operations(packed.longest, packed.longest)


def initialise(module: nn.Module) -> None:
    """Draw every weight of more than one dimension from N(0, 0.02²) and set every bias to 0, as BERT does."""
    for name, weight in module.named_parameters():
        if weight.ndim > 1:
            nn.init.normal_(weight, std=_SPREAD)
        elif name.endswith("bias"):
            nn.init.zeros_(weight)
