"""Downloads of ir_datasets, by its own catalogue; those of the hub ask the endpoint, with its token."""

import json
from pathlib import Path

import ir_datasets
import pytest
from ir_datasets.formats import TsvDocs
from ir_datasets.util import Download, GzipExtract, RequestsDownload

from bench.data.formats.irds_downloads import by_endpoint, lacking

CATALOGUE = json.loads((Path(ir_datasets.__file__).parent / "etc" / "downloads.json").read_text(encoding="utf-8"))
PATH = "/datasets/owner/name/resolve/main/docs.tsv.gz"


@pytest.mark.parametrize(
    ("variables", "url", "headers"),
    [
        ({}, f"https://huggingface.co{PATH}", None),
        ({"HF_ENDPOINT": "http://mirror.example/"}, f"http://mirror.example{PATH}", None),
        ({"HF_TOKEN": "hf_x"}, f"https://huggingface.co{PATH}", {"Authorization": "Bearer hf_x"}),
    ],
)
def test_endpoint_and_token(
    variables: dict[str, str],
    url: str,
    headers: dict[str, str] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By variable: the address and headers of a file of the hub; another host hears of neither."""
    for name in ("HF_ENDPOINT", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(tmp_path / "no-token"))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    urls = (f"https://huggingface.co{PATH}", f"https://huggingface.co.example{PATH}")
    hub, other = (RequestsDownload(url) for url in urls)
    (tmp_path / "here").write_bytes(b"x")
    kept = RequestsDownload(urls[0])
    places = ((hub, "a"), (other, "b"), (kept, "here"))
    by_endpoint(*(TsvDocs(GzipExtract(Download([place], str(tmp_path / name)))) for place, name in places))
    assert (hub.url, hub.headers) == (url, headers)
    assert (other.url, other.headers) == (urls[1], None)
    assert (kept.url, kept.headers) == (urls[0], None)


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
