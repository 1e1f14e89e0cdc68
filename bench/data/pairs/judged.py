"""Pairs from judgements: the training questions of a task, a BEIR folder's split, a data set of ir_datasets.

Conventions: passages of grade 1 and more are positives, those of higher grades first; passages that were judged and do
not answer (grade 0 and less) are negatives. A query without a positive is left out. The corpus is streamed once, and of
it only the passages that are named are kept, on disk; the queries that are named are held in memory. Texts without a
language have that of their leg or corpus.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Literal

from bench.core.errors import DataError, UsageError
from bench.data.formats import beir, irds
from bench.data.formats.faults import Faults
from bench.data.formats.source import numbered, place
from bench.data.pairs.sources import (
    NO_PASSAGE,
    NO_POSITIVE,
    NO_TEXT,
    PairOutcome,
    PairSource,
    empty,
    pair,
    pair_source,
    reader,
)
from bench.types import Corpus, Item, Judgement, Leg, Source

CODE = "leg-pairs/1"
MSMARCO = "msmarco-passage/train"
"""Id in ir_datasets of MS MARCO's training queries."""

_COUNTS = {MSMARCO: {"queries": 502_939, "qrels": 532_761}}

Unknown = Literal["refuse", "keep"]
"""Of judged passages that the corpus lacks: refuse the data, or leave these out."""

_NEW = "this is not the published release: fetch it again"


def from_leg(leg: Leg, name: str, unknown: Unknown = "refuse") -> PairSource:
    """Return the pairs that a leg's judgements make; they come from `name`, e.g. `mrtydi/sw train`.

    `unknown` decides what becomes of judged passages that the corpus lacks (`data.unknown_ids`). Raises `UsageError` if
    answers alone say what is right; reading raises `DataError` or `DataFaultsError`: a malformed record, an unknown id,
    or other counts than the leg's.
    """
    if leg.qrels is None:
        found, hint = "answers and no judgements of passages", "training needs passages, e.g. a file in DPR's form"
        raise UsageError(where=name, found=found, expected="judgements", hint=hint)
    sources: tuple[Source[Item] | Source[Judgement], ...] = (leg.queries, leg.qrels, leg.corpus.items)
    files = tuple(path for source in sources for path in source.files)
    said = [source.reader for source in sources]
    code = reader(CODE, name, unknown, leg.language, leg.corpus.language, dict(leg.counts), said)
    return pair_source(name, code, files, partial(_of_leg, leg, leg.qrels, name, unknown))


def pairs_of_split(folder: Path, name: str, called: str = "", language: str = "") -> PairSource:
    """Return the pairs of the split `name` of a folder in BEIR's layout, `called` so in messages.

    Errors are those of `from_leg` and `bench.data.formats.beir.corpus`.
    """
    called = called or folder.name
    corpus = Corpus(called, beir.corpus(folder, called), language)
    leg = Leg("", beir.queries(folder, called), beir.qrels(folder, name, called), corpus, language)
    return from_leg(leg, f"{called} {name}")


def irds_pairs(dataset: str = MSMARCO) -> PairSource:
    """Return the pairs of a data set of ir_datasets, e.g. `beir/nq/train`. Errors as in `from_leg` and `sources`."""
    found = irds.sources(dataset)
    leg = Leg("", found.queries, found.qrels, Corpus(dataset, found.corpus), counts=_COUNTS.get(dataset, {}))
    return from_leg(leg, dataset)


def _of_leg(leg: Leg, qrels: Source[Judgement], name: str, unknown: Unknown) -> Iterator[tuple[int, PairOutcome]]:
    grades: dict[str, list[tuple[int, str]]] = {}
    for row in qrels.read():
        grades.setdefault(row.query, []).append((row.grade, row.document))
    counted = {"queries": ("judged queries", len(grades)), "qrels": ("judgements", sum(map(len, grades.values())))}
    for key, (words, count) in counted.items():
        if leg.counts.get(key, count) != count:
            raise DataError(place(qrels), None, f"{count:,} {words}", f"{leg.counts[key]:,}", _NEW)
    keep, named = unknown == "keep", partial(_named, qrels)
    texts = LegTexts(leg.queries, leg.corpus, leg.language, place(qrels), named, keep=keep)
    yield from judged_pairs({query: _judged(rows) for query, rows in grades.items()}, texts, name)


def _judged(rows: list[tuple[int, str]]) -> JudgedIds:
    """Separate positives from negatives; equal grades stay in the order of the file."""
    best_first = sorted(rows, key=lambda row: -row[0])
    positives = [name for grade, name in best_first if grade >= 1]
    return JudgedIds(positives, [name for grade, name in best_first if grade < 1])


def _named(qrels: Source[Judgement]) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    return ((line, row.query, (row.document,)) for line, row in numbered(qrels))


Named = Callable[[], Iterator[tuple[int, str, Sequence[str]]]]
"""Opens (line, query id, passage ids) of the file that names them, to report the line of an id that does not exist."""


@dataclass(slots=True)
class JudgedIds:
    """The ids of passages that answer one query, and of those that do not."""

    positives: list[str] = field(default_factory=list)  # best first
    negatives: list[str] = field(default_factory=list)  # best first


@dataclass(frozen=True)
class LegTexts:
    """Where the texts are."""

    queries: Source[Item]
    corpus: Corpus
    language: str  # of queries that do not say their own
    where: str  # what names the ids, for messages
    named: Named  # its rows
    keep: bool = False  # leave out a passage that the corpus lacks, instead of refusing the data


def judged_pairs(judged: Mapping[str, JudgedIds], texts: LegTexts, name: str) -> Iterator[tuple[int, PairOutcome]]:
    """Stream (number from 1, what was found), in the order of the judgements, which are by query id.

    Raises `DataError` or `DataFaultsError` for an unknown id (with its line), or a malformed query or passage.
    """
    asked = {item.id: item for item in texts.queries.read() if item.id in judged}
    wanted = (document for one in judged.values() for document in (*one.positives, *one.negatives))
    with spooled(wanted, texts.corpus) as spool:
        _check(judged, texts, asked, spool)
        for number, (query, one) in enumerate(judged.items(), start=1):
            item = asked[query]
            spoken = item if item.language else replace(item, language=texts.language)
            yield number, _found(spoken, one, spool, name)


def _found(query: Item, one: JudgedIds, spool: Spool, name: str) -> PairOutcome:
    """Put one pair together, or say why there is none."""
    left_out: list[str] = []
    positives, negatives = (_read(ids, spool, left_out) for ids in (one.positives, one.negatives))
    if not query.text.strip():
        return PairOutcome(query.id, None, (NO_TEXT,))
    if not positives:
        return PairOutcome(query.id, None, (*left_out, NO_POSITIVE))
    found = pair(query, positives, negatives, name)
    return replace(found, left_out=(*left_out, *found.left_out))


def _read(ids: Sequence[str], spool: Spool, left_out: list[str]) -> list[Item]:
    """Take passages that have a text; say what was left out."""
    kept = []
    for name in ids:
        item = spool.find(name)
        if item is None or empty(item):
            left_out.append(NO_PASSAGE if item is None else NO_TEXT)
        else:
            kept.append(item)
    return kept


def _check(judged: Mapping[str, JudgedIds], texts: LegTexts, asked: Mapping[str, Item], spool: Spool) -> None:
    """Refuse ids that do not exist, each at the line that names it. Raises `DataError` or `DataFaultsError`."""
    named = (name for one in judged.values() for name in (*one.positives, *one.negatives))
    lacking = set() if texts.keep else {name for name in named if name not in spool}
    if not lacking and len(asked) == len(judged):
        return
    with Faults() as faults:
        for line, query, documents in texts.named():
            if query not in asked:
                expected = f"the id of a query in {place(texts.queries)}"
                faults.add(DataError(texts.where, line, f"query id {query!r}", expected))
            for name in documents:
                if name in lacking:
                    expected = f"the id of a passage in {place(texts.corpus.items)}"
                    faults.add(DataError(texts.where, line, f"document id {name!r}", expected))


_NOWHERE = -1
_SIZE = 32  # bits for the length of a record, below those of its place


class Spool:
    """The passages of the `wanted` ids, gathered from a corpus; `stream` takes their texts."""

    def __init__(self, wanted: Iterable[str], stream: IO[bytes]) -> None:
        self._places = dict.fromkeys(wanted, _NOWHERE)
        self._stream = stream

    def gather(self, corpus: Corpus) -> None:
        """Keep what is wanted of a corpus (its language included), which is read to its end; of one id, the first."""
        end = self._stream.seek(0, os.SEEK_END)
        for item in corpus.items.read():
            if self._places.get(item.id) == _NOWHERE:
                row = json.dumps([item.text, item.title, item.language or corpus.language], ensure_ascii=False)
                size = self._stream.write(row.encode("utf-8", "surrogatepass"))
                self._places[item.id] = end << _SIZE | size
                end += size
        self._stream.flush()

    def __contains__(self, name: str) -> bool:
        """Return whether the corpus had a passage that is wanted."""
        return self._places.get(name, _NOWHERE) != _NOWHERE

    def find(self, name: str) -> Item | None:
        """Read a passage, None where the corpus had none of that id that is wanted."""
        place = self._places.get(name, _NOWHERE)
        if place == _NOWHERE:
            return None
        row = os.pread(self._stream.fileno(), place & ((1 << _SIZE) - 1), place >> _SIZE)
        text, title, language = json.loads(row.decode("utf-8", "surrogatepass"))
        return Item(name, text, title, language)


@contextmanager
def spooled(wanted: Iterable[str], corpus: Corpus) -> Iterator[Spool]:
    """Gather the wanted passages of a corpus; the temporary file is gone when the block ends."""
    with TemporaryFile(prefix="bench-pairs-") as stream:
        spool = Spool(wanted, stream)
        spool.gather(corpus)
        yield spool
