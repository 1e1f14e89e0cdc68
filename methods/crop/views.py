"""The two views of a document, by variant: sentences, disjoint spans, or crops of tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from bench.data.shards import Shards
from bench.encoding.packed import Ids
from bench.errors import UsageError
from bench.training.batches import Pairs
from bench.training.crops import token_crop
from bench.training.units import read_unit, serving, units_of
from bench.training.views import Documents, framed, two_sentences
from bench.types import Json
from methods.crop.config import CropConfig

_FRAME = 2  # first and last token of a sequence
_PAIR = 2  # sentences or spans


class CropViews:
    """Draws documents, and two views of each.

    Args:
        shards: the prepared corpus.
        config: which views, and how many.
        seed: of the order of documents.

    Raises:
        UsageError: no language has two documents that are long enough.
    """

    def __init__(self, shards: Shards, config: CropConfig, seed: int) -> None:
        """Find the documents that are long enough for two views."""
        self.shards, self._config = shards, config
        self._draw = {"sentence": self._sentences, "span": self._spans, "token": self._crops}[config.variant]
        if config.variant == "sentence":
            self._documents = Documents(shards, config, _PAIR, seed)
        elif config.variant == "token":
            self._documents = Documents(shards, config, 1, seed)
        else:
            enough = partial(serving, shards, most=config.span.tokens, least=_PAIR)
            try:
                self._documents = Documents(shards, config, 1, seed, enough)
            except UsageError as error:
                raise UsageError(
                    f"{error}; crop's variant span asks for two spans of up to {config.span.tokens} tokens in a "
                    "document: lower method.span.tokens"
                ) from error

    def batch(self, rng: np.random.Generator) -> Pairs:
        """Return two views of each of several documents."""
        each = self._config.document_pairs
        drawn = self._documents.draw(self._config.pairs // each, rng)
        documents = [document for document in drawn for _ in range(each)]
        left, right = zip(*(self._draw(document, rng) for document in documents), strict=True)
        return Pairs(left, right, np.array(documents, np.int64), tuple(map(self.shards.language_of, documents)))

    def held_out(self) -> Sequence[Pairs]:
        """Return neighbouring sentences of documents that are never trained on, as every method is probed."""
        return self._documents.held_out()

    def state(self) -> Mapping[str, Json]:
        """Return where each language stands."""
        return self._documents.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken."""
        self._documents.restore(state)

    def _sentences(self, document: int, rng: np.random.Generator) -> tuple[Ids, Ids]:
        """Two different sentences."""
        count, most = self.shards.sentence_count(document), self._config.sentence_tokens
        first, second = two_sentences(count, rng, window=self._config.window)
        return self._sentence(document, first, most), self._sentence(document, second, most)

    def _sentence(self, document: int, at: int, most: int) -> Ids:
        return framed(self.shards.take(document, at), self.shards.special, most)

    def _spans(self, document: int, rng: np.random.Generator) -> tuple[Ids, Ids]:
        """Two different spans; spans are cut once and for all, so they have no token in common."""
        most = self._config.span.tokens
        spans = units_of(self.shards, document, most)
        first, second = (spans[at] for at in two_sentences(len(spans), rng))
        return read_unit(self.shards, document, first, most), read_unit(self.shards, document, second, most)

    def _crops(self, document: int, rng: np.random.Generator) -> tuple[Ids, Ids]:
        """Two crops of a stretch that begins at a sentence drawn uniformly; they may overlap."""
        token, count = self._config.token, self.shards.sentence_count(document)
        pieces, room = [], token.stretch
        for at in range(int(rng.integers(count)), count):
            pieces.append(self.shards.take(document, at))
            room -= len(pieces[-1])
            if room <= 0:
                break
        stretch = np.concatenate(pieces)[: token.stretch]
        crops = [stretch[token_crop(len(stretch), rng, token.low, token.high)] for _ in range(2)]
        first, second = (framed(crop, self.shards.special, len(crop) + _FRAME) for crop in crops)
        return first, second
