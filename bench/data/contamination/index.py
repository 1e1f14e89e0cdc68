r"""Texts as letters, hashes of their n-grams, and the index of a test's texts that training texts are searched with.

Conventions: a text is brought to NFKC and case folded; of that, letters, marks and digits stay (`\p{L}\p{M}\p{N}`), so
that blanks, punctuation, case and width make no difference. Letters are code points, `uint32 [n]`, texts end to end.
Hashes are polynomials in 2^64 over the letters; equal runs have equal hashes, unequal ones hardly ever, and whoever
must be sure compares the letters themselves.

The index holds some runs of each text, so chosen that whatever `bench.data.contamination.search` calls found
contains one:

* `wholes`: all letters of a text, for what equals it;
* `windows`: every eighth run of `run` − 7 letters; any `run` letters in a row contain one of them;
* `anchors`: the rarest grams. What is so alike to a text of n grams holds at least `alike` × n = s of them, hence at
  least one of any n − s + 1. A text that is looked for as a whole alone needs one gram.

Which grams are anchors depends on the other texts looked for; what is found does not.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.config.base import Config, setting
from bench.core.normal import normalize

Codes = npt.NDArray[np.uint32]
Hashes = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]

_END = "\n"  # between texts; nothing is normalised into it, and nothing composes with it
_BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse
_INVERSE = pow(_BASE, -1, 1 << 64)
_FEWEST_BITS, _MOST_BITS = 12, 26


def unicode_version() -> str:
    """Return the version of the tables that decide what a letter is; part of a key."""
    return unicodedata.unidata_version


@lru_cache(maxsize=1)
def _kept() -> npt.NDArray[np.bool_]:
    """Return for every code point whether it is a letter, mark or digit."""
    return np.fromiter((unicodedata.category(chr(code))[0] in "LMN" for code in range(sys.maxunicode + 1)), np.bool_)


def letters(texts: Sequence[str]) -> tuple[Codes, Places]:
    """Return the letters of texts, end to end, and where each text ends, `[texts]`."""
    joined = _END.join(text.replace(_END, " ") for text in texts)
    normal = normalize("NFKC", joined).casefold()
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
    found = np.full(size, base, np.uint64)
    found[:1] = 1
    return np.cumprod(found, dtype=np.uint64)


class Prints:
    """The hashes of all runs of a sequence of letters, of any length, from one pass over it."""

    def __init__(self, codes: Codes) -> None:
        self._size = len(codes)
        rounded = 1 << self._size.bit_length()  # so that few sizes of tables are ever made
        self._sums = np.zeros(self._size + 1, np.uint64)
        np.cumsum(_mixed(codes) * _powers(_BASE, rounded)[: self._size], out=self._sums[1:])
        self._back = _powers(_INVERSE, rounded)

    def windows(self, size: int) -> Hashes:
        """Return the hash of every run of `size` letters, by its first, `[max(0, letters − size + 1)]`."""
        count = max(0, self._size - size + 1)
        found = self._sums[size : size + count] - self._sums[:count]
        found *= self._back[:count]
        return found

    def spans(self, first: Places, end: Places) -> Hashes:
        """Return the hashes of the runs from `first` to before `end`, `[runs]`."""
        found: Hashes = (self._sums[end] - self._sums[first]) * self._back[first]
        return found


@dataclass(frozen=True)
class HashMatches:
    """Pairs of equal hashes."""

    places: Places  # among the hashes that were looked up, ascending, `[pairs]`
    rows: Places  # of the table, `[pairs]`


class HashTable:
    """Finds hashes among many (in any order, with repeats); one that is not there costs a look at one byte."""

    def __init__(self, hashes: Hashes) -> None:
        self._order = np.argsort(hashes, kind="stable").astype(np.int64)
        self._sorted = hashes[self._order]
        bits = min(max(len(hashes).bit_length() + 4, _FEWEST_BITS), _MOST_BITS)
        self._shift = np.uint64(64 - bits)
        self._there = np.zeros(1 << bits, np.bool_)
        self._there[hashes >> self._shift] = True

    def __len__(self) -> int:
        """Number of rows."""
        return len(self._sorted)

    def find(self, hashes: Hashes) -> HashMatches:
        """Return every pair of a wanted hash and an equal row."""
        if not len(self):
            return HashMatches(np.zeros(0, np.int64), np.zeros(0, np.int64))
        likely = np.flatnonzero(self._there[hashes >> self._shift])
        wanted = hashes[likely]
        first = np.searchsorted(self._sorted, wanted, "left")
        counts = np.searchsorted(self._sorted, wanted, "right") - first
        return HashMatches(np.repeat(likely, counts), self._order[ranges(first, counts)])


def ranges(first: npt.NDArray[Any], counts: npt.NDArray[Any]) -> Places:
    """Return `first[0], first[0] + 1, …` (`counts[0]` of them), then the same of the next, end to end."""
    before = np.cumsum(counts) - counts
    found: Places = np.arange(int(counts.sum()), dtype=np.int64) + np.repeat(first - before, counts)
    return found


STRIDE = 8
"""Places between two windows of a text."""

ROUNDING = 1e-9
"""What a share times a count may be off: 0.7 × 10 is a little less than 7, 0.1 × 3 a little more than 0.3."""

_BLOCK = 1 << 20  # letters hashed at once


class AuditConfig(Config):
    """What counts as overlap."""

    run: int = setting(
        40,
        ge=2 * STRIDE,
        source="ours: about eight English words, fewer than the 13 of GPT-3 (Brown et al. 2020, appendix C)",
        help="letters in a row that a text and a training document must share",
    )
    contained: int = setting(
        30,
        ge=STRIDE,
        source="ours: about six English words; a shorter text is a phrase that has nothing to do with the test",
        help="fewest letters of a text that is looked for within documents; a shorter one must equal a sentence",
    )
    gram: int = setting(
        6,
        ge=3,
        le=STRIDE,
        source="ours: a changed word costs few grams, and hardly any two sentences share most of theirs by chance",
        help="letters of a gram; questions shorter than two grams are not compared by them",
    )
    alike: float = setting(
        0.65,
        gt=0.0,
        le=1.0,
        source="ours: a short word more or less within a question of eight words, or a letter changed",
        help="share of the grams of a question and a training sentence that must be in both",
    )


def grams(text: str, size: int) -> frozenset[str]:
    """Return the runs of `size` letters of a text, each once."""
    return frozenset(text[at : at + size] for at in range(len(text) - size + 1))


@dataclass(frozen=True)
class Proposals:
    """Pairs of a place in training letters and a text that may be there."""

    texts: Places  # numbers of the texts, `[pairs]`
    places: Places  # first letter of the common run in the training letters, ascending
    offsets: Places  # first letter of it in the text

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self.texts)

    def where(self, which: npt.NDArray[np.bool_] | slice) -> Proposals:
        """Return some of the pairs."""
        return Proposals(self.texts[which], self.places[which], self.offsets[which])


@dataclass(frozen=True)
class Runs:
    """A table of runs of one length."""

    size: int  # letters of a run
    texts: Places  # whose they are, by row
    offsets: Places  # where in the text they begin, by row
    table: HashTable  # their hashes, by row

    def propose(self, hashes: Hashes) -> Proposals:
        """Look up the hashes of all training runs of this length."""
        found = self.table.find(hashes)
        return Proposals(self.texts[found.rows], found.places, self.offsets[found.rows])


class TextIndex:
    """The texts of a test; `questions` marks those whose grams are looked for."""

    def __init__(self, texts: Sequence[str], questions: Sequence[bool], rules: AuditConfig) -> None:
        self.rules = rules
        self.codes, self.ends = letters(texts)
        self.first = np.append(0, self.ends)[:-1].astype(np.int64)
        self.lengths = self.ends - self.first
        self.questions = np.array(questions, np.bool_) & (self.lengths >= 2 * rules.gram)
        wholes = [
            prints.spans(self.first[some] - start, self.ends[some] - start) for some, start, prints in self._cut()
        ]
        self.hashes = np.concatenate([np.zeros(0, np.uint64), *wholes])
        filled = np.flatnonzero(self.lengths)
        self.wholes = Runs(0, filled, np.zeros_like(filled), HashTable(self.hashes[filled]))
        self.windows = self._runs(rules.run - STRIDE + 1, STRIDE, self.lengths >= rules.run)[0]
        self.anchors, self.grams = self._rarest()
        self._spelled: dict[int, frozenset[str]] = {}

    def spelled(self, text: int) -> str:
        """Return the letters of a text."""
        return spelled(self.codes[self.first[text] : self.ends[text]])

    def grams_of(self, text: int) -> frozenset[str]:
        """Return the grams of a text."""
        if text not in self._spelled:
            self._spelled[text] = grams(self.spelled(text), self.rules.gram)
        return self._spelled[text]

    def _cut(self) -> Iterator[tuple[Places, int, Prints]]:
        """Stream some texts at a time: their numbers, where their letters begin, and the hashes of these."""
        cuts = np.flatnonzero(np.diff(self.ends // _BLOCK)) + 1
        for some in np.split(np.arange(len(self.ends)), cuts):
            if len(some):
                start = int(self.first[some[0]])
                yield some, start, Prints(self.codes[start : self.ends[some[-1]]])

    def _runs(self, size: int, stride: int, which: npt.NDArray[np.bool_]) -> tuple[Runs, Hashes]:
        """Return every `stride`-th run of the texts that are marked, and the hashes in the order of the rows."""
        texts, offsets, hashes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.uint64)]
        for some, start, prints in self._cut():
            chosen = some[which[some]]
            counts = (self.lengths[chosen] - size) // stride + 1
            texts.append(np.repeat(chosen, counts))
            offsets.append(ranges(np.zeros_like(counts), counts) * stride)
            begins = np.repeat(self.first[chosen] - start, counts) + offsets[-1]
            hashes.append(prints.spans(begins, begins + size))
        rows = np.concatenate(hashes)
        return Runs(size, np.concatenate(texts), np.concatenate(offsets), HashTable(rows)), rows

    def _rarest(self) -> tuple[Runs, Places]:
        """The anchors of questions, and of texts that are too short to hold a run; and the grams of each, counted."""
        short = (self.lengths >= self.rules.contained) & (self.lengths < self.rules.run)
        every, hashes = self._runs(self.rules.gram, 1, short | self.questions)
        once = np.sort(np.unique(np.stack([every.texts.astype(np.uint64), hashes]), axis=1, return_index=True)[1])
        texts, offsets, hashes = every.texts[once], every.offsets[once], hashes[once]
        _, back, often = np.unique(hashes, return_inverse=True, return_counts=True)
        order = np.lexsort((offsets, often[back], texts))
        counts = np.bincount(texts, minlength=len(self.ends))
        needed = np.ceil(counts * self.rules.alike - ROUNDING).astype(np.int64)
        rank = ranges(np.zeros_like(counts), counts)  # `order` keeps the texts together
        wanted = np.where(self.questions, counts - needed + 1, 1)
        kept = order[rank < wanted[texts[order]]]
        return Runs(every.size, texts[kept], offsets[kept], HashTable(hashes[kept])), counts
