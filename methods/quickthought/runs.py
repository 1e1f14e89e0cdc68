"""Batches of consecutive sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.data.shards import Shards
from bench.encoding.packed import Ids
from bench.training.batches import Pairs
from bench.training.config import TrainingConfig
from bench.training.views import Documents, framed
from bench.types import Json

_LEAST = 2  # sentences: one alone has no neighbour


@dataclass(frozen=True)
class Runs:
    """Sentences in order, those of a document one after the other.

    Args:
        sentences: n sequences.
        documents: number of the document of each, int64 `[n]`.
    """

    sentences: Sequence[Ids]
    documents: npt.NDArray[np.int64]

    def __len__(self) -> int:
        """Number of sentences."""
        return len(self.sentences)


class RunsOfSentences:
    """Takes consecutive sentences, from a place drawn uniformly, of several documents.

    Args:
        shards: the prepared corpus.
        config: documents in a batch (`pairs`), tokens of a sentence, languages, held-out pairs.
        length: sentences of a document, at most.
        seed: of the order of documents.
    """

    def __init__(self, shards: Shards, config: TrainingConfig, length: int, seed: int) -> None:
        """Find the documents of two sentences and more."""
        self.shards, self._config, self._length = shards, config, length
        self._documents = Documents(shards, config, least=_LEAST, seed=seed)

    def batch(self, rng: np.random.Generator) -> Runs:
        """Return the next sentences."""
        sentences: list[Ids] = []
        owners: list[int] = []
        for document in self._documents.draw(self._config.pairs, rng):
            count = self.shards.sentence_count(document)
            size = min(count, self._length)
            start = int(rng.integers(count - size + 1))
            for at in range(start, start + size):
                taken = self.shards.take(document, at)
                sentences.append(framed(taken, self.shards.special, self._config.sentence_tokens))
                owners.append(document)
        return Runs(sentences, np.asarray(owners, np.int64))

    def held_out(self) -> Sequence[Pairs]:
        """Return neighbouring sentences of documents that are never trained on."""
        return self._documents.held_out()

    def state(self) -> Mapping[str, Json]:
        """Return where each language stands."""
        return self._documents.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken."""
        self._documents.restore(state)
