"""What a training step is made of, and where it comes from."""

from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from bench.retrieval.packed import Ids
from bench.types import Json


@dataclass(frozen=True)
class PairBatch:
    """Two views of each of n texts, row by row; iterating yields the two views, as `encode_views` takes them."""

    left: Sequence[Ids]  # token ids of the first views, n sequences
    right: Sequence[Ids]  # of the second ones
    documents: npt.NDArray[np.int64]  # number of each text's document, `[n]`
    languages: tuple[str, ...]  # of each text, n codes
    # two halves of each held-out document, for a second probe; None: none
    halves: tuple[Sequence[Ids], Sequence[Ids]] | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self.left)

    def __iter__(self) -> Iterator[Sequence[Ids]]:
        """Yield the two views."""
        return iter((self.left, self.right))


@dataclass(frozen=True)
class Masked:
    """Sequences in which m tokens are hidden, as `Masking` makes them."""

    inputs: Sequence[Ids]  # token ids, with what replaces the hidden ones
    sequence: npt.NDArray[np.int64]  # number of the sequence of each hidden token, ascending, `[m]`
    place: npt.NDArray[np.int64]  # its position there, `[m]`
    targets: npt.NDArray[np.int64]  # its original id, `[m]`

    def __len__(self) -> int:
        """Number of sequences."""
        return len(self.inputs)


B_co = TypeVar("B_co", bound=Sized, covariant=True)
MainT = TypeVar("MainT", bound=Sized)
SideT = TypeVar("SideT", bound=Sized)


class TrackedCorpus(Protocol):
    """What a training reads, and which of it it has seen (`bench.data.corpora.shards.Shards`, for instance)."""

    @property
    def distinct_tokens(self) -> int:
        """Tokens of all texts that were seen, each text counted once."""

    def seen(self) -> npt.NDArray[np.uint8]:
        """Return which texts were seen, as a checkpoint keeps it."""

    def see(self, bits: npt.NDArray[np.uint8]) -> None:
        """Remember as seen what `seen` returned."""


class Resumable(Protocol):
    """What batches are drawn from: documents, chunks, or the batches of another source."""

    def held_out(self) -> Sequence[PairBatch]:
        """Return pairs that are never trained on, a batch a language; always the same. Empty: nothing is probed."""

    def state(self) -> Mapping[str, Json]:
        """Return what `restore` needs to go on with the next batch."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken."""


class BatchSource(Resumable, Protocol[B_co]):
    """Where the loop gets its batches from. `len` of a batch is its number of units: pairs, documents, sequences."""

    @property
    def shards(self) -> TrackedCorpus:
        """The corpus; what was read of it is what the training has seen."""

    def batch(self, rng: np.random.Generator) -> B_co:
        """Return the next batch. Chance comes from `rng` alone, whose state the loop keeps."""


CorpusT = TypeVar("CorpusT", bound=TrackedCorpus)
SamplerT = TypeVar("SamplerT", bound=Resumable)


class RandomSource(Generic[CorpusT, SamplerT]):
    """Base of batch sources that hold out, and resume, as what they draw from does; a subclass adds `batch`.

    Args:
        shards: the corpus; what is read of it counts as seen.
        sampler: what decides the order, e.g. `Documents` or `Chunks`; a subclass calls it as `self._sampler`.

    Example:
        >>> class FirstSentences(RandomSource):
        ...     def batch(self, rng):
        ...         documents = self._sampler.draw(8, rng)
        ...         return [self.shards.take(document, 0) for document in documents]
    """

    def __init__(self, shards: CorpusT, sampler: SamplerT) -> None:
        self.shards, self._sampler = shards, sampler
        self.held_out, self.state, self.restore = sampler.held_out, sampler.state, sampler.restore
        self.notes: Sequence[str] = getattr(sampler, "notes", ())  # what a log should say of the corpus


class MixtureSource(Generic[MainT, SideT]):
    """Draws each batch at random from one of two sources.

    Args:
        main: the method's own batches; it decides what is held out.
        side: those of a companion task, such as masked language modelling.
        share: probability of a batch of the companion, below 1.
    """

    def __init__(self, main: BatchSource[MainT], side: BatchSource[SideT], share: float) -> None:
        self._main, self._side, self._share = main, side, share
        self.shards, self.held_out = main.shards, main.held_out
        self.notes = (*getattr(main, "notes", ()), *getattr(side, "notes", ()))

    def batch(self, rng: np.random.Generator) -> MainT | SideT:
        """Return a batch of either; with a share of 0 no random number is drawn."""
        if self._share and rng.random() < self._share:
            return self._side.batch(rng)
        return self._main.batch(rng)

    def state(self) -> Mapping[str, Json]:
        """Return the states of both."""
        return {"main": self._main.state(), "side": self._side.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on where `state` was taken."""
        self._main.restore(state["main"])
        self._side.restore(state["side"])
