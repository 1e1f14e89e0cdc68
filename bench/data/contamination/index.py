r"""Texts as letters, hashes of their n-grams, and the index of a test's texts that training texts are searched with.

Conventions: a text is brought to NFKC and case folded; of that, letters, marks and digits stay (`\p{L}\p{M}\p{N}`), so
that blanks, punctuation, case and width make no difference. Letters are code points, `uint32 [n]`, texts end to end.
Hashes are polynomials in 2^64 over the letters; equal runs have equal hashes, unequal ones hardly ever, and a caller
that must be sure compares the letters themselves.

The index holds some runs of each text, chosen so that every match of `bench.data.contamination.search` contains one:

* `wholes`: all letters of a text, for what equals it;
* `windows`: every eighth run of `run` − 7 letters; any `run` letters in a row contain one of them;
* `anchors`: the rarest grams. A sentence that is similar to a text of n grams holds at least `alike` × n = s of them,
  hence at least one of any n − s + 1 (prefix filtering; Chaudhuri et al. 2006, "A primitive operator for similarity
  joins in data cleaning"). A text that must occur whole needs one gram.

Which grams are anchors depends on the other texts of the test; the matches do not.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bench.config.base import Config, setting
from bench.data.formats.text import normalize

Codes = npt.NDArray[np.uint32]
Hashes = npt.NDArray[np.uint64]
Positions = npt.NDArray[np.int64]

_TEXT_END = "\n"  # between texts; no letter is normalised into it, and none composes with it
_BASE = 0x9E3779B97F4A7C15  # odd, so that it has an inverse
_INVERSE = pow(_BASE, -1, 1 << 64)
_FEWEST_BITS, _MOST_BITS = 12, 26


@lru_cache(maxsize=1)
def _is_letter() -> npt.NDArray[np.bool_]:
    """Return for every code point whether it is a letter, mark or digit, `[sys.maxunicode + 1]`."""
    return np.fromiter((unicodedata.category(chr(code))[0] in "LMN" for code in range(sys.maxunicode + 1)), np.bool_)


def normalize_texts(texts: Sequence[str]) -> tuple[Codes, Positions]:
    """Bring texts to the letters that are compared.

    Args:
        texts: any strings.

    Returns:
        The letters of all texts, end to end, uint32 `[letters]`; and where each text ends, int64 `[texts]`.
    """
    joined = _TEXT_END.join(text.replace(_TEXT_END, " ") for text in texts)
    folded = normalize("NFKC", joined).casefold()
    codes = np.frombuffer(folded.encode("utf-32-le", "surrogatepass"), "<u4")
    mask = _is_letter()[codes]
    letters = codes[mask].astype(np.uint32, copy=False)
    ends = np.append(np.cumsum(mask)[codes == ord(_TEXT_END)], len(letters)) if texts else np.zeros(0)
    return letters, ends.astype(np.int64)


def to_string(codes: Codes) -> str:
    """Return letters as a string, one character each."""
    return codes.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


def normalize_text(text: str) -> str:
    """Return the letters of one text as a string.

    Example:
        >>> normalize_text("Ｗhat's  NEW?")
        'whatsnew'
    """
    return to_string(normalize_texts([text])[0])


@lru_cache(maxsize=4)
def _powers(base: int, size: int) -> Hashes:
    """Return 1, base, base², … modulo 2^64, `[size]`."""
    powers = np.full(size, base, np.uint64)
    powers[:1] = 1
    return np.cumprod(powers, dtype=np.uint64)


class RollingHashes:
    """The hashes of all runs of a sequence of letters, of any length, from one pass over it.

    Args:
        codes: letters, uint32 `[n]`.
    """

    def __init__(self, codes: Codes) -> None:
        self._size = len(codes)
        spread = codes.astype(np.uint64) + np.uint64(_BASE)  # the finaliser of splitmix64; no code point becomes 0
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            spread = (spread ^ (spread >> np.uint64(shift))) * np.uint64(factor)
        spread ^= spread >> np.uint64(31)
        rounded = 1 << self._size.bit_length()  # so that few sizes of tables are ever made
        self._sums = np.zeros(self._size + 1, np.uint64)
        np.cumsum(spread * _powers(_BASE, rounded)[: self._size], out=self._sums[1:])
        self._inverse_powers = _powers(_INVERSE, rounded)

    def windows(self, size: int) -> Hashes:
        """Return the hash of every run of `size` letters, by its first, `[max(0, n − size + 1)]`."""
        count = max(0, self._size - size + 1)
        hashes = self._sums[size : size + count] - self._sums[:count]
        hashes *= self._inverse_powers[:count]
        return hashes

    def spans(self, first: Positions, end: Positions) -> Hashes:
        """Return the hashes of the runs from `first` to before `end`, both int64 `[runs]`; uint64 `[runs]`."""
        hashes: Hashes = (self._sums[end] - self._sums[first]) * self._inverse_powers[first]
        return hashes


def ranges(first: npt.NDArray[Any], counts: npt.NDArray[Any]) -> Positions:
    """Return `first[0], first[0] + 1, …` (`counts[0]` of them), then the same of the next, end to end."""
    before = np.cumsum(counts) - counts
    numbers: Positions = np.arange(int(counts.sum()), dtype=np.int64) + np.repeat(first - before, counts)
    return numbers


STRIDE = 8
"""Places between two windows of a text."""

ROUNDING = 1e-9
"""Tolerance of a share times a count: 0.7 × 10 is a little less than 7, 0.1 × 3 a little more than 0.3."""

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
    return frozenset(text[start : start + size] for start in range(len(text) - size + 1))


class CandidatePairs(NamedTuple):
    """Pairs of a place in training letters and a text that may be there; columns int64 `[pairs]`."""

    texts: Positions  # numbers of the texts
    places: Positions  # first letter of the common run in the training letters, ascending
    offsets: Positions  # first letter of it in the text

    def select(self, mask: npt.NDArray[np.bool_]) -> CandidatePairs:
        """Return the pairs that are marked, `mask` being `[pairs]`."""
        return CandidatePairs(*(column[mask] for column in self))


class RunTable:
    """Runs of one length, found by their hashes; a hash that is not in the table costs reading one byte.

    Args:
        size: letters of a run.
        texts: number of each run's text, int64 `[runs]`.
        offsets: where in its text each run starts, int64 `[runs]`.
        hashes: hash of each run, uint64 `[runs]`, in any order, with repeats.
    """

    def __init__(self, size: int, texts: Positions, offsets: Positions, hashes: Hashes) -> None:
        self.size = size
        order = np.argsort(hashes, kind="stable").astype(np.int64)
        self._texts, self._offsets, self._hashes = texts[order], offsets[order], hashes[order]
        bits = min(max(len(hashes).bit_length() + 4, _FEWEST_BITS), _MOST_BITS)
        self._shift = np.uint64(64 - bits)
        self._prefixes = np.zeros(1 << bits, np.bool_)
        self._prefixes[hashes >> self._shift] = True

    def find(self, hashes: Hashes) -> CandidatePairs:
        """Return every pair of one of `hashes` (its index is the place, `[n]`) and an equal run."""
        likely = np.flatnonzero(self._prefixes[hashes >> self._shift])
        first = np.searchsorted(self._hashes, hashes[likely], "left")
        counts = np.searchsorted(self._hashes, hashes[likely], "right") - first
        rows = ranges(first, counts)
        return CandidatePairs(self._texts[rows], np.repeat(likely, counts), self._offsets[rows])


class TextIndex:
    """The texts of a test, as `bench.data.contamination.search` looks for them.

    Args:
        texts: the texts.
        questions: which of them are compared by their grams too, `[texts]`.
        rules: what counts as overlap.
    """

    def __init__(self, texts: Sequence[str], questions: Sequence[bool], rules: AuditConfig) -> None:
        self.rules = rules
        self.codes, self.ends = normalize_texts(texts)
        self.first = np.append(0, self.ends)[:-1].astype(np.int64)
        self.lengths = self.ends - self.first
        self.questions = np.array(questions, np.bool_) & (self.lengths >= 2 * rules.gram)
        blocks = [
            hashes.spans(self.first[texts] - start, self.ends[texts] - start) for texts, start, hashes in self._blocks()
        ]
        self.hashes = np.concatenate([np.zeros(0, np.uint64), *blocks])
        filled = np.flatnonzero(self.lengths)
        self.wholes = RunTable(0, filled, np.zeros_like(filled), self.hashes[filled])
        window = rules.run - STRIDE + 1
        self.windows = RunTable(window, *self._runs(window, STRIDE, self.lengths >= rules.run))
        self.anchors, self.gram_counts = self._rarest_grams()
        self._grams: dict[int, frozenset[str]] = {}

    def letters(self, text: int) -> Codes:
        """Return the letters of a text by its number."""
        return self.codes[self.first[text] : self.ends[text]]

    def grams_of(self, text: int) -> frozenset[str]:
        """Return the grams of a text by its number."""
        if text not in self._grams:
            self._grams[text] = grams(to_string(self.letters(text)), self.rules.gram)
        return self._grams[text]

    def _blocks(self) -> Iterator[tuple[Positions, int, RollingHashes]]:
        """Stream some texts at a time: their numbers, where their letters start, and the hashes of these."""
        cuts = np.flatnonzero(np.diff(self.ends // _BLOCK)) + 1
        for numbers in np.split(np.arange(len(self.ends)), cuts):
            if len(numbers):
                start = int(self.first[numbers[0]])
                yield numbers, start, RollingHashes(self.codes[start : self.ends[numbers[-1]]])

    def _runs(self, size: int, stride: int, mask: npt.NDArray[np.bool_]) -> tuple[Positions, Positions, Hashes]:
        """Return every `stride`-th run of `size` letters of the marked texts: texts, offsets, hashes, `[runs]`."""
        texts, offsets, hashes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.uint64)]
        for numbers, start, rolling in self._blocks():
            marked = numbers[mask[numbers]]
            counts = (self.lengths[marked] - size) // stride + 1
            texts.append(np.repeat(marked, counts))
            offsets.append(ranges(np.zeros_like(counts), counts) * stride)
            first = np.repeat(self.first[marked] - start, counts) + offsets[-1]
            hashes.append(rolling.spans(first, first + size))
        return np.concatenate(texts), np.concatenate(offsets), np.concatenate(hashes)

    def _rarest_grams(self) -> tuple[RunTable, Positions]:
        """Return the anchors of questions, and of texts too short to hold a run; and how many grams each text has."""
        rules = self.rules
        short = (self.lengths >= rules.contained) & (self.lengths < rules.run)
        texts, offsets, hashes = self._runs(rules.gram, 1, short | self.questions)
        distinct = np.sort(np.unique(np.stack([texts.astype(np.uint64), hashes]), axis=1, return_index=True)[1])
        texts, offsets, hashes = texts[distinct], offsets[distinct], hashes[distinct]
        _, groups, frequencies = np.unique(hashes, return_inverse=True, return_counts=True)
        order = np.lexsort((offsets, frequencies[groups], texts))
        counts = np.bincount(texts, minlength=len(self.ends))
        common = np.ceil(counts * rules.alike - ROUNDING).astype(np.int64)
        rank = ranges(np.zeros_like(counts), counts)  # `order` leaves the texts together
        anchors = order[rank < np.where(self.questions, counts - common + 1, 1)[texts[order]]]
        return RunTable(rules.gram, texts[anchors], offsets[anchors], hashes[anchors]), counts
