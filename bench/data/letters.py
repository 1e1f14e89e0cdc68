r"""Texts as letters alone, and the hashes of every run of them: what texts from two sources are compared by.

Conventions: a text is brought to NFKC and case folded; of that, letters, marks and digits stay (`\p{L}\p{M}\p{N}`), so
that blanks, punctuation, case and width make no difference. Letters are code points, `uint32 [n]`, texts end to end.
Hashes are polynomials in 2^64 over the letters; equal runs have equal hashes, unequal ones hardly ever, and whoever
must be sure compares the letters themselves.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.uint32]
Hashes = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]

_END = "\n"  # between texts; nothing is normalised into it, and nothing composes with it
_BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse
_INVERSE = pow(_BASE, -1, 1 << 64)
_FEWEST_BITS, _MOST_BITS = 12, 26


def unicode_version() -> str:
    """The version of the tables that decide what a letter is; part of a key."""
    return unicodedata.unidata_version


@lru_cache(maxsize=1)
def _kept() -> npt.NDArray[np.bool_]:
    """Say of every code point whether it is a letter, mark or digit."""
    return np.fromiter((unicodedata.category(chr(code))[0] in "LMN" for code in range(sys.maxunicode + 1)), np.bool_)


def letters(texts: Sequence[str]) -> tuple[Codes, Places]:
    """Return the letters of texts, end to end, and where each text ends, `[texts]`."""
    joined = _END.join(text.replace(_END, " ") for text in texts)
    normal = unicodedata.normalize("NFKC", joined).casefold()
    codes = np.frombuffer(normal.encode("utf-32-le", "surrogatepass"), "<u4")
    kept = _kept()[codes]
    breaks = np.flatnonzero(codes == ord(_END))
    found = codes[kept].astype(np.uint32, copy=False)
    ends = np.append(np.cumsum(kept)[breaks], len(found)) if texts else np.zeros(0)
    return found, ends.astype(np.int64)


def spelled(codes: Codes) -> str:
    """Return letters as a string, one character each."""
    return codes.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


def letters_of(text: str) -> str:
    """Return the letters of one text as a string."""
    return spelled(letters([text])[0])


def _mixed(codes: Codes) -> Hashes:
    """Spread code points over 64 bits (the finaliser of splitmix64); none becomes 0."""
    found = codes.astype(np.uint64) + np.uint64(_BASE)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        found = (found ^ (found >> np.uint64(shift))) * np.uint64(factor)
    return found ^ (found >> np.uint64(31))


@lru_cache(maxsize=4)
def _powers(base: int, size: int) -> Hashes:
    """The first `size` powers of a number, in 2^64."""
    found = np.full(size, base, np.uint64)
    found[:1] = 1
    return np.cumprod(found, dtype=np.uint64)


class Prints:
    """The hashes of all runs of a sequence of letters, of any length, from one pass over it.

    Args:
        codes: the letters.
    """

    def __init__(self, codes: Codes) -> None:
        """Sum up once; every hash is then a difference."""
        self._size = len(codes)
        rounded = 1 << self._size.bit_length()  # so that few sizes of tables are ever made
        self._sums = np.zeros(self._size + 1, np.uint64)
        np.cumsum(_mixed(codes) * _powers(_BASE, rounded)[: self._size], out=self._sums[1:])
        self._back = _powers(_INVERSE, rounded)

    def windows(self, size: int) -> Hashes:
        """The hash of every run of `size` letters, by its first, `[max(0, letters − size + 1)]`."""
        count = max(0, self._size - size + 1)
        found = self._sums[size : size + count] - self._sums[:count]
        found *= self._back[:count]
        return found

    def spans(self, first: Places, end: Places) -> Hashes:
        """The hashes of the runs from `first` to before `end`, `[runs]`."""
        found: Hashes = (self._sums[end] - self._sums[first]) * self._back[first]
        return found


@dataclass(frozen=True)
class Found:
    """Pairs of equal hashes.

    Args:
        places: where among the hashes that were looked up, rising, `[pairs]`.
        rows: which row of the table, `[pairs]`.
    """

    places: Places
    rows: Places


class Table:
    """Finds hashes among many; one that is not there costs a look at one byte.

    Args:
        hashes: of the rows, in any order, with repeats.
    """

    def __init__(self, hashes: Hashes) -> None:
        """Sort once."""
        self._order = np.argsort(hashes, kind="stable").astype(np.int64)
        self._sorted = hashes[self._order]
        bits = min(max(len(hashes).bit_length() + 4, _FEWEST_BITS), _MOST_BITS)
        self._shift = np.uint64(64 - bits)
        self._there = np.zeros(1 << bits, np.bool_)
        self._there[hashes >> self._shift] = True

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self._sorted)

    def find(self, hashes: Hashes) -> Found:
        """Return every pair of a hash that is looked up and an equal row."""
        if not len(self):
            return Found(np.zeros(0, np.int64), np.zeros(0, np.int64))
        likely = np.flatnonzero(self._there[hashes >> self._shift])
        wanted = hashes[likely]
        first = np.searchsorted(self._sorted, wanted, "left")
        counts = np.searchsorted(self._sorted, wanted, "right") - first
        return Found(np.repeat(likely, counts), self._order[ranges(first, counts)])


def ranges(first: npt.NDArray[Any], counts: npt.NDArray[Any]) -> Places:
    """Return `first[0], first[0] + 1, …` (`counts[0]` of them), then the same of the next, end to end."""
    before = np.cumsum(counts) - counts
    found: Places = np.arange(int(counts.sum()), dtype=np.int64) + np.repeat(first - before, counts)
    return found
