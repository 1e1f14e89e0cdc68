"""What tests of fetching share: a real local HTTP server that plays a script, and a fetch with little patience."""

from __future__ import annotations

import hashlib
import shutil
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bench.core.publications import Release
from bench.data.fetching import records
from bench.data.fetching.client import Client, RetryPolicy
from bench.data.fetching.fetch import fetch
from tests.conftest import tree

DATA = bytes(range(256)) * 1200


class ReceivedRequest(NamedTuple):
    """A request that came."""

    path: str
    headers: dict[str, str]


@dataclass
class Script:
    """What a server says to each path, one answer after another (the last again and again), and what it was asked.

    An answer is a dict of: `status` (200), `data`, `headers`, `ranges` (true: it knows them), `heeds` (true: `If-Range`
    too), `length` (what it says, None for nothing), `upto` (bytes that it sends), `then` (called with the handler when
    they are sent), `play` (called instead of all).
    """

    answers: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    received: list[ReceivedRequest] = field(default_factory=list)

    def ranges(self) -> list[str]:
        """The `Range` of every request, empty where it had none."""
        return [request.headers.get("range", "") for request in self.received]


class Handler(BaseHTTPRequestHandler):
    """Plays a script."""

    protocol_version = "HTTP/1.1"
    script: Script

    def do_GET(self) -> None:
        """Give the next answer of the path."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.script.received.append(ReceivedRequest(self.path, headers))
        answers = self.script.answers[self.path.partition("?")[0]]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if "play" in answer:
            answer["play"](self)
        else:
            self.give(answer)
            answer.get("then", lambda _: None)(self)

    do_HEAD = do_GET  # noqa: N815 (the name that http.server calls)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""

    def head(self, status: int, headers: dict[str, str]) -> None:
        """Send status and headers; the connection ends after the body."""
        self.send_response(status)
        for name, value in {**headers, "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()

    def give(self, answer: dict[str, Any]) -> None:
        """Answer with a file, or with its rest."""
        headers = answer.get("headers", {})
        data = answer.get("data", b"" if answer.get("status", 200) != 200 else DATA)
        first, status = self._first(answer, headers), answer.get("status", 200)
        if first >= len(data) > 0:
            self.head(416, {"Content-Range": f"bytes */{len(data)}", "Content-Length": "0"})
            return
        last = self._last(answer, len(data))
        if first or last < len(data) - 1:
            status, headers = 206, {**headers, "Content-Range": f"bytes {first}-{last}/{len(data)}"}
            data = data[: last + 1]
        length = answer.get("length", len(data) - first)
        self.head(status, headers | ({} if length is None else {"Content-Length": str(length)}))
        if self.command == "HEAD":
            return
        self.wfile.write(data[first : answer.get("upto", len(data))])
        self.wfile.flush()

    def _first(self, answer: dict[str, Any], headers: dict[str, str]) -> int:
        received, only_if = self.headers.get("Range"), self.headers.get("If-Range")
        is_current = only_if in (None, headers.get("ETag"), headers.get("Last-Modified")) or not answer.get(
            "heeds", True
        )
        begin = received.removeprefix("bytes=").partition("-")[0] if received else ""
        return int(begin) if begin and is_current and answer.get("ranges", True) else 0

    def _last(self, answer: dict[str, Any], size: int) -> int:
        end = self.headers.get("Range", "").rpartition("-")[2]
        return min(int(end), size - 1) if end and answer.get("ranges", True) and "status" not in answer else size - 1


Serve = Callable[..., str]


@pytest.fixture
def data() -> bytes:
    """The file that the server has: 307,200 bytes, more than one block."""
    return DATA


@pytest.fixture
def script() -> Script:
    return Script()


@pytest.fixture
def serve(script: Script, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Start a server that plays the script, through a wrapper of its socket if one is given; return its port."""
    monkeypatch.setenv("NO_PROXY", "*")
    running: list[tuple[ThreadingHTTPServer, threading.Thread]] = []

    def start(wrap: Callable[[Any], Any] | None = None) -> str:
        server = ThreadingHTTPServer(("127.0.0.1", 0), type("Playing", (Handler,), {"script": script}))
        server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that leaves is part of the play
        if wrap:
            server.socket = wrap(server.socket)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        running.append((server, thread))
        return str(server.server_address[1])

    yield start
    for server, thread in running:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def server(serve: Serve) -> str:
    """The address of a server that plays the script."""
    return f"http://127.0.0.1:{serve()}"


@dataclass
class Ear:
    """Remembers what it hears."""

    steps: list[tuple[int, int | None]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    def at(self, count: int, total: int | None) -> None:
        self.steps.append((count, total))

    def notice(self, sentence: str) -> None:
        self.notices.append(sentence)


@dataclass
class Attempt:
    """A fetch of `suite/file.bin` with little patience (`waits`, seconds), whose sha256 is published by default."""

    root: Path
    waits: list[float] = field(default_factory=list)
    ear: Ear = field(default_factory=Ear)

    def __call__(self, *urls: str, policy: dict[str, Any] | None = None, **fields: Any) -> records.Record:
        published = {"path": "suite/file.bin", "licence": "CC0", "sha256": hashlib.sha256(DATA).hexdigest(), **fields}
        settings = {"connect": 2.0, "read": 5.0, "attempts": 3, "sleep": self.waits.append, **(policy or {})}
        with Client(RetryPolicy(**settings)) as client:
            return fetch(Release(urls=urls, **published), self.root, client, self.ear)

    @property
    def files(self) -> dict[str, bytes]:
        """Every file but our own notes, by its path."""
        return {name: data for name, data in tree(self.root).items() if not name.startswith(records.FOLDER)}

    def remove(self) -> None:
        (self.root / "suite/file.bin").unlink()

    def another(self) -> Attempt:
        """One more into the same folder."""
        return Attempt(self.root)


@pytest.fixture
def attempt(tmp_path: Path) -> Attempt:
    """Fetch into a folder of data of the test's own."""
    return Attempt(tmp_path / "data")


@pytest.fixture(scope="session")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, Path]:
    """What a server of `localhost` encrypts with, and the file of its certificate, which nobody trusts."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is needed to make a certificate")
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = str(folder / "key.pem"), str(folder / "certificate.pem")
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate, *subject]
    subprocess.run(command, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, folder / "certificate.pem"
