"""Archives and answers of servers: nothing outside of the folder, no bomb, no hang, no bytes that are wrong."""

import hashlib
import io
import socket
import tarfile
import threading
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from bench.core.publications import Release
from bench.data.fetching.client import Client, RetryPolicy
from bench.data.fetching.fetch import fetch
from bench.data.fetching.unpack import unpack
from tests.fuzz.harness import Case, Draw, Outcome

NAMES = (
    "a.txt",
    "b/c.txt",
    "../out",
    "/abs",
    "b\\..\\x",
    "C:x",
    "a\x00b",
    "A.TXT",
    "./a",
    "b/../../y",
    "é" * 200,
    ".",
    "",
)
LINKS = (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE)


def _archive(draw: Draw) -> tuple[str, bytes]:
    """Return a name and the bytes of an archive with members that are as they should be, or not."""
    buffer, ending = io.BytesIO(), draw.choice((".zip", ".tar", ".tar.gz", ".tar.bz2", ".tar.xz"))
    members = {
        draw.choice(NAMES[:2] if draw.random() < 0.5 else NAMES): draw.randbytes(draw.randrange(2_000)) for _ in "abc"
    }
    if draw.random() < 0.1:
        members["bomb"] = bytes(40_000_000)
    if ending == ".zip":
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as packed:
            for name, content in members.items():
                info = zipfile.ZipInfo("x")
                info.filename, info.external_attr = name, draw.choice((0, 0o120777 << 16, 0o644 << 16))
                packed.writestr(info, content)
    else:
        mode: Any = f"w:{ending.removeprefix('.tar').removeprefix('.')}"
        with tarfile.open(fileobj=buffer, mode=mode) as packed_tar:
            for name, content in members.items():
                member = tarfile.TarInfo(name.replace("\x00", ""))
                member.size = len(content)
                if draw.random() < 0.1:
                    member.pax_headers = {"comment": "x" * 2_000_000}
                if draw.random() < 0.2:
                    member.type, member.linkname, member.size = draw.choice(LINKS), draw.choice(NAMES[2:4]), 0
                packed_tar.addfile(member, io.BytesIO(content))
    data = buffer.getvalue()
    return f"x{ending}", draw.damaged(data) if draw.random() < 0.4 else data


def case(draw: Draw, folder: Path) -> Case:
    name, data = _archive(draw)
    (folder / name).write_bytes(data)

    def call() -> list[str]:
        unpack(folder / name, folder / "into")
        return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))

    def judge(_: Outcome) -> str:
        odd = [path for path in folder.rglob("*") if path.is_symlink() or not path.is_relative_to(folder / "into")]
        odd = [path for path in odd if path not in (folder / name, folder / "into")]
        return f"left {odd[:3]}" if odd else ""

    return Case(call, judge)


CONTENT = b"what the file holds\n" * 50


@cache
def _server() -> tuple[int, dict[str, bytes]]:
    """Begin to answer on loopback; what is answered is set by path."""
    answers: dict[str, bytes] = {}
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            connection, _ = listening.accept()
            with connection:
                connection.settimeout(5)
                request = connection.recv(65_536).split(b" ")
                connection.sendall(answers.get(request[1].decode() if len(request) > 1 else "", b""))

    threading.Thread(target=serve, daemon=True).start()
    return int(listening.getsockname()[1]), answers


def _answer(draw: Draw, url: str) -> bytes:
    """Return an answer that is right, wrong in one place, or no answer."""
    status = draw.choice(
        (b"200 OK",) * 4 + (b"206 Partial Content", b"301 Moved", b"404 No", b"416 No", b"503 Wait", b"xyz")
    )
    headers = {"Content-Length": str(len(CONTENT)), "Content-Type": "text/plain", "Connection": "close"}
    odd = {
        "Location": draw.choice((url, "http://[::1", "file:///etc/passwd", "//", "gopher://a", "\x7f", url + "/b")),
        "Content-Range": draw.choice(
            ("bytes 0-9/10", "bytes 5-1/9", "bytes */x", f"bytes 0-{len(CONTENT) - 1}/{len(CONTENT)}")
        ),
        "Content-Length": draw.choice(("0", "-1", "9" * 30, "1e3", "12")),
        "Content-Encoding": draw.choice(("gzip", "br", "x")),
        "Retry-After": draw.choice(("-1", "9" * 40, "soon")),
        "ETag": draw.choice(('"a"', "\xff", '"' * 5_000)),
    }
    for name in draw.sample([*odd], draw.randint(0, 2)):
        headers[name] = odd[name]
    lines = b"".join(f"{name}: {value}\r\n".encode("latin-1", "replace") for name, value in headers.items())
    answer = b"HTTP/1.1 " + status + b"\r\n" + lines + b"\r\n" + CONTENT
    return draw.damaged(answer) if draw.random() < 0.3 else answer


def answered(draw: Draw, folder: Path) -> Case:
    """Fetch a file of a known checksum from a server that answers as it likes."""
    return served(folder, lambda url: _answer(draw, url), len(CONTENT) if draw.random() < 0.5 else None)


def served(folder: Path, answer: Callable[[str], bytes], size: int | None = None) -> Case:
    """Fetch a file of a known checksum, and perhaps size, from a server that gives this answer at this address."""
    port, answers = _server()
    url = f"http://127.0.0.1:{port}/{len(answers)}"
    answers[url.partition(str(port))[2]] = answer(url)
    release = Release("some/file.txt", (url,), "none", size=size, sha256=hashlib.sha256(CONTENT).hexdigest())

    def call() -> str:
        policy = RetryPolicy(connect=2, read=1, attempts=2, first=0, longest=0, sleep=lambda _: None)
        with Client(policy) as client:
            fetch(release, folder, client)
        return (folder / release.path).read_text(encoding="latin-1")

    def judge(outcome: Outcome) -> str:
        return "kept other bytes" if outcome.code == 0 and outcome.value != CONTENT.decode() else ""

    return Case(call, judge, allowed=(0, 1, 2))
