"""Projection heads: what stands between an encoder and a contrastive loss in training alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import torch
from torch import nn
from torch.nn import functional

from bench.training.distributed import total

Activation = Literal["relu", "gelu", "tanh", "none"]
_ACTIVATIONS: Mapping[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "tanh": torch.tanh,
}


class BatchNorm(nn.Module):
    """Batch normalisation that can be asked for either statistics at any call.

    Args:
        width: d.
        eps: added to variances.
        momentum: share of the batch in the running statistics at each update.
        affine: with a learned scale and shift.
        sync: statistics of the joined batch of all processes; otherwise of each process's own rows.
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

        The running statistics are copied before use: a later update in place would silently change the gradient of
        this call.

        Raises:
            ValueError: by the batch, and there are fewer than two rows.
        """
        if running or not self.training:
            mean, variance = self.running_mean.clone(), self.running_var.clone()
            return functional.batch_norm(rows, mean, variance, self.weight, self.bias, training=False, eps=self.eps)
        count = float(total(rows.new_tensor(float(len(rows))))) if self.sync else float(len(rows))
        if count < 2:
            raise ValueError(f"found {len(rows)} row, expected at least 2 to take statistics of")
        mean = (total(rows.sum(0)) if self.sync else rows.sum(0)) / count  # [d]
        squares = (rows - mean).square().sum(0)
        variance = (total(squares) if self.sync else squares) / count  # [d], biased
        with torch.no_grad():
            self.running_mean.lerp_(mean.to(self.running_mean.dtype), self.momentum)
            self.running_var.lerp_((variance * (count / (count - 1))).to(self.running_var.dtype), self.momentum)
            self.num_batches_tracked += 1
        normal = (rows - mean) * torch.rsqrt(variance + self.eps)
        return normal if self.weight is None or self.bias is None else normal * self.weight + self.bias


class Projection(nn.Module):
    """Linear → normalisation → activation → Linear [→ normalisation without scale], `[n, d]` → `[n, out]`.

    Args:
        width: d.
        out: width of what comes out; None for d.
        norm: between the two layers: with batch statistics, or none.
        activation: between the two layers.
        bias: of the linear layers.
        final_norm: a second batch normalisation at the end, without scale and shift.
        eps: of the normalisations.
        sync: see `BatchNorm`.
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
