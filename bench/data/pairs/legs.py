"""Pairs from judgements: the training questions of a task, a BEIR folder's split, a data set of ir_datasets.

So are read Mr. TyDi's training questions (`suites.mrtydi.leg(language, "train", request)` is a leg), those of the
substitutes, BEIR's and MS MARCO's.

Conventions: passages of grade 1 and more are positives, those of higher grades first; passages that were judged and do
not answer (grade 0 and less) are negatives. A query without a positive is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Literal

from bench.data import beir, irds
from bench.data.pairs import judged
from bench.data.pairs.found import Found, PairSource, pair_source, reader
from bench.data.source import numbered, place
from bench.errors import DataError, UsageError
from bench.types import Corpus, Item, Judgement, Leg, Source

CODE = "leg-pairs/1"
MSMARCO = "msmarco-passage/train"
"""Id in ir_datasets of MS MARCO's training queries."""

_COUNTS = {MSMARCO: {"queries": 502_939, "qrels": 532_761}}

Unknown = Literal["refuse", "keep"]
"""Of judged passages that the corpus lacks: refuse the data, or leave these out."""

_NEW = "this is not the published release: fetch it again"


def from_leg(leg: Leg, name: str, unknown: Unknown = "refuse") -> PairSource:
    """Name the pairs that a leg's judgements make.

    Reading raises `DataError` or `DataFaultsError`: a malformed record, an unknown id, or other counts than the leg's.

    Args:
        leg: queries, judgements and corpus; answers and candidates are not looked at.
        name: where the pairs come from, e.g. `mrtydi/sw train`.
        unknown: what becomes of judged passages that the corpus lacks (`data.unknown_ids`).

    Raises:
        UsageError: the leg has answers and no judgements, so that no passage is known to be right.
    """
    if leg.qrels is None:
        raise UsageError(
            f"{name}: found answers and no judgements of passages, expected judgements; training needs passages, "
            "e.g. a file in DPR's form"
        )
    sources: tuple[Source[Item] | Source[Judgement], ...] = (leg.queries, leg.qrels, leg.corpus.items)
    files = tuple(path for source in sources for path in source.files)
    said = [source.reader for source in sources]
    code = reader(CODE, name, unknown, leg.language, leg.corpus.language, dict(leg.counts), said)
    return pair_source(name, code, files, partial(_found, leg, leg.qrels, name, unknown))


def split(folder: Path, name: str, called: str = "", language: str = "") -> PairSource:
    """Name the pairs of a split of a folder in BEIR's layout; errors as in `from_leg` and `bench.data.beir.corpus`.

    Args:
        folder: a folder in BEIR's layout.
        name: of the split, e.g. `train`.
        called: what the data set is called; the folder's name where empty.
        language: of texts that do not say their own.
    """
    called = called or folder.name
    corpus = Corpus(called, beir.corpus(folder, called), language)
    leg = Leg("", beir.queries(folder, called), beir.qrels(folder, name, called), corpus, language)
    return from_leg(leg, f"{called} {name}")


def of_dataset(dataset: str = MSMARCO) -> PairSource:
    """Name the pairs of a data set of ir_datasets, e.g. `beir/nq/train`; nothing is fetched before it is read.

    Reading raises as that of `from_leg` and `bench.data.irds.sources` say.
    """
    found = irds.sources(dataset)
    leg = Leg("", found.queries, found.qrels, Corpus(dataset, found.corpus), counts=_COUNTS.get(dataset, {}))
    return from_leg(leg, dataset)


def _found(leg: Leg, qrels: Source[Judgement], name: str, unknown: Unknown) -> Iterator[tuple[int, Found]]:
    """Stream (number of the query, what was found)."""
    grades: dict[str, list[tuple[int, str]]] = {}
    for row in qrels.read():
        grades.setdefault(row.query, []).append((row.grade, row.document))
    _published(leg, qrels, len(grades), sum(map(len, grades.values())))
    texts = judged.Texts(
        leg.queries, leg.corpus, leg.language, place(qrels), partial(_named, qrels), keep=unknown == "keep"
    )
    yield from judged.pairs({query: _judged(rows) for query, rows in grades.items()}, texts, name)


def _judged(rows: list[tuple[int, str]]) -> judged.Judged:
    """Tell positives from negatives; equal grades stay in the order of the file."""
    best_first = sorted(rows, key=lambda row: -row[0])
    positives = [name for grade, name in best_first if grade >= 1]
    return judged.Judged(positives, [name for grade, name in best_first if grade < 1])


def _named(qrels: Source[Judgement]) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """Stream (line, query, passage) of judgements."""
    for line, row in numbered(qrels):
        yield line, row.query, (row.document,)


def _published(leg: Leg, qrels: Source[Judgement], queries: int, judgements: int) -> None:
    """Hold what was read against the published counts. Raises `DataError`."""
    for key, words, count in (("queries", "judged queries", queries), ("qrels", "judgements", judgements)):
        expected = leg.counts.get(key)
        if expected is not None and count != expected:
            raise DataError(place(qrels), None, f"{count:,} {words}", f"{expected:,}", _NEW)
