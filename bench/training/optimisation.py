"""The optimiser and its schedule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from bench.training.config import TrainingConfig


def warm_up_and_decay(position: float, warm_up: float, total: float) -> float:
    """Return the share of the peak learning rate: linearly from 0 to 1, then linearly down to 0.

    Args:
        position: how far the training is, in steps or tokens, whichever `warm_up` and `total` are in.
        warm_up: where the peak is.
        total: where 0 is reached again.

    Source: Contriever's and BERT's schedule; golden values `schedule`.
    """
    if position < warm_up:
        return position / warm_up
    return max(0.0, (total - position) / max(total - warm_up, 1.0))


def adamw(modules: nn.Module, config: TrainingConfig) -> torch.optim.AdamW:
    """Return AdamW over all trainable weights; those with fewer than two dimensions have no weight decay.

    These are the biases and the weights of normalisation layers, in every architecture of transformers.

    Raises:
        ValueError: nothing is trainable.
    """
    weights = [weight for weight in modules.parameters() if weight.requires_grad]
    if not weights:
        raise ValueError("found no trainable weight, expected at least one")
    groups = [
        {"params": [weight for weight in weights if weight.ndim >= 2], "weight_decay": config.weight_decay},
        {"params": [weight for weight in weights if weight.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(
        [group for group in groups if group["params"]],
        lr=0.0,  # set at every step
        betas=(config.beta1, config.beta2),
        eps=config.epsilon,
        fused=True,
    )


def clip(weights: Iterable[nn.Parameter], bound: float | None) -> float:
    """Scale gradients so that their common norm is at most `bound`; return the norm before that."""
    return float(nn.utils.clip_grad_norm_(list(weights), float("inf") if bound is None else bound))
