"""Fetching one file from a real local HTTP server: good, wrong, broken, passing and lasting answers."""

from __future__ import annotations

import hashlib
import shutil
from typing import Any

import pytest

from bench.core.errors import StoreError
from bench.data.fetching import records
from bench.data.fetching.fetch import FetchError


def test_a_file_comes_whole(script: Any, server: str, attempt: Any, data: bytes) -> None:
    """It stands under its name alone, with a record; progress ends at its size; no encoding is asked for."""
    script.answers["/f"] = [{"headers": {"ETag": '"1"'}}]
    md5 = hashlib.md5(data, usedforsecurity=False).hexdigest()
    record = attempt(f"{server}/f", size=len(data), md5=md5.upper())
    assert attempt.files == {"suite/file.bin": data}
    assert (record.size, record.md5, record.source) == (len(data), md5, f"{server}/f")
    assert records.recall(attempt.root, "suite/file.bin") == record
    assert not list((attempt.root / records.FOLDER / "partial").rglob("*.json"))
    assert (attempt.ear.steps[0], attempt.ear.steps[-1]) == ((0, len(data)), (len(data), len(data)))
    assert script.asked[0].headers["accept-encoding"] == "identity"
    assert script.asked[0].headers["user-agent"].startswith("retrieval-bench/")
    assert (attempt.waits, attempt.ear.said) == ([], [])


def test_it_is_not_fetched_twice(script: Any, server: str, attempt: Any, data: bytes) -> None:
    """A file that came is known by its record; one that was written to since is fetched again."""
    script.answers["/f"] = [{}]
    first = attempt(f"{server}/f")
    assert attempt(f"{server}/f") == first
    assert len(script.asked) == 1
    (attempt.root / "suite/file.bin").write_bytes(b"mine")
    attempt(f"{server}/f")
    assert (len(script.asked), attempt.files["suite/file.bin"]) == (2, data)


WRONG = [
    ({"size": 5}, "offers 307,200 bytes, expected 5"),
    (
        {"sha256": "0" * 64},
        f"gave another file: sha256 {hashlib.sha256(bytes(range(256)) * 1200).hexdigest()}, expected 0",
    ),
    ({"sha256": "", "md5": "0" * 32}, "gave another file: md5 "),
]


@pytest.mark.parametrize(("about", "reason"), WRONG)
def test_a_wrong_file_never_gets_the_name(
    script: Any, server: str, attempt: Any, about: dict[str, Any], reason: str
) -> None:
    """Neither by its size nor by its checksum; nothing of it stays, and asking again would give the same."""
    script.answers["/f"] = [{}]
    with pytest.raises(FetchError) as caught:
        attempt(f"{server}/f", **about)
    assert reason in str(caught.value)
    assert f"put the file at {attempt.root / 'suite/file.bin'} by hand" in str(caught.value)
    assert (attempt.files, len(script.asked), attempt.waits) == ({}, 1, [])


def test_wrong_bytes_leave_an_old_file_alone(script: Any, server: str, attempt: Any, data: bytes) -> None:
    """What stood under the name stands there still."""
    script.answers["/f"] = [{"data": data[::-1]}]
    (attempt.root / "suite").mkdir(parents=True)
    (attempt.root / "suite/file.bin").write_bytes(b"old")
    with pytest.raises(FetchError):
        attempt(f"{server}/f")
    assert attempt.files == {"suite/file.bin": b"old"}


PASSING = [
    ([{"status": 500}, {"status": 503}, {}], [1.0, 2.0], "500 Internal Server Error"),
    ([{"status": 429, "headers": {"Retry-After": "7"}}, {}], [7.0], "429 Too Many Requests"),
    ([{"status": 503, "headers": {"Retry-After": "9999"}}, {}], [60.0], "503 Service Unavailable"),
    (
        [{"status": 503, "headers": {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}}, {}],
        [1.0],
        "503 Service Unavailable",
    ),
    ([{"status": 408, "headers": {"Retry-After": "soon"}}, {}], [1.0], "408 Request Timeout"),
]


@pytest.mark.parametrize(("answers", "waits", "reason"), PASSING)
def test_what_passes_is_waited_for(
    script: Any, server: str, attempt: Any, data: bytes, answers: list[dict[str, Any]], waits: list[float], reason: str
) -> None:
    """Each wait is twice the last, or as long as the server asks, within bounds."""
    script.answers["/f"] = [*answers]
    attempt(f"{server}/f")
    assert (attempt.files, attempt.waits) == ({"suite/file.bin": data}, waits)
    assert attempt.ear.said[0] == f"{server}/f answered {reason}; trying again in {waits[0]:g} s"


LASTING = [
    ({"status": 404}, "answered 404 Not Found", 1),
    ({"status": 403}, "answered 403 Forbidden", 1),
    ({"status": 500}, "answered 500 Internal Server Error (3 attempts)", 3),
    ({"status": 299}, "answered 299", 1),
    (
        {"status": 302, "headers": {"Location": "ftp://a.org/f"}},
        "redirects to ftp://a.org/f; only http and https are followed",
        1,
    ),
    ({"status": 301, "headers": {"Location": "/f"}}, "redirected more than 10 times", 11),
    ({"headers": {"Content-Encoding": "gzip"}}, "sends the file encoded (gzip), though asked not to", 1),
    ({"upto": 0}, "broke off (3 attempts)", 3),
]


@pytest.mark.parametrize(("answer", "reason", "requests"), LASTING)
def test_what_does_not_pass_is_told(
    script: Any, server: str, attempt: Any, data: bytes, answer: dict[str, Any], reason: str, requests: int
) -> None:
    """Nothing is asked again that will be the same; the next address has its turn."""
    script.answers |= {"/f": [answer], "/mirror": [{}]}
    with pytest.raises(FetchError) as caught:
        attempt(f"{server}/f")
    assert f"suite/file.bin was not fetched: {server}/f {reason}" in str(caught.value)
    assert "suite/file.bin" not in attempt.files
    assert len(script.asked) == requests
    attempt(f"{server}/f", f"{server}/mirror")
    assert attempt.files == {"suite/file.bin": data}
    assert attempt.ear.said[-1] == f"{server}/f {reason}; trying the next address"


def test_a_page_is_not_taken_for_a_file(script: Any, server: str, attempt: Any, data: bytes) -> None:
    """Where no checksum would tell, what a browser would show is refused."""
    page = {"Content-Type": "text/html; charset=utf-8"}
    script.answers["/f"] = [{"data": b"<html>Please log in</html>", "headers": page}]
    with pytest.raises(FetchError, match="answers with a web page instead of the file"):
        attempt(f"{server}/f", sha256="")
    script.answers["/f"] = [{"headers": page}]
    attempt(f"{server}/f")
    assert attempt.files == {"suite/file.bin": data}


def test_a_packed_file_may_be_called_encoded(script: Any, server: str, attempt: Any, data: bytes) -> None:
    """Some servers say so of every `.gz`; it is kept as it came over the wire."""
    script.answers["/f"] = [{"headers": {"Content-Encoding": "gzip"}}]
    attempt(f"{server}/f", path="suite/file.tar.gz")
    assert attempt.files == {"suite/file.tar.gz": data}


def test_lengths_that_are_not_true(script: Any, server: str, attempt: Any, data: bytes) -> None:
    """More is promised than comes; less."""
    script.answers["/f"] = [{"length": 400_000}]
    with pytest.raises(FetchError, match=r"broke off \(3 attempts\)"):
        attempt(f"{server}/f", sha256="")
    script.answers["/f"] = [{"length": 9}]
    with pytest.raises(FetchError, match=r"gave another file: sha256"):
        attempt(f"{server}/f")
    assert not set(attempt.files) & {"suite/file.bin"}


def test_lengths_that_are_not_said(script: Any, server: str, attempt: Any, data: bytes) -> None:
    """In chunks, whole and cut, or until the connection ends, which is told where nothing else can tell a cut."""

    def chunks(handler: Any, last: bytes) -> None:
        handler.head(200, {"Transfer-Encoding": "chunked"})
        for at in range(0, len(data), 100_000):
            piece = data[at : at + 100_000]
            handler.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        handler.wfile.write(last)

    script.answers["/f"] = [{"play": lambda handler: chunks(handler, b"0\r\n\r\n")}]
    attempt(f"{server}/f", size=len(data))
    assert (attempt.files, attempt.ear.said) == ({"suite/file.bin": data}, [])
    with pytest.raises(FetchError, match=r"sends more than 1,000 bytes"):
        attempt(f"{server}/f", size=1000, path="suite/short.bin")
    script.answers["/f"] = [{"play": lambda handler: chunks(handler, b"")}]
    with pytest.raises(FetchError, match=r"broke off \(3 attempts\)"):
        attempt(f"{server}/f", sha256="", path="suite/cut.bin")
    assert set(attempt.files) == {"suite/file.bin", "suite/.cut.bin.part"}
    script.answers["/f"] = [{"length": None}]
    attempt(f"{server}/f", sha256="", path="suite/endless.bin")
    assert attempt.files["suite/endless.bin"] == data
    assert "so it may have been cut" in attempt.ear.said[-1]
    said = len(attempt.ear.said)
    attempt(f"{server}/f", path="suite/known.bin")
    assert len(attempt.ear.said) == said


def test_no_room(script: Any, server: str, attempt: Any, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk without room is told before a byte comes; what is begun is kept."""
    script.answers["/f"] = [{"upto": 100_000, "headers": {"ETag": '"1"'}}, {"headers": {"ETag": '"1"'}}]
    with pytest.raises(FetchError):
        attempt(f"{server}/f", patience={"attempts": 1})
    usage = type(shutil.disk_usage("/"))
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: usage(10, 10, 1000))
        with pytest.raises(StoreError, match=r"needs 207\.2 kB more, and the disk of .* has 1\.0 kB left"):
            attempt(f"{server}/f")
    attempt(f"{server}/f")
    assert script.ranges()[-1] == "bytes=100000-"
    assert attempt.files == {"suite/file.bin": data}
