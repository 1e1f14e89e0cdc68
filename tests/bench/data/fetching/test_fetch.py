"""Fetching one file from a real local HTTP server, whole and in pieces: good, wrong, broken and lasting answers."""

import hashlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from bench.core.errors import StoreError
from bench.core.publications import Release
from bench.data.fetching import records
from bench.data.fetching.client import Client, RetryPolicy
from bench.data.fetching.fetch import FetchError, ensure
from bench.data.fetching.local_files import examine, look
from tests.conftest import cases


def test_a_file_comes_whole_and_once(script: Any, server: str, attempt: Any, data: bytes) -> None:
    """Under its name alone, with a record by which it is known; one written to since is fetched again."""
    script.answers["/f"] = [{"headers": {"ETag": '"1"'}}]
    md5 = hashlib.md5(data, usedforsecurity=False).hexdigest()
    record = attempt(f"{server}/f", size=len(data), md5=md5.upper())
    assert attempt.files == {"suite/file.bin": data}
    assert (record.size, record.md5, record.source) == (len(data), md5, f"{server}/f")
    assert records.recall(attempt.root, "suite/file.bin") == record
    assert record.lines == sum(1 for line in data.split(b"\n") if line.strip())
    assert not list((attempt.root / records.FOLDER / "partial").rglob("*.json"))
    assert (attempt.ear.steps[0], attempt.ear.steps[-1]) == ((0, len(data)), (len(data), len(data)))
    assert script.received[0].headers["accept-encoding"] == "identity"
    assert script.received[0].headers["user-agent"].startswith("retrieval-bench/")
    assert (attempt.waits, attempt.ear.notices) == ([], [])
    assert attempt(f"{server}/f") == record
    assert len(script.received) == 1
    (attempt.root / "suite/file.bin").write_bytes(b"mine")
    attempt(f"{server}/f")
    assert (len(script.received), attempt.files["suite/file.bin"]) == (2, data)


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
    assert (attempt.files, len(script.received), attempt.waits) == ({}, 1, [])


def test_the_first_file_is_trusted_and_others_are_not(script: Any, server: str, attempt: Any, data: bytes) -> None:
    """Without a published sha256: what is fetched again, or from another address, is compared with what came first."""
    script.answers |= {"/f": [{}], "/other": [{"data": data[::-1]}]}
    first = attempt(f"{server}/f", sha256="")
    attempt.remove()
    with pytest.raises(FetchError) as caught:
        attempt(f"{server}/other", sha256="")
    note = records.record_file(attempt.root, "suite/file.bin")
    assert f"expected {first.sha256} as on {first.time}; remove {note} to take the new one" in str(caught.value)
    assert attempt.files == {}
    assert attempt(f"{server}/other", f"{server}/f", sha256="").sha256 == first.sha256
    attempt.remove()
    note.unlink()
    assert attempt(f"{server}/other", sha256="").sha256 == hashlib.sha256(data[::-1]).hexdigest()
    attempt.remove()
    published = attempt(f"{server}/f")
    assert (published.sha256, attempt.files) == (first.sha256, {"suite/file.bin": data})


def test_a_damaged_file_is_fetched_again_as_it_was(script: Any, server: str, attempt: Any, data: bytes) -> None:
    """What is recorded of it decides, not what the server says now."""
    script.answers |= {"/f": [{}], "/other": [{"data": data[::-1]}]}
    attempt(f"{server}/f", sha256="")
    (attempt.root / "suite/file.bin").write_bytes(data[:-1] + b"?")
    for url in ("/other", "/f"):
        release = Release("suite/file.bin", (f"{server}{url}",), "CC0")
        file = examine(look(release, attempt.root, lambda: False))
        assert (file.state, file.basis) == ("damaged", "sha256")
        with Client(RetryPolicy(sleep=attempt.waits.append)) as client:
            if url == "/f":
                assert ensure(file, client).complete
            else:
                with pytest.raises(FetchError, match="gave another file"):
                    ensure(file, client)
    assert attempt.files == {"suite/file.bin": data}


def test_wrong_bytes_leave_an_old_file_alone(script: Any, server: str, attempt: Any, data: bytes) -> None:
    """What stood under the name stands there still."""
    script.answers["/f"] = [{"data": data[::-1]}]
    (attempt.root / "suite").mkdir(parents=True)
    (attempt.root / "suite/file.bin").write_bytes(b"old")
    with pytest.raises(FetchError):
        attempt(f"{server}/f")
    assert attempt.files == {"suite/file.bin": b"old"}


@pytest.mark.parametrize(("answers", "waits", "reason"), cases("passing-answers"))
def test_what_passes_is_waited_for(
    script: Any, server: str, attempt: Any, data: bytes, answers: list[dict[str, Any]], waits: list[float], reason: str
) -> None:
    """Each wait is twice the last, or as long as the server asks, within bounds."""
    script.answers["/f"] = [*answers]
    attempt(f"{server}/f")
    assert (attempt.files, attempt.waits) == ({"suite/file.bin": data}, waits)
    assert attempt.ear.notices[0] == f"{server}/f answered {reason}; trying again in {waits[0]:g} s"


LONG_RANGE = {"Content-Range": f"bytes 0-1/{'9' * 5000}"}
LASTING = [
    *cases("lasting-answers"),
    ({"status": 206, "headers": LONG_RANGE}, "has another version than the one begun (3 attempts)", 3),
    ({"status": 503, "headers": {"Retry-After": "9" * 5000}}, "answered 503 Service Unavailable (3 attempts)", 3),
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
    assert len(script.received) == requests
    attempt(f"{server}/f", f"{server}/mirror")
    assert attempt.files == {"suite/file.bin": data}
    assert attempt.ear.notices[-1] == f"{server}/f {reason}; trying the next address"


def test_a_page_is_not_taken_for_a_file(script: Any, server: str, attempt: Any, data: bytes) -> None:
    """Where no checksum would tell, what a browser would show is refused; a packed file may be called encoded."""
    page = {"Content-Type": "text/html; charset=utf-8"}
    script.answers["/f"] = [{"data": b"<html>Please log in</html>", "headers": page}]
    with pytest.raises(FetchError, match="answers with a web page instead of the file"):
        attempt(f"{server}/f", sha256="")
    script.answers["/f"] = [{"headers": page}]
    attempt(f"{server}/f")
    script.answers["/f"] = [{"headers": {"Content-Encoding": "gzip"}}]  # as some servers say of every `.gz`
    attempt(f"{server}/f", path="suite/file.tar.gz")
    assert attempt.files == {"suite/file.bin": data, "suite/file.tar.gz": data}


def test_pages_and_nothing_where_files_should_be(script: Any, server: str, attempt: Any) -> None:
    """A login page behind a checksum is called one; nothing at all is no file, unless it was published as empty."""
    script.answers |= {"/f": [{"data": b"\n<!DOCTYPE html><title>Log in</title>"}], "/none": [{"data": b""}]}
    with pytest.raises(FetchError, match=r"expected [0-9a-f]{64}; it is a web page, such as that of a login;"):
        attempt(f"{server}/f")
    with pytest.raises(FetchError) as caught:
        attempt(f"{server}/none", sha256="")
    assert caught.value.found == f"{server}/none gave another file: 0 bytes, expected a file with content"
    assert caught.value.where == str(attempt.root / "suite/file.bin")
    assert caught.value.hint.startswith("type the same command to try again, or put the file at ")
    assert attempt.files == {}
    attempt(f"{server}/none", sha256="", size=0)
    assert attempt.files == {"suite/file.bin": b""}


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
    assert (attempt.files, attempt.ear.notices) == ({"suite/file.bin": data}, [])
    with pytest.raises(FetchError, match=r"sends more than 1,000 bytes"):
        attempt(f"{server}/f", size=1000, path="suite/short.bin")
    script.answers["/f"] = [{"play": lambda handler: chunks(handler, b"")}]
    with pytest.raises(FetchError, match=r"broke off \(3 attempts\)"):
        attempt(f"{server}/f", sha256="", path="suite/cut.bin")
    assert set(attempt.files) == {"suite/file.bin", "suite/.cut.bin.part"}
    script.answers["/f"] = [{"length": None}]
    attempt(f"{server}/f", sha256="", path="suite/endless.bin")
    assert attempt.files["suite/endless.bin"] == data
    assert "so it may have been cut" in attempt.ear.notices[-1]
    count = len(attempt.ear.notices)
    attempt(f"{server}/f", path="suite/known.bin")
    assert len(attempt.ear.notices) == count


def test_no_room(script: Any, server: str, attempt: Any, data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk without room is told before a byte comes; what is begun is kept."""
    script.answers["/f"] = [{"upto": 100_000, "headers": {"ETag": '"1"'}}, {"headers": {"ETag": '"1"'}}]
    with pytest.raises(FetchError):
        attempt(f"{server}/f", policy={"attempts": 1})
    usage = type(shutil.disk_usage("/"))
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: usage(10, 10, 1000))
        with pytest.raises(StoreError, match=r"needs 207\.2 kB more, and the disk of .* has 1\.0 kB left"):
            attempt(f"{server}/f")
    attempt(f"{server}/f")
    assert script.ranges()[-1] == "bytes=100000-"
    assert attempt.files == {"suite/file.bin": data}


FIRST_VERSION = {"ETag": '"1"'}
CUT = {"upto": 100_000, "headers": FIRST_VERSION}
"""The beginning of a version whose name is known."""
TURNED = (bytes(range(256)) * 1200)[::-1]
SECOND_VERSION = {"data": TURNED, "headers": {"ETag": '"2"'}}
IGNORANT = {"data": TURNED, "heeds": False}
"""A server that goes on with another version, although it was told which one is wanted."""
SECOND = [  # what is published besides, the answers after `CUT`, the file that comes, a notice of the way
    ({"sha256": ""}, [{"headers": FIRST_VERSION}], TURNED[::-1], "broke off"),
    ({}, [{"ranges": False, "headers": FIRST_VERSION}], TURNED[::-1], "broke off"),
    ({"sha256": ""}, [SECOND_VERSION], TURNED, "broke off"),
    ({"sha256": ""}, [{**SECOND_VERSION, "ranges": False}], TURNED, "broke off"),
    ({"sha256": ""}, [{**SECOND_VERSION, "data": TURNED[:50_000]}], TURNED[:50_000], "broke off"),
    ({"sha256": ""}, [{**SECOND_VERSION, "data": TURNED[:50_000], "ranges": False}], TURNED[:50_000], "broke off"),
    ({"sha256": ""}, [{**SECOND_VERSION, "heeds": False}] * 2, TURNED, "has another version than the one begun"),
    ({}, [IGNORANT, {}], TURNED[::-1], "gave another file: sha256"),
    ({}, [{**IGNORANT, "data": TURNED[:90_000]}, {}], TURNED[::-1], "has another version than the one begun"),
]


@pytest.mark.parametrize(("about", "answers", "expected", "notice"), SECOND)
def test_a_cut_answer(
    script: Any, server: str, attempt: Any, about: dict[str, str], answers: list[Any], expected: bytes, notice: str
) -> None:
    """Only the rest of the same version is asked for; of another one, seen by ETag, checksum or size, all comes."""
    script.answers["/f"] = [CUT, *answers]
    attempt(f"{server}/f", **about)
    assert attempt.files == {"suite/file.bin": expected}
    assert script.ranges()[:2] == ["", "bytes=100000-"]
    assert script.received[1].headers["if-range"] == '"1"'
    assert any(notice in sentence for sentence in attempt.ear.notices)
    assert attempt.ear.steps[-1] == (len(expected), len(expected))


def test_many_cuts_do_not_use_patience_up(script: Any, server: str, attempt: Any, data: bytes) -> None:
    """Seven attempts of patience three, each of which gets further; the time of the last change is the version."""
    dated = {"Last-Modified": "Wed, 21 Oct 2015 07:28:00 GMT", "ETag": 'W/"weak"'}
    script.answers["/f"] = [{"upto": upto, "headers": dated} for upto in range(40_000, len(data) + 40_000, 40_000)]
    attempt(f"{server}/f", sha256="")
    assert attempt.files == {"suite/file.bin": data}
    assert script.ranges() == ["", *(f"bytes={upto}-" for upto in range(40_000, len(data), 40_000))]
    assert script.received[1].headers["if-range"] == dated["Last-Modified"]
    assert set(attempt.waits) == {1.0}


def test_a_server_without_ranges_that_never_gets_further(script: Any, server: str, attempt: Any, data: bytes) -> None:
    """It is given up, and what came is kept."""
    script.answers["/f"] = [{**CUT, "ranges": False}]
    with pytest.raises(FetchError, match=r"broke off \(3 attempts\)"):
        attempt(f"{server}/f")
    assert attempt.files == {"suite/.file.bin.part": data[:100_000]}


def test_a_mirror_goes_on_where_a_checksum_decides(script: Any, server: str, attempt: Any, data: bytes) -> None:
    """The first address breaks off and stays away; the second gives the rest. Without a checksum it gives all."""
    for fields, expected in (({}, "bytes=100000-"), ({"sha256": ""}, "")):
        script.received.clear()
        script.answers |= {"/f": [CUT, {"status": 404}], "/mirror": [{"headers": {"ETag": '"9"'}}]}
        attempt(f"{server}/f", f"{server}/mirror", **fields)
        assert (script.received[-1].path, script.ranges()[-1]) == ("/mirror", expected)
        assert attempt.files == {"suite/file.bin": data}
        attempt.remove()


def test_an_answer_that_stalls_trickles_or_is_torn_off(script: Any, server: str, attempt: Any, data: bytes) -> None:
    """What came before is kept."""

    def trickle(handler: Any) -> None:
        for at in range(100_000, 100_040):
            handler.wfile.write(data[at : at + 1])
            handler.wfile.flush()
            time.sleep(0.02)

    def tear(handler: Any) -> None:
        time.sleep(0.1)
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        handler.rfile.close()
        handler.wfile.close()
        handler.connection.close()

    faults: tuple[tuple[Any, str, dict[str, float]], ...] = (
        (lambda _: time.sleep(0.7), "stalled: nothing came for 0.3 s", {"read": 0.3}),
        (trickle, "bytes came in 0 s", {"slowest": 1e6, "read": 0.3}),
        (tear, "broke off", {}),
    )
    for then, reason, policy in faults:
        script.received.clear()
        script.answers["/f"] = [{**CUT, "then": then}, {"headers": FIRST_VERSION}]
        attempt(f"{server}/f", policy=policy)
        assert attempt.files == {"suite/file.bin": data}
        assert reason in attempt.ear.notices[-1]
        assert int(script.ranges()[1][6:-1]) >= 100_000
        attempt.remove()


KILLED = """
import sys
from pathlib import Path
from bench.data.fetching.fetch import fetch
from bench.data.fetching.client import Client
from bench.core.publications import Release
fetch(Release("suite/file.bin", (sys.argv[1],), "CC0"), Path(sys.argv[2]), Client())
"""


@pytest.mark.parametrize("same", [True, False])
def test_a_killed_fetch_is_taken_up(script: Any, server: str, attempt: Any, data: bytes, same: bool) -> None:
    """The partial file outlives the kill; it is continued if the server still has that version, else begun anew."""
    going = threading.Event()
    script.answers["/f"] = [{**CUT, "then": lambda _: going.wait(20)}, {"headers": {"ETag": '"1"' if same else '"2"'}}]
    process = subprocess.Popen([sys.executable, "-c", KILLED, f"{server}/f", str(attempt.root)])
    place = records.partial_file(attempt.root, "suite/file.bin")
    until = time.monotonic() + 20
    while not (place.is_file() and place.stat().st_size) and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    going.set()
    come = place.stat().st_size
    assert 0 < come <= 100_000
    attempt(f"{server}/f", sha256="")
    assert script.ranges() == ["", f"bytes={come}-"]
    assert attempt.ear.steps[0] == (come if same else 0, len(data))
    assert attempt.files == {"suite/file.bin": data}


def test_two_at_once_fetch_once(script: Any, server: str, attempt: Any, data: bytes) -> None:
    """The second waits, says so, and finds the file."""
    started, going = threading.Event(), threading.Event()

    def slow(handler: Any) -> None:
        started.set()
        going.wait(20)
        handler.give({})

    script.answers["/f"] = [{"play": slow}]
    second = attempt.another()
    url, patient = (f"{server}/f",), {"policy": {"read": 20.0}}
    first_thread = threading.Thread(target=attempt, args=url, kwargs=patient)
    first_thread.start()
    assert started.wait(20)
    second_thread = threading.Thread(target=second, args=url, kwargs=patient)
    second_thread.start()
    until = time.monotonic() + 20
    while not second.ear.notices and time.monotonic() < until:
        time.sleep(0.02)
    going.set()
    first_thread.join(20)
    second_thread.join(20)
    assert second.ear.notices == ["another command is at work on suite/file.bin; waiting for it"]
    assert (len(script.received), attempt.files) == (1, {"suite/file.bin": data})
