"""SimCSE's data: a sentence of each of several documents, twice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bench.data.shards import Shards
from bench.training.batches import Pairs
from bench.training.config import TrainingConfig
from bench.training.views import Documents, framed
from bench.types import Json


class SentencesTwice:
    """A sentence of each of several documents; both views are the same, and dropout alone tells them apart.

    Args:
        shards: the prepared corpus.
        config: sentences in a batch, their length, languages, held-out pairs.
        seed: of the order of documents.

    Raises:
        UsageError: no language has two documents.
    """

    def __init__(self, shards: Shards, config: TrainingConfig, seed: int) -> None:
        """Take all documents."""
        self.shards, self._config = shards, config
        self._documents = Documents(shards, config, least=1, seed=seed)

    def batch(self, rng: np.random.Generator) -> Pairs:
        """Return a sentence of each of several documents, twice."""
        documents = self._documents.draw(self._config.pairs, rng)
        places = [int(rng.integers(self.shards.sentence_count(document))) for document in documents]
        read = [self.shards.take(document, at) for document, at in zip(documents, places, strict=True)]
        views = [framed(ids, self.shards.special, self._config.sentence_tokens) for ids in read]
        languages = tuple(map(self.shards.language_of, documents))
        return Pairs(views, views, np.asarray(documents, np.int64), languages)

    def held_out(self) -> Sequence[Pairs]:
        """Return neighbouring sentences of documents that are never trained on."""
        return self._documents.held_out()

    def state(self) -> Mapping[str, Json]:
        """Return where each language stands."""
        return self._documents.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken."""
        self._documents.restore(state)
