"""Sources of training pairs: what a record comes to, several sources as one, some pairs of a source.

Conventions: what cannot be meant (an empty text, no positive where a record must have one) is a `RecordError`, and the
file is refused. What released files are known to hold and training cannot use is left out and counted, by the phrases
of this module: a passage that is given twice, and a negative that is also a positive. Passages are the same if their
ids are, or title and text. A random draw takes the pairs with the lowest hashes of seed and question id, so that a
smaller draw is part of a larger one with the same seed, whatever the order of the file.
"""

import hashlib
import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from bench.core.errors import UsageError
from bench.core.files import digest
from bench.data.formats.archive import File
from bench.data.formats.faults import Faults, RecordError
from bench.data.formats.source import duplicate_error, query_label
from bench.types import Item, Json, Source, TrainingPair

ALSO_POSITIVE = "negative that is also a positive"
NO_PASSAGE = "judged passage that the corpus lacks"
NO_POSITIVE = "query without a positive"
NO_TEXT = "text that is empty"
TWICE = "passage given twice for one query"


@dataclass(frozen=True, slots=True)
class PairOutcome:
    """What became of one query."""

    query: str  # its id
    pair: TrainingPair | None  # None where nothing is left to train on
    left_out: tuple[str, ...] = ()  # why something was left out, a phrase for each such thing


Stream = Callable[[], Iterator[tuple[int, PairOutcome]]]
"""Opens (place, what was found there): the line or the record's number, from 1. Raises as `Source.read` does."""


@dataclass(frozen=True)
class PairSource(Source[TrainingPair]):
    """Training pairs that can also say what was left out."""

    found: Stream  # opens the stream of everything; `read` gives the pairs alone
    # pairs of the same release that weights may be chosen by, and nothing is learnt from; no part of what decides the
    # training pairs
    dev: Source[TrainingPair] | None = None


def pair_source(name: str, reader: str, files: Iterable[File], found: Stream) -> PairSource:
    """Make a source of pairs called `name`; nothing is opened.

    `files` decide its content, of a file in an archive the archive. `found` is a function of a module (or a `partial`),
    so that the source can be pickled.
    """
    paths = dict.fromkeys(file if isinstance(file, Path) else file.archive for file in files)
    return PairSource(name, reader, tuple(paths), partial(_pairs, found), found)


def with_dev(source: Source[TrainingPair], dev: Source[TrainingPair] | None) -> Source[TrainingPair]:
    """Attach dev pairs of the same release, if any; whoever draws from the pairs attaches them again."""
    if dev is None:
        return source
    if not isinstance(source, PairSource):
        given = source.name, source.reader, source.files, source.read, partial(outcomes, source)
        source = PairSource(*given, records=source.records)
    return replace(source, dev=dev)


def dev_of(source: Source[TrainingPair]) -> Source[TrainingPair] | None:
    """Return the dev pairs attached to training pairs; None where there are none."""
    return source.dev if isinstance(source, PairSource) else None


def reader(code: str, *said: Json) -> str:
    """Return name and version of reading code, with a hash of what else but files decides the records."""
    return f"{code}:{digest(list(said))[:12]}"


def outcomes(source: Source[TrainingPair]) -> Iterator[tuple[int, PairOutcome]]:
    """Stream (place from 1, what was found) of any source of pairs."""
    if isinstance(source, PairSource):
        yield from source.found()
    else:
        for number, pair in enumerate(source.read(), start=1):
            yield number, PairOutcome(pair.query.id, pair)


def pair(query: Item, positives: Iterable[Item], negatives: Iterable[Item], source: str) -> PairOutcome:
    """Put a pair together, negatives best first. Raises `RecordError` for an empty text, or no positive."""
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
    found = TrainingPair(query, tuple(answering.kept), tuple(misleading.kept), source)
    return PairOutcome(query.id, found, tuple(left_out))


def empty(item: Item) -> bool:
    """Return whether neither title nor text says anything."""
    return not (item.text.strip() or item.title.strip())


class _Passages:
    """The passages of one side of a pair, each once; `what` is one of them called in messages."""

    def __init__(self, what: str) -> None:
        self.kept: list[Item] = []
        self._what = what
        self._ids: set[str] = set()
        self._texts: set[tuple[str, str]] = set()

    def has(self, item: Item) -> bool:
        """Return whether the passage is among them."""
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


def with_unique_queries(
    where: File | str, rows: Iterable[tuple[int, tuple[PairOutcome, ...]]], faults: Faults
) -> Iterator[tuple[int, PairOutcome]]:
    """Flatten records of several queries (none once `faults` holds one), and add a fault for every duplicate id."""
    first: dict[str, int] = {}
    for at, some in rows:
        for one in some:
            if one.query in first:
                faults.add(duplicate_error(query_label(Item(one.query, "")), first[one.query]).at(where, at))
            first.setdefault(one.query, at)
            if not faults:
                yield at, one


def _pairs(found: Stream) -> Iterator[TrainingPair]:
    """Stream the pairs alone."""
    return (one.pair for _, one in found() if one.pair is not None)


_JOINED = "joined-pairs/1"


def concatenate(sources: Mapping[str, Source[TrainingPair]], name: str) -> PairSource:
    """Return the pairs of several sources (by label), one source after the other.

    Ids get the source's label before them (`sw:12`). There are dev pairs where every source has some, so that none
    chooses for the others. Raises `UsageError` if there is no source, or a label that no id may begin with.
    """
    if not sources or any(label.split() != [label] for label in sources):
        raise UsageError(where=name, found=f"the labels {list(sources)}", expected="at least one, without white space")
    code = reader(_JOINED, {label: source.reader for label, source in sources.items()})
    files = tuple(path for source in sources.values() for path in source.files)
    made = pair_source(name, code, files, partial(_joined_found, dict(sources)))
    held = {label: dev for label, source in sources.items() if (dev := dev_of(source)) is not None}
    return replace(made, dev=concatenate(held, f"{name} dev")) if len(held) == len(sources) else made


def _joined_found(sources: Mapping[str, Source[TrainingPair]]) -> Iterator[tuple[int, PairOutcome]]:
    number = 0
    for label, source in sources.items():
        for _, one in outcomes(source):
            number += 1
            kept = one.pair and _labelled(one.pair, label)
            yield number, PairOutcome(f"{label}:{one.query}", kept, one.left_out)


def _labelled(pair: TrainingPair, label: str) -> TrainingPair:
    """Put a label before all ids of a pair."""

    def own(item: Item) -> Item:
        return replace(item, id=f"{label}:{item.id}")

    positives, negatives = (tuple(map(own, some)) for some in (pair.positives, pair.negatives))
    return replace(pair, query=own(pair.query), positives=positives, negatives=negatives)


_DRAWN = "drawn-pairs/1"

_BYTES = 16


def sample_pairs(source: Source[TrainingPair], count: int, seed: int) -> PairSource:
    """Return a source of `count` (at least 1) pairs of another, drawn at random, which is read twice.

    Reading raises what reading that does, and `UsageError` where there are fewer pairs.
    """
    code, name = reader(_DRAWN, source.reader, count, seed), f"{source.name}, {count:,} of them"
    return pair_source(name, code, source.files, partial(_drawn_found, source, count, seed))


def _drawn_found(source: Source[TrainingPair], count: int, seed: int) -> Iterator[tuple[int, PairOutcome]]:
    chosen = _lowest(source, count, seed)
    for number, (at, one) in enumerate(_with_pair(source)):
        if number in chosen:
            yield at, one


def _with_pair(source: Source[TrainingPair]) -> Iterator[tuple[int, PairOutcome]]:
    return ((at, one) for at, one in outcomes(source) if one.pair is not None)


def _lowest(source: Source[TrainingPair], count: int, seed: int) -> frozenset[int]:
    """Return the numbers of the pairs with the lowest hashes, from 0. Raises `UsageError` where there are too few."""
    total = 0

    def lots() -> Iterator[tuple[bytes, int]]:
        nonlocal total
        for number, (_, one) in enumerate(_with_pair(source)):
            total += 1
            yield hashlib.blake2b(f"{seed} {one.query}".encode(), digest_size=_BYTES).digest(), number

    chosen = frozenset(number for _, number in heapq.nsmallest(count, lots()))
    if total < count:
        remedy = f"type --set tune.shots={total}, or leave it out for all of them"
        raise UsageError(
            where=source.name,
            found=f"{total:,} training pairs",
            expected=f"at least tune.shots={count}",
            hint=remedy if total else "it holds no pair",
        )
    return chosen
