"""Files of a pattern, from a hub on this machine: all pages of its list, its checksums, a sentence for each refusal."""

import json
from pathlib import Path
from typing import Any

import pytest

from bench.core.errors import UsageError
from bench.data.fetching import listing, records
from bench.data.fetching.listing import ListedFile
from bench.testing import fields

COMMIT = "a" * 40
PATTERN = f"hf://datasets/o/n@{COMMIT}/20231101.sw/train-*.parquet"
TREE = f"/api/datasets/o/n/tree/{COMMIT}/20231101.sw"
SHA256 = "b" * 64


def entry(path: str, **more: Any) -> dict[str, Any]:
    return {"type": "file", "oid": "0" * 40, "size": 5, "path": path, **more}


def answer(*entries: dict[str, Any], **more: Any) -> dict[str, Any]:
    headers = {"Content-Type": "application/json", **more.pop("headers", {})}
    return {"data": json.dumps(entries).encode(), "headers": headers, **more}


@pytest.fixture
def hub(script: Any, server: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HF_ENDPOINT", server)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    return script


def test_all_pages_of_the_list(hub: Any, server: str) -> None:
    """Those that match, by path, with size and the sha256 of large files; asked with the token, at the commit."""
    lfs = {"oid": SHA256, "size": 700, "pointerSize": 134}
    first = [entry("20231101.sw/train-00001-of-00002.parquet"), entry("20231101.sw/test-00000.parquet")]
    more = {"Link": f'<{server}/more>; rel="next"'}
    hub.answers[TREE] = [answer(*first, headers=more)]
    folder = {"type": "directory", "oid": "0" * 40, "path": "20231101.sw/train-x.parquet"}
    outside = entry("20231101.sw/train-/../../../../home/x.parquet")
    hub.answers["/more"] = [
        answer(folder, outside, entry("20231101.sw/train-00000-of-00002.parquet", size=700, lfs=lfs))
    ]
    assert listing.ask(PATTERN) == (
        ListedFile("20231101.sw/train-00000-of-00002.parquet", 700, SHA256),
        ListedFile("20231101.sw/train-00001-of-00002.parquet", 5, ""),
    )
    assert {request.headers["authorization"] for request in hub.received} == {"Bearer hf_secret"}
    elsewhere = server.replace("127.0.0.1", "localhost")
    hub.answers[TREE] = [answer(*first, headers={"Link": f'<{elsewhere}/more>; rel="next"'})]
    hub.received.clear()
    with pytest.raises(UsageError, check=fields(found="a list of files that goes on at another host, localhost")):
        listing.ask(PATTERN)
    assert len(hub.received) == 1, "another host would get the token, and half a list is none"


def test_what_the_hub_does_not_say(hub: Any) -> None:
    """A folder without such a file, a revision that there is not, a host that is not the hub's form."""
    hub.answers[TREE] = [answer(entry("20231101.sw/README.md"))]
    with pytest.raises(UsageError, check=fields(where=PATTERN, found="no such file")):
        listing.ask(PATTERN)
    hub.answers[TREE] = [{"status": 404, "headers": {"X-Error-Code": "RevisionNotFound"}}]
    with pytest.raises(UsageError, check=fields(where=PATTERN, found=f"no revision {COMMIT}")):
        listing.ask(PATTERN)
    hub.answers[TREE] = [{"data": b"<html>", "headers": {"Content-Type": "text/html"}}]
    with pytest.raises(UsageError, check=fields(where=PATTERN)):
        listing.ask(PATTERN)
    with pytest.raises(UsageError, check=fields(expected="hf://datasets/")):
        listing.ask("https://example.org/*.parquet")


def test_what_was_listed_is_known_without_a_network(tmp_path: Path) -> None:
    """A damaged list is none; the files' addresses are of the same commit, and what is not known never comes."""
    files = (ListedFile("20231101.sw/train-0.parquet", 700, SHA256),)
    assert listing.recall(tmp_path, PATTERN) is None
    listing.remember(tmp_path, PATTERN, files)
    assert listing.recall(tmp_path, PATTERN) == files
    (release,) = listing.releases("wikipedia", PATTERN, files, "CC0")
    assert (release.path, release.size, release.sha256) == ("wikipedia/20231101.sw/train-0.parquet", 700, SHA256)
    assert release.urls == (f"hf://datasets/o/n@{COMMIT}/20231101.sw/train-0.parquet",)
    (unknown,) = listing.releases("wikipedia", PATTERN, None, "CC0")
    assert (unknown.path, unknown.urls) == ("wikipedia/20231101.sw/train-*.parquet", (PATTERN,))
    (note,) = (tmp_path / records.FOLDER).rglob("*.json")
    note.write_bytes(note.read_bytes().replace(b"700", b"701"))
    assert listing.recall(tmp_path, PATTERN) is None
