"""Ids kept as hashes: repeated and unknown ones are found and placed, chance agreements raise no alarm."""

import json
from pathlib import Path

import pytest

from bench.core.errors import DataError, DataFaultsError
from bench.data.formats import beir, ids
from bench.data.formats.ids import IdCollector, Ids, unknown_ids
from bench.data.formats.source import FileSource
from bench.testing import fields
from bench.types import Corpus, Item, Judgement, Source, Subset
from tests.conftest import WriteFile, present, traced


def corpus(write: WriteFile, names: list[str]) -> FileSource[Item]:
    """Write a corpus with these ids."""
    rows = "\n".join(json.dumps({"_id": name, "text": ""}) for name in names)
    return beir.corpus(write("set/corpus.jsonl", rows).parent)


def collect(source: Source[Item]) -> Ids:
    collector = IdCollector()
    for item in source.read():
        collector.add(item.id)
    return collector.close(source)


def test_contains(write: WriteFile, tmp_path: Path) -> None:
    """What was added is there, also when read from a file, whose bytes do not depend on the order."""
    names = [f"d{number}" for number in range(1_000)]
    ids = collect(corpus(write, names))
    ids.save(tmp_path / "ids.npy")
    for loaded in (ids, Ids.load(tmp_path / "ids.npy")):
        assert len(loaded) == 1_000
        assert loaded.contains(["d999", "d1000", "", "d0", "D0"]) == [True, False, False, True, False]
        assert loaded.contains([]) == []
    assert Ids(ids.hashes[:0]).contains(["d1"]) == [False]
    for place, names in enumerate((["a", "b", "c"], ["c", "a", "b"])):
        collect(corpus(write, names)).save(tmp_path / f"{place}.npy")
    assert (tmp_path / "0.npy").read_bytes() == (tmp_path / "1.npy").read_bytes()


def test_repeated_ids_are_placed(write: WriteFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each repetition at its line or record, with that of the first; ids that only share a hash are none."""
    source = corpus(write, ["a", "b", "a", "c", "b", "a"])
    with pytest.raises(DataFaultsError) as caught:
        collect(source)
    file = source.files[0]
    sentence = "{}:{}: found document id '{}' a second time, expected it once (first at line {}); remove one of the two"
    expected = [sentence.format(file, *values) for values in ((3, "a", 1), (5, "b", 2), (6, "a", 1))]
    assert str(caught.value) == "\n".join(expected)
    listed = Source("somewhere", "test/1", (), lambda: iter([Item("a", ""), Item("b", ""), Item("b", "")]))
    with pytest.raises(DataError, match=r"^somewhere:3: found document id 'b' a second time, .*first at line 2"):
        collect(listed)
    monkeypatch.setattr(ids, "_hash", lambda name: name[0].encode() * 8)
    assert len(collect(corpus(write, ["a1", "a2", "b1"]))) == 3
    with pytest.raises(DataError, match="document id 'a2' a second time"):
        collect(corpus(write, ["a1", "a2", "b1", "a2"]))


def test_a_corpus_twice_over_is_counted_in_full(write: WriteFile) -> None:
    """Damage beyond what is looked up is counted exactly, and twenty lines are listed."""
    names = [f"d{number}" for number in range(3_000)]
    with pytest.raises(DataFaultsError) as caught:
        collect(corpus(write, names + names))
    assert len(caught.value.faults) + caught.value.more == 3_000
    assert len(caught.value.faults) == 20
    for fault in caught.value.faults:
        assert f"(first at line {present(fault.line) - 3_000})" in fault.expected


def test_memory_per_id() -> None:
    """A million ids take some 8 bytes each, not the hundred of a set of strings."""
    empty: Source[Item] = Source("none", "test/1", (), lambda: iter(()))
    with traced() as peak:
        collector = IdCollector()
        for number in range(100_000):
            collector.add(f"document-{number}")
        collector.close(empty)
        assert peak() < 100_000 * 20


def check(write: WriteFile, judged: list[tuple[str, str]], *, check_documents: bool = True) -> int:
    for name, names in (("corpus", ["d1", "d2", "d3"]), ("queries", ["q1", "q2"])):
        write(f"set/{name}.jsonl", "\n".join(json.dumps({"_id": item_id, "text": ""}) for item_id in names))
    rows = "".join(f"{query}\t{document}\t1\n" for query, document in judged)
    folder = write("set/qrels/test.tsv", f"query-id\tcorpus-id\tscore\n{rows}").parent.parent
    qrels = beir.qrels(folder, "test")
    subset = Subset("", beir.queries(folder), qrels, Corpus("set", beir.corpus(folder)))
    judgements, documents = list(qrels.read()), collect(subset.corpus.items)
    return unknown_ids(subset, judgements, list(subset.queries.read()), documents, check_documents=check_documents)


def test_unknown_ids_are_placed(write: WriteFile, tmp_path: Path) -> None:
    """Each at its row of the qrels, with the nearest id; documents may be kept, then they are counted once each."""
    assert check(write, [("q1", "d1"), ("q1", "d3")]) == 0
    with pytest.raises(DataFaultsError) as caught:
        check(write, [("q1", "d1"), ("q3x", "d1"), ("q2", "d9"), ("zzz", "d9")])
    folder = tmp_path / "set"
    qrels, queries, corpus = (folder / name for name in ("qrels/test.tsv", "queries.jsonl", "corpus.jsonl"))
    assert str(caught.value).split("\n") == [
        f"{qrels}:3: found query id 'q3x', expected one of the 2 ids in {queries}",
        f"{qrels}:4: found document id 'd9', expected one of the 3 ids in {corpus}",
        f"{qrels}:5: found query id 'zzz', expected one of the 2 ids in {queries}",
        f"{qrels}:5: found document id 'd9', expected one of the 3 ids in {corpus}",
    ]
    with pytest.raises(DataError, match=r":2: found query id 'q1_', .*; the nearest is 'q1'$"):
        check(write, [("q1_", "d1")])
    assert check(write, [("q1", "d8"), ("q2", "d8"), ("q2", "d9")], check_documents=False) == 2
    with pytest.raises(DataError, check=fields(found="query id 'zzz'")):
        check(write, [("zzz", "d8")], check_documents=False)


def test_sources_without_files_are_named(write: WriteFile) -> None:
    """A source of a library is called by its name, a row by its number."""
    folder = write("set/queries.jsonl", '{"_id": "q1", "text": ""}').parent
    items = beir.queries(folder)
    rows = [Judgement("q1", "q1", 1), Judgement("q1", "other", 1)]
    subset = Subset("", items, Source("somewhere qrels", "test/1", (), lambda: iter(rows)), Corpus("set", items))
    documents = collect(items)
    with pytest.raises(DataError, match=r"^somewhere qrels:2: found document id 'other'"):
        unknown_ids(subset, rows, list(items.read()), documents, check_documents=True)
