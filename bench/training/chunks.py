"""Chunks: stretches of a fixed number of tokens of a language's stream, wherever sentences and documents end.

All documents of a language are read end to end. Each epoch cuts the stream anew, from another offset, and draws its
chunks in another order; seed, language and epoch decide both, so that two numbers a language say how far it was read.
Documents that are held out for probes are not in the stream.

In a corpus that was mixed by weights of several (`Shards.sources`), a language has a stream of each, and all chunks of
a step are from one of them, drawn by its weight.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.data.corpora.sampling import probabilities
from bench.data.corpora.shards import Shards
from bench.training.config import TrainingConfig
from bench.training.distributed import advance_rng, broadcast_rng, rank_slice, world_size
from bench.training.views import Documents, Epochs
from bench.types import Json

_STEP = ""  # in a state: the source of the step, and how many batches of it were drawn; no stream has this name


class Stream:
    """The tokens of a language, or of its documents from a source, end to end, without some documents."""

    def __init__(self, shards: Shards, language: str, without: Sequence[int] = (), source: str = "") -> None:
        documents = shards.documents_from(language, source) if source else shards.documents(language)
        first, last = shards.place(documents[0])[0], shards.place(documents[-1])[1]
        gaps = [shards.place(document) for document in sorted(without) if document in documents]
        starts = np.array([first, *(end for _, end in gaps)], np.int64)
        ends = np.array([*(start for start, _ in gaps), last], np.int64)
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


class _Languages:
    """The streams of a source (of the whole corpus, where it is empty), and by which share each language is drawn."""

    def __init__(self, shards: Shards, source: str, held: Mapping[str, Sequence[int]], exponent: float) -> None:
        self.source = source
        streams = {
            language: Stream(shards, language, held.get(language, ()), source)
            for language in shards.languages
            if not source or shards.documents_from(language, source)
        }
        sizes = {  # without what is held out
            language: len(stream) * shards.stock_of(language) // shards.tokens_of(language)
            for language, stream in streams.items()
        }
        shares = probabilities(sizes, exponent)
        self.names = [(language, f"{language} {source}" if source else language) for language in shares]  # and streams
        self.streams = {name: streams[language] for language, name in self.names}
        self.shares = np.array(list(shares.values()))


class Chunks(Epochs):
    """Draws chunks of `length` tokens: a random language, its chunks in the order of an epoch.

    A language with fewer tokens is one chunk. Where the corpus has several sources, each step first draws one of them.

    Args:
        shards: the corpus.
        config: how languages are drawn, how many pairs are held out, and how many batches are a step.
        length: tokens of a chunk.
        seed: decides, with language and epoch, where chunks begin and in which order they come.

    Raises:
        UsageError: no language has two documents.
    """

    def __init__(self, shards: Shards, config: TrainingConfig, length: int, seed: int) -> None:
        documents = Documents(shards, config, least=1, seed=seed)
        sources = (
            _Languages(shards, source, documents.held, config.language_exponent) for source in shards.sources or ("",)
        )
        self._sources = [languages for languages in sources if languages.names]
        weights = np.array([shards.sources.get(languages.source, 1.0) for languages in self._sources])
        self._weights = weights / weights.sum()
        self._streams = {name: stream for languages in self._sources for name, stream in languages.streams.items()}
        self._step = (0, 0)  # the source of the step, and how many of its batches were drawn
        self._config, self._length = config, length
        self.held_out = documents.held_out  # neighbouring sentences of documents that are in no stream
        super().__init__(tuple(self._streams), seed)

    def state(self) -> dict[str, Json]:
        """Return what `Epochs` does by stream, and where there are several sources, how far the step is."""
        return {**super().state(), **({_STEP: list(self._step)} if len(self._sources) > 1 else {})}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken."""
        super().restore({name: place for name, place in state.items() if name != _STEP})
        self._step = tuple(state.get(_STEP, self._step))

    def draw(self, count: int, rng: np.random.Generator) -> list[Chunk]:
        """Return this process's share of `count` chunks, of one language or each of a language drawn by itself.

        A chunk comes again only after all others of its stream; where there are few, within a batch.
        """
        broadcast_rng(rng)
        count *= world_size()
        languages = self._of_step(rng)
        draws = 1 if self._config.language_pure else count
        choices = rng.choice(len(languages.names), size=draws, p=languages.shares).tolist()
        advance_rng(rng)
        return [self._next(*languages.names[at]) for at in (choices * count if draws == 1 else choices)][
            rank_slice(count)
        ]

    def _of_step(self, rng: np.random.Generator) -> "_Languages":
        """Return the languages of the source of this step; with one source no random number is drawn."""
        at, drawn = self._step
        if len(self._sources) > 1:
            if drawn % self._config.accumulate == 0:
                at, drawn = int(rng.choice(len(self._sources), p=self._weights)), 0
            self._step = (at, drawn + 1)
        return self._sources[at]

    def _next(self, language: str, name: str) -> Chunk:
        epoch, position = self._places[name]
        if position == len(self._order(name, epoch)):
            epoch, position = epoch + 1, 0
        self._places[name] = (epoch, position + 1)
        stream = self._streams[name]
        return Chunk(language, int(self._order(name, epoch)[position]), min(self._length, len(stream)), stream)

    def _shuffled(self, language: str, chance: np.random.Generator) -> npt.NDArray[np.int64]:
        """Return where the chunks of a stream begin, cut from a random offset, in a random order."""
        size = len(self._streams[language])
        length = min(self._length, size)
        offset = int(chance.integers(min(length, size - length + 1)))
        order: npt.NDArray[np.int64] = offset + length * chance.permutation((size - offset) // length)
        return order
