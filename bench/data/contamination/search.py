"""Search of training texts for the texts of a test, as a whole or in part: the rules, and one pass that applies them.

Everything is compared by its letters (`bench.data.contamination.index`). A text of the test is found

* `equal`: its letters are those of a whole training sentence or document;
* `contained`: it is not short, and its letters follow one another within a document;
* `run`: a number of its letters (`AuditConfig.run`) follow one another within a document;
* `alike`: a share of the grams (runs of few letters) of it and a sentence is in both: their Jaccard index, where a gram
  that the sentence repeats counts each time. Only questions are compared in this way.

The first two are called exact, the others near. Training texts are streamed: memory depends on the test, and on the
longest document. Hashes only propose; every match was compared letter by letter. Nothing that the rules name is missed,
and the matches of a text, and their first places, do not depend on the other texts of the test.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from bench.core.workspace import Advance, noop
from bench.data.contamination.index import (
    ROUNDING,
    AuditConfig,
    CandidatePairs,
    Positions,
    RollingHashes,
    TextIndex,
    grams,
    normalize_texts,
    to_string,
)

VERSION = 1
MatchKind = Literal["equal", "contained", "run", "alike"]
EXACT: tuple[MatchKind, ...] = ("equal", "contained")
NEAR: tuple[MatchKind, ...] = ("run", "alike")

_BATCH = 1 << 20  # characters compared at once
_PAIRS = 1 << 14  # candidates compared letter by letter before those already matched are dropped
_SHOWN = 160


@dataclass(frozen=True, slots=True)
class Text:
    """A training document, or a part of one that is a text of its own."""

    where: str  # a document id, or file and line
    sentences: tuple[str, ...]  # in order


@dataclass(frozen=True, slots=True)
class TestText:
    """A text of the test, to be searched for."""

    text: str
    question: bool = False  # compared by its grams too


@dataclass(frozen=True, slots=True)
class Match:
    """The first place where a text of the test occurs."""

    where: str  # the training text
    text: str  # the sentence as the training text has it; an excerpt if it is long
    letters: int = 0  # in a row; 0 for `alike`
    share: float = 0.0  # of the grams that are in both; 0 for all but `alike`


def scan(
    texts: Iterable[Text], test_texts: Sequence[TestText], rules: AuditConfig, advance: Advance = noop
) -> list[dict[MatchKind, Match]]:
    """Search training texts, which are read once, for texts of a test.

    Args:
        texts: the training texts.
        test_texts: the texts of the test.
        rules: what counts as overlap.
        advance: called with numbers of bytes compared.

    Returns:
        For each of `test_texts` the ways in which it was found, each with its first place; empty if it was not found.

    Example:
        >>> training = [Text("d1", ("The quick brown fox jumps over the lazy dog.",))]
        >>> scan(training, [TestText("the quick brown fox jumps over the lazy dog")], AuditConfig())[0]["equal"].where
        'd1'
    """
    search = _TextSearch(TextIndex([text.text for text in test_texts], [text.question for text in test_texts], rules))
    for batch in _batches(texts):
        search.add(batch)
        advance(sum(len(sentence.encode("utf-8", "surrogatepass")) for text in batch for sentence in text.sentences))
    return search.matches


def excerpt(text: str, position: float = 0.0) -> str:
    """Return a text on one line; of a long one, what follows a `position` (a share of its length)."""
    line = " ".join(text.split())
    if len(line) <= _SHOWN:
        return line
    first = min(int(position * len(line)), len(line) - _SHOWN)
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
        self.codes, ends = normalize_texts(self._sentences)
        self.sentences = np.append(0, ends).astype(np.int64)  # the start of each, and the end of the last
        self.documents = self.sentences[np.cumsum([0, *(len(text.sentences) for text in texts)])]
        self.hashes = RollingHashes(self.codes)

    def match(self, place: int, letters: int, share: float = 0.0) -> Match:
        """Return the match that starts at a letter."""
        document, row = (int(np.searchsorted(edges, place, "right")) - 1 for edges in (self.documents, self.sentences))
        first, end = int(self.sentences[row]), int(self.sentences[row + 1])
        text = excerpt(self._sentences[row], (place - first) / (end - first))
        return Match(self._texts[document].where, text, letters, share)


def _bounds(edges: Positions, places: Positions) -> tuple[Positions, Positions]:
    """Return the first letter of the sentence or document that holds each place, and the one after its last."""
    rows = np.searchsorted(edges, places, "right")
    return edges[rows - 1], edges[rows]


class _TextSearch:
    """The matches so far."""

    def __init__(self, index: TextIndex) -> None:
        self._index = index
        self.matches: list[dict[MatchKind, Match]] = [{} for _ in index.ends]
        self._unmatched: dict[MatchKind, npt.NDArray[np.bool_]] = {
            kind: np.ones(len(index.ends), np.bool_) for kind in (*EXACT, *NEAR)
        }

    def add(self, texts: Sequence[Text]) -> None:
        """Search more training texts."""
        batch, index = _LetterBatch(texts), self._index
        first = np.concatenate([batch.sentences[:-1], batch.documents[:-1]])  # of whole sentences and documents
        ends = np.concatenate([batch.sentences[1:], batch.documents[1:]])
        wholes = index.wholes.find(batch.hashes.spans(first, ends))
        self._record_wholes("equal", batch, wholes.texts, first[wholes.places], ends[wholes.places])
        windows = index.windows.find(batch.hashes.windows(index.windows.size))
        self._find_contained(batch, windows)
        self._find_runs(batch, windows)
        anchors = index.anchors.find(batch.hashes.windows(index.anchors.size))
        self._find_contained(batch, anchors)
        self._find_alike(batch, anchors)

    def _record(self, kind: MatchKind, text: int, match: Match) -> None:
        """Record the first match of a text in a way."""
        self.matches[text][kind] = match
        self._unmatched[kind][text] = False

    def _find_contained(self, batch: _LetterBatch, pairs: CandidatePairs) -> None:
        """Compare whole texts at the places of their runs."""
        index = self._index
        long_enough = index.lengths[pairs.texts] >= index.rules.contained
        pairs = pairs.select(self._unmatched["contained"][pairs.texts] & long_enough)
        first, end = _bounds(batch.documents, pairs.places)
        starts = pairs.places - pairs.offsets
        stops = starts + index.lengths[pairs.texts]
        inside = (starts >= first) & (stops <= end)
        texts, starts, stops = pairs.texts[inside], starts[inside], stops[inside]
        equal = batch.hashes.spans(starts, stops) == index.hashes[texts]
        self._record_wholes("contained", batch, texts[equal], starts[equal], stops[equal])

    def _record_wholes(
        self, kind: MatchKind, batch: _LetterBatch, texts: Positions, starts: Positions, stops: Positions
    ) -> None:
        """Record the texts whose letters are those from start to stop, where their hashes say so."""
        for row in np.argsort(starts, kind="stable").tolist():
            text, start, stop = int(texts[row]), int(starts[row]), int(stops[row])
            if self._unmatched[kind][text] and np.array_equal(self._index.letters(text), batch.codes[start:stop]):
                self._record(kind, text, batch.match(start, stop - start))

    def _find_runs(self, batch: _LetterBatch, pairs: CandidatePairs) -> None:
        """Count the letters in a row on both sides of the start of each window; record runs that are long enough."""
        for begin in range(0, len(pairs.texts), _PAIRS):
            block = CandidatePairs(*(column[begin : begin + _PAIRS] for column in pairs))
            block = block.select(self._unmatched["run"][block.texts])
            firsts, ends = _bounds(batch.documents, block.places)
            for text, place, offset, first, end in np.stack([*block, firsts, ends], axis=1).tolist():
                if not self._unmatched["run"][text]:
                    continue
                letters = self._index.letters(text)
                before, after = min(place - first, offset), min(end - place, len(letters) - offset)
                backward = batch.codes[place - before : place][::-1] == letters[offset - before : offset][::-1]
                forward = batch.codes[place : place + after] == letters[offset : offset + after]
                back, forth = (int(np.argmin(np.append(equal, False))) for equal in (backward, forward))
                if back + forth >= self._index.rules.run:
                    self._record("run", text, batch.match(place - back, back + forth))

    def _find_alike(self, batch: _LetterBatch, pairs: CandidatePairs) -> None:
        """Compare the grams of questions with those of the sentences that hold one of their anchors."""
        index, size, least = self._index, self._index.rules.gram, self._index.rules.alike
        pairs = pairs.select(index.questions[pairs.texts] & self._unmatched["alike"][pairs.texts])
        first, end = _bounds(batch.sentences, pairs.places)
        counts, text_counts = end - first - size + 1, index.gram_counts[pairs.texts]
        long_enough = (pairs.places + size <= end) & (counts >= text_counts * least - ROUNDING)
        inside = long_enough & (counts * least <= text_counts + ROUNDING)
        keys = np.unique(np.stack([first[inside], pairs.texts[inside], counts[inside]]), axis=1)
        sentence, sentence_grams = -1, frozenset[str]()
        for start, text, count in keys.T.tolist():
            if start != sentence:
                sentence, sentence_grams = start, grams(to_string(batch.codes[start : start + count + size - 1]), size)
            if self._unmatched["alike"][text]:
                text_grams = index.grams_of(text)
                common = len(text_grams & sentence_grams)
                share = common / (len(text_grams) + count - common)
                if share >= least:
                    self._record("alike", text, batch.match(start, 0, share))
