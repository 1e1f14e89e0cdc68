"""Search of training texts for the texts of a test, as a whole or in part: the rules, and one pass that applies them.

Everything is compared by its letters (`bench.data.contamination.index`). A text of the test is found

* `equal`: its letters are those of a whole training sentence or document;
* `contained`: it is not short, and its letters follow one another within a document;
* `run`: so many of its letters follow one another within a document;
* `alike`: of the grams (runs of few letters) that it or a sentence has, so many are in both: their Jaccard index, where
  a gram that the sentence repeats counts each time. Looked for in questions alone.

The first two are called exact, the others near. Training texts are streamed: memory depends on the test, and on the
longest document. Hashes only propose; whatever is reported was compared letter by letter. Nothing that the rules name
is missed, and what is found of a text, and where first, does not depend on the other texts looked for.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from bench.core.workspace import Advance, noop
from bench.data.contamination.index import (
    ROUNDING,
    STRIDE,
    AuditConfig,
    Places,
    Prints,
    Proposals,
    TextIndex,
    grams,
    letters,
    spelled,
)

VERSION = 1
How = Literal["equal", "contained", "run", "alike"]
EXACT: tuple[How, ...] = ("equal", "contained")
NEAR: tuple[How, ...] = ("run", "alike")

_BATCH = 1 << 20  # characters compared at once
_PAIRS = 1 << 14  # pairs compared letter by letter at once
_SHOWN = 160


@dataclass(frozen=True, slots=True)
class Text:
    """A training document, or a part of one that is a text of its own."""

    where: str  # a document id, or file and line
    sentences: tuple[str, ...]  # in order


@dataclass(frozen=True, slots=True)
class SoughtText:
    """A text of the test that is looked for."""

    text: str
    question: bool = False  # its grams are looked for too


@dataclass(frozen=True, slots=True)
class Hit:
    """Where a text was found first."""

    where: str  # the training text
    said: str  # the sentence found, as the training text has it; an excerpt if it is long
    letters: int = 0  # in a row; 0 for `alike`
    share: float = 0.0  # of the grams that are in both; 0 for all but `alike`


def scan(
    texts: Iterable[Text], wanted: Sequence[SoughtText], rules: AuditConfig, advance: Advance = noop
) -> list[dict[How, Hit]]:
    """Look for texts of a test in training texts, which are read once; `advance` gets the bytes compared.

    Return for each of `wanted` every way in which it was found with its first place; empty for what was not found.
    """
    search = _TextSearch(TextIndex([one.text for one in wanted], [one.question for one in wanted], rules))
    for batch in _batches(texts):
        search.add(batch)
        advance(sum(len(sentence.encode("utf-8", "surrogatepass")) for text in batch for sentence in text.sentences))
    return search.found


def excerpt(text: str, at: float = 0.0) -> str:
    """Return a text on one line; of a long one, what follows a place in it (a share of its length)."""
    line = " ".join(text.split())
    if len(line) <= _SHOWN:
        return line
    first = min(int(at * len(line)), len(line) - _SHOWN)
    return f"{'…' if first else ''}{line[first : first + _SHOWN]}{'…' if first + _SHOWN < len(line) else ''}"


def _batches(texts: Iterable[Text]) -> Iterator[list[Text]]:
    """Gather whole texts until they are large enough to be worth a step."""
    batch: list[Text] = []
    size = 0
    for text in texts:
        batch.append(text)
        size += sum(map(len, text.sentences))
        if size >= _BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class _LetterBatch:
    """Some training texts in letters."""

    def __init__(self, texts: Sequence[Text]) -> None:
        self._texts, self._sentences = texts, [sentence for text in texts for sentence in text.sentences]
        self.codes, ends = letters(self._sentences)
        self.sentences = np.append(0, ends).astype(np.int64)  # where each begins, and the end of the last
        self.documents = self.sentences[np.cumsum([0, *(len(text.sentences) for text in texts)])]
        self.prints = Prints(self.codes)

    @staticmethod
    def bounds(edges: Places, places: Places) -> tuple[Places, Places]:
        """Return the first letter of the sentence or document that each place lies in, and the one after its last."""
        at = np.searchsorted(edges, places, "right")
        return edges[at - 1], edges[at]

    def hit(self, place: int, count: int, share: float) -> Hit:
        """Return the hit at a letter."""
        document, at = (int(np.searchsorted(edges, place, "right")) - 1 for edges in (self.documents, self.sentences))
        first, end = int(self.sentences[at]), int(self.sentences[at + 1])
        said = excerpt(self._sentences[at], (place - first) / (end - first))
        return Hit(self._texts[document].where, said, count, share)


class _TextSearch:
    """What was found so far."""

    def __init__(self, needles: TextIndex) -> None:
        self._needles = needles
        self.found: list[dict[How, Hit]] = [{} for _ in needles.ends]
        self._open: dict[How, npt.NDArray[np.bool_]] = {
            how: np.ones(len(needles.ends), np.bool_) for how in (*EXACT, *NEAR)
        }

    def add(self, texts: Sequence[Text]) -> None:
        """Look into more training texts."""
        batch, needles = _LetterBatch(texts), self._needles
        self._equal(batch)
        for runs, look in ((needles.windows, self._run), (needles.anchors, self._alike)):
            pairs = runs.propose(batch.prints.windows(runs.size))
            self._contained(batch, pairs)
            look(batch, pairs)

    def _note(self, how: How, text: int, hit: Hit) -> None:
        """Remember the first place where a text was found in a way."""
        self.found[text][how] = hit
        self._open[how][text] = False

    def _equal(self, batch: _LetterBatch) -> None:
        """Compare whole sentences and documents."""
        first = np.concatenate([batch.sentences[:-1], batch.documents[:-1]])
        ends = np.concatenate([batch.sentences[1:], batch.documents[1:]])
        pairs = self._needles.wholes.propose(batch.prints.spans(first, ends))
        self._as_a_whole("equal", batch, pairs.texts, first[pairs.places], ends[pairs.places])

    def _contained(self, batch: _LetterBatch, pairs: Proposals) -> None:
        """Compare whole texts at the places of their runs."""
        needles = self._needles
        long_enough = needles.lengths[pairs.texts] >= needles.rules.contained
        pairs = pairs.where(self._open["contained"][pairs.texts] & long_enough)
        first, end = batch.bounds(batch.documents, pairs.places)
        starts = pairs.places - pairs.offsets
        stops = starts + needles.lengths[pairs.texts]
        inside = (starts >= first) & (stops <= end)
        texts, starts, stops = pairs.texts[inside], starts[inside], stops[inside]
        same = batch.prints.spans(starts, stops) == needles.hashes[texts]
        self._as_a_whole("contained", batch, texts[same], starts[same], stops[same])

    def _as_a_whole(self, how: How, batch: _LetterBatch, texts: Places, starts: Places, stops: Places) -> None:
        """Note the texts whose letters are those from start to stop, where their hashes say so."""
        needles = self._needles
        for at in np.argsort(starts, kind="stable").tolist():
            text, start, stop = int(texts[at]), int(starts[at]), int(stops[at])
            own = needles.codes[needles.first[text] : needles.ends[text]]
            if self._open[how][text] and np.array_equal(own, batch.codes[start:stop]):
                self._note(how, text, batch.hit(start, stop - start, 0.0))

    def _run(self, batch: _LetterBatch, pairs: Proposals) -> None:
        """Count the letters in a row on both sides of each window found."""
        for begin in range(0, len(pairs), _PAIRS):
            some = pairs.where(slice(begin, begin + _PAIRS))
            some = some.where(self._open["run"][some.texts])
            for at in np.flatnonzero(self._letters_in_a_row(batch, some)).tolist():
                text, place, offset = int(some.texts[at]), int(some.places[at]), int(some.offsets[at])
                if self._open["run"][text]:
                    start, count = self._whole_run(batch, text, place, offset)
                    self._note("run", text, batch.hit(start, count, 0.0))

    def _letters_in_a_row(self, batch: _LetterBatch, pairs: Proposals) -> npt.NDArray[np.bool_]:
        """Return which windows lie in a run, `[pairs]`."""
        needles, run = self._needles, self._needles.rules.run
        more, window = STRIDE - 1, run - STRIDE + 1
        reach = np.arange(-more, window + more)
        here, there = pairs.places[:, None] + reach, (needles.first[pairs.texts] + pairs.offsets)[:, None] + reach
        first, end = batch.bounds(batch.documents, pairs.places)
        valid = (here >= first[:, None]) & (here < end[:, None])
        valid &= (there >= needles.first[pairs.texts][:, None]) & (there < needles.ends[pairs.texts][:, None])
        same = valid & (batch.codes.take(here, mode="clip") == needles.codes.take(there, mode="clip"))
        before = np.cumprod(same[:, :more][:, ::-1], axis=1).sum(axis=1)
        after = np.cumprod(same[:, more + window :], axis=1).sum(axis=1)
        return np.asarray(same[:, more : more + window].all(axis=1) & (before + window + after >= run))

    def _whole_run(self, batch: _LetterBatch, text: int, place: int, offset: int) -> tuple[int, int]:
        """Return where a run begins that goes through a place, and how many letters it has."""
        needles = self._needles
        first, end = (int(edge[0]) for edge in batch.bounds(batch.documents, np.array([place])))
        own = needles.codes[needles.first[text] : needles.ends[text]]
        before = min(place - first, offset)
        after = min(end - place, len(own) - offset)
        left = batch.codes[place - before : place][::-1] == own[offset - before : offset][::-1]
        right = batch.codes[place : place + after] == own[offset : offset + after]
        back, forth = (int(np.argmin(np.append(same, False))) for same in (left, right))
        return place - back, back + forth

    def _alike(self, batch: _LetterBatch, pairs: Proposals) -> None:
        """Compare the grams of questions with those of the sentences that hold one of their anchors."""
        needles, size = self._needles, self._needles.rules.gram
        pairs = pairs.where(needles.questions[pairs.texts] & self._open["alike"][pairs.texts])
        first, end = batch.bounds(batch.sentences, pairs.places)
        counts, ours = end - first - size + 1, needles.grams[pairs.texts]
        least = needles.rules.alike
        inside = (
            (pairs.places + size <= end) & (counts >= ours * least - ROUNDING) & (counts * least <= ours + ROUNDING)
        )
        keys = np.unique(np.stack([first[inside], pairs.texts[inside], counts[inside]]), axis=1)
        sentence, theirs = -1, frozenset[str]()
        for start, text, count in keys.T.tolist():
            if start != sentence:
                sentence, theirs = start, grams(spelled(batch.codes[start : start + count + size - 1]), size)
            if self._open["alike"][text]:
                own = needles.grams_of(text)
                common = len(own & theirs)
                share = common / (len(own) + count - common)
                if share >= least:
                    self._note("alike", text, batch.hit(start, 0, share))
