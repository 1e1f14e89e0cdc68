"""What an address has now: each verdict from a real server, and what of an answer is compared."""

import gzip
import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest

from bench.core.publications import Release
from bench.data.fetching.client import Client, RetryPolicy
from bench.data.fetching.probe import FIRST, Probed, probe, probe_model

COMMIT = "a" * 40
SMALL = b"one\ttwo\n"
Ask = Callable[..., Probed]


@pytest.fixture
def ask(server: str) -> Ask:
    """Probe a path of the server for `suite/NAME`, of which size and checksums were published."""

    def probed(path: str, name: str = "file.tsv", **published: Any) -> Probed:
        with Client(RetryPolicy(connect=2, read=5, attempts=2, sleep=lambda _: None)) as client:
            address = path if "://" in path else f"{server}{path}"
            return probe(address, Release(f"suite/{name}", (), "CC0", **published), client)

    return probed


def test_open_by_its_first_bytes(script: Any, server: str, ask: Ask, data: bytes) -> None:
    """No more than 64 kB are asked for, whatever the host sends; without a figure there is nothing to differ from."""
    script.answers |= {"/f": [{}], "/whole": [{"ranges": False}]}
    assert (ask("/f", size=len(data)).verdict, ask("/f").verdict) == ("open", "open")
    assert script.ranges() == [f"bytes=0-{FIRST - 1}"] * 2
    assert ask("/whole", size=len(data)) == Probed(f"{server}/whole", "open", "", len(data))
    wrong = ask("/f", size=5)
    assert (wrong.verdict, wrong.reason, wrong.size) == ("other", "307,200 bytes, expected 5", len(data))


def test_a_small_file_is_compared_whole(script: Any, server: str, ask: Ask) -> None:
    """Its own checksum counts; of a large one that which the ETag may hold."""
    script.answers["/f"] = [{"data": SMALL, "headers": {"ETag": f'"{"0" * 64}"'}}]
    sha256, md5 = hashlib.sha256(SMALL).hexdigest(), hashlib.md5(SMALL, usedforsecurity=False).hexdigest()
    assert ask("/f", size=len(SMALL), sha256=sha256.upper()).verdict == "open"
    assert ask("/f", md5=md5) == Probed(f"{server}/f", "open", "", len(SMALL), md5)
    other = ask("/f", size=len(SMALL), sha256="1" * 64)
    assert (other.verdict, other.reason) == ("other", f"sha256 {sha256}, expected {'1' * 64}")
    for tag, verdict in (("0" * 32, "open"), ("2" * 32, "other"), ("not-a-checksum", "open"), ("2" * 64, "open")):
        script.answers["/large"] = [{"headers": {"ETag": f'"{tag}"'}}]
        assert ask("/large", md5="0" * 32).verdict == verdict, tag


@pytest.mark.parametrize(
    ("name", "answer", "reason"),
    [
        ("f.tsv", {"data": b"<!DOCTYPE html><title>Log in", "headers": {"Content-Type": "text/plain"}}, "a web page"),
        ("f.zip", {"headers": {"Content-Type": "text/html; charset=utf-8"}}, "a web page"),
        ("f.tsv", {"data": b""}, "0 bytes"),
        ("f.jsonl.gz", {"data": b'{"id": 1}\n'}, "no .gz file"),
        ("f.parquet", {"data": b"version https://git-lfs.github.com/spec/v1\n"}, "no .parquet file"),
        ("f.json", {"data": b"Not found"}, "no .json file"),
    ],
)
def test_something_else(script: Any, ask: Ask, name: str, answer: dict[str, Any], reason: str) -> None:
    """A login page, nothing, or another kind of file under the right address."""
    script.answers["/f"] = [answer]
    probed = ask("/f", name)
    assert (probed.verdict, probed.reason) == ("other", reason)


def test_kinds_that_begin_as_they_should(script: Any, ask: Ask) -> None:
    script.answers |= {"/gz": [{"data": gzip.compress(SMALL)}], "/json": [{"data": b'\xef\xbb\xbf {"a": 1}'}]}
    assert (ask("/gz", "f.gz").verdict, ask("/json", "f.json").verdict) == ("open", "open")


def test_moved_gone_and_unknown(script: Any, ask: Ask, server: str) -> None:
    """For good is moved, in passing is not; a missing file is gone, and no answer says nothing of the file."""

    def to(status: int, target: str = "/new?key=secret") -> list[dict[str, Any]]:
        return [{"status": status, "headers": {"Location": target}}]

    script.answers |= {"/new": [{"data": SMALL}], "/old": to(301), "/cdn": to(302), "/both": to(302, "/old")}
    moved = ask("/old", size=len(SMALL))
    assert (moved.verdict, moved.moved_to) == ("moved", f"{server}/new?…")
    assert (ask("/both").verdict, ask("/cdn").verdict, ask("/old", size=5).verdict) == ("moved", "open", "other")
    for status, verdict in ((404, "gone"), (410, "gone"), (403, "unknown"), (500, "unknown")):
        script.answers["/f"] = [{"status": status}]
        assert ask("/f").verdict == verdict, status
    nobody = ask("http://127.0.0.1:9/f")
    assert (nobody.verdict, nobody.size) == ("unknown", None)


def test_the_hub(script: Any, server: str, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own checksum, commit, list of files and new names; the token goes to it alone."""
    monkeypatch.setenv("HF_ENDPOINT", server)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    file = f"/datasets/o/n/resolve/{COMMIT}/f.tsv"
    told = {"X-Linked-ETag": f'"{"b" * 64}"', "X-Linked-Size": "307200", "X-Repo-Commit": COMMIT}
    script.answers[file] = [{"status": 302, "headers": {"Location": "/cdn", **told}}]
    script.answers["/cdn"] = [{}]
    address = f"hf://datasets/o/n@{COMMIT}/f.tsv"
    assert ask(address, sha256="b" * 64) == Probed(address, "open", "", 307_200, "b" * 64)
    assert ask(address, sha256="c" * 64).verdict == "other"
    pattern = f"hf://datasets/o/n@{COMMIT}/data/*.tsv"
    entry = {"type": "file", "oid": "0", "size": 5, "path": "data/f.tsv"}
    json_type = {"Content-Type": "application/json"}
    script.answers[f"/api/datasets/o/n/tree/{COMMIT}/data"] = [
        {"data": json.dumps([entry]).encode(), "headers": json_type},
        {"status": 404, "headers": {"X-Error-Code": "RepoNotFound"}},
    ]
    listed, gone = ask(pattern), ask(pattern)
    assert (listed.verdict, listed.reason, listed.size, gone.verdict) == ("open", "1 file", 5, "gone")


def test_a_model(script: Any, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At its commit, or named with the commit that it has where none is pinned; another commit is another model."""
    monkeypatch.setenv("HF_ENDPOINT", server)
    answer = {"data": b"{}", "headers": {"X-Repo-Commit": COMMIT}}
    script.answers |= {f"/o/m/resolve/{at}/config.json": [answer] for at in (COMMIT, "main", "b" * 40)}
    with Client(RetryPolicy(connect=2, read=5, attempts=1)) as client:
        pinned, loose, other, none = (
            probe_model(name, revision, "config.json", client)
            for name, revision in (("o/m", COMMIT), ("o/m", ""), ("o/m", "b" * 40), ("o/x", COMMIT))
        )
    assert (pinned.verdict, pinned.reason) == ("open", "")
    assert (loose.verdict, loose.reason) == ("open", f"not pinned; {COMMIT} now")
    assert (other.verdict, other.reason) == ("other", f"commit {COMMIT}, expected {'b' * 40}")
    assert none.verdict == "unknown", "a server that falls over"
