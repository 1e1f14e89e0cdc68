"""Several files at a time from a real local server: how many, what one's failure or wish does to others, and ends."""

import contextlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench.core.errors import StoreError
from bench.core.publications import Release
from bench.data.fetching import fetch, records
from bench.data.fetching.client import RetryPolicy
from bench.data.fetching.fetch import AT_ONCE, NoProgress, ProgressCallback, ensure, ensure_all
from bench.data.fetching.local_files import LocalFile, look
from tests.conftest import tree

QUICK = RetryPolicy(connect=2.0, read=5.0, attempts=3, first=0.01)


@contextmanager
def quiet(*_: object) -> Iterator[ProgressCallback]:
    yield NoProgress()


def files(root: Path, server: str, names: str) -> list[LocalFile]:
    """One file a letter, without a checksum."""
    return [look(Release(f"suite/{name}", (f"{server}/{name}",), "CC0"), root) for name in names]


def test_at_most_four_and_four(script: Any, server: str, tmp_path: Path, data: bytes) -> None:
    """Four requests are there before the first is answered; the others come as those end."""
    assert AT_ONCE == 4
    gathered, at_work, most, lock = threading.Barrier(4), 0, 0, threading.Lock()

    def together(handler: Any) -> None:
        nonlocal at_work, most
        with lock:
            at_work += 1
            most = max(most, at_work)
        gathered.wait(20)
        handler.give({})
        with lock:
            at_work -= 1

    script.answers |= {f"/{name}": [{"play": together}] for name in "abcdefgh"}
    ended: list[str] = []
    seen: list[tuple[int, str]] = []

    @contextmanager
    def watch(number: int, file: LocalFile) -> Iterator[ProgressCallback]:
        seen.append((number, file.release.path))
        yield NoProgress()

    fetched, failed = ensure_all(
        files(tmp_path, server, "abcdefgh"), watch, lambda file, _: ended.append(file.release.path)
    )
    paths = [f"suite/{name}" for name in "abcdefgh"]
    assert (list(fetched), failed, most) == (paths, {}, 4)
    assert all(file.complete and file.path.read_bytes() == data for file in fetched.values())
    assert (sorted(ended), sorted(seen)) == (paths, [*enumerate(paths, 1)])


def test_failures_stop_no_other(script: Any, server: str, tmp_path: Path) -> None:
    """Each is told, in the order of the files."""
    script.answers |= {"/a": [{"status": 404}], "/b": [{}], "/c": [{"status": 403}], "/d": [{}]}
    reasons: dict[str, str] = {}
    fetched, failed = ensure_all(
        files(tmp_path, server, "abcd"), quiet, lambda file, reason: reasons.update({file.release.path: reason})
    )
    assert (list(fetched), list(failed)) == (["suite/b", "suite/d"], ["suite/a", "suite/c"])
    assert f"{server}/c answered 403 Forbidden" in failed["suite/c"]
    assert reasons == {"suite/b": "", "suite/d": "", **failed}


@pytest.mark.slow
def test_a_host_that_asks_for_time_gets_it_from_all(script: Any, server: str, tmp_path: Path) -> None:
    """One client is told to come again; none begins with a further file before that."""
    times: list[tuple[float, str]] = []
    busy = threading.Event()

    def timed(handler: Any) -> None:
        times.append((time.monotonic(), handler.path))
        if handler.path == "/a" and not busy.is_set():
            busy.set()
            handler.give({"status": 429, "headers": {"Retry-After": "1"}})
            return
        assert busy.wait(20)
        time.sleep(0.1)  # until the other client has read its answer
        handler.give({})

    script.answers |= {f"/{name}": [{"play": timed}] for name in "abcdefgh"}
    fetched, failed = ensure_all(files(tmp_path, server, "abcdefgh"), quiet, policy=QUICK)
    assert (len(fetched), failed) == (8, {})
    told = next(at for at, path in times if path == "/a")
    before = [path for at, path in times if at < told + 0.9]
    assert set(before) <= {"/a", "/b", "/c", "/d"}, "what had begun went on, nothing else began"
    assert [path for _, path in times].count("/a") == 2


def test_a_full_disk_stops_all(
    script: Any, server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes
) -> None:
    """The others stop between two blocks and keep what came; what had not begun does not begin."""
    started = threading.Event()

    def pour(handler: Any) -> None:
        handler.head(200, {"Content-Length": str(1 << 30), "ETag": '"1"'})
        started.set()
        with contextlib.suppress(OSError):
            while True:
                handler.wfile.write(data)
                time.sleep(0.01)

    def full(file: LocalFile, *arguments: Any) -> LocalFile:
        if file.release.path == "suite/b":
            assert started.wait(20)
            time.sleep(0.2)
            raise StoreError("the disk is full")
        return ensure(file, *arguments)

    monkeypatch.setattr(fetch, "ensure", full)
    monkeypatch.setattr(fetch, "AT_ONCE", 2)
    script.answers["/a"] = [{"play": pour}]
    with pytest.raises(StoreError, match="the disk is full"):
        ensure_all(files(tmp_path, server, "abc"), quiet)
    assert {request.path for request in script.received} == {"/a"}
    kept = (tmp_path / "suite/.a.part").read_bytes()
    assert kept
    assert kept == (data * (len(kept) // len(data) + 1))[: len(kept)]


SEVERAL = """
import sys
from contextlib import contextmanager
from pathlib import Path
from bench.core.publications import Release
from bench.data.fetching.fetch import NoProgress
from bench.data.fetching.local_files import look
from bench.data.fetching.fetch import ensure_all
@contextmanager
def quiet(*_):
    yield NoProgress()
root = Path(sys.argv[2])
ensure_all([look(Release(f"suite/{name}", (f"{sys.argv[1]}/{name}",), "CC0"), root) for name in "abcde"], quiet)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_an_ended_command_is_taken_up(script: Any, server: str, tmp_path: Path, data: bytes, number: int) -> None:
    """All four go on where they were, whatever ended them, and at once, though the host says nothing."""
    going = threading.Event()
    cut = {"upto": 100_000, "headers": {"ETag": '"1"'}, "then": lambda _: going.wait(20)}
    script.answers |= {f"/{name}": [cut, {"headers": {"ETag": '"1"'}}] for name in "abcd"}
    script.answers["/e"] = [{"headers": {"ETag": '"1"'}}]
    quiet_streams: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen([sys.executable, "-c", SEVERAL, server, str(tmp_path)], **quiet_streams)
    parts = {name: records.partial_file(tmp_path, f"suite/{name}") for name in "abcd"}
    until = time.monotonic() + 30
    while not all(part.is_file() and part.stat().st_size for part in parts.values()) and time.monotonic() < until:
        time.sleep(0.02)
    struck = time.monotonic()
    process.send_signal(number)
    process.wait(60)
    assert time.monotonic() - struck < 15  # the host is silent for 20
    going.set()
    come = {name: part.stat().st_size for name, part in parts.items()}
    script.received.clear()
    fetched, failed = ensure_all(files(tmp_path, server, "abcde"), quiet)
    assert (len(fetched), failed) == (5, {})
    ranges = {request.path: request.headers.get("range") for request in script.received}
    assert ranges == {**{f"/{name}": f"bytes={come[name]}-" for name in "abcd"}, "/e": None}
    contents = {name: content for name, content in tree(tmp_path).items() if not name.startswith(records.FOLDER)}
    assert contents == {f"suite/{name}": data for name in "abcde"}
