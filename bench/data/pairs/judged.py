"""Pairs from judgements: the training questions of a task, a BEIR folder's split, a data set of ir_datasets.

Conventions: passages of grade 1 and more are positives, those of higher grades first; passages that were judged and do
not answer (grade 0 and less) are negatives. A query without a positive is left out. The corpus is streamed once, and of
it only the passages that are named are kept, on disk; the queries that are named are held in memory. Texts without a
language have that of their subset or corpus.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
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
    Outcomes,
    PairOutcome,
    PairSource,
    is_empty,
    pair,
    pair_source,
    reader,
)
from bench.types import Corpus, Item, Judgement, Source, Subset

CODE = "subset-pairs/1"
MSMARCO = "msmarco-passage/train"
"""Id in ir_datasets of MS MARCO's training queries."""

_COUNTS = {MSMARCO: {"queries": 502_939, "qrels": 532_761}}

Unknown = Literal["refuse", "keep"]
"""What becomes of judged passages that the corpus lacks: the data are refused, or these are left out."""


def from_subset(subset: Subset, name: str, unknown: Unknown = "refuse") -> PairSource:
    """Return the pairs that judgements make of queries and a corpus.

    Args:
        subset: queries, judgements and corpus; `counts` are checked.
        name: where the pairs come from, e.g. `mrtydi/sw train`.
        unknown: what becomes of judged passages that the corpus lacks (`data.unknown_ids`).

    Raises:
        UsageError: if answers alone say what is right. Reading raises `DataError` or `DataFaultsError` for a malformed
            record, an unknown id (with its line), or other counts than the subset's.
    """
    if subset.qrels is None:
        raise UsageError(
            where=name,
            found="answers and no judgements of passages",
            expected="judgements",
            hint="training needs passages, e.g. a file in DPR's form",
        )
    sources: tuple[Source[Item] | Source[Judgement], ...] = (subset.queries, subset.qrels, subset.corpus.items)
    files = tuple(path for source in sources for path in source.files)
    readers = [source.reader for source in sources]
    code = reader(CODE, name, unknown, subset.language, subset.corpus.language, dict(subset.counts), readers)
    return pair_source(name, code, files, partial(_read_subset, subset, subset.qrels, name, unknown), sources)


def pairs_of_split(folder: Path, split: str, name: str = "", language: str = "") -> PairSource:
    """Return the pairs of a split of a folder in BEIR's layout.

    Args:
        folder: the folder.
        split: e.g. `train`.
        name: what messages call the folder; default: its own name.
        language: ISO 639 code of texts that do not say theirs.

    Errors are those of `from_subset` and `bench.data.formats.beir.corpus`.
    """
    name = name or folder.name
    corpus = Corpus(name, beir.corpus(folder, name), language)
    subset = Subset("", beir.queries(folder, name), beir.qrels(folder, split, name), corpus, language)
    return from_subset(subset, f"{name} {split}")


def irds_pairs(dataset: str = MSMARCO) -> PairSource:
    """Return the pairs of a data set of ir_datasets, e.g. `beir/nq/train`. Errors as in `from_subset` and `sources`."""
    sources = irds.sources(dataset)
    subset = Subset(
        "", sources.queries, sources.qrels, Corpus(dataset, sources.corpus), counts=_COUNTS.get(dataset, {})
    )
    return from_subset(subset, dataset)


def _read_subset(subset: Subset, qrels: Source[Judgement], name: str, unknown: Unknown) -> Outcomes:
    """Stream (number from 1, outcome), in the order in which the judgements name the queries first."""
    judged: dict[str, list[Judgement]] = {}
    for row in qrels.read():
        judged.setdefault(row.query, []).append(row)
    counts = {"queries": ("judged queries", len(judged)), "qrels": ("judgements", sum(map(len, judged.values())))}
    for key, (words, count) in counts.items():
        if subset.counts.get(key, count) != count:
            hint = "this is not the published release: fetch it again"
            raise DataError(place(qrels), None, f"{count:,} {words}", f"{subset.counts[key]:,}", hint)
    queries = {item.id: item for item in subset.queries.read() if item.id in judged}
    with TemporaryFile(prefix="bench-pairs-") as stream:  # gone when the block ends
        spool = _Spool((row.document for rows in judged.values() for row in rows), subset.corpus, stream)
        _check_ids(subset, qrels, queries, judged, spool, unknown)
        for number, (query_id, rows) in enumerate(judged.items(), start=1):
            query = queries[query_id]
            query = query if query.language else replace(query, language=subset.language)
            yield number, _judged_pair(query, rows, spool, name)


def _judged_pair(query: Item, rows: Iterable[Judgement], spool: _Spool, name: str) -> PairOutcome:
    """Put one pair together, or say why there is none; passages of equal grades stay in the order of the file."""
    left_out: list[str] = []
    positives: list[Item] = []
    negatives: list[Item] = []
    for row in sorted(rows, key=lambda row: (row.grade < 1, -row.grade)):
        item = spool.find(row.document)
        if item is None or is_empty(item):
            left_out.append(NO_PASSAGE if item is None else NO_TEXT)
        else:
            (positives if row.grade >= 1 else negatives).append(item)
    if not query.text.strip():
        return PairOutcome(query.id, None, (NO_TEXT,))
    if not positives:
        return PairOutcome(query.id, None, (*left_out, NO_POSITIVE))
    outcome = pair(query, positives, negatives, name)
    return replace(outcome, left_out=(*left_out, *outcome.left_out))


def _check_ids(
    subset: Subset,
    qrels: Source[Judgement],
    queries: Mapping[str, Item],
    judged: Mapping[str, Sequence[Judgement]],
    spool: _Spool,
    unknown: Unknown,
) -> None:
    """Refuse ids that do not exist, each at the line that names it. Raises `DataError` or `DataFaultsError`."""
    missing = set() if unknown == "keep" else spool.missing()
    if not missing and len(queries) == len(judged):
        return
    with Faults() as faults:
        for line, row in numbered(qrels):
            if row.query not in queries:
                expected = f"the id of a query in {place(subset.queries)}"
                faults.add(DataError(place(qrels), line, f"query id {row.query!r}", expected))
            if row.document in missing:
                expected = f"the id of a passage in {place(subset.corpus.items)}"
                faults.add(DataError(place(qrels), line, f"document id {row.document!r}", expected))


_MISSING = -1
_SIZE = 32  # bits for the length of a record, below those of its offset


class _Spool:
    """Some passages of a corpus, on disk; of several with one id the first.

    Args:
        ids: the passages' ids.
        corpus: is read to its end.
        stream: takes the texts.
    """

    def __init__(self, ids: Iterable[str], corpus: Corpus, stream: IO[bytes]) -> None:
        self._spans = dict.fromkeys(ids, _MISSING)  # offset << _SIZE | size
        self._stream = stream
        end = 0
        for item in corpus.items.read():
            if self._spans.get(item.id) == _MISSING:
                row = json.dumps([item.text, item.title, item.language or corpus.language], ensure_ascii=False)
                size = stream.write(row.encode("utf-8", "surrogatepass"))
                self._spans[item.id] = end << _SIZE | size
                end += size
        stream.flush()

    def missing(self) -> set[str]:
        """Return the ids that the corpus lacks."""
        return {passage_id for passage_id, span in self._spans.items() if span == _MISSING}

    def find(self, passage_id: str) -> Item | None:
        """Read a passage, None where the corpus lacks it."""
        span = self._spans[passage_id]
        if span == _MISSING:
            return None
        row = os.pread(self._stream.fileno(), span & ((1 << _SIZE) - 1), span >> _SIZE)
        text, title, language = json.loads(row.decode("utf-8", "surrogatepass"))
        return Item(passage_id, text, title, language)
