"""Data sets of ir_datasets as sources: made locally here; what cannot be fetched is told in a sentence."""

from collections import namedtuple
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import ir_datasets
import pytest
from ir_datasets.datasets.base import Dataset
from ir_datasets.formats import BaseDocs, BaseQrels, BaseQueries, TrecQrel
from ir_datasets.util import Download, RequestsDownload

from bench.data.formats import irds
from bench.data.formats.irds import Sources, sources
from bench.types import Item, Judgement
from tests.conftest import ReadErrors, WriteFile

Register = Callable[[str, Any], Sources]


Titled = namedtuple("Titled", "doc_id text title")
"""A document with a title, as BEIR's."""
Parsed = namedtuple("Parsed", "doc_id title abstract url body year marked_up_doc")
"""A document whose words are in fields of other names."""


class Topic(namedtuple("Topic", "query_id title narrative")):
    """A query without a field `text`, as TREC's topics."""

    def default_text(self) -> str:
        """Say which field is asked, as the library's own topics do."""
        return str(self.title)


def part(base: type, method: str) -> Callable[[list[Any]], Any]:
    """Return what makes a part of a data set of rows in a list, all of them Swahili."""
    return lambda rows: type("Part", (base,), {method: lambda _: iter(rows), "docs_lang": lambda _: "sw"})()


Docs, Queries, Qrels = part(BaseDocs, "docs_iter"), part(BaseQueries, "queries_iter"), part(BaseQrels, "qrels_iter")


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Register:
    def enter(name: str, dataset: Any) -> Sources:
        monkeypatch.setitem(ir_datasets.registry._registered, name, dataset)
        return sources(name)

    return enter


def test_data_sets(write: WriteFile, register: Register) -> None:
    """Title and text stay apart, other fields of words are joined; the library's version, id and part make the key."""
    docs = write("docs.tsv", "d1\tfirst text\nd2\tsecond text\n")
    queries = write("queries.tsv", "q1\twhat?\nq2\twho?\n")
    qrels = write("qrels", "q1 0 d1 2\nq2 0 d2 0\n")
    dataset = register("bench-test/files", ir_datasets.create_dataset(str(docs), str(queries), str(qrels)))
    assert list(dataset.corpus.read()) == [Item("d1", "first text"), Item("d2", "second text")]
    assert list(dataset.queries.read()) == [Item("q1", "what?"), Item("q2", "who?")]
    assert list(dataset.qrels.read()) == [Judgement("q1", "d1", 2), Judgement("q2", "d2", 0)]
    assert list(dataset.corpus.read()) == list(dataset.corpus.read())
    dataset = register("bench-test/empty", Dataset(Docs([])))
    assert dataset.corpus.files == ()
    assert dataset.corpus.reader == f"ir_datasets/{version('ir-datasets')}:bench-test/empty:docs/1"
    assert len({dataset.corpus.reader, dataset.queries.reader, dataset.qrels.reader}) == 3
    rows = [
        Titled("d1", "the text", "the title"),
        Parsed("d2", "the title", "an abstract", "https://example.org", "a body", 1999, b"<doc>"),
    ]
    dataset = register("bench-test/forms", Dataset(Docs(rows), Queries([Topic("q1", "asked", "told")])))
    assert list(dataset.corpus.read()) == [
        Item("d1", "the text", "the title", "sw"),
        Item("d2", "an abstract\na body", "the title", "sw"),
    ]
    assert list(dataset.queries.read()) == [Item("q1", "asked")]


def test_malformed_records_and_missing_parts(register: Register, errors: ReadErrors) -> None:
    """Faults as for files, with the record's number; an id that the library does not know, or that lacks a part."""
    docs = Docs([Titled("d1", "t", ""), Titled("d 2", "t", ""), Titled("d3", None, "")])
    rows = [TrecQrel("q1", "d1", 1, "0"), TrecQrel("q1", "d1", 0, "0"), TrecQrel("q1", "d2", 0.5, "0")]
    dataset = register("bench-test/bad", Dataset(docs, Qrels(rows)))
    assert errors(dataset.corpus.read()) == [
        (
            "bench-test/bad docs (ir_datasets):2: found document id 'd 2', expected an id without white space; "
            "run and qrels files are separated by white space; replace it, e.g. by _"
        ),
        "bench-test/bad docs (ir_datasets):3: found no text (only doc_id, text, title), expected a field of words",
    ]
    assert errors(dataset.qrels.read()) == [
        (
            "bench-test/bad qrels (ir_datasets):2: found document 'd1' of query 'q1' a second time, "
            "expected it once (first at line 1); remove one of the two"
        ),
        "bench-test/bad qrels (ir_datasets):3: found grade 0.5, expected a whole number",
    ]
    dataset = register("bench-test/docs-only", Dataset(Docs([Titled("d1", "t", "")])))
    assert errors(dataset.qrels.read()) == [
        (
            "bench-test/docs-only qrels (ir_datasets): found no qrels in the data set 'bench-test/docs-only', "
            "expected an id that has them"
        )
    ]
    (sentence,) = errors(sources("bench-test/none").corpus.read())
    assert f"found no data set 'bench-test/none' in ir_datasets {version('ir-datasets')}" in sentence
    (sentence,) = errors(register("bench-test/empty", Dataset(Docs([]))).corpus.read())
    assert sentence == "bench-test/empty docs (ir_datasets): found no document, expected at least one document"


class Broken(namedtuple("Broken", "doc_id body")):
    """A document of markup that cannot be parsed."""

    def default_text(self) -> str:
        """Fail, as a parser does."""
        raise UnicodeDecodeError("utf-8", self.body, 0, 1, "no such character")


def test_what_the_library_takes_for_a_text(register: Register, errors: ReadErrors) -> None:
    """Where a document has no field `text`; what it cannot make is a fault of that record."""
    dataset = register("bench-test/broken", Dataset(Docs([Broken("d1", b"x"), Titled("d2", "t", "")])))
    (sentence,) = errors(dataset.corpus.read())
    assert sentence.startswith(
        "bench-test/broken docs (ir_datasets):1: found no text that ir_datasets can make (UnicodeDecodeError: "
    )


def test_a_damaged_file(write: WriteFile, register: Register, errors: ReadErrors) -> None:
    """The file that is here is named, as the one to replace."""
    cut = write("docs.jsonl", '{"id": "d1", "title": "t", "te')
    documents = ir_datasets.formats.ExctractedCCDocs(ir_datasets.util.LocalDownload(cut))
    (sentence,) = errors(register("bench-test/cut", Dataset(documents)).corpus.read())
    assert "cannot give it (JSONDecodeError" in sentence
    assert sentence.endswith(f"; if {cut} is damaged, replace it")


def test_no_network(
    tmp_path: Path,
    register: Register,
    errors: ReadErrors,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A download that fails at once is a short sentence that names the data set and where a local copy may be put."""

    def refuse(_self: object) -> None:
        raise ConnectionError("no route to host")

    monkeypatch.setattr(RequestsDownload, "stream", refuse)
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "home"))
    remote = Download([RequestsDownload("https://example.org/docs.tsv")], cache_path=str(tmp_path / "docs.tsv"))
    dataset = register("bench-test/remote", Dataset(ir_datasets.formats.TsvDocs(remote)))
    (sentence,) = errors(dataset.corpus.read())
    assert sentence.startswith(
        "bench-test/remote: found no way to the place that ir_datasets fetches it from, expected "
    )
    assert sentence.endswith("--data-dir FOLDER or BENCH_DATA")
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(irds._Held, "SECONDS", 0)
    assert errors(dataset.corpus.read()) == [sentence]
    assert "no route to host" in capsys.readouterr().err  # what takes long is seen
