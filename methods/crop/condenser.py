"""Condenser's head: hidden tokens are predicted from early layers and one late vector, so that it must hold the text.

Source: Gao and Callan 2021 (Condenser), section 3.2, and luyug/Condenser.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from bench.encoding.packed import Packed
from bench.training.transformer import Layer, Shape


class CondenserHead(nn.Module):
    """Layers over the late state of the first token and the early states of all others.

    Args:
        shape: of its layers.
        layers: how many.
    """

    def __init__(self, shape: Shape, layers: int) -> None:
        super().__init__()
        self.shape = shape
        self.layers = nn.ModuleList(Layer(shape) for _ in range(layers))

    def forward(self, early: torch.Tensor, late: torch.Tensor, packed: Packed) -> torch.Tensor:
        """Return states `[T, d]`, from early and late ones `[T, d]`, rows as in `packed`."""
        mixed = early.index_put((packed.starts,), late[packed.starts])
        lengths = packed.cuts.diff()
        states = pad_sequence(list(mixed.split(lengths.tolist())), batch_first=True)  # [n, l, d], shortest first
        there = torch.arange(states.shape[1], device=states.device) < lengths[:, None]
        for layer in self.layers:
            states = layer(states, states, ~there)
        return states[there]

    def operations(self, packed: Packed) -> int:
        """Multiply-adds of a forward pass, padding included."""
        return (len(packed.cuts) - 1) * len(self.layers) * self.shape.operations(packed.longest, packed.longest)
