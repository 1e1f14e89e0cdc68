"""Negatives from earlier batches: rings of rows, and the momentum encoder that makes them (MoCo)."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Literal

import torch
from torch import nn
from torch.nn import functional

from bench.training.encoder import TrainableEncoder

EMPTY = -1
"""Tag of a slot that holds nothing yet."""


class Ring(nn.Module):
    """A ring of rows with a tag each; the oldest rows are overwritten first. It never holds a gradient.

    Rows, tags and the pointer to the next slot are buffers, so that they move with the module and go through
    checkpoints.

    Args:
        capacity: number of slots.
        width: d, of a row.

    Example:
        >>> ring = Ring(3, 1)
        >>> ring.push(torch.tensor([[1.0], [2.0], [3.0], [4.0]]))
        >>> ring.ordered()[0].flatten().tolist()
        [2.0, 3.0, 4.0]
    """

    rows: torch.Tensor
    tags: torch.Tensor
    pointer: torch.Tensor

    def __init__(self, capacity: int, width: int) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(capacity, width))
        self.register_buffer("tags", torch.full((capacity,), EMPTY, dtype=torch.int64))
        self.register_buffer("pointer", torch.zeros((), dtype=torch.int64))

    @torch.no_grad()
    def push(self, rows: torch.Tensor, tags: torch.Tensor | int = 0) -> None:
        """Add rows, in their order; of more than the capacity the last stay.

        Args:
            rows: `[n, d]`; they are detached and cast.
            tags: int64 `[n]`, or one for all.

        Raises:
            ValueError: rows of another width.
        """
        capacity, width = self.rows.shape
        if rows.ndim != 2 or rows.shape[1] != width:
            raise ValueError(f"found rows {list(rows.shape)}, expected [n, {width}]")
        marks = torch.as_tensor(tags, device=self.tags.device).expand(len(rows))  # raises where the numbers differ
        slots = (int(self.pointer) + torch.arange(len(rows), device=self.tags.device)) % capacity
        late = slice(max(0, len(rows) - capacity), None)
        self.rows[slots[late]] = rows.detach()[late].to(self.rows.dtype)
        self.tags[slots[late]] = marks[late]
        self.pointer.fill_((int(self.pointer) + len(rows)) % capacity)

    @torch.no_grad()
    def fill_randomly(self) -> Ring:
        """Fill every slot with a random row of unit length, tag 0; the pointer stays at 0."""
        self.rows.copy_(functional.normalize(torch.randn_like(self.rows), dim=1))
        self.tags.zero_()
        return self

    def ordered(self, among: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the rows `[m, d]` and tags `[m]` that are there, or those with a tag of `among`, the oldest first."""
        capacity = len(self.rows)
        order = (int(self.pointer) + torch.arange(capacity, device=self.tags.device)) % capacity
        tags = self.tags[order]
        order = order[tags != EMPTY if among is None else (tags != EMPTY) & torch.isin(tags, among)]
        return self.rows[order], self.tags[order]


class TaggedBank(nn.Module):
    """Rows tagged by language, in one ring or in one for each language.

    Args:
        capacity: slots of a ring.
        width: d, of a row.
        tags: number of languages; tags are 0 … tags − 1.
        layout: `tagged_global`, one ring for all; or `per_language`, a ring of that capacity each.
    """

    def __init__(
        self, capacity: int, width: int, tags: int, layout: Literal["tagged_global", "per_language"] = "tagged_global"
    ) -> None:
        super().__init__()
        self.layout = layout
        self.rings = nn.ModuleList(Ring(capacity, width) for _ in range(tags if layout == "per_language" else 1))

    def push(self, rows: torch.Tensor, tags: torch.Tensor) -> None:
        """Add rows `[n, d]` with their tags `[n]`."""
        for tag, ring in enumerate(self._typed_rings()):
            mine = slice(None) if self.layout == "tagged_global" else tags == tag
            if len(rows[mine]):
                ring.push(rows[mine], tags[mine])

    def ordered(self, among: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Return rows `[m, d]` and tags `[m]`, of `among` alone, the oldest first, ring by ring."""
        rows, tags = zip(*(ring.ordered(among) for ring in self._typed_rings()), strict=True)
        return torch.cat(rows), torch.cat(tags)

    def _typed_rings(self) -> list[Ring]:
        return [ring for ring in self.rings if isinstance(ring, Ring)]


def twin(encoder: TrainableEncoder) -> TrainableEncoder:
    """Copy an encoder, e.g. as MoCo's momentum encoder, which `follow` moves.

    The copy takes no gradients and shares the meter, so that its tokens count.
    """
    model = copy.deepcopy(encoder.model)
    for weight in model.parameters():
        weight.requires_grad = False
    return replace(encoder, model=model)


@torch.no_grad()
def follow(slow: nn.Module, fast: nn.Module, momentum: float) -> None:
    """Move parameters, in place: `θ_slow ← m·θ_slow + (1 − m)·θ_fast`; buffers stay.

    Args:
        slow: the module that moves.
        fast: the module that it follows, of the same shape.
        momentum: m, from 0 (a copy) to 1 (no move).

    Raises:
        ValueError: a momentum outside 0 to 1, or modules of different shape.

    Source: He et al. 2020 (MoCo), eq. 2.
    """
    if not 0 <= momentum <= 1:
        raise ValueError(f"found momentum {momentum}, expected 0 to 1")
    for to, source in zip(slow.parameters(), fast.parameters(), strict=True):
        if to.shape != source.shape:
            raise ValueError(f"found shapes {list(to.shape)} and {list(source.shape)}, expected two of one model")
        to.mul_(momentum).add_(source, alpha=1 - momentum)
