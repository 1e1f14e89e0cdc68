"""Two projection heads, one for what asks and one for what is asked for: MSM's, and those of its baseline crop."""

from __future__ import annotations

from typing import Literal

import torch
from torch import nn

from bench.training.heads import Projection

Heads = Literal["separate", "shared", "none"]

_EPS = 1e-12


class HeadPair(nn.Module):
    """Linear without bias → batch norm → ReLU → linear without bias → batch norm without scale, twice.

    Args:
        kind: `separate`: two sets of weights; `shared`: one module for both; `none`: vectors stay as they are.
        width: d, of what comes in and out.
        sync: statistics of the joined batch of all processes.
        alike: separate heads begin with the same weights.

    Source: MSM's code (shunyuzh/MSM).
    """

    def __init__(self, kind: Heads, width: int, sync: bool = False, alike: bool = False) -> None:
        super().__init__()
        self.width, self.kind = width, kind
        self.query: nn.Module = nn.Identity() if kind == "none" else _head(width, sync)
        self.key: nn.Module = _head(width, sync) if kind == "separate" else self.query
        if alike and kind == "separate":
            self.key.load_state_dict(self.query.state_dict())

    def forward(self, queries: torch.Tensor, keys: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Project queries `[n, d]` and keys `[m, d]`, in this order (a shared head's statistics follow it)."""
        return self.query(queries), self.key(keys)

    def operations(self, rows: int) -> int:
        """Multiply-adds for so many rows, queries and keys together."""
        return 0 if self.kind == "none" else 2 * rows * self.width**2


def _head(width: int, sync: bool) -> Projection:
    """One head."""
    return Projection(width, bias=False, final_norm=True, eps=_EPS, sync=sync)
