"""What ir_datasets would fetch, against its own catalogue, in a home of its own; nothing is fetched."""

import json
from pathlib import Path

import pytest

from bench.data.fetching.irds_files import lacking

ir_datasets = pytest.importorskip("ir_datasets")
CATALOGUE = json.loads((Path(ir_datasets.__file__).parent / "etc" / "downloads.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("dataset", "part", "family", "names"),
    [
        ("msmarco-passage/train", "docs", "msmarco-passage", ["collectionandqueries"]),
        ("msmarco-passage/train", "qrels", "msmarco-passage", ["train/qrels"]),
        ("beir/cqadupstack/android", "queries", "beir", ["cqadupstack"]),
        ("mr-tydi/sw/test", "docs", "mr-tydi", ["sw"]),
    ],
)
def test_files_are_those_of_the_catalogue(dataset: str, part: str, family: str, names: list[str]) -> None:
    """Addresses and sizes as its catalogue has them, found through the objects that would fetch."""
    files = lacking(dataset, part)
    assert files is not None
    expected = {(CATALOGUE[family][name]["url"], CATALOGUE[family][name]["size_hint"]) for name in names}
    assert {(file.url, file.size) for file in files} == expected


def test_what_is_kept_is_not_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file at the place that was named is not named again; what nobody can know beforehand is None."""
    (file,) = lacking("beir/nfcorpus/test", "docs") or ()
    monkeypatch.setattr(Path, "exists", lambda path: path == file.path)
    assert lacking("beir/nfcorpus/test", "docs") == ()
    assert lacking("nobody/knows", "docs") is None
    assert lacking("clirmatrix/en/bi139-base/de/test1", "docs") is None, "its list is on the net"
