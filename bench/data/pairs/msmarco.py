"""MS MARCO's triples of ids: query, a passage that answers it, one that BM25 finds and nobody judged to answer it.

The official files are tables without a header: `qidpidtriples.train.full.2.tsv` (query id, positive, negative),
`queries.train.tsv` and `collection.tsv` (id, text). Its qrels are read by `bench.data.pairs.legs.of_dataset`, its
triples of texts by `bench.data.pairs.tsv`.

Conventions: all triples of a query make one pair, as DPR reads them; of its negatives the first `most` are kept, of its
positives all. In memory are the ids that are kept and the texts of the queries, never the passages.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from bench.data.archive import File
from bench.data.faults import RecordError, shown
from bench.data.pairs import judged
from bench.data.pairs.found import Found, PairSource, pair_source, reader
from bench.data.source import Format, check_id, file_source, records
from bench.types import Corpus, Item

CODE = "msmarco-triples/1"
MOST = 30
"""Negatives of a query (as many as DPR's own reader of such files takes)."""

_LANGUAGE = "en"
_EXPECTED = "3 columns separated by tabs: query id, id of a positive, id of a negative"

Triple = tuple[str, str, str]


def triples(path: File, queries: File, collection: File, name: str = "", most: int = MOST) -> PairSource:
    """Name the pairs of a file of triples.

    Reading raises `DataError` or `DataFaultsError`, with file and line: a malformed row, or an unknown id.

    Args:
        path: the triples; no file is opened before the source is read.
        queries: texts of the queries.
        collection: texts of the passages.
        name: where the pairs come from; the file's name where empty.
        most: negatives kept for a query, the first ones.
    """
    name = name or path.name
    files = (path, queries, collection)
    return pair_source(name, reader(CODE, name, most), files, partial(_found, path, queries, collection, name, most))


def _found(path: File, queries: File, collection: File, name: str, most: int) -> Iterator[tuple[int, Found]]:
    """Stream (number of the query, what was found)."""
    seen: dict[str, str] = {}  # one string for every id, however many triples name it
    groups: dict[str, judged.Judged] = {}
    for _, (query, *named) in records(path, _triples):
        positive, negative = (seen.setdefault(one, one) for one in named)
        group = groups.get(query)
        if group is None:
            group = groups[query] = judged.Judged()
        if positive not in group.positives:
            group.positives.append(positive)
        if len(group.negatives) < most and negative not in group.negatives:
            group.negatives.append(negative)
    asked, passages = (
        file_source(f"{name} {what}", "msmarco-texts/1", file, _texts)
        for what, file in (("queries", queries), ("passages", collection))
    )
    corpus = Corpus(passages.name, passages, _LANGUAGE)
    texts = judged.Texts(asked, corpus, _LANGUAGE, str(path), partial(_named, path))
    yield from judged.pairs(groups, texts, name)


def _named(path: File) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """Stream (line, query, passages) of the triples."""
    for line, (query, *documents) in records(path, _triples):
        yield line, query, tuple(documents)


def _triples(_first: str) -> Format[Triple]:
    """Return the format of the triples."""
    return Format("triple", _triple)


def _triple(line: str) -> Triple:
    """Read one triple. Raises `RecordError`."""
    cells = line.split("\t")
    if len(cells) != 3:
        raise RecordError(f"{len(cells)} column{'s' * (len(cells) != 1)} in {shown(line)}", _EXPECTED)
    query, positive, negative = cells
    return (
        check_id(query, "query id"),
        check_id(positive, "id of a positive"),
        check_id(negative, "id of a negative"),
    )


def _texts(_first: str) -> Format[Item]:
    """Return the format of queries and collection."""
    return Format("text", _text)


def _text(line: str) -> Item:
    """Read one query or passage. Raises `RecordError`."""
    name, tab, words = line.partition("\t")
    if not tab:
        raise RecordError(shown(line), "an id, a tab and a text")
    return Item(check_id(name, "id"), words)
