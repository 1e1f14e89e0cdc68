"""Fetching in several pieces: what was cut, stalled or killed is taken up, from the same version only."""

from __future__ import annotations

import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from bench.data.fetching.fetch import FetchError, partial_file

ONE = {"ETag": '"1"'}
CUT = {"upto": 100_000, "headers": ONE}
"""The beginning of a version whose name is known."""


def test_a_cut_answer_is_continued(script: Any, server: str, attempt: Any, data: bytes) -> None:
    """Only the rest is asked for, of the same version, and the bytes are those of the whole."""
    script.answers["/f"] = [CUT, {"headers": ONE}]
    attempt(f"{server}/f", sha256="")
    assert attempt.files == {"suite/file.bin": data}
    assert script.ranges() == ["", "bytes=100000-"]
    assert script.asked[1].headers["if-range"] == '"1"'
    assert "broke off" in attempt.ear.said[0]
    assert (100_000, len(data)) in attempt.ear.steps


def test_many_cuts_do_not_use_patience_up(script: Any, server: str, attempt: Any, data: bytes) -> None:
    """Seven attempts of patience three, each of which gets further; the time of the last change is the version."""
    dated = {"Last-Modified": "Wed, 21 Oct 2015 07:28:00 GMT", "ETag": 'W/"weak"'}
    script.answers["/f"] = [{"upto": upto, "headers": dated} for upto in range(40_000, len(data) + 40_000, 40_000)]
    attempt(f"{server}/f", sha256="")
    assert attempt.files == {"suite/file.bin": data}
    assert script.ranges() == ["", *(f"bytes={upto}-" for upto in range(40_000, len(data), 40_000))]
    assert script.asked[1].headers["if-range"] == dated["Last-Modified"]
    assert set(attempt.waits) == {1.0}


def test_a_server_without_ranges_begins_anew(script: Any, server: str, attempt: Any, data: bytes) -> None:
    """And is given up where it never gets further than before."""
    script.answers["/f"] = [CUT, {"ranges": False, "headers": ONE}]
    attempt(f"{server}/f")
    assert attempt.files == {"suite/file.bin": data}
    attempt.remove()
    script.answers["/f"] = [{**CUT, "ranges": False}]
    with pytest.raises(FetchError, match=r"broke off \(3 attempts\)"):
        attempt(f"{server}/f")
    assert attempt.files == {"suite/.file.bin.part": data[:100_000]}


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("length", [307_200, 50_000])
def test_another_version_is_not_joined(
    script: Any, server: str, attempt: Any, data: bytes, ranges: bool, length: int
) -> None:
    """The ETag changed between two attempts: the file comes anew, whole, also where it became shorter."""
    script.answers["/f"] = [CUT, {"data": data[::-1][:length], "ranges": ranges, "headers": {"ETag": '"2"'}}]
    attempt(f"{server}/f", sha256="")
    assert attempt.files == {"suite/file.bin": data[::-1][:length]}


def test_a_server_that_joins_versions_is_seen_through(script: Any, server: str, attempt: Any, data: bytes) -> None:
    """It ignores `If-Range`: its new ETag tells, or else the checksum, or a rest that there cannot be."""
    other = {"data": data[::-1], "heeds": False}
    script.answers["/f"] = [CUT, {**other, "headers": {"ETag": '"2"'}}, {**other, "headers": {"ETag": '"2"'}}]
    attempt(f"{server}/f", sha256="")
    assert attempt.files == {"suite/file.bin": data[::-1]}
    for joined in (other, {"data": data[:90_000], "heeds": False}):
        attempt.remove()
        script.answers["/f"] = [CUT, joined, {}]
        attempt(f"{server}/f")
        assert attempt.files == {"suite/file.bin": data}
    assert any("gave another file: sha256" in sentence for sentence in attempt.ear.said)
    assert any("has another version than the one begun" in sentence for sentence in attempt.ear.said)


def test_a_mirror_goes_on_where_a_checksum_decides(script: Any, server: str, attempt: Any, data: bytes) -> None:
    """The first address breaks off and stays away; the second gives the rest. Without a checksum it gives all."""
    for about, expected in (({}, "bytes=100000-"), ({"sha256": ""}, "")):
        script.asked.clear()
        script.answers |= {"/f": [CUT, {"status": 404}], "/mirror": [{"headers": {"ETag": '"9"'}}]}
        attempt(f"{server}/f", f"{server}/mirror", **about)
        assert (script.asked[-1].path, script.ranges()[-1]) == ("/mirror", expected)
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
    for then, reason, patience in faults:
        script.asked.clear()
        script.answers["/f"] = [{**CUT, "then": then}, {"headers": ONE}]
        attempt(f"{server}/f", patience=patience)
        assert attempt.files == {"suite/file.bin": data}
        assert reason in attempt.ear.said[-1]
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
    other = subprocess.Popen([sys.executable, "-c", KILLED, f"{server}/f", str(attempt.root)])
    place = partial_file(attempt.root, "suite/file.bin")
    until = time.monotonic() + 20
    while not (place.is_file() and place.stat().st_size) and time.monotonic() < until:
        time.sleep(0.02)
    other.send_signal(signal.SIGKILL)
    other.wait()
    going.set()
    come = place.stat().st_size
    assert 0 < come <= 100_000
    attempt(f"{server}/f", sha256="")
    assert script.ranges() == ["", f"bytes={come}-"]
    assert attempt.ear.steps[0] == (come if same else 0, len(data))
    assert attempt.files == {"suite/file.bin": data}


def test_two_at_once_fetch_once(script: Any, server: str, attempt: Any, data: bytes) -> None:
    """The second waits, says so, and finds the file."""
    begun, going = threading.Event(), threading.Event()

    def slow(handler: Any) -> None:
        begun.set()
        going.wait(20)
        handler.give({})

    script.answers["/f"] = [{"play": slow}]
    second = attempt.another()
    url, patient = (f"{server}/f",), {"patience": {"read": 20.0}}
    first_thread = threading.Thread(target=attempt, args=url, kwargs=patient)
    first_thread.start()
    assert begun.wait(20)
    second_thread = threading.Thread(target=second, args=url, kwargs=patient)
    second_thread.start()
    until = time.monotonic() + 20
    while not second.ear.said and time.monotonic() < until:
        time.sleep(0.02)
    going.set()
    first_thread.join(20)
    second_thread.join(20)
    assert second.ear.said == ["another command is at work on suite/file.bin; waiting for it"]
    assert (len(script.asked), attempt.files) == (1, {"suite/file.bin": data})
