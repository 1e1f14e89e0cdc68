"""The pool that hard negatives are mined from: the distinct passages of training pairs, and which pair judges which.

A passage is known by its title and text: the same ones under two ids are one passage of the pool, and two passages
under one id are two. Passages and pairs are numbered in their order, and searched by their numbers, since ids of pairs
promise nothing across sources.

Files, n passages and m pairs: `passages.*` (see `bench.data.formats.string_array`), canonical JSON each; `texts.npy`,
uint64 `[n]`, fingerprints of what passages say; `names.npy`, uint64 `[a]`, and `named.npy`, int32 `[a]`: hashes of all
ids, ascending, and the passages that have them; `own.npy`, int32 `[p]`, and `ids.npy`, uint64 `[p]`: the positives of
pair after pair and the hashes of their ids; `first.npy`, int64 `[m + 1]`, where those of each pair begin; `asked.npy`,
uint64 `[m, 2]`: the hash of a query's id and the fingerprint of its text; `about.json`.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.core.errors import UsageError
from bench.core.files import canonical, write_bytes
from bench.data.corpora.dedupe import fingerprint
from bench.data.formats.ids import hashed
from bench.data.formats.string_array import StoredSequence, StringArray, write_strings
from bench.data.pairs.mining import JudgedPassages
from bench.types import Item, Json, TrainingPair

_PASSAGES, _ABOUT = "passages", "about.json"
_ARRAYS = ("texts", "names", "named", "own", "ids", "first", "asked")
_CACHED = 1024  # questions whose judgements stay in memory

Marks = npt.NDArray[np.uint64]


def write_pool(folder: Path, pairs: Iterable[TrainingPair]) -> dict[str, Json]:
    """Write the pool of some pairs, holding about 150 bytes a passage and 30 for every time that one is given.

    Return passages, given (how often pairs give a passage), language (of all passages; empty where they have several).
    """
    gathered = _Gathered()
    write_strings(folder, _PASSAGES, gathered.records(pairs))
    for name, values in gathered.arrays().items():
        np.save(folder / f"{name}.npy", values, allow_pickle=False)
    counts: dict[str, Json] = {
        "passages": len(gathered.texts),
        "given": len(gathered.named),
        "language": next(iter(gathered.languages)) if len(gathered.languages) == 1 else "",
    }
    write_bytes(folder / _ABOUT, canonical(counts))
    return counts


class _Gathered:
    """What is learnt of pairs while they pass."""

    def __init__(self) -> None:
        self.texts, self.languages = array("Q"), set[str]()
        self.named, self._names = array("i"), array("Q")
        self._own, self._ids, self._first, self._asked = array("i"), array("Q"), array("q", [0]), array("Q")
        self._rows: dict[bytes, int] = {}

    def records(self, pairs: Iterable[TrainingPair]) -> Iterator[str]:
        """Yield each new passage as it is written."""
        for pair in pairs:
            passages = (*pair.positives, *pair.negatives)
            for item in passages:
                mark = hashlib.blake2b(canonical([item.title, item.text]), digest_size=16).digest()
                row = self._rows.setdefault(mark, len(self.texts))
                self.named.append(row)
                if row == len(self.texts):
                    # what it says, its title aside; its title where it says nothing else
                    self.texts.append(fingerprint([item.text if item.text.strip() else item.title]))
                    self.languages.add(item.language)
                    yield canonical(asdict(item)).decode()
            names = hashed([item.id for item in passages])
            positives = len(pair.positives)
            self._names.frombytes(names.tobytes())
            self._own.extend(self.named[-len(passages) :][:positives])
            self._ids.frombytes(names[:positives].tobytes())
            self._first.append(len(self._own))
            self._asked.frombytes(hashed([pair.query.id]).tobytes())
            self._asked.append(fingerprint([pair.query.text]))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays by name."""
        names, passage_of_id = np.frombuffer(self._names, np.uint64), np.frombuffer(self.named, np.int32)
        order = np.lexsort((passage_of_id, names))
        names, passage_of_id = names[order], passage_of_id[order]
        distinct = np.ones(len(names), np.bool_)
        distinct[1:] = (names[1:] != names[:-1]) | (passage_of_id[1:] != passage_of_id[:-1])
        queries = np.frombuffer(self._asked, np.uint64).reshape(-1, 2)
        arrays = (self.texts, names[distinct], passage_of_id[distinct], self._own, self._ids, self._first, queries)
        return {name: np.asarray(values) for name, values in zip(_ARRAYS, arrays, strict=True)}


class Pool(StoredSequence[Item]):
    """The pool that `write_pool` wrote, memory-mapped: its passages as they are searched, the number for an id.

    `texts` are the fingerprints of what its n passages say, `[n]`; `language` is theirs, empty where they have several.
    Raises `UsageError` for a folder that holds no pool.
    """

    def __init__(self, folder: Path) -> None:
        try:
            self._strings = StringArray(folder, _PASSAGES)
            arrays = [np.load(folder / f"{name}.npy", mmap_mode="r", allow_pickle=False) for name in _ARRAYS]
            self.language = str(json.loads((folder / _ABOUT).read_bytes())["language"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(where=folder, found=str(error), expected="a pool of passages on disk") from error
        self.texts, self._names, self._named, self._own, self._ids, self._first, self._asked = arrays
        self._of = lru_cache(_CACHED)(self._judged)

    def __len__(self) -> int:
        """Number of passages."""
        return len(self._strings)

    def read(self, at: int) -> Item:
        """Read one passage, its number for an id."""
        return replace(self.passage(at), id=str(at))

    def passage(self, at: int) -> Item:
        """Return a passage as the pairs gave it first, its own id included."""
        return Item(**json.loads(self._strings[at]))

    @cached_property
    def _sorted(self) -> list[tuple[npt.NDArray[np.intp], Marks]]:
        """Pairs in the order of their queries' ids, and of their texts, each with what orders them."""
        orders = [np.argsort(column, kind="stable") for column in self._asked.T]
        return [(order, column[order]) for order, column in zip(orders, self._asked.T, strict=True)]

    def judged(self, pair: int) -> JudgedPassages:
        """Return what is judged to answer a pair's query, by all pairs that ask the same id or normalised text."""
        return self._of(*self._asked[pair])

    def _judged(self, *marks: np.uint64) -> JudgedPassages:
        """Return the same by the hash of the query's id and the fingerprint of its text."""
        groups = [
            order[np.searchsorted(values, mark) : np.searchsorted(values, mark, "right")]
            for (order, values), mark in zip(self._sorted, marks, strict=True)
        ]
        pairs = np.unique(np.concatenate(groups))
        places = np.concatenate([np.arange(self._first[pair], self._first[pair + 1]) for pair in pairs.tolist()])
        rows, names = self._own[places], np.unique(self._ids[places])
        low, high = (np.searchsorted(self._names, names, side) for side in ("left", "right"))
        rows_of_ids = [self._named[start:end].tolist() for start, end in zip(low.tolist(), high.tolist(), strict=True)]
        return JudgedPassages(
            frozenset(rows.tolist()),
            frozenset(row for some in rows_of_ids for row in some),
            frozenset(self.texts[rows].tolist()),
        )
