"""What an overlap search looks for: the texts of a test by their letters, and the tables that propose them.

A table holds some runs of each text, so chosen that whatever the rules of `bench.data.overlap` call found contains one:

* `wholes`: all letters of a text, for what equals it;
* `windows`: every eighth run of `run` − 7 letters; any `run` letters in a row contain one of them;
* `anchors`: the rarest grams. What is so alike to a text of n grams holds at least `alike` × n = s of them, hence at
  least one of any n − s + 1. A text that is looked for as a whole alone needs one gram.

Which grams are anchors depends on the other texts looked for; what is found does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bench.data.letters import Hashes, Places, Prints, Table, letters, ranges, spelled

STRIDE = 8
"""Places between two windows of a text."""

ROUNDING = 1e-9
"""What a share times a count may be off: 0.7 × 10 is a little less than 7, 0.1 × 3 a little more than 0.3."""

_BLOCK = 1 << 20  # letters hashed at once


@dataclass(frozen=True)
class Sizes:
    """How long is what is looked for, in letters; see `bench.data.overlap.AuditConfig`.

    Args:
        run: letters in a row that make a run, more than `STRIDE`.
        contained: fewest letters of a text that is looked for within documents.
        gram: letters of a gram.
        alike: Jaccard index of the grams of a question and a sentence.
    """

    run: int
    contained: int
    gram: int
    alike: float


def grams(text: str, size: int) -> frozenset[str]:
    """The runs of `size` letters of a text, each once."""
    return frozenset(text[at : at + size] for at in range(len(text) - size + 1))


@dataclass(frozen=True)
class Proposals:
    """Pairs of a place in training letters and a text that may stand there.

    Args:
        texts: numbers of the texts, `[pairs]`.
        places: where the run begins that both have, rising.
        offsets: where it begins in the text.
    """

    texts: Places
    places: Places
    offsets: Places

    def __len__(self) -> int:
        """How many pairs there are."""
        return len(self.texts)

    def where(self, which: npt.NDArray[np.bool_] | slice) -> Proposals:
        """Some of the pairs."""
        return Proposals(self.texts[which], self.places[which], self.offsets[which])


@dataclass(frozen=True)
class Runs:
    """A table of runs of one length.

    Args:
        size: letters of a run.
        texts: whose they are, by row.
        offsets: where in the text they begin, by row.
        table: their hashes, by row.
    """

    size: int
    texts: Places
    offsets: Places
    table: Table

    def propose(self, hashes: Hashes) -> Proposals:
        """Look up the hashes of all training runs of this length."""
        found = self.table.find(hashes)
        return Proposals(self.texts[found.rows], found.places, self.offsets[found.rows])


class Needles:
    """The texts that are looked for.

    Args:
        texts: as the test gives them.
        questions: of each, whether its grams are looked for.
        sizes: how long is what is looked for.
    """

    def __init__(self, texts: Sequence[str], questions: Sequence[bool], sizes: Sizes) -> None:
        """Make the tables."""
        self.sizes = sizes
        self.codes, self.ends = letters(texts)
        self.first = np.append(0, self.ends)[:-1].astype(np.int64)
        self.lengths = self.ends - self.first
        self.questions = np.array(questions, np.bool_) & (self.lengths >= 2 * sizes.gram)
        wholes = [
            prints.spans(self.first[some] - start, self.ends[some] - start) for some, start, prints in self._cut()
        ]
        self.hashes = np.concatenate([np.zeros(0, np.uint64), *wholes])
        filled = np.flatnonzero(self.lengths)
        self.wholes = Runs(0, filled, np.zeros_like(filled), Table(self.hashes[filled]))
        self.windows = self._runs(sizes.run - STRIDE + 1, STRIDE, self.lengths >= sizes.run)[0]
        self.anchors, self.grams = self._rarest()
        self._spelled: dict[int, frozenset[str]] = {}

    def spelled(self, text: int) -> str:
        """The letters of a text."""
        return spelled(self.codes[self.first[text] : self.ends[text]])

    def grams_of(self, text: int) -> frozenset[str]:
        """The grams of a text."""
        if text not in self._spelled:
            self._spelled[text] = grams(self.spelled(text), self.sizes.gram)
        return self._spelled[text]

    def _cut(self) -> Iterator[tuple[Places, int, Prints]]:
        """Some texts at a time: their numbers, where their letters begin, and the hashes of these."""
        cuts = np.flatnonzero(np.diff(self.ends // _BLOCK)) + 1
        for some in np.split(np.arange(len(self.ends)), cuts):
            if len(some):
                start = int(self.first[some[0]])
                yield some, start, Prints(self.codes[start : self.ends[some[-1]]])

    def _runs(self, size: int, stride: int, which: npt.NDArray[np.bool_]) -> tuple[Runs, Hashes]:
        """Every so manieth run of the texts that are marked, and the hashes in the order of the rows."""
        texts, offsets, hashes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.uint64)]
        for some, start, prints in self._cut():
            chosen = some[which[some]]
            counts = (self.lengths[chosen] - size) // stride + 1
            texts.append(np.repeat(chosen, counts))
            offsets.append(ranges(np.zeros_like(counts), counts) * stride)
            begins = np.repeat(self.first[chosen] - start, counts) + offsets[-1]
            hashes.append(prints.spans(begins, begins + size))
        rows = np.concatenate(hashes)
        return Runs(size, np.concatenate(texts), np.concatenate(offsets), Table(rows)), rows

    def _rarest(self) -> tuple[Runs, Places]:
        """The anchors of questions, and of texts that are too short to hold a run; and the grams of each, counted."""
        short = (self.lengths >= self.sizes.contained) & (self.lengths < self.sizes.run)
        every, hashes = self._runs(self.sizes.gram, 1, short | self.questions)
        once = np.sort(np.unique(np.stack([every.texts.astype(np.uint64), hashes]), axis=1, return_index=True)[1])
        texts, offsets, hashes = every.texts[once], every.offsets[once], hashes[once]
        _, back, often = np.unique(hashes, return_inverse=True, return_counts=True)
        order = np.lexsort((offsets, often[back], texts))
        counts = np.bincount(texts, minlength=len(self.ends))
        needed = np.ceil(counts * self.sizes.alike - ROUNDING).astype(np.int64)
        rank = ranges(np.zeros_like(counts), counts)  # `order` keeps the texts together
        wanted = np.where(self.questions, counts - needed + 1, 1)
        kept = order[rank < wanted[texts[order]]]
        return Runs(every.size, texts[kept], offsets[kept], Table(hashes[kept])), counts
