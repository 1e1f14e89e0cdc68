"""Checks of ids: whether each is unique, and exists, for corpora too large to hold their ids.

Conventions: an id is kept as the first 64 bits of its blake2b hash (little endian), 8 bytes a document. Where two
hashes agree, the source is read a second time and the ids themselves are compared, so that a collision (about one
chance in a million for 5 million ids) raises no false alarm. `Ids.contains` could miss an unknown id only by such a
collision. A place is a line where the source is a file, else the record's number from 1.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.core.errors import DataError
from bench.core.files import atomic
from bench.data.formats.faults import Faults
from bench.data.formats.source import duplicate_error, numbered, place
from bench.types import Item, Judgement, Source, Subset

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
    """The ids of a corpus, as sorted hashes."""

    hashes: npt.NDArray[np.uint64]  # `[n]`, ascending

    def __len__(self) -> int:
        """Number of ids."""
        return len(self.hashes)

    def contains(self, ids: Collection[str]) -> list[bool]:
        """Return for each id whether the corpus has it."""
        hashes = hashed(ids)
        if not len(self.hashes):
            return [False] * len(hashes)
        at = np.minimum(np.searchsorted(self.hashes, hashes), len(self.hashes) - 1)
        present: list[bool] = (self.hashes[at] == hashes).tolist()
        return present

    def save(self, path: Path) -> None:
        """Write the hashes as .npy, atomically."""
        with atomic(path) as stream:
            np.save(stream, self.hashes, allow_pickle=False)

    @staticmethod
    def load(path: Path) -> Ids:
        """Map the hashes that `save` wrote; nothing is read before it is asked for."""
        return Ids(np.load(path, mmap_mode="r", allow_pickle=False))


class IdCollector:
    """Collects the ids of a stream, 8 bytes each; `close` with its source finds those that come twice."""

    def __init__(self) -> None:
        self._hashes = bytearray()

    def add(self, id: str) -> None:
        """Add one id."""
        self._hashes += _hash(id)

    def close(self, source: Source[Item]) -> Ids:
        """Return the ids, forgotten here. Raises `DataError` or `DataFaultsError` with the places of duplicates."""
        hashes = np.frombuffer(self._hashes, _HASH)  # a view: sorting it needs no second copy
        self._hashes = bytearray()
        hashes.sort()
        repeated = hashes[1:][hashes[1:] == hashes[:-1]]
        if len(repeated):
            _raise_repeated(source, repeated)
        return Ids(hashes)


def _raise_repeated(source: Source[Item], repeated: npt.NDArray[np.uint64]) -> None:
    """Raise for ids that come more than once (a hash each in `repeated`, ascending), unless only hashes agree."""
    located = np.unique(repeated)[:_LOCATED]
    raw = located.tobytes()
    hashes = {raw[at : at + _BYTES] for at in range(0, len(raw), _BYTES)}
    places: dict[str, list[int]] = {}
    for at, item in numbered(source):
        if _hash(item.id) in hashes:
            places.setdefault(item.id, []).append(at)
    with Faults() as faults:
        for name, lines in places.items():
            for line in lines[1:]:
                faults.add(duplicate_error(f"document id {name!r}", lines[0]).at(place(source), line))
        if faults:
            faults.more += int(np.count_nonzero(repeated > located[-1]))


_SEARCHED = 5_000  # ids among which the nearest one is looked for


def unknown_ids(
    subset: Subset, judgements: Sequence[Judgement], queries: Sequence[Item], documents: Ids, *, check_documents: bool
) -> int:
    """Refuse judgements of unknown queries or documents; return how many documents the corpus lacks, each once.

    `documents` are the ids of the subset's corpus; without `check_documents` an unknown one is only counted. Raises
    `DataError` or `DataFaultsError` at the line of the qrels (or the number of the judgement, where no file is known).
    """
    query_ids = {item.id for item in queries}
    judged = sorted({row.document for row in judgements})
    missing = {name for name, present in zip(judged, documents.contains(judged), strict=True) if not present}
    refused = missing if check_documents else set()
    if subset.qrels and (refused or any(row.query not in query_ids for row in judgements)):
        with Faults() as faults:
            for line, row in numbered(subset.qrels):
                if row.query not in query_ids:
                    expected = f"one of the {len(query_ids):,} ids in {place(subset.queries)}"
                    quick = not faults.more and len(query_ids) <= _SEARCHED
                    near = difflib.get_close_matches(row.query, sorted(query_ids), n=1) if quick else []
                    hint = f"the nearest is {near[0]!r}" if near else ""
                    faults.add(DataError(place(subset.qrels), line, f"query id {row.query!r}", expected, hint))
                if row.document in refused:
                    expected = f"one of the {len(documents):,} ids in {place(subset.corpus.items)}"
                    faults.add(DataError(place(subset.qrels), line, f"document id {row.document!r}", expected))
    return len(missing)
