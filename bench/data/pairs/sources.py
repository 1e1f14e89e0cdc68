"""Sources of training pairs: what a record comes to, several sources as one, a sample of a source.

Conventions: what cannot be meant (an empty text, no positive where a record must have one) is a `RecordError`, and the
file is refused. What released files are known to hold and training cannot use is left out and counted, by the phrases
of this module: a passage that is given twice, and a negative that is also a positive. Passages are the same if their
ids are, or title and text. A sample has the pairs with the lowest hashes of seed and question id, so that a smaller
sample is part of a larger one with the same seed, whatever the order of the file.
"""

import hashlib
import heapq
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from bench.core.errors import UsageError
from bench.core.files import digest
from bench.data.formats.archive import File
from bench.data.formats.faults import Faults, RecordError
from bench.data.formats.source import Format, checked, duplicate_error, query_label
from bench.types import Item, Json, Source, TrainingPair

ALSO_POSITIVE = "negative that is also a positive"
NO_PASSAGE = "judged passage that the corpus lacks"
NO_POSITIVE = "query without a positive"
NO_TEXT = "text that is empty"
TWICE = "passage given twice for one query"

_JOINED, _SAMPLED = "joined-pairs/1", "drawn-pairs/1"


@dataclass(frozen=True, slots=True)
class PairOutcome:
    """What became of one query."""

    query: str  # its id
    pair: TrainingPair | None  # None where nothing is left to train on
    left_out: tuple[str, ...] = ()  # a phrase for each thing that was left out, e.g. `TWICE`


Outcomes = Iterator[tuple[int, PairOutcome]]
"""Stream of (place, outcome): a place is a line or the record's number, from 1."""


@dataclass(frozen=True)
class PairSource(Source[TrainingPair]):
    """Training pairs that can also say what was left out."""

    open_outcomes: Callable[[], Outcomes]  # opens the stream of all outcomes; `read` gives the pairs alone
    # pairs of the same release that weights may be chosen by, and nothing is learnt from; no part of what decides the
    # training pairs
    dev: Source[TrainingPair] | None = None


def pair_source(
    name: str,
    reader: str,
    files: Iterable[File],
    open_outcomes: Callable[[], Outcomes],
    rests_on: Iterable[Source[Any]] = (),
) -> PairSource:
    """Make a source of pairs; nothing is opened.

    Args:
        name: what messages call it.
        reader: name and version of the reading code, as `reader` returns it.
        files: decide the content; of a file in an archive the archive does.
        open_outcomes: opens the stream of outcomes; a function of a module or a `partial`, to be pickled.
        rests_on: sources that it reads, of which libraries may fetch some.
    """
    paths = dict.fromkeys(file if isinstance(file, Path) else file.archive for file in files)
    fetches = tuple(dict.fromkeys(name for source in rests_on for name in source.fetches))
    return PairSource(name, reader, tuple(paths), partial(_read, open_outcomes), open_outcomes, fetches=fetches)


def _read(open_outcomes: Callable[[], Outcomes]) -> Iterator[TrainingPair]:
    """Stream the pairs alone."""
    return (outcome.pair for _, outcome in open_outcomes() if outcome.pair is not None)


def with_dev(source: Source[TrainingPair], dev: Source[TrainingPair] | None) -> Source[TrainingPair]:
    """Attach dev pairs of the same release, if any; after sampling from the pairs they must be attached again."""
    if dev is None:
        return source
    if not isinstance(source, PairSource):
        open_outcomes = partial(outcomes, source)
        source = PairSource(
            *(source.name, source.reader, source.files, source.read, open_outcomes),
            records=source.records,
            fetches=source.fetches,
        )
    return replace(source, dev=dev)


def dev_of(source: Source[TrainingPair]) -> Source[TrainingPair] | None:
    """Return the dev pairs attached to training pairs; None where there are none."""
    return source.dev if isinstance(source, PairSource) else None


def reader(code: str, *arguments: Json) -> str:
    """Return name and version of reading code, with a hash of the arguments that decide the records besides files.

    Example:
        >>> reader("dpr-pairs/1", "nq", "en", "en")
        'dpr-pairs/1:c8fab9a50dce'
    """
    return f"{code}:{digest(list(arguments))[:12]}"


def outcomes(source: Source[TrainingPair]) -> Outcomes:
    """Stream (place from 1, outcome) of any source of pairs."""
    if isinstance(source, PairSource):
        yield from source.open_outcomes()
    else:
        for number, pair in enumerate(source.read(), start=1):
            yield number, PairOutcome(pair.query.id, pair)


def pair(query: Item, positives: Iterable[Item], negatives: Iterable[Item], source: str) -> PairOutcome:
    """Put a pair together.

    Args:
        query: the question.
        positives: passages that answer it, best first.
        negatives: passages that do not answer it, best first.
        source: where the pair comes from.

    Raises:
        RecordError: for an empty text, or no positive.
    """
    if not query.text.strip():
        raise RecordError("an empty query", "the query's text")
    left_out: list[str] = []
    answers, answer_keys = _distinct(positives, "positive", (), left_out)
    if not answers:
        raise RecordError("no positive", "at least one passage that answers the query")
    distractors, _ = _distinct(negatives, "negative", answer_keys, left_out)
    return PairOutcome(query.id, TrainingPair(query, answers, distractors, source), tuple(left_out))


def is_empty(item: Item) -> bool:
    """Return whether both title and text are empty."""
    return not (item.text.strip() or item.title.strip())


_Key = str | tuple[str, str]


def _distinct(
    items: Iterable[Item], side: str, positives: Collection[_Key], left_out: list[str]
) -> tuple[tuple[Item, ...], set[_Key]]:
    """Return the passages of one side, each once, and what identifies them. Raises `RecordError` for an empty one."""
    passages, keys = [], set[_Key]()
    for item in items:
        item_keys: set[_Key] = {item.id, (item.title, item.text)}
        if not item_keys.isdisjoint(positives):
            left_out.append(ALSO_POSITIVE)
        elif is_empty(item):
            raise RecordError(f"an empty {side}", "a passage with a text")
        elif not item_keys.isdisjoint(keys):
            left_out.append(TWICE)
        else:
            passages.append(item)
            keys |= item_keys
    return tuple(passages), keys


def read_records(
    where: File | str,
    rows: Callable[[Faults], Iterable[tuple[int, Any]]],
    what: str,
    parse: Callable[[int, Any], Sequence[PairOutcome]],
) -> Outcomes:
    """Stream the outcomes of a file of pairs, whatever its layout; all its faults are raised at the end.

    Args:
        where: what messages put before the place.
        rows: opens the file and streams (place from 1, record); may add faults of its own.
        what: one record in messages, e.g. `paragraph`.
        parse: (place, record) → the outcomes of its queries; raises `RecordError`.

    Raises:
        DataError: for a fault, or a file without a record; `DataFaultsError` for several faults.
    """
    with Faults() as faults:
        numbered = ((place, (place, record)) for place, record in rows(faults))
        parsed = checked(where, numbered, Format(what, lambda row: parse(*row)), faults)
        yield from with_unique_queries(where, parsed, faults)


def with_unique_queries(
    where: File | str, rows: Iterable[tuple[int, Sequence[PairOutcome]]], faults: Faults
) -> Outcomes:
    """Flatten records of several queries (none once `faults` holds one), and add a fault for every duplicate id."""
    first: dict[str, int] = {}
    for place, record in rows:
        for outcome in record:
            query = outcome.query
            if query in first:
                faults.add(duplicate_error(query_label(Item(query, "")), first[query]).at(where, place))
            first.setdefault(query, place)
            if not faults:
                yield place, outcome


def concatenate(sources: Mapping[str, Source[TrainingPair]], name: str) -> PairSource:
    """Return the pairs of several sources (by label), one source after the other.

    Ids get the source's label before them (`sw:12`). There are dev pairs where every source has some, so that none
    chooses for the others. Raises `UsageError` if there is no source, or a label that no id may begin with.
    """
    if not sources or any(label.split() != [label] for label in sources):
        raise UsageError(where=name, found=f"the labels {list(sources)}", expected="at least one, without white space")
    code = reader(_JOINED, {label: source.reader for label, source in sources.items()})
    files = tuple(path for source in sources.values() for path in source.files)
    joined = pair_source(name, code, files, partial(_read_joined, dict(sources)), sources.values())
    dev = {label: pairs for label, source in sources.items() if (pairs := dev_of(source)) is not None}
    return replace(joined, dev=concatenate(dev, f"{name} dev")) if len(dev) == len(sources) else joined


def _read_joined(sources: Mapping[str, Source[TrainingPair]]) -> Outcomes:
    number = 0
    for label, source in sources.items():
        for _, outcome in outcomes(source):
            number += 1
            if pair := outcome.pair:
                query, positives, negatives = (
                    tuple(replace(item, id=f"{label}:{item.id}") for item in items)
                    for items in ((pair.query,), pair.positives, pair.negatives)
                )
                pair = replace(pair, query=query[0], positives=positives, negatives=negatives)
            yield number, PairOutcome(f"{label}:{outcome.query}", pair, outcome.left_out)


def sample_pairs(source: Source[TrainingPair], count: int, seed: int) -> PairSource:
    """Return a source of `count` (at least 1) pairs of another, sampled with the seed; the other is read twice.

    Reading raises what reading that does, and `UsageError` where there are fewer pairs.
    """
    code, name = reader(_SAMPLED, source.reader, count, seed), f"{source.name}, {count:,} of them"
    sample = pair_source(name, code, source.files, partial(_read_sample, source, count, seed), [source])
    return replace(sample, records=count)


def _read_sample(source: Source[TrainingPair], count: int, seed: int) -> Outcomes:
    total = 0

    def with_pair() -> Iterator[tuple[int, tuple[int, PairOutcome]]]:
        return enumerate((place, outcome) for place, outcome in outcomes(source) if outcome.pair is not None)

    def hashes() -> Iterator[tuple[bytes, int]]:
        nonlocal total
        for number, (_, outcome) in with_pair():
            total += 1
            yield hashlib.blake2b(f"{seed} {outcome.query}".encode(), digest_size=16).digest(), number

    sample = frozenset(number for _, number in heapq.nsmallest(count, hashes()))
    if total < count:
        remedy = f"type --set tune.shots={total}, or leave it out for all of them"
        raise UsageError(
            where=source.name,
            found=f"{total:,} training pairs",
            expected=f"at least tune.shots={count}",
            hint=remedy if total else "it holds no pair",
        )
    yield from (row for number, row in with_pair() if number in sample)
