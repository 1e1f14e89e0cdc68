"""Is every id unique, and does it exist? Told for corpora too large to hold their ids.

Conventions: an id is kept as the first 64 bits of its blake2b hash (little endian), 8 bytes a document. Where two
hashes agree, the source is read a second time and the ids themselves are compared, so that a collision (about one
chance in a million for 5 million ids) raises no false alarm. `Ids.contains` could miss an unknown id only by such a
collision. A place is a line where the source is a file, else the record's number from 1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.data.faults import Faults
from bench.data.source import again, numbered, place
from bench.fsio import atomic
from bench.types import Item, Source

_BYTES = 8
_HASH = np.dtype("<u8")
_LOCATED = 1000  # repeated ids that are looked up in the second pass; enough to list, whatever the damage


def _hash(id: str) -> bytes:
    """Hash one id to 64 bits."""
    return hashlib.blake2b(id.encode(), digest_size=_BYTES).digest()


def hashed(ids: Iterable[str]) -> npt.NDArray[np.uint64]:
    """Hash ids, `[n]`."""
    return np.frombuffer(b"".join(map(_hash, ids)), _HASH)


@dataclass(frozen=True)
class Ids:
    """The ids of a corpus, as sorted hashes.

    Args:
        hashes: `[n]` unsigned 64-bit, ascending.
    """

    hashes: npt.NDArray[np.uint64]

    def __len__(self) -> int:
        """How many ids there are."""
        return len(self.hashes)

    def contains(self, ids: Collection[str]) -> list[bool]:
        """Say of each id whether the corpus has it."""
        wanted = hashed(ids)
        if not len(self.hashes):
            return [False] * len(wanted)
        at = np.minimum(np.searchsorted(self.hashes, wanted), len(self.hashes) - 1)
        there: list[bool] = (self.hashes[at] == wanted).tolist()
        return there

    def save(self, path: Path) -> None:
        """Write the hashes as .npy, atomically. Raises `OSError`."""
        with atomic(path) as stream:
            np.save(stream, self.hashes, allow_pickle=False)

    @staticmethod
    def load(path: Path) -> Ids:
        """Map the hashes that `save` wrote; nothing is read before it is asked for."""
        return Ids(np.load(path, mmap_mode="r", allow_pickle=False))


class IdCollector:
    """Collects the ids of a stream, 8 bytes each, and finds those that come twice.

    Call `add` for every record of a source, then `close` with that source.
    """

    def __init__(self) -> None:
        self._hashes = bytearray()

    def add(self, id: str) -> None:
        """Take one id."""
        self._hashes += _hash(id)

    def close(self, source: Source[Item]) -> Ids:
        """Return the ids, and forget them here.

        Args:
            source: where they came from; read again only if a hash stands twice.

        Raises:
            DataError: for one id that stands twice, with the places of both.
            DataFaultsError: for several.
        """
        hashes = np.frombuffer(self._hashes, _HASH)  # a view: sorting it needs no second copy
        self._hashes = bytearray()
        hashes.sort()
        repeated = hashes[1:][hashes[1:] == hashes[:-1]]
        if len(repeated):
            _tell_repeated(source, repeated)
        return Ids(hashes)


def _tell_repeated(source: Source[Item], repeated: npt.NDArray[np.uint64]) -> None:
    """Raise the ids that stand more than once; return if their hashes agree by chance.

    Args:
        source: where the ids came from.
        repeated: a hash for each record beyond the first with that hash, ascending.
    """
    located = np.unique(repeated)[:_LOCATED]
    raw = located.tobytes()
    places = _places(source, {raw[at : at + _BYTES] for at in range(0, len(raw), _BYTES)})
    with Faults() as faults:
        for name, lines in places.items():
            for line in lines[1:]:
                faults.add(again(f"document id {name!r}", lines[0]).at(place(source), line))
        if faults:
            faults.more += int(np.count_nonzero(repeated > located[-1]))


def locate(source: Source[Item], ids: Collection[str]) -> dict[str, list[int]]:
    """Find the places of some ids by reading the source once; an id that is not there has no entry."""
    places = _places(source, set(map(_hash, ids)))
    return {name: places[name] for name in ids if name in places}


def _places(source: Source[Item], hashes: Collection[bytes]) -> dict[str, list[int]]:
    """Find the places of the ids that have one of the hashes, in the order of the source."""
    places: dict[str, list[int]] = {}
    for at, item in numbered(source):
        if _hash(item.id) in hashes:
            places.setdefault(item.id, []).append(at)
    return places
