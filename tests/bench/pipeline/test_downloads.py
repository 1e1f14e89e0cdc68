"""What is not here: models, and data that libraries fetch; what a run may fetch by itself."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.core.errors import UsageError
from bench.data.formats import irds
from bench.data.formats.irds_downloads import IrdsFile, home
from bench.data.pairs import irds_pairs
from bench.pipeline.downloads import MOST, Download, fetched_by_libraries, refuse_large
from bench.pipeline.stages.pairs import StorePairs
from bench.pipeline.stages.validate import Validate
from bench.store.fingerprinted import Fingerprinted
from bench.testing import fields
from bench.types import Corpus

Catalogue = dict[tuple[str, str], tuple[IrdsFile, ...] | None]


@pytest.fixture
def catalogue(monkeypatch: pytest.MonkeyPatch) -> Catalogue:
    """What ir_datasets has yet to fetch, by data set and part; nothing of others."""
    files: Catalogue = {}

    def look(dataset: str, part: str) -> Any:
        return files.get((dataset, part), ())

    monkeypatch.setattr("bench.data.formats.irds_downloads.lacking", look)
    return files


def corpus_of(dataset: str) -> Validate:
    corpus = Corpus("made", irds.sources(dataset).corpus)
    return Validate(corpus=Fingerprinted(corpus.items, ()), documents=3, suite_corpus=corpus)


def test_files_are_counted_once(catalogue: Catalogue) -> None:
    """Two data sets of one archive fetch it once; parts that wrap others say what those do; sizes may be unknown."""
    shared, own = IrdsFile("https://a", 70, Path("a")), IrdsFile("https://b", None, Path("b"))
    catalogue |= {("one/x", "docs"): (shared,), ("two/y", "docs"): (shared, own), ("two/y", "qrels"): (own,)}
    pairs = StorePairs(pairs=Fingerprinted(irds_pairs("two/y"), ()))
    first, second = fetched_by_libraries([], [corpus_of("one/x"), pairs])
    assert (first.kind, first.name, first.files, first.bytes, first.unknown) == ("ir_datasets", "one/x", 1, 70, 0)
    assert (second.name, second.files, second.bytes, second.unknown) == ("two/y", 1, 0, 1)
    assert second.parts == ("queries", "qrels", "docs")
    assert first.into == home() / "one"
    assert fetched_by_libraries([], [corpus_of("three")]) == [], "all of it is here"
    catalogue["four", "docs"] = None
    (unknown,) = fetched_by_libraries([], [corpus_of("four")])
    assert (unknown.files, unknown.bytes, unknown.unknown) == (1, 0, 1)


def test_the_licence_is_the_suite_s(catalogue: Catalogue) -> None:
    """Of a data set that a suite reads; of another one the page that says it. What comes in another way is left out."""
    catalogue |= {("one/x", "docs"): (IrdsFile("https://a", 1, Path("a")),)}
    stage = corpus_of("one/x")
    task = SimpleNamespace(subsets=[SimpleNamespace(sources=[stage.suite_corpus.items])])
    cell: Any = SimpleNamespace(suite=SimpleNamespace(licence="CC0"), tasks=[task])
    assert [download.licence for download in fetched_by_libraries([cell], [stage])] == ["CC0"]
    assert [download.licence for download in fetched_by_libraries([], [stage])] == [
        "see https://ir-datasets.com/one.html"
    ]
    assert fetched_by_libraries([cell], [stage], without=stage.suite_corpus.items.fetches) == []


@pytest.mark.parametrize(
    ("kind", "size", "refused"),
    [
        ("ir_datasets", MOST, False),
        ("ir_datasets", MOST + 1, True),
        ("hub data", MOST + 1, True),
        ("hub data", 0, False),
        ("model", 100 * MOST, False),
    ],
)
def test_large_data_are_left_to_the_command_that_asks(kind: Any, size: int, refused: bool) -> None:
    """Models of any size come as the hub's library fetches them; the command is the run's own."""
    download = Download(kind, "made", 1, size, int(not size), "CC0", Path("somewhere"))
    if not refused:
        return refuse_large([download], "run --method bm25")
    expected = fields(where="made", found="1.0 GB", hint="bench data fetch --for 'run --method bm25'")
    with pytest.raises(UsageError, check=expected):
        refuse_large([download], "run --method bm25")
    return None
