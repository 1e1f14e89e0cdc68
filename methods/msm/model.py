"""What msm trains besides its encoder: a document encoder that predicts masked sentences, and two projection heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from bench.training import HeadPair, Layer, Shape, initialise, to_device
from methods.msm import MsmConfig

ModuleT = TypeVar("ModuleT", bound=nn.Module)
ENGLISH, NOT_ENGLISH, ALL = "english", "others", "all"


@dataclass(frozen=True)
class Copies:
    """Which rows each copy of a document reads. Of n sentences in all, there is a copy for each of them."""

    index: npt.NDArray[np.int64]  # numbers of sentences, `[n, l]`; n for the mask, n + 1 for padding
    slots: npt.NDArray[np.int64]  # place that each copy predicts, `[n]`

    @staticmethod
    def from_sizes(sizes: Sequence[int], *, masked: bool = True) -> Copies:
        """Return a copy for each sentence of documents of these sizes, its own slot masked."""
        total = sum(sizes)
        index = np.full((total, max(sizes)), total + 1, np.int64)
        starts = np.repeat(np.cumsum([0, *sizes[:-1]]), sizes)  # of each copy's document
        slots = np.arange(total) - starts
        places = np.arange(index.shape[1])[None]
        present = places < np.repeat(sizes, sizes)[:, None]
        index[present] = (starts[:, None] + places)[present]
        if masked:
            index[np.arange(total), slots] = total
        return Copies(index, slots)

    def shuffled(self, rng: np.random.Generator) -> Copies:
        """Return the same with the neighbours of each masked sentence in another order."""
        index = self.index.copy()
        for row, slot in zip(index, self.slots.tolist(), strict=True):
            near = np.flatnonzero(row < len(index) + 1)
            near = near[near != slot]
            row[near] = row[rng.permutation(near)]
        return Copies(index, self.slots)


class DocumentEncoder(nn.Module):
    """Predicts each sentence of a document from the others.

    Args:
        shape: sizes of its layers.
        layers: how many.
        places: sentences of a document, at most.
        average: whether predictions begin as the average of the neighbours.

    Source: MSM (arXiv 2302.01626), section 3.2; learned positions, post-norm and N(0, 0.02²) from its code.
    """

    def __init__(self, shape: Shape, layers: int, places: int, average: bool = False) -> None:
        super().__init__()
        self.shape = shape
        self.mask = nn.Parameter(torch.empty(1, shape.width))
        self.positions = nn.Parameter(torch.empty(places, shape.width))
        self.norm = nn.LayerNorm(shape.width, eps=shape.eps)
        self.dropout = nn.Dropout(shape.dropout)
        stack = [Layer(shape) for _ in range(layers)]
        self.layers = nn.ModuleList(stack)
        initialise(self)
        if average:
            for layer in stack:
                layer.begin_as_average()

    def forward(self, sentences: torch.Tensor, copies: Copies, at_once: int | None = None) -> torch.Tensor:
        """Return predictions of masked sentences.

        Args:
            sentences: vectors of the n sentences of all documents, `[n, d]`.
            copies: which of them each prediction reads, and where it is masked.
            at_once: copies whose activations are kept; the others are computed again for the gradient; default: all.

        Returns:
            `[n, d]`, a prediction of each sentence.
        """
        index, slots = (to_device(part, sentences.device) for part in (copies.index, copies.slots))  # [n, l], [n]
        table = torch.cat([sentences, self.mask.to(sentences.dtype), sentences.new_zeros(1, sentences.shape[1])])
        if at_once is None or not torch.is_grad_enabled():
            return self._predicted(table, index, slots)
        parts = zip(index.split(at_once), slots.split(at_once), strict=True)
        return torch.cat([checkpoint(self._predicted, table, *part, use_reentrant=False) for part in parts])

    def operations(self, copies: Copies) -> int:
        """Return the multiply-adds of a forward pass; the last layer is computed at the masked slots alone."""
        count, read = copies.index.shape
        full = (len(self.layers) - 1) * self.shape.operations(read, read)
        return int(count) * (full + self.shape.operations(1, read))

    def _predicted(self, table: torch.Tensor, index: torch.Tensor, slots: torch.Tensor) -> torch.Tensor:
        """Run copies `[c, l]` over a table of sentences, mask and padding, `[n + 2, d]` → `[c, d]`."""
        nothing = index == len(table) - 1
        states = self.dropout(self.norm(table[index] + self.positions[: index.shape[1]]))  # [c, l, d]
        for layer in self.layers[:-1]:
            states = layer(states, states, nothing)
        asking = states[torch.arange(len(slots), device=slots.device), slots][:, None]  # [c, 1, d]
        predicted: torch.Tensor = self.layers[-1](asking, states, nothing)[:, 0]
        return predicted


class MsmModules(nn.Module):
    """The document encoders and heads of a training, by language."""

    def __init__(self, config: MsmConfig, shape: Shape) -> None:
        super().__init__()
        sharing, average = config.share_doc_encoder, config.begin == "average"
        encoders = (ALL,) if sharing == "all" else (ENGLISH, NOT_ENGLISH)
        heads = (ENGLISH, NOT_ENGLISH) if sharing == "sep_en_head" else (ALL,)
        self.documents = nn.ModuleDict(
            {name: DocumentEncoder(shape, config.doc_layers, config.doc_sentences, average) for name in encoders}
        )
        self.heads = nn.ModuleDict(
            {name: HeadPair(config.heads, shape.width, config.sync_bn, average) for name in heads}
        )

    def encoder_for(self, language: str) -> DocumentEncoder:
        """Return the document encoder of a language."""
        return _of(self.documents, language, DocumentEncoder)

    def heads_for(self, language: str) -> HeadPair:
        """Return the heads of a language."""
        return _of(self.heads, language, HeadPair)


def _of(modules: nn.ModuleDict, language: str, kind: type[ModuleT]) -> ModuleT:
    module = modules[ALL if ALL in modules else ENGLISH if language == "en" else NOT_ENGLISH]
    assert isinstance(module, kind)  # noqa: S101 (for the type checker)
    return module
