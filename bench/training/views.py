"""From documents to views: which documents make a batch, and which sentences, units or crops of each make a pair.

Batches are of one language unless the config says otherwise: negatives in another language would only teach the
encoder to identify languages. Every document of a language is drawn once an epoch (or once for each of its blocks), and
none is twice in a batch: at the turn of an epoch, those that end the last one wait a batch. Units are consecutive
sentences packed together while they fit.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.core.errors import UsageError
from bench.data.corpora.sampling import probabilities
from bench.data.corpora.shards import Shards
from bench.retrieval.packed import Ids
from bench.training.batches import PairBatch, RandomSource
from bench.training.config import SHORTEST, TrainingConfig
from bench.training.distributed import advance_rng, broadcast_rng, rank_slice, world_size
from bench.types import Json

Draw = Callable[[int, np.random.Generator], tuple[int, int]]
"""(sentences of a document, rng) → two different places among them."""

_SMALL_LANGUAGES = (
    "languages with fewer documents than the {asked} of a batch have smaller batches: {few}; ask for fewer, or leave "
    "these languages out"
)
_PAIR = 2  # sentences
_LEAST = 2  # documents in a batch: one alone has no negative
_HELD_SHARE = 10  # at most one document in ten is held out


class Epochs:
    """How far each language was read; seed, language and number of the epoch decide the order, as subclasses say."""

    def __init__(self, languages: Sequence[str], seed: int) -> None:
        self._seed = seed
        self._places = dict.fromkeys(languages, (0, 0))  # epoch, and how many of it were drawn
        self._orders: dict[str, tuple[int, npt.NDArray[np.int64]]] = {}

    def state(self) -> dict[str, Json]:
        """Return language → (epoch, how many of it were drawn)."""
        return {language: list(place) for language, place in self._places.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken."""
        self._places = {language: (int(epoch), int(position)) for language, (epoch, position) in state.items()}

    def _order(self, language: str, epoch: int) -> npt.NDArray[np.int64]:
        """Return the order of an epoch; that of the current one is kept."""
        cached_epoch, order = self._orders.get(language, (-1, np.empty(0, np.int64)))
        if cached_epoch != epoch:
            chance = np.random.default_rng([self._seed, int.from_bytes(language.encode(), "big"), epoch])
            order = self._shuffled(language, chance)
            self._orders[language] = (epoch, order)
        return order

    def _shuffled(self, language: str, chance: np.random.Generator) -> npt.NDArray[np.int64]:
        """Return what is read of a language in an epoch, in its order."""
        raise NotImplementedError


class Documents(Epochs):
    """Draws documents, of one language at a time unless the config mixes them.

    Args:
        shards: the corpus.
        config: how languages are drawn, and how many pairs are held out.
        least: sentences of a document that may be drawn, at least.
        seed: decides, with language and epoch, the order of documents.
        blocks: language → how many blocks each of its documents has, `[documents]`; those without are never drawn;
            default: sentences.
        batch: documents that are drawn at once; default: the config's pairs. `notes` say which languages have fewer.

    Raises:
        UsageError: no language has two such documents for every process.

    Example:
        >>> documents = Documents(shards, config, least=2, seed=job.seed)
        >>> documents.draw(64, rng)  # 64 different numbers of documents of one language
    """

    def __init__(
        self,
        shards: Shards,
        config: TrainingConfig,
        least: int,
        seed: int,
        blocks: Callable[[str], npt.NDArray[Any]] | None = None,
        batch: int | None = None,
    ) -> None:
        counts = {
            language: (blocks(language) if blocks else shards.sentence_counts(shards.documents(language))).astype(
                np.int64
            )
            for language in shards.languages
        }
        enough = {}
        for language, of_each in counts.items():
            documents = _long_enough(shards, language, least)
            documents = documents[of_each[documents - shards.documents(language).start] > 0]
            if len(documents) >= _LEAST * world_size():
                enough[language] = documents
        if not enough:
            raise UsageError(
                found=f"no language with {_LEAST * world_size()} documents of at least {least} sentences",
                expected="longer texts in the corpus, for pretraining by documents",
                hint=f"look at the files of --corpus; they were prepared as {shards.folder}",
            )
        sizes = {language: shards.stock_of(language) for language in enough}
        largest = sorted(enough, key=lambda language: (-sizes[language], language))[: config.probe_languages]
        self.held: dict[str, list[int]] = {}
        for language in largest:
            pairs = _long_enough(shards, language, _PAIR)
            count = min(config.probe_pairs, len(pairs) // _HELD_SHARE)
            if count >= _LEAST:  # evenly spread, and the same whatever the seed
                held_out = pairs[np.arange(count) * len(pairs) // count]
                training = np.setdiff1d(enough[language], held_out)
                if len(training) >= _LEAST * world_size():
                    self.held[language], enough[language] = held_out.tolist(), training
        self._documents, self._shards, self._config, self._counts = enough, shards, config, counts
        self._waiting: dict[str, list[int]] = {}  # by language, documents that were in the batch when their turn came
        batch_size = config.pairs if batch is None else batch
        small = [
            f"{language} {len(documents)}" for language, documents in enough.items() if len(documents) < batch_size
        ]
        shrunk = bool(small) and config.language_pure
        self.notes: tuple[str, ...] = (
            (_SMALL_LANGUAGES.format(asked=batch_size, few=", ".join(small)),) if shrunk else ()
        )
        shares = probabilities(sizes, config.language_exponent)
        self._languages, self._shares = tuple(shares), np.array(list(shares.values()))
        super().__init__(self._languages, seed)

    def draw(self, count: int, rng: np.random.Generator) -> list[int]:
        """Return this process's share of `count` different documents, of one language or of languages drawn one by one.

        All documents of a language, where it has fewer.
        """
        broadcast_rng(rng)
        count *= world_size()
        if self._config.language_pure:
            documents = self._of(self._languages[int(rng.choice(len(self._languages), p=self._shares))], count)
        else:
            counts = rng.multinomial(count, self._shares).tolist()
            numbers = zip(self._languages, counts, strict=True)
            mixed = [document for language, n in numbers for document in self._of(language, n)]
            documents = [mixed[at] for at in rng.permutation(len(mixed)).tolist()]
        advance_rng(rng)
        return documents[rank_slice(len(documents))]

    def held_out(self) -> list[PairBatch]:
        """Return two neighbouring sentences of each held-out document, whatever the method, a batch a language.

        And its two halves, every other sentence of it: no method's task, while neighbours are near to some.
        """
        rng, most, batches = np.random.default_rng(0), self._config.sentence_tokens, []
        for documents in self.held.values():
            places = [int(rng.integers(self._shards.sentence_count(document) - 1)) for document in documents]
            first, second = (
                [
                    read_segment(self._shards, document, (at + next_, at + next_ + 1), most, seen=False)
                    for document, at in zip(documents, places, strict=True)
                ]
                for next_ in (0, 1)
            )
            languages = tuple(map(self._shards.language_of, documents))
            halves = self._every_other(documents, 0), self._every_other(documents, 1)
            numbers = np.asarray(documents, np.int64)
            batches.append(PairBatch(first, second, numbers, languages, halves=halves))
        return batches

    def _every_other(self, documents: Sequence[int], first: int) -> list[Ids]:
        """Return every other sentence of held-out documents from a place on, one text each, cut as sentences are."""
        shards, most = self._shards, self._config.sentence_tokens
        texts = [
            [shards.sentence(document, at) for at in range(first, min(shards.sentence_count(document), 2 * most), 2)]
            for document in documents
        ]
        return [add_special_tokens(np.concatenate(text), shards.special, most) for text in texts]

    def _of(self, language: str, count: int) -> list[int]:
        """Return `count` different documents of a language, all there are where it has fewer."""
        count = min(count, len(self._documents[language]))
        documents, later = dict[int, None](), list[int]()
        for document in self._waiting.get(language, []):
            if len(documents) < count and document not in documents:
                documents[document] = None
            else:
                later.append(document)
        epoch, position = self._places[language]
        while len(documents) < count:
            order = self._order(language, epoch)
            if position == len(order):  # what still waits are blocks of a document with more than there are batches
                epoch, position, later = epoch + 1, 0, []
                continue
            document, position = int(order[position]), position + 1
            if document in documents:
                later.append(document)
            documents[document] = None
        self._places[language], self._waiting[language] = (epoch, position), later
        return list(documents)

    def _shuffled(self, language: str, chance: np.random.Generator) -> npt.NDArray[np.int64]:
        """Return the documents of a language in a random order, once each or once for each of their blocks."""
        documents = self._documents[language]
        if self._config.sampling == "blocks":
            documents = np.repeat(documents, self._counts[language][documents - self._shards.documents(language).start])
        return chance.permutation(documents)

    def state(self) -> dict[str, Json]:
        """Return language → (epoch, how many of it were drawn, documents that wait)."""
        return {language: [*place, self._waiting.get(language, [])] for language, place in self._places.items()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken."""
        super().restore({language: place[:2] for language, place in state.items()})
        self._waiting = {language: list(waiting) for language, (_, _, waiting) in state.items()}


class SentencePairs(RandomSource[Shards, Documents]):
    """Two different sentences of each document.

    Args:
        shards: the corpus.
        config: pairs of a batch, and tokens of a sentence.
        seed: decides the order of documents.
        draw: (sentences of a document, rng) → two places among them, e.g. `partial(two_sentences, window=5)`.

    Raises:
        UsageError: no language has two documents of two sentences.
    """

    def __init__(self, shards: Shards, config: TrainingConfig, seed: int, draw: Draw) -> None:
        super().__init__(shards, Documents(shards, config, least=2, seed=seed))
        self._config, self._draw = config, draw

    def batch(self, rng: np.random.Generator) -> PairBatch:
        """Return a pair of each of several documents."""
        documents = self._sampler.draw(self._config.pairs, rng)
        queries: list[Ids] = []
        keys: list[Ids] = []
        for document in documents:
            pair = self._draw(self.shards.sentence_count(document), rng)
            for view, at in zip((queries, keys), pair, strict=True):
                view.append(read_segment(self.shards, document, (at, at + 1), self._config.sentence_tokens))
        languages = tuple(map(self.shards.language_of, documents))
        return PairBatch(queries, keys, np.asarray(documents, np.int64), languages)


def two_sentences(count: int, rng: np.random.Generator, window: int | None = None) -> tuple[int, int]:
    """Draw two different places among the sentences of a document.

    Args:
        count: number of sentences.
        rng: draws the first place, then the second.
        window: how many places the second is away from the first at most; default: any.

    Returns:
        Two places, from 0, in any order.

    Raises:
        ValueError: fewer than two sentences, or a window below 1.
    """
    if count < 2 or (window is not None and window < 1):
        raise ValueError(f"found {count} sentences and window {window}, expected at least 2 and at least 1")
    first = int(rng.integers(count))
    return first, partner_of(first, count, rng, window)


def partner_of(first: int, count: int, rng: np.random.Generator, window: int | None = None) -> int:
    """Draw another place of `count` ≥ 2, uniformly among those at most `window` away from the first; default: any."""
    low, high = (0, count - 1) if window is None else (max(0, first - window), min(count - 1, first + window))
    second = low + int(rng.integers(high - low))  # one place fewer: the first itself is left out
    return second + (second >= first)


def add_special_tokens(tokens: npt.NDArray[Any], special: Mapping[str, int], most: int) -> npt.NDArray[np.int64]:
    """Put the first and the last special token around a text.

    Args:
        tokens: ids of the text `[n]`.
        special: names of special tokens → ids; `cls` comes first and `sep` last, where there are such.
        most: tokens of the sequence, special ones included; the end of the text is cut off.

    Returns:
        Ids `[m]`, int64, m ≤ most.

    Raises:
        ValueError: `most` leaves no room for a token of the text.

    Example:
        >>> add_special_tokens(np.array([7, 8, 9]), {"cls": 1, "sep": 2}, 4).tolist()
        [1, 7, 8, 2]
    """
    if most < SHORTEST:
        raise ValueError(f"found room for {most} tokens, expected at least {SHORTEST}: first, one of the text, last")
    first, last = ([special[name]] if name in special else [] for name in ("cls", "sep"))
    return np.concatenate([first, tokens[: most - 2], last]).astype(np.int64)


def _long_enough(shards: Shards, language: str, least: int) -> npt.NDArray[np.int64]:
    """Return the numbers of a language's documents of at least `least` sentences."""
    documents = shards.documents(language)
    return np.flatnonzero(shards.sentence_counts(documents) >= least) + documents.start


def in_a_window(count: int, rng: np.random.Generator, window: int) -> tuple[int, int]:
    """Draw a window of consecutive sentences uniformly, and two different places in it, each ordered pair alike.

    Args:
        count: sentences of the document.
        rng: draws the window, then the places.
        window: sentences of a window; a shorter document is one window.

    Returns:
        Two places in the document, from 0, in any order.

    Raises:
        ValueError: fewer than two sentences in document or window.

    Source: CCP (arXiv 2206.03281), algorithm 1.
    """
    size = min(count, window)
    start = int(rng.integers(count - size + 1)) if size > 0 else 0
    first, second = two_sentences(size, rng)
    return start + first, start + second


def adjacent(count: int, rng: np.random.Generator) -> tuple[int, int]:
    """Draw a sentence and the next one, e.g. an utterance of a dialogue and its answer; `ValueError` if `count` < 2."""
    if count < 2:
        raise ValueError(f"found {count} sentences, expected at least 2")
    first = int(rng.integers(count - 1))
    return first, first + 1


def crop_length(count: int, ratio: float) -> int:
    """Return how many of `count` tokens a share is, rounded down as in Contriever's code."""
    return int(count * ratio)


def token_crop(count: int, rng: np.random.Generator, low: float, high: float) -> slice:
    """Draw a piece of a text: its share of the tokens, then its place, both uniformly.

    Args:
        count: tokens of the text.
        rng: draws share and place.
        low: least share; the length is rounded down, as in Contriever's code, but to no less than one token.
        high: greatest share.

    Returns:
        The piece as a slice of the text.

    Raises:
        ValueError: no tokens, or not 0 ≤ low ≤ high ≤ 1.

    Source: Izacard et al. 2022 (Contriever), section 3.1.
    """
    if count < 1 or not 0 <= low <= high <= 1:
        raise ValueError(f"found {count} tokens and shares {low} to {high}, expected tokens and 0 ≤ low ≤ high ≤ 1")
    length = max(1, crop_length(count, float(rng.uniform(low, high))))
    start = int(rng.integers(count - length + 1))
    return slice(start, start + length)


def random_span(shards: Shards, document: int, room: int, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Return a span of a document: whole sentences from one drawn uniformly on, until they fill the room.

    Args:
        shards: the corpus; the sentences that are read count as seen.
        document: its number.
        room: tokens after which no further sentence is read; the last one may go beyond.
        rng: draws the first sentence.

    Returns:
        Token ids `[n]` without special tokens, at least one sentence.
    """
    count, pieces = shards.sentence_count(document), list[npt.NDArray[Any]]()
    for at in range(int(rng.integers(count)), count):
        pieces.append(shards.take(document, at))
        room -= len(pieces[-1])
        if room <= 0:
            break
    return np.concatenate(pieces)


Bounds = tuple[int, int]
"""First sentence of a unit, and the one after its last."""

_FRAME = 2  # first and last token of a sequence


def pack_sentences(lengths: npt.NDArray[np.int64], room: int) -> list[Bounds]:
    """Pack the sentences of a document, first to last, into units of at most `room` tokens.

    Args:
        lengths: tokens of each sentence `[n]`.
        room: tokens of a unit; a longer sentence is a unit by itself, cut when read.

    Returns:
        For each unit its first sentence and the one after its last.

    Raises:
        ValueError: no room for a token.

    Source: shunyuzh/MSM.

    Example:
        >>> pack_sentences(np.array([4, 5, 2, 12]), 10)
        [(0, 2), (2, 3), (3, 4)]
    """
    if room < 1:
        raise ValueError(f"found room for {room} tokens, expected at least 1")
    units: list[Bounds] = []
    start, filled = 0, 0
    for at, length in enumerate(lengths.tolist()):
        if at > start and filled + length > room:
            units.append((start, at))
            start, filled = at, 0
        filled += length
    return [*units, (start, len(lengths))] if len(lengths) else units


def segment_counts(shards: Shards, language: str, most: int, pack: bool = True) -> npt.NDArray[np.int64]:
    """Return how many segments each document of a language has.

    Args:
        shards: the corpus.
        language: of the documents.
        most: as in `segments`.
        pack: as in `segments`.

    Returns:
        `[documents]`, what `len(segments(…))` is for each, computed at once.
    """
    documents, room = shards.documents(language), most - _FRAME
    if not pack:
        return shards.sentence_counts(documents)
    ends = np.cumsum(shards.sentence_counts(documents))
    cuts = np.concatenate([[0], np.cumsum(shards.sentence_lengths(documents))])  # tokens before each sentence
    counts = np.zeros(len(documents), np.int64)
    at = ends - shards.sentence_counts(documents)
    while (open_ := np.flatnonzero(at < ends)).size:
        fitting = np.searchsorted(cuts, cuts[at[open_]] + room, side="right") - 1
        at[open_] = np.clip(fitting, at[open_] + 1, ends[open_])
        counts[open_] += 1
    return counts


def segments(shards: Shards, document: int, most: int, pack: bool = True) -> list[Bounds]:
    """Return the segments of a document: consecutive sentences packed together while they fit.

    Args:
        shards: the corpus.
        document: its number.
        most: tokens of a segment, special ones included; a longer sentence is a segment by itself, cut when read.
        pack: whether sentences are packed; otherwise each is a segment.

    Returns:
        For each segment its first sentence and the one after its last, as `read_segment` takes them.
    """
    lengths = shards.sentence_lengths(range(document, document + 1))
    return pack_sentences(lengths, most - _FRAME) if pack else [(at, at + 1) for at in range(len(lengths))]


def read_segment(
    shards: Shards, document: int, bounds: Bounds, most: int, *, seen: bool = True
) -> npt.NDArray[np.int64]:
    """Read a segment of a document, with special tokens.

    Args:
        shards: the corpus.
        document: its number.
        bounds: first sentence of the segment, and the one after its last.
        most: tokens of the sequence, special ones included.
        seen: whether the sentences count as seen by the training; false for what is held out.

    Returns:
        Token ids `[n]`, int64.
    """
    read = shards.take if seen else shards.sentence
    return add_special_tokens(np.concatenate([read(document, at) for at in range(*bounds)]), shards.special, most)
