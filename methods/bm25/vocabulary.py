"""The terms of a corpus in code point order, numbered by merging sorted shards: no two of them are held at once."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench import write_strings
from methods.bm25.tokens import Numbers, Shard

Add = Callable[[npt.NDArray[Any]], None]
"""Takes the next values of a column."""


@contextmanager
def column(path: Path, dtype: npt.DTypeLike, count: int) -> Iterator[Add]:
    """Write an array of one dimension as .npy, piece by piece.

    Args:
        path: of the file.
        dtype: that values are cast to.
        count: number of values.

    Yields:
        A function that takes the next values.

    Raises:
        ValueError: in the end there is another number of values.
    """
    kind, added = np.dtype(dtype), 0
    header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": (count,)}
    with path.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, header)

        def add(values: npt.NDArray[Any]) -> None:
            nonlocal added
            added += len(values)
            stream.write(np.ascontiguousarray(values, kind).data)

        yield add
    if added != count:
        raise ValueError(f"{path}: found {added} values, expected {count}")


_WAITING = 1 << 14  # numbers of a shard that wait to be written

Entry = tuple[str, int, int]
"""A term, the shard that has it, and how many of the shard's documents do."""


@dataclass(frozen=True)
class Vocabulary:
    """The terms of a corpus."""

    frequencies: Numbers  # how many documents hold each term, `[terms]`
    sizes: tuple[int, ...]  # how many terms each shard has
    folder: Path  # where their numbers lie

    def numbers(self, shard: int) -> Numbers:
        """Return the numbers of a shard's terms, ascending, `[terms of the shard]`."""
        return np.fromfile(_numbers(self.folder, shard), np.int32)


def number_terms(shards: Iterable[Shard], work: Path, out: Path, name: str) -> Vocabulary:
    """Number the terms of all shards and write them, sorted, as `bench.data.formats.string_array` does.

    Memory holds one shard, then 12 bytes a term.

    Args:
        shards: of the corpus, in order.
        work: an empty folder, which the vocabulary reads later.
        out: folder of the sorted terms.
        name: of their files.
    """
    sizes = []
    for number, shard in enumerate(shards):
        counts = shard.postings().frequencies.tolist()
        with _run(work, number).open("w", encoding="utf-8", newline="\n") as stream:  # no term has a blank or line feed
            stream.writelines(f"{term} {count}\n" for term, count in zip(shard.terms, counts, strict=True))
        sizes.append(len(shard.terms))
    frequencies = array("i")
    write_strings(out, name, _merged(len(sizes), work, frequencies))
    return Vocabulary(np.frombuffer(frequencies, np.int32), tuple(sizes), work)


def _entries(path: Path, shard: int) -> Iterator[Entry]:
    """Yield the sorted terms of a shard, with their frequencies there."""
    with path.open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            term, _, count = line.rpartition(" ")
            yield term, shard, int(count)


def _merged(runs: int, work: Path, frequencies: array[int]) -> Iterator[str]:
    """Yield each term once, in order; note how many documents hold it, and its number for every shard that has it."""
    waiting = [array("i") for _ in range(runs)]
    for shard in range(runs):
        _numbers(work, shard).touch()
    entries = heapq.merge(*(_entries(_run(work, shard), shard) for shard in range(runs)))
    for number, (term, entries_of_term) in enumerate(groupby(entries, key=itemgetter(0))):
        frequency = 0
        for _, shard, count in entries_of_term:
            frequency += count
            waiting[shard].append(number)
            if len(waiting[shard]) >= _WAITING:
                _flush(work, shard, waiting[shard])
        frequencies.append(frequency)
        yield term
    for shard, numbers in enumerate(waiting):
        _flush(work, shard, numbers)


def _flush(work: Path, shard: int, numbers: array[int]) -> None:
    """Write numbers that wait."""
    with _numbers(work, shard).open("ab") as stream:
        numbers.tofile(stream)
    del numbers[:]


def _run(work: Path, shard: int) -> Path:
    """Return where the terms of a shard lie."""
    return work / f"terms-{shard:05d}.txt"


def _numbers(work: Path, shard: int) -> Path:
    """Return where their numbers lie."""
    return work / f"numbers-{shard:05d}.i4"
