"""A second encoder that follows the first one slowly, without gradients (MoCo)."""

from __future__ import annotations

import copy
from dataclasses import replace

import torch
from torch import nn

from bench.training.encoder import TrainableEncoder


def twin(encoder: TrainableEncoder) -> TrainableEncoder:
    """Copy an encoder; the copy takes no gradients and shares the meter, so that its tokens count."""
    model = copy.deepcopy(encoder.model)
    for weight in model.parameters():
        weight.requires_grad = False
    return replace(encoder, model=model)


@torch.no_grad()
def follow(slow: nn.Module, fast: nn.Module, momentum: float) -> None:
    """Move parameters, in place: `θ_slow ← m·θ_slow + (1 − m)·θ_fast`; buffers stay.

    Args:
        slow: moves.
        fast: of the same shape; does not move.
        momentum: m, from 0 (equals the fast one) to 1 (never moves).

    Raises:
        ValueError: m outside 0 to 1, or modules of different shape.

    Source: He et al. 2020 (MoCo), eq. 2.
    """
    if not 0 <= momentum <= 1:
        raise ValueError(f"found momentum {momentum}, expected 0 to 1")
    for to, source in zip(slow.parameters(), fast.parameters(), strict=True):
        if to.shape != source.shape:
            raise ValueError(f"found shapes {list(to.shape)} and {list(source.shape)}, expected two of one model")
        to.mul_(momentum).add_(source, alpha=1 - momentum)
