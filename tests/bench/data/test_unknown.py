"""Judgements of queries and documents that do not exist."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.core.errors import DataError, DataFaultsError
from bench.data.formats import beir
from bench.data.formats.ids import IdCollector, unknown_ids
from bench.testing import fields
from bench.types import Corpus, Judgement, Leg, Source
from tests.conftest import Put


def check(put: Put, judged: list[tuple[str, str]], *, check_documents: bool = True) -> int:
    """Check judgements against the queries q1, q2 and the documents d1, d2, d3."""
    for name, known in (("corpus", ["d1", "d2", "d3"]), ("queries", ["q1", "q2"])):
        put(f"set/{name}.jsonl", "\n".join(json.dumps({"_id": one, "text": ""}) for one in known))
    rows = "".join(f"{query}\t{document}\t1\n" for query, document in judged)
    folder = put("set/qrels/test.tsv", f"query-id\tcorpus-id\tscore\n{rows}").parent.parent
    qrels = beir.qrels(folder, "test")
    leg = Leg("", beir.queries(folder), qrels, Corpus("set", beir.corpus(folder)))
    collector = IdCollector()
    for item in leg.corpus.items.read():
        collector.add(item.id)
    documents = collector.close(leg.corpus.items)
    return unknown_ids(leg, list(qrels.read()), list(leg.queries.read()), documents, check_documents=check_documents)


def test_nothing_unknown(put: Put) -> None:
    """Unjudged queries and documents are no fault."""
    assert check(put, [("q1", "d1"), ("q1", "d3")]) == 0


def test_unknown_ids_are_placed(put: Put, tmp_path: Path) -> None:
    """Each unknown id is told at its row of the qrels, with the file that should hold it."""
    with pytest.raises(DataFaultsError) as caught:
        check(put, [("q1", "d1"), ("q3x", "d1"), ("q2", "d9"), ("zzz", "d9")])
    folder = tmp_path / "set"
    qrels, queries, corpus = (folder / name for name in ("qrels/test.tsv", "queries.jsonl", "corpus.jsonl"))
    assert str(caught.value).split("\n") == [
        f"{qrels}:3: found query id 'q3x', expected one of the 2 ids in {queries}",
        f"{qrels}:4: found document id 'd9', expected one of the 3 ids in {corpus}",
        f"{qrels}:5: found query id 'zzz', expected one of the 2 ids in {queries}",
        f"{qrels}:5: found document id 'd9', expected one of the 3 ids in {corpus}",
    ]


def test_the_nearest_query_is_named(put: Put) -> None:
    """A slip of one letter is recognised."""
    with pytest.raises(DataError, match=r":2: found query id 'q1_', .*; the nearest is 'q1'$"):
        check(put, [("q1_", "d1")])


def test_unknown_documents_may_be_kept(put: Put) -> None:
    """Where the user wants them kept, documents are counted once each; queries are refused all the same."""
    assert check(put, [("q1", "d8"), ("q2", "d8"), ("q2", "d9")], check_documents=False) == 2
    with pytest.raises(DataError, check=fields(found="query id 'zzz'")):
        check(put, [("zzz", "d8")], check_documents=False)


def test_sources_without_files_are_named(put: Put) -> None:
    """A source of a library is called by its name, a row by its number."""
    folder = put("set/queries.jsonl", '{"_id": "q1", "text": ""}').parent
    items = beir.queries(folder)
    rows = [Judgement("q1", "q1", 1), Judgement("q1", "other", 1)]
    leg = Leg("", items, Source("somewhere qrels", "test/1", (), lambda: iter(rows)), Corpus("set", items))
    collector = IdCollector()
    collector.add("q1")
    documents = collector.close(items)
    with pytest.raises(DataError, match=r"^somewhere qrels:2: found document id 'other'"):
        unknown_ids(leg, rows, list(items.read()), documents, check_documents=True)
