"""Training with the ids of the corpus alone: a smaller embedding matrix, put back whole before anyone else sees it.

Ids that the corpus never uses cost memory, optimiser state and, in masked language modelling, most of the time, and
learn nothing. Leaving them out is an approximation of the softmax over the vocabulary and of its random replacements;
it is recorded (`vocabulary` among the facts of a training). Their rows come back unchanged.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from transformers import PreTrainedModel

from bench.data.shards import Shards


@dataclass(frozen=True)
class Vocabulary:
    """The ids that are kept, and the whole matrix.

    Args:
        kept: ids of the whole vocabulary, ascending, int64 `[v]`; row i of the small matrix is id `kept[i]`.
        small: id → its row in the small matrix, −1 where it has none, int64 `[V]`.
        whole: the matrix before the training, float32 `[V, d]`, on the processor.
        padding: row of the whole matrix that is padding, None where there is none.
    """

    kept: npt.NDArray[np.int64]
    small: npt.NDArray[np.int64]
    whole: torch.Tensor
    padding: int | None

    def rows(self, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the rows of ids in the small matrix.

        Raises:
            ValueError: an id that was not kept.
        """
        rows = self.small[ids]
        if (rows < 0).any():
            raise ValueError(f"found id {int(ids[rows < 0][0])}, expected one of the {len(self.kept)} that were kept")
        return rows


def crop(model: PreTrainedModel, shards: Shards) -> Vocabulary | None:
    """Leave a model only the embeddings of ids that the corpus uses, the special ones, and all up to padding's.

    The latter, so that padding keeps its number: architectures count positions from it.

    Args:
        model: changed in place.
        shards: the corpus.

    Returns:
        How to undo it; None where every id is used, and nothing was changed.
    """
    whole = _embedding(model)
    padding = whole.padding_idx if whole.padding_idx is not None else model.config.pad_token_id
    first = np.arange(0 if padding is None else padding + 1)
    special = np.asarray(sorted(shards.special.values()), np.int64)
    kept = np.unique(np.concatenate([first, special, shards.used_ids()]))
    if len(kept) == whole.num_embeddings:
        return None
    small = np.full(whole.num_embeddings, -1, np.int64)
    small[kept] = np.arange(len(kept))
    matrix = whole.weight.detach()
    _set(model, matrix[torch.from_numpy(kept).to(matrix.device)], whole.padding_idx)
    return Vocabulary(kept, small, matrix.cpu().clone(), whole.padding_idx)


@contextmanager
def whole(model: PreTrainedModel, vocabulary: Vocabulary | None) -> Iterator[None]:
    """Give a model its whole matrix for a moment: trained rows as they are now, all others as before the training."""
    if vocabulary is None:
        yield
        return
    small = _embedding(model)
    matrix = vocabulary.whole.clone()
    matrix[torch.from_numpy(vocabulary.kept)] = small.weight.detach().cpu()
    _set(model, matrix.to(small.weight.device), vocabulary.padding)
    try:
        yield
    finally:
        model.set_input_embeddings(small)
        model.config.vocab_size = small.num_embeddings


def _embedding(model: PreTrainedModel) -> nn.Embedding:
    """The matrix of token embeddings."""
    found = model.get_input_embeddings()
    if not isinstance(found, nn.Embedding):
        raise TypeError(f"found {type(found).__name__} as the embeddings of {type(model).__name__}, expected Embedding")
    return found


def _set(model: PreTrainedModel, matrix: torch.Tensor, padding: int | None) -> None:
    """Replace the matrix; its size in the config goes with it."""
    count, width = matrix.shape
    made = nn.Embedding(count, width, padding_idx=padding, _weight=matrix.clone(), device=matrix.device)
    model.set_input_embeddings(made)
    model.config.vocab_size = made.num_embeddings
