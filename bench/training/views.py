"""From documents to views: which documents make a batch, and which two pieces of each are told from all others.

Batches are of one language: negatives of another one would teach telling languages apart. A document is drawn again
only after every other one of its language was, and no document is twice in a batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bench.data.sampling import probabilities
from bench.data.shards import Shards
from bench.encoding.packed import Ids
from bench.errors import UsageError
from bench.training.config import SHORTEST, TrainingConfig
from bench.training.encoder import Views
from bench.types import Json

_LEAST = 2  # documents in a batch: one alone has no negative
_HELD_SHARE = 10  # at most one document in so many is held out


class ViewSource(Protocol):
    """Where the loop gets its batches from."""

    def batch(self, rng: np.random.Generator) -> Views:
        """Return the next batch. Chance comes from `rng` alone, whose state the loop keeps."""

    def held_out(self) -> Sequence[Views]:
        """Return pairs that are never trained on, two views each; always the same. Empty: nothing is probed."""

    def state(self) -> Mapping[str, Json]:
        """Return what `restore` needs to go on with the next batch."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken."""


class Documents:
    """Draws documents of one language at a time.

    Args:
        shards: the prepared corpus.
        config: language exponent; held-out documents and their languages.
        least: sentences that a document needs.
        seed: of the order.

    Raises:
        UsageError: no language has two documents that are long enough.
    """

    def __init__(self, shards: Shards, config: TrainingConfig, least: int, seed: int) -> None:
        """Find the documents that are long enough, and hold some out."""
        enough = {language: _long_enough(shards, language, least) for language in shards.languages}
        enough = {language: documents for language, documents in enough.items() if len(documents) >= _LEAST}
        if not enough:
            raise UsageError(
                f"the corpus {shards.folder} has no language with {_LEAST} documents of at least {least} sentences; "
                "pretraining by documents needs texts longer than that"
            )
        sizes = {language: shards.tokens_of(language) for language in enough}
        largest = sorted(enough, key=lambda language: (-sizes[language], language))[: config.probe_languages]
        self.held: dict[str, list[int]] = {}
        for language in largest:
            count = min(config.probe_pairs, len(enough[language]) // _HELD_SHARE)
            if count >= _LEAST:  # evenly spread, and the same whatever the seed
                places = np.arange(count) * len(enough[language]) // count
                self.held[language] = enough[language][places].tolist()
                enough[language] = np.delete(enough[language], places)
        self._documents = enough
        shares = probabilities(sizes, config.language_exponent)
        self._languages, self._shares = tuple(shares), np.array(list(shares.values()))
        self._seed = seed
        self._places = dict.fromkeys(self._languages, (0, 0))  # epoch, and how many of it were drawn
        self._orders: dict[str, tuple[int, npt.NDArray[np.int64]]] = {}

    def draw(self, count: int, rng: np.random.Generator) -> list[int]:
        """Return `count` different documents of one language, all there are where it has fewer."""
        language = self._languages[int(rng.choice(len(self._languages), p=self._shares))]
        epoch, drawn = self._places[language]
        count = min(count, len(self._documents[language]))
        if drawn + count > len(self._documents[language]):
            epoch, drawn = epoch + 1, 0
        self._places[language] = (epoch, drawn + count)
        documents: list[int] = self._order(language, epoch)[drawn : drawn + count].tolist()
        return documents

    def state(self) -> dict[str, Json]:
        """Return language → (epoch, how many of it were drawn)."""
        return {language: list(place) for language, place in self._places.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken."""
        self._places = {language: (int(epoch), int(drawn)) for language, (epoch, drawn) in state.items()}

    def _order(self, language: str, epoch: int) -> npt.NDArray[np.int64]:
        """Return the documents of a language in the order of an epoch, which seed, language and epoch decide."""
        made, order = self._orders.get(language, (-1, np.empty(0, np.int64)))
        if made != epoch:
            chance = np.random.default_rng([self._seed, int.from_bytes(language.encode(), "big"), epoch])
            order = chance.permutation(self._documents[language])
            self._orders[language] = (epoch, order)
        return order


class SentencePairs:
    """Two different sentences of each document.

    Args:
        shards: the prepared corpus.
        config: pairs in a batch, tokens of a sentence, languages, held-out pairs.
        seed: of the order of documents.
        window: how many sentences apart the two are at most; None: anywhere in the document.
    """

    def __init__(self, shards: Shards, config: TrainingConfig, seed: int, window: int | None = None) -> None:
        """Find the documents of two sentences and more."""
        self._shards, self._config, self._window = shards, config, window
        self._documents = Documents(shards, config, least=2, seed=seed)

    def batch(self, rng: np.random.Generator) -> Views:
        """Return two views of documents of one language."""
        return self._pairs(self._documents.draw(self._config.pairs, rng), rng)

    def held_out(self) -> Sequence[Views]:
        """Return one batch for each language that is probed; the same whatever the seed."""
        return [self._pairs(documents, np.random.default_rng(0)) for documents in self._documents.held.values()]

    def state(self) -> Mapping[str, Json]:
        """Return where each language stands."""
        return self._documents.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken."""
        self._documents.restore(state)

    def _pairs(self, documents: Sequence[int], rng: np.random.Generator) -> Views:
        """Draw a pair of each document."""
        left: list[Ids] = []
        right: list[Ids] = []
        for document in documents:
            pair = two_sentences(self._shards.sentence_count(document), self._window, rng)
            for view, at in zip((left, right), pair, strict=True):
                view.append(
                    framed(self._shards.sentence(document, at), self._shards.special, self._config.sentence_tokens)
                )
        return left, right


def two_sentences(count: int, window: int | None, rng: np.random.Generator) -> tuple[int, int]:
    """Draw two different places among `count`: the first uniformly, the second uniformly among those near it.

    Args:
        count: sentences of the document, at least two.
        window: the second is at most so many places away, at least 1; None: anywhere. Then each ordered pair has
            the same probability.
        rng: chance.

    Raises:
        ValueError: fewer than two sentences, or a window below 1.
    """
    if count < 2 or (window is not None and window < 1):
        raise ValueError(f"found {count} sentences and window {window}, expected at least 2 and at least 1")
    first = int(rng.integers(count))
    low, high = (0, count - 1) if window is None else (max(0, first - window), min(count - 1, first + window))
    second = low + int(rng.integers(high - low))  # one place fewer: the first itself is left out
    return first, second + (second >= first)


def framed(tokens: npt.NDArray[Any], special: Mapping[str, int], most: int) -> npt.NDArray[np.int64]:
    """Return first token, tokens, last token, cut to `most` in all.

    Args:
        tokens: ids `[n]` without special tokens.
        special: ids of `cls` and `sep`.
        most: tokens kept, special ones included; at least 3.

    Raises:
        ValueError: `most` leaves no room for a token of the text.
    """
    if most < SHORTEST:
        raise ValueError(f"found room for {most} tokens, expected at least {SHORTEST}: first, one of the text, last")
    kept = tokens[: most - 2]
    sequence = np.empty(len(kept) + 2, np.int64)
    sequence[0], sequence[1:-1], sequence[-1] = special["cls"], kept, special["sep"]
    return sequence


def _long_enough(shards: Shards, language: str, least: int) -> npt.NDArray[np.int64]:
    """Return the numbers of a language's documents with at least so many sentences."""
    documents = shards.documents(language)
    return np.flatnonzero(shards.sentence_counts(documents) >= least) + documents.start
