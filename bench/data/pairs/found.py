"""What a record of training data comes to: a pair, and what was left out of it.

Conventions: what cannot be meant (an empty text, no positive where a record must have one) is a `RecordError`, and the
file is refused. What released files are known to hold and training cannot use is left out and counted, by the phrases
of this module: a passage that is given twice, and a negative that is also a positive. Passages are the same if their
ids are, or title and text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bench.data.archive import File
from bench.data.faults import Faults, RecordError
from bench.data.source import again, once_asked
from bench.fsio import digest
from bench.types import Item, Json, Source, TrainingPair

ALSO_POSITIVE = "negative that is also a positive"
NO_PASSAGE = "judged passage that the corpus lacks"
NO_POSITIVE = "query without a positive"
NO_TEXT = "text that is empty"
TWICE = "passage given twice for one query"


@dataclass(frozen=True, slots=True)
class Found:
    """What became of one query.

    Args:
        query: its id.
        pair: None where nothing is left to train on.
        left_out: why something was left out, a phrase for each such thing.
    """

    query: str
    pair: TrainingPair | None
    left_out: tuple[str, ...] = ()


Stream = Callable[[], Iterator[tuple[int, Found]]]
"""Opens (place, what was found there): the line or the record's number, from 1. Raises as `Source.read` does."""


@dataclass(frozen=True)
class PairSource(Source[TrainingPair]):
    """Training pairs that can also say what was left out.

    Args:
        found: opens the stream of everything; `read` gives the pairs alone.
        dev: pairs of the same release that weights may be chosen by, and nothing is learnt from; None where there are
            none. No part of what decides the training pairs.
    """

    found: Stream
    dev: Source[TrainingPair] | None = None


def pair_source(name: str, reader: str, files: Iterable[File], found: Stream) -> PairSource:
    """Make a source of pairs; nothing is opened.

    Args:
        name: what messages call it.
        reader: see `bench.types.Source` and `reader` here.
        files: that decide its content; of a file in an archive, the archive does.
        found: a function of a module (or a `partial` of one), so that the source can be pickled.
    """
    paths = dict.fromkeys(file if isinstance(file, Path) else file.archive for file in files)
    return PairSource(name, reader, tuple(paths), partial(_pairs, found), found)


def with_dev(source: Source[TrainingPair], dev: Source[TrainingPair] | None) -> Source[TrainingPair]:
    """Put dev pairs beside training pairs; whoever draws from these or leaves some out puts them there again.

    Args:
        source: the training pairs.
        dev: of the same release; None where it has none, and the source is as it was.
    """
    if dev is None:
        return source
    return replace(_whole(source), dev=dev)


def dev_of(source: Source[TrainingPair]) -> Source[TrainingPair] | None:
    """Return the dev pairs beside training pairs; None where there are none."""
    return source.dev if isinstance(source, PairSource) else None


def reader(code: str, *said: Json) -> str:
    """Name what reads, and what it was told, in a word.

    Args:
        code: name and version of the code, e.g. `dpr-pairs/1`.
        said: whatever decides the records beside the files.
    """
    return f"{code}:{digest(list(said))[:12]}"


def outcomes(source: Source[TrainingPair]) -> Iterator[tuple[int, Found]]:
    """Stream (place from 1, what was found) of any source of pairs."""
    if isinstance(source, PairSource):
        yield from source.found()
    else:
        for number, pair in enumerate(source.read(), start=1):
            yield number, Found(pair.query.id, pair)


def pair(query: Item, positives: Iterable[Item], negatives: Iterable[Item], source: str) -> Found:
    """Put a pair together.

    Args:
        query: what is asked.
        positives: that answer it.
        negatives: that do not, best first.
        source: where it comes from.

    Raises:
        RecordError: an empty query or passage, or no positive.
    """
    if not query.text.strip():
        raise RecordError("an empty query", "the query's text")
    answering = _Passages("positive")
    left_out = [TWICE for item in positives if not answering.add(item)]
    if not answering.kept:
        raise RecordError("no positive", "at least one passage that answers the query")
    misleading = _Passages("negative")
    for item in negatives:
        if answering.has(item):
            left_out.append(ALSO_POSITIVE)
        elif not misleading.add(item):
            left_out.append(TWICE)
    return Found(query.id, TrainingPair(query, tuple(answering.kept), tuple(misleading.kept), source), tuple(left_out))


def empty(item: Item) -> bool:
    """Whether neither title nor text says anything."""
    return not (item.text.strip() or item.title.strip())


class _Passages:
    """The passages of one side of a pair, each once.

    Args:
        what: one of them is called in messages.
    """

    def __init__(self, what: str) -> None:
        """Begin with none."""
        self.kept: list[Item] = []
        self._what = what
        self._ids: set[str] = set()
        self._texts: set[tuple[str, str]] = set()

    def has(self, item: Item) -> bool:
        """Whether the passage is among them."""
        return item.id in self._ids or (item.title, item.text) in self._texts

    def add(self, item: Item) -> bool:
        """Take a passage; say whether it was new. Raises `RecordError` where it is empty."""
        if empty(item):
            raise RecordError(f"an empty {self._what}", "a passage with a text")
        if self.has(item):
            return False
        self.kept.append(item)
        self._ids.add(item.id)
        self._texts.add((item.title, item.text))
        return True


def unique(
    where: File | str, rows: Iterable[tuple[int, tuple[Found, ...]]], faults: Faults
) -> Iterator[tuple[int, Found]]:
    """Flatten records of several queries, and add a fault for every query id that stands a second time.

    Args:
        where: what the rows come from, for messages.
        rows: (place, what was found there).
        faults: takes the faults; once it holds one, nothing is handed on.
    """
    first: dict[str, int] = {}
    for at, some in rows:
        for one in some:
            if one.query in first:
                faults.add(again(once_asked(Item(one.query, "")), first[one.query]).at(where, at))
            first.setdefault(one.query, at)
            if not faults:
                yield at, one


def _whole(source: Source[TrainingPair]) -> PairSource:
    """Let any source of pairs say what was left out."""
    if isinstance(source, PairSource):
        return source
    return PairSource(source.name, source.reader, source.files, source.read, partial(outcomes, source))


def _pairs(found: Stream) -> Iterator[TrainingPair]:
    """Stream the pairs alone."""
    for _, one in found():
        if one.pair is not None:
            yield one.pair
