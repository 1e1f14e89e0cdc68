"""Negatives from earlier batches: rings of rows, and the momentum encoder that makes them (MoCo)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, Literal, Self

import torch
from torch import nn
from torch.nn import functional

from bench.retrieval.transfer import to_device
from bench.training.encoder import TrainableEncoder

EMPTY = -1
"""Tag of a slot that holds nothing yet."""


class HostBuffers(nn.Module):
    """A module that leaves some of its buffers on the processor, wherever it goes itself.

    Numbers that decide what is computed are asked for at every step; on a device each question would wait for it.
    They are buffers so that they go through checkpoints.
    """

    on_host: ClassVar[tuple[str, ...]] = ()
    """Names of these buffers."""

    def _apply(self, fn: Callable[[torch.Tensor], torch.Tensor], recurse: bool = True) -> Self:
        stay = {name: self._buffers[name] for name in self.on_host}
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self._buffers.update(stay)
        return self


class Ring(HostBuffers):
    """A ring of rows with a tag each; the oldest rows are overwritten first. It never holds a gradient.

    Rows, tags and the pointer to the next slot are buffers, so that they go through checkpoints; the rows move with
    the module, tags and pointer stay on the processor.

    Args:
        capacity: number of slots; a ring of none stays empty, so that an ablation can do without.
        width: d, of a row.

    Example:
        >>> ring = Ring(3, 1)
        >>> ring.push(torch.tensor([[1.0], [2.0], [3.0], [4.0]]))
        >>> ring.ordered()[0].flatten().tolist()
        [2.0, 3.0, 4.0]
    """

    on_host = ("tags", "pointer")
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
            tags: int64 `[n]`, on the processor, or one for all.

        Raises:
            ValueError: rows of another width.
        """
        capacity, width = self.rows.shape
        if rows.ndim != 2 or rows.shape[1] != width:
            raise ValueError(f"found rows {list(rows.shape)}, expected [n, {width}]")
        marks = torch.as_tensor(tags, device="cpu").expand(len(rows))  # raises where the numbers differ
        if not capacity:
            return
        late = slice(max(0, len(rows) - capacity), None)
        start, end = (int(self.pointer) + late.start) % capacity, int(self.pointer) + len(rows)
        for kept, new in ((self.rows, rows.detach()[late]), (self.tags, marks[late])):
            to_end = min(len(new), capacity - start)
            kept[start : start + to_end] = new[:to_end]
            if to_end < len(new):  # the others from the front
                kept[: len(new) - to_end] = new[to_end:]
        self.pointer.fill_(end % capacity)

    @torch.no_grad()
    def fill_randomly(self) -> Ring:
        """Fill every slot with a random row of unit length, tag 0; the pointer stays at 0."""
        self.rows.copy_(functional.normalize(torch.randn_like(self.rows), dim=1))
        self.tags.zero_()
        return self

    def ordered(self, among: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the rows `[m, d]` and tags `[m]` that are there, or those with a tag of `among`, the oldest first.

        Tags are on the processor, those of `among` too.
        """
        capacity = len(self.rows)
        order = (int(self.pointer) + torch.arange(capacity)) % capacity
        tags = self.tags[order]
        order = order[tags != EMPTY if among is None else (tags != EMPTY) & torch.isin(tags, among)]
        return self.rows[to_device(order, self.rows.device)], self.tags[order]


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
        """Add rows `[n, d]` with their tags `[n]`, which are on the processor."""
        rings = self._typed_rings()
        if self.layout == "tagged_global":
            rings[0].push(rows, tags)
            return
        for tag in tags.unique().tolist():
            mine = (tags == tag).nonzero()[:, 0]
            whole = len(mine) == len(rows)  # as where a batch has one language
            rings[tag].push(rows if whole else rows[to_device(mine, rows.device)], tags[mine])

    def ordered(self, among: torch.Tensor | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """Return rows `[m, d]` and tags `[m]`, of `among` alone, the oldest first, ring by ring; tags as in `push`."""
        rings = self._typed_rings()
        if self.layout == "per_language" and among is not None:  # the others have no such row
            rings = [rings[tag] for tag in among.unique().tolist() if 0 <= tag < len(rings)]
        rows, tags = zip(*(ring.ordered(among) for ring in rings or self._typed_rings()[:1]), strict=True)
        return (rows[0], tags[0]) if len(rows) == 1 else (torch.cat(rows), torch.cat(tags))

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
    moved, sources = list[torch.Tensor](slow.parameters()), list[torch.Tensor](fast.parameters())
    for to, source in zip(moved, sources, strict=True):
        if to.shape != source.shape:
            raise ValueError(f"found shapes {list(to.shape)} and {list(source.shape)}, expected two of one model")
    torch._foreach_mul_(moved, momentum)
    torch._foreach_add_(moved, sources, alpha=1 - momentum)
