"""From documents to views: which documents make a batch, and which two pieces of each are told from all others.

Batches are of one language unless the config says otherwise: negatives of another one would teach telling languages
apart. A document is drawn again only after every other one of its language was, and no document is twice in a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.data.sampling import probabilities
from bench.data.shards import Shards
from bench.encoding.packed import Ids
from bench.errors import UsageError
from bench.training.batches import Pairs
from bench.training.config import SHORTEST, TrainingConfig
from bench.types import Json

Draw = Callable[[int, np.random.Generator], tuple[int, int]]
"""(sentences of a document, rng) → two different places among them."""

_PAIR = 2  # sentences
_LEAST = 2  # documents in a batch: one alone has no negative
_HELD_SHARE = 10  # at most one document in so many is held out


class Documents:
    """Draws documents, of one language at a time unless the config mixes them.

    Args:
        shards: the prepared corpus.
        config: language exponent; held-out documents and their languages.
        least: sentences that a document needs.
        seed: of the order.
        serving: language → which of its documents serve, bool `[documents of the language]`; None: all.

    Raises:
        UsageError: no language has two documents that are long enough and serve.
    """

    def __init__(
        self,
        shards: Shards,
        config: TrainingConfig,
        least: int,
        seed: int,
        serving: Callable[[str], npt.NDArray[np.bool_]] | None = None,
    ) -> None:
        """Find the documents that are long enough, and hold some out."""
        enough = {language: _long_enough(shards, language, least) for language in shards.languages}
        if serving is not None:
            enough = {
                language: documents[serving(language)[documents - shards.documents(language).start]]
                for language, documents in enough.items()
            }
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
            pairs = _long_enough(shards, language, _PAIR)
            count = min(config.probe_pairs, len(pairs) // _HELD_SHARE)
            if count >= _LEAST:  # evenly spread, and the same whatever the seed
                held = pairs[np.arange(count) * len(pairs) // count]
                rest = np.setdiff1d(enough[language], held)
                if len(rest) >= _LEAST:
                    self.held[language], enough[language] = held.tolist(), rest
        self._documents, self._shards, self._config = enough, shards, config
        shares = probabilities(sizes, config.language_exponent)
        self._languages, self._shares = tuple(shares), np.array(list(shares.values()))
        self._seed = seed
        self._places = dict.fromkeys(self._languages, (0, 0))  # epoch, and how many of it were drawn
        self._orders: dict[str, tuple[int, npt.NDArray[np.int64]]] = {}

    def draw(self, count: int, rng: np.random.Generator) -> list[int]:
        """Return `count` different documents, of one language or each of a language of its own lot.

        Where a language has fewer than it is asked for, all that there are.
        """
        if self._config.language_pure:
            return self._of(self._languages[int(rng.choice(len(self._languages), p=self._shares))], count)
        counts = rng.multinomial(count, self._shares).tolist()
        mixed = [one for language, n in zip(self._languages, counts, strict=True) for one in self._of(language, n)]
        return [mixed[at] for at in rng.permutation(len(mixed)).tolist()]

    def held_out(self) -> list[Pairs]:
        """Return two sentences that stand side by side of each held-out document, a batch a language.

        They are the same whatever the method, so that probes of different methods can be compared.
        """
        rng = np.random.default_rng(0)
        return [self._neighbours(documents, rng) for documents in self.held.values()]

    def _neighbours(self, documents: Sequence[int], rng: np.random.Generator) -> Pairs:
        """Draw a sentence and the next one of each document."""
        places = [int(rng.integers(self._shards.sentence_count(document) - 1)) for document in documents]
        left, right = (
            [
                framed(self._shards.sentence(row, at + next_), self._shards.special, self._config.sentence_tokens)
                for row, at in zip(documents, places, strict=True)
            ]
            for next_ in (0, 1)
        )
        return Pairs(left, right, np.asarray(documents, np.int64), tuple(map(self._shards.language_of, documents)))

    def _of(self, language: str, count: int) -> list[int]:
        """Return `count` different documents of a language, all there are where it has fewer."""
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
        draw: (sentences of the document, rng) → the places of the two, e.g. `partial(two_sentences, window=5)`.
    """

    def __init__(self, shards: Shards, config: TrainingConfig, seed: int, draw: Draw) -> None:
        """Find the documents of two sentences and more."""
        self.shards, self._config, self._draw = shards, config, draw
        self._documents = Documents(shards, config, least=2, seed=seed)

    def batch(self, rng: np.random.Generator) -> Pairs:
        """Return a pair of each of several documents."""
        documents = self._documents.draw(self._config.pairs, rng)
        left: list[Ids] = []
        right: list[Ids] = []
        for document in documents:
            pair = self._draw(self.shards.sentence_count(document), rng)
            for view, at in zip((left, right), pair, strict=True):
                view.append(framed(self.shards.take(document, at), self.shards.special, self._config.sentence_tokens))
        languages = tuple(map(self.shards.language_of, documents))
        return Pairs(left, right, np.asarray(documents, np.int64), languages)

    def held_out(self) -> Sequence[Pairs]:
        """Return neighbouring sentences of documents that are never trained on."""
        return self._documents.held_out()

    def state(self) -> Mapping[str, Json]:
        """Return where each language stands."""
        return self._documents.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken."""
        self._documents.restore(state)


def two_sentences(count: int, rng: np.random.Generator, window: int | None = None) -> tuple[int, int]:
    """Draw two different places among `count`: the first uniformly, the second uniformly among those near it.

    Args:
        count: sentences of the document, at least two.
        rng: chance.
        window: the second is at most so many places away, at least 1; None: anywhere. Then each ordered pair has
            the same probability.

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
