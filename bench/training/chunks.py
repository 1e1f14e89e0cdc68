"""Chunks: stretches of a fixed number of tokens of a language's stream, wherever sentences and documents end.

All documents of a language are read end to end. Each epoch cuts the stream anew, from another offset, and draws its
chunks in another order; seed, language and epoch decide both, so that two numbers a language say how far it was read.
Documents that are held out for probes are not in the stream.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bench.data.corpora.sampling import probabilities
from bench.data.corpora.shards import Shards
from bench.training.config import TrainingConfig
from bench.training.distributed import advance_rng, broadcast_rng, rank_slice, world_size
from bench.training.views import Documents, Epochs


class Stream:
    """The tokens of a language end to end, without the documents of some numbers."""

    def __init__(self, shards: Shards, language: str, without: Sequence[int] = ()) -> None:
        gaps = [shards.place(document) for document in sorted(without)]
        starts = np.array([0, *(end for _, end in gaps)], np.int64)
        ends = np.array([*(start for start, _ in gaps), shards.tokens_of(language)], np.int64)
        self._shards, self._language, self._starts = shards, language, starts
        self._cuts = np.concatenate([[0], np.cumsum(ends - starts)])  # places in the stream where a gap was

    def __len__(self) -> int:
        """Number of tokens."""
        return int(self._cuts[-1])

    def read(self, start: int, length: int) -> npt.NDArray[np.int64]:
        """Return `length` ids from a place on, remembered as seen; raise `IndexError` beyond the stream."""
        end = start + length
        if start < 0 or length < 1 or end > len(self):
            raise IndexError(f"the stream has {len(self)} tokens, there are no {length} from {start} on")
        pieces, run = [], int(np.searchsorted(self._cuts, start, side="right")) - 1
        while start < end:
            count = min(end, int(self._cuts[run + 1])) - start
            if count:  # a document left out at an end, or next to another one, leaves nothing between
                at = int(self._starts[run]) + start - int(self._cuts[run])
                pieces.append(self._shards.stretch(self._language, at, count).astype(np.int64))
            start, run = start + count, run + 1
        return np.concatenate(pieces)


@dataclass(frozen=True)
class Chunk:
    """A stretch of `length` tokens of a language's stream from token `start` on, not read yet."""

    language: str
    start: int
    length: int
    stream: Stream

    def read(self, part: slice) -> npt.NDArray[np.int64]:
        """Return the ids of a part, from `part.start` to before `part.stop`; only these count as seen."""
        return self.stream.read(self.start + part.start, part.stop - part.start)


class Chunks(Epochs):
    """Draws chunks of `length` tokens: a random language, its chunks in the order of an epoch.

    A language with fewer tokens is one chunk.

    Args:
        shards: the corpus.
        config: how languages are drawn, and how many pairs are held out.
        length: tokens of a chunk.
        seed: decides, with language and epoch, where chunks begin and in which order they come.

    Raises:
        UsageError: no language has two documents.
    """

    def __init__(self, shards: Shards, config: TrainingConfig, length: int, seed: int) -> None:
        documents = Documents(shards, config, least=1, seed=seed)
        streams = {
            language: Stream(shards, language, documents.held.get(language, ())) for language in shards.languages
        }
        sizes = {  # without what is held out
            language: len(stream) * shards.stock_of(language) // shards.tokens_of(language)
            for language, stream in streams.items()
        }
        shares = probabilities(sizes, config.language_exponent)
        self._streams = {language: streams[language] for language in shares}
        self._languages, self._shares = tuple(shares), np.array(list(shares.values()))
        self._config, self._length = config, length
        self.held_out = documents.held_out  # neighbouring sentences of documents that are in no stream
        super().__init__(self._languages, seed)

    def draw(self, count: int, rng: np.random.Generator) -> list[Chunk]:
        """Return this process's share of `count` chunks, of one language or each of a language drawn by itself.

        A chunk comes again only after all others of its language; where there are few, within a batch.
        """
        broadcast_rng(rng)
        count *= world_size()
        draws = 1 if self._config.language_pure else count
        choices = rng.choice(len(self._languages), size=draws, p=self._shares).tolist()
        advance_rng(rng)
        return [self._next(self._languages[at]) for at in (choices * count if draws == 1 else choices)][
            rank_slice(count)
        ]

    def _next(self, language: str) -> Chunk:
        epoch, position = self._places[language]
        if position == len(self._order(language, epoch)):
            epoch, position = epoch + 1, 0
        self._places[language] = (epoch, position + 1)
        stream = self._streams[language]
        return Chunk(language, int(self._order(language, epoch)[position]), min(self._length, len(stream)), stream)

    def _shuffled(self, language: str, chance: np.random.Generator) -> npt.NDArray[np.int64]:
        """Return where the chunks of a language begin, cut from a random offset, in a random order."""
        size = len(self._streams[language])
        length = min(self._length, size)
        offset = int(chance.integers(min(length, size - length + 1)))
        order: npt.NDArray[np.int64] = offset + length * chance.permutation((size - offset) // length)
        return order
