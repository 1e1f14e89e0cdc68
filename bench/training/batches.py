"""What a training step is made of, and where it comes from."""

from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from bench.retrieval.packed import Ids
from bench.types import Json


@dataclass(frozen=True)
class PairBatch:
    """Token ids of two views of n texts, row by row, as a pair; `documents` numbers their documents, int64 `[n]`."""

    left: Sequence[Ids]
    right: Sequence[Ids]
    documents: npt.NDArray[np.int64]
    languages: tuple[str, ...]

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self.left)

    def __iter__(self) -> Iterator[Sequence[Ids]]:
        """Yield the two views."""
        return iter((self.left, self.right))


@dataclass(frozen=True)
class Masked:
    """Sequences with hidden tokens in m places.

    Which sequence (ascending), the position in it, and the original id of each: int64 `[m]`.
    """

    inputs: Sequence[Ids]
    sequence: npt.NDArray[np.int64]
    place: npt.NDArray[np.int64]
    targets: npt.NDArray[np.int64]

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
DrawnT = TypeVar("DrawnT", bound=Resumable)


class RandomSource(Generic[CorpusT, DrawnT]):
    """Base of batch sources that hold out, and resume, as what they draw from does; a subclass adds `batch`."""

    def __init__(self, shards: CorpusT, drawn: DrawnT) -> None:
        self.shards, self._drawn = shards, drawn
        self.held_out, self.state, self.restore = drawn.held_out, drawn.state, drawn.restore
        self.notes: Sequence[str] = getattr(drawn, "notes", ())  # what a log should say of the corpus


class MixtureSource(Generic[MainT, SideT]):
    """Draws each batch at random: of a companion task `side` with probability `share`, else of the `main` one."""

    def __init__(self, main: BatchSource[MainT], side: BatchSource[SideT], share: float) -> None:
        self._main, self._side, self._share = main, side, share
        self.shards, self.held_out = main.shards, main.held_out
        self.notes = (*getattr(main, "notes", ()), *getattr(side, "notes", ()))

    def batch(self, rng: np.random.Generator) -> MainT | SideT:
        """Return a batch of either; without a companion (share 0) no lot is drawn."""
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
