"""What ir_datasets says of its data sets before anything is fetched: kinds, languages, counts, missing files."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import ir_datasets
import pytest
from ir_datasets.datasets.base import Dataset
from ir_datasets.formats import BaseDocs, BaseQrels, BaseQueries, GenericDoc, GenericQuery, TrecQrel, TrecQrels
from ir_datasets.util import Cache, Download, LocalDownload, RequestsDownload

from bench.core.errors import UsageError
from bench.core.network import offline
from bench.data.formats.irds_catalogue import DataSet, by_hand, describe, ids, lacks, not_at_hand, similar
from bench.testing import fields
from tests.made_irds import Headed, Topic, enter, part

NOT_ONE = "no documents, no queries and no judgements"
KINDS = {
    "": 550,
    "no queries and no judgements": 142,
    "no judgements": 55,
    NOT_ONE: 26,
    "judgements of subtopics or parts of documents": 12,
    "queries without words": 2,
    "no documents": 1,
    "documents without words": 1,
    "grades that are no whole numbers": 1,
}
"""What keeps the data sets of ir_datasets 0.6.3 from being tasks, and how many; counted by hand from its sources."""


class Picture(NamedTuple):
    """A document without words."""

    doc_id: str
    png: bytes


class Linked(NamedTuple):
    """A query that is a document."""

    query_id: str
    doc_id: str
    url: str


class Half(NamedTuple):
    """A judgement by halves."""

    query_id: str
    doc_id: str
    relevance: float


class Aspect(NamedTuple):
    """A judgement of an aspect of a query, of which there are several."""

    query_id: str
    doc_id: str
    relevance: int
    subtopic_id: str


def made(docs: Any = GenericDoc, queries: Any = GenericQuery, qrels: Any = TrecQrel, *, told: Any = None) -> Dataset:
    """Return a data set of records of these classes; None for a part that it lacks."""
    parts = [
        part(BaseDocs, "docs", docs, language="sw") if docs else None,
        part(BaseQueries, "queries", queries) if queries else None,
        part(BaseQrels, "qrels", qrels) if qrels else None,
        type("Told", (), {"documentation": lambda _: told})() if told else None,
    ]
    return Dataset(*filter(None, parts))


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Dataset], str]:
    """Enter data sets into the library's registry, for one test."""
    return partial(enter, monkeypatch)


def test_every_id_is_a_task_or_refused_for_a_reason() -> None:
    """All 790 of them, without a network; those that are tasks have counts and nearly all have languages."""
    with offline():
        kinds = {name: lacks(name) for name in ids()}
        assert len(kinds) == 790
        assert Counter(kinds.values()) == KINDS
        described = [describe(name) for name, kind in kinds.items() if not kind]
    assert all(data_set.documents and data_set.queries and data_set.judgements for data_set in described)
    assert sum(bool(data_set.document_language) for data_set in described) == 536
    official = Counter(measure for data_set in described for measure in data_set.measures)
    assert (official["Success@5"], official["RR@10"]) == (24, 16)
    for name, kind in kinds.items():
        if kind:
            with pytest.raises(UsageError, check=fields(where=f"irds:{name}", found=kind)):
                describe(name)


def test_what_is_known_of_one() -> None:
    """Counts are those of MIRACL's own page: 131,924 passages, 482 dev questions, 5,092 judgements."""
    assert describe("miracl/sw/dev") == DataSet("miracl/sw/dev", "sw", "sw", 131_924, 482, 5_092, ())
    assert describe("lotte/lifestyle/test/forum").measures == ("Success@5",)
    hc4 = describe("hc4/fa/test")
    assert (hc4.document_language, hc4.query_language, hc4.documents) == ("fa", "", 486_486)


@pytest.mark.parametrize(
    ("dataset", "lack"),
    [
        (made(), ""),
        (made(docs=Headed), ""),
        (made(queries=Topic), ""),
        (made(docs=None), "no documents"),
        (made(queries=None), "no queries"),
        (made(queries=None, qrels=None), "no queries and no judgements"),
        (made(docs=Picture), "documents without words"),
        (made(queries=Linked), "queries without words"),
        (made(qrels=Half), "grades that are no whole numbers"),
        (made(qrels=Aspect), "judgements of subtopics or parts of documents"),
    ],
)
def test_shapes(dataset: Dataset, lack: str, registry: Any) -> None:
    """Of records that the library has, and of some that it may have one day."""
    registry("bench-test/shape", dataset)
    assert lacks("bench-test/shape") == lack


def test_official_measures_are_handed_on(registry: Any) -> None:
    """As they are spelt there; a part's language may be missing."""
    registry("bench-test/told", made(told={"official_measures": ["RR@10", "RR(rel=2)"]}))
    assert describe("bench-test/told") == DataSet("bench-test/told", "sw", "", None, None, None, ("RR@10", "RR(rel=2)"))


@pytest.mark.parametrize(
    ("typed", "near"),
    [
        ("miracl/sw/test-a", ["miracl/sw/dev", "miracl/sw/train"]),
        ("miracl/sw", ["miracl/sw/dev", "miracl/sw/train"]),
        ("mircal/sw/dev", "miracl/sw/dev"),
        ("beir/scifct", "beir/scifact/test"),
        ("neuclir/1/fa/trec-2024", "neuclir/1/fa/trec-2023"),
        ("clirmatrix/sw", ["clirmatrix/sw/bi139-base/en/test1"]),
        ("clirmatrix/sw/bi139-base/en/tset1", ["clirmatrix/sw/bi139-base/en/test1"]),
        ("qqqqqqqqqqqq", []),
    ],
)
def test_near_ids(typed: str, near: list[str] | str) -> None:
    """Those below or beside it that are tasks, test before training; else those that are spelt alike."""
    found = similar(typed)
    assert found == near if isinstance(near, list) else near in found
    assert not any(map(lacks, found))


def test_a_pattern_is_described_without_being_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading an id of CLIRMatrix asks the network for the list of its files; nothing here does."""

    def refuse(*_: object) -> None:
        raise AssertionError("asked the network")

    monkeypatch.setattr(RequestsDownload, "stream", refuse)
    monkeypatch.setattr(type(ir_datasets.registry), "__getitem__", refuse)
    name = "clirmatrix/sw/bi139-base/en/test1"
    assert describe(name) == DataSet(name, "sw", "en", None, None, None, ())
    assert lacks("clirmatrix/sw") == "no queries and no judgements"
    assert lacks("clirmatrix/xx/bi139-base/en/test1").startswith("no such data set")
    assert by_hand(name) == []


def test_a_pattern_that_was_loaded_is_described_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """The library enters its id once it was loaded, with counts that it asks the network for: they are not wanted."""
    name = "clirmatrix/sw/bi139-base/en/test1"
    before = describe(name)
    monkeypatch.setitem(ir_datasets.registry._registered, name, object())
    assert describe(name) == before
    assert by_hand(name) == []


def test_files_that_are_not_here(tmp_path: Path, registry: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Fetched ones, cached ones, and those that only a person can get, each by its place; asking fetches nothing."""
    remote = RequestsDownload("https://example.org/file")
    docs, qrels = tmp_path / "docs.tsv", tmp_path / "qrels.txt"
    queries, source = tmp_path / "queries.tsv", tmp_path / "all.zip"
    by_request = Download([LocalDownload(docs, f"Ask somebody and put it at {docs}.")], cache_path=str(docs))
    cached = Cache(Download([remote], cache_path=str(source)), queries)
    dataset = Dataset(
        ir_datasets.formats.TsvDocs(by_request),
        ir_datasets.formats.TsvQueries(cached),
        TrecQrels(Download([remote], cache_path=str(qrels)), {}),
    )
    registry("bench-test/files", dataset)
    assert not_at_hand("bench-test/files") == [str(docs), str(source), str(qrels)]
    assert by_hand("bench-test/files") == [f"Ask somebody and put it at {docs}."]
    for path in (docs, queries):
        path.write_text("")
    assert not_at_hand("bench-test/files") == [str(qrels)]
    assert by_hand("bench-test/files") == []
    qrels.write_text("")
    assert not_at_hand("bench-test/files") == []
    assert capsys.readouterr() == ("", "")


def test_offline_is_decided_before_a_pattern_is_loaded(capsys: pytest.CaptureFixture[str]) -> None:
    """What would be asked is not, and the library's complaints about that are kept back."""
    assert not_at_hand("clirmatrix/sw/bi139-base/en/test1") == ["the list of files of clirmatrix"]
    assert capsys.readouterr() == ("", "")
