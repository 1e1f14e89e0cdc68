"""MLDR and Belebele: folders as released, counts, addresses of named commits, what is missing."""

from pathlib import Path

import pytest

from bench.core.errors import UsageError
from bench.testing import fields
from bench.types import DataRequest
from suites import belebele, mldr
from tests.suites.conftest import jsonl


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of data with one language of MLDR and one variant of Belebele, one question each."""
    places = {
        "mldr/mldr-v1.0-sw/corpus.jsonl": {"docid": "d", "text": "refu"},
        "mldr/mldr-v1.0-ar/corpus.jsonl": {"docid": "d", "text": "طويل"},
        "mldr/mldr-v1.0-ar/test.jsonl": {"query_id": "q", "query": "ما", "positive_passages": [{"docid": "d"}]},
        "belebele/data/swh_Latn.jsonl": {"link": "l", "question_number": 1, "flores_passage": "p", "question": "q"},
    }
    for name, row in places.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(jsonl(row))
    return tmp_path


def test_tasks(folder: Path) -> None:
    """The folder of a language or variant, its language, the counts that are asserted, and the measures."""
    request = DataRequest("official", folder)
    task = mldr.SUITE.load("ar", request)
    (subset,) = task.subsets
    assert (task.id, task.measures, task.release) == ("mldr/ar", ("nDCG@10", "R@100"), "v1.0")
    assert (subset.language, subset.corpus.documents, dict(subset.counts)) == (
        "ar",
        7_607,
        {"queries": 200, "qrels": 200},
    )
    assert [item.id for item in subset.corpus.items.read()] == ["d"]
    assert [row.document for row in subset.qrels.read()] == ["d"] if subset.qrels else False
    (subset,) = belebele.SUITE.load("swh_Latn", request).subsets
    assert (subset.language, subset.corpus.documents, dict(subset.counts)) == (
        "sw",
        488,
        {"queries": 900, "qrels": 900},
    )
    assert [item.id for item in subset.queries.read()] == ["l#1"]


def test_missing_files(folder: Path) -> None:
    """By place, with the command that fetches them."""
    request = DataRequest("official", folder)
    place, hint = folder / "mldr/mldr-v1.0-de/test.jsonl.gz", "type `bench data fetch mldr --task de`"
    with pytest.raises(UsageError, check=fields(where=str(place), hint=hint)):
        mldr.SUITE.load("de", request)
    place, hint = folder / "belebele/data/yor_Latn.jsonl", "type `bench data fetch belebele --task yor_Latn`"
    with pytest.raises(UsageError, check=fields(where=str(place), hint=hint)):
        belebele.SUITE.load("yor_Latn", request)


def test_counts_and_variants() -> None:
    """As the data's pages have them: 493,709 documents and 3,800 test questions; 122 variants of 115 languages."""
    assert [sum(counts) for counts in zip(*mldr.COUNTS.values(), strict=True)] == [493_709, 3_800, 2_600]
    assert len(belebele.LANGUAGES) == 122
    assert {*belebele.FEWER} <= {*belebele.LANGUAGES}
    latin = {name for name in belebele.LANGUAGES if name.endswith("_Latn")}
    romanised = {name for name in latin if any(other != name and other[:3] == name[:3] for other in belebele.LANGUAGES)}
    assert {belebele.LANGUAGES[name] for name in romanised} == {name[:3] for name in romanised}
    assert (belebele.LANGUAGES["arb_Arab"], belebele.LANGUAGES["swh_Latn"], belebele.LANGUAGES["zho_Hant"]) == (
        "ar",
        "sw",
        "zh",
    )


@pytest.mark.parametrize(("suite", "files"), [(mldr.SUITE, 3), (belebele.SUITE, 1)])
def test_addresses_name_a_commit(suite: object, files: int) -> None:
    """So that the same bytes come whenever they are fetched; a task needs its own files alone."""
    releases = suite.releases()  # type: ignore[attr-defined]
    assert all("@" in release.urls[0] and release.urls[0].startswith("hf://datasets/") for release in releases)
    revisions = {release.urls[0].partition("@")[2].partition("/")[0] for release in releases}
    assert [len(revision) for revision in revisions] == [40]
    assert all(release.urls[0].endswith(release.path.partition("/")[2]) for release in releases)
    needed = [release for release in releases if release.tasks == releases[0].tasks]
    assert len(needed) == files
