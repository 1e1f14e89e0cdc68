"""A small internet on loopback: the hosts that data and models come from, behind a proxy or as a mirror of the hub.

As a proxy it takes CONNECT and speaks TLS with a certificate for all hosts; asked directly it is a mirror of the hub.
What it serves is set by address; of the hub it speaks what clients ask of it: commits, trees, files with the headers
that name commit and checksum, and the redirect to where large files lie.
"""

from __future__ import annotations

import hashlib
import json
import ssl
import subprocess
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

HUB, LARGE_FILES = "huggingface.co", "cdn-lfs.hf.co"
_LARGE = (".safetensors", ".bin", ".parquet", ".gz", ".zip")
_ERRORS = {401: "GatedRepo", 404: "RepoNotFound"}


def certificate(folder: Path, hosts: Collection[str]) -> Path:
    """Make a certificate for hosts by openssl, trusted by who names it; return the file, its key beside it."""
    names = ",".join(f"DNS:{host}" for host in sorted(hosts))
    file = folder / "hosts.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", str(folder / "key.pem"), "-out", str(file), "-days", "2", "-subj", "/CN=loopback"]
    extensions = (f"subjectAltName={names}", "keyUsage=critical,digitalSignature,keyCertSign")
    subprocess.run([*command, *(word for name in extensions for word in ("-addext", name))], check=True, timeout=60)
    return file


@dataclass(frozen=True)
class Answer:
    """What is said at an address."""

    data: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    upto: int | None = None  # bytes that are sent before the connection breaks off; None: all
    then: Answer | None = None  # what is said from the second time on


@dataclass
class Repository:
    """A model or data set of the hub at one commit, which is its branch `main` too."""

    commit: str
    files: Mapping[str, bytes]


@dataclass(frozen=True)
class Request:
    """A request that came."""

    host: str
    path: str
    token: str  # the header `Authorization`
    offset: str  # the header `Range`


@dataclass
class Internet:
    """What is served, and what was asked. `close` is the end of it: nothing answers any more."""

    folder: Path
    hosts: frozenset[str]
    answers: dict[str, Answer] = field(default_factory=dict)  # by address
    repositories: dict[str, Repository] = field(default_factory=dict)  # by `models/OWNER/NAME`, `datasets/OWNER/NAME`
    token: str = ""  # that the hub asks for
    requests: list[Request] = field(default_factory=list)

    port: int = 0

    def __post_init__(self) -> None:
        """Make its certificate, and open it."""
        self.certificate = certificate(self.folder, self.hosts)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(self.certificate, self.folder / "key.pem")
        self._server: ThreadingHTTPServer | None = None
        self.open()

    def open(self) -> None:
        """Answer, at the port of before."""
        kind = type("Serving", (_Handler,), {"internet": self, "context": self._context})
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), kind)
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that leaves is no fault
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        self.port = self._server.server_address[1]

    def close(self) -> None:
        """End it: nothing answers any more."""
        if self._server:
            self._server.shutdown()
            self._thread.join()
            self._server.server_close()
            self._server = None

    @property
    def address(self) -> str:
        """Where it is, on loopback."""
        return f"http://127.0.0.1:{self.port}"

    def proxied(self) -> dict[str, str]:
        """Return the variables of somebody who reaches the internet by a proxy with a certificate of its own."""
        proxy = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), self.address)
        return {**proxy, "REQUESTS_CA_BUNDLE": str(self.certificate), "SSL_CERT_FILE": str(self.certificate)}

    def mirror(self) -> dict[str, str]:
        """Return the variable of somebody who has a mirror of the hub, and nothing else."""
        return {"HF_ENDPOINT": self.address}

    def serve(self, url: str, data: bytes) -> None:
        """Serve a file at an address, of the hub or of another host."""
        parts = urlsplit(url)
        if parts.scheme == "hf":
            owner, name_and_revision, path = f"{parts.netloc}{parts.path}".removeprefix("datasets/").split("/", 2)
            name, _, revision = name_and_revision.partition("@")
        elif parts.netloc == HUB:
            owner, name, _, revision, path = parts.path.removeprefix("/datasets/").split("/", 4)
        else:
            self.answers[url.replace("http://", "https://", 1)] = Answer(data)
            return
        known = self.repositories.get(f"datasets/{owner}/{name}")
        commit = revision if len(revision) == 40 else known.commit if known else _git(name.encode())
        files = {**(known.files if known else {}), path: data}
        self.repositories[f"datasets/{owner}/{name}"] = Repository(commit, files)

    def answer(self, verb: str, host: str, path: str, token: str, *, mirrored: bool) -> Answer:
        """Return what is said."""
        path, _, query = path.partition("?")
        plain = unquote(path)
        url = f"https://{host}{plain}"
        if (given := self.answers.get(url)) is not None:
            if given.then and verb == "GET":
                self.answers[url] = given.then
            return given
        if host == LARGE_FILES:
            blobs = (data for made in self.repositories.values() for data in made.files.values())
            data = next((blob for blob in blobs if hashlib.sha256(blob).hexdigest() == plain[1:]), None)
            return Answer(data, headers={"ETag": f'"{plain[1:]}"'}) if data is not None else Answer(status=404)
        return self._hub(plain, query, token, mirrored=mirrored) if host == HUB else Answer(status=404)

    def _hub(self, path: str, query: str, token: str, *, mirrored: bool) -> Answer:
        """Speak as the hub does."""
        kind = "datasets" if path.startswith(("/datasets/", "/api/datasets/")) else "models"
        words = path.removeprefix("/api").removeprefix(f"/{kind}").strip("/").split("/")
        repository = self.repositories.get(f"{kind}/{'/'.join(words[:2])}")
        if self.token and token != f"Bearer {self.token}":
            return Answer(b"gated", 401, {"X-Error-Code": _ERRORS[401], "X-Error-Message": "Access is restricted."})
        if repository is None:
            return Answer(b"missing", 404, {"X-Error-Code": _ERRORS[404]})
        verb, revision, rest = (words[2], words[3], "/".join(words[4:])) if len(words) > 3 else ("", "main", "")
        if revision not in ("main", repository.commit) and not repository.commit.startswith(revision):
            return Answer(b"revision", 404, {"X-Error-Code": "RevisionNotFound"})
        if not path.startswith("/api/"):
            return _resolved(repository, rest, mirrored=mirrored)
        about: Any = {"id": "/".join(words[:2]), "sha": repository.commit, "private": False, "gated": False}
        about |= {"siblings": [{"rfilename": name} for name in repository.files]}
        headers = {"Content-Type": "application/json"}
        if verb == "tree":  # a page of one file, and where the next one is
            entries = [_entry(name, data) for name, data in repository.files.items() if name.startswith(rest)]
            at = int(parse_qs(query).get("cursor", ["0"])[0])
            about = entries[at : at + 1]
            if at + 1 < len(entries):
                base = self.address if mirrored else f"https://{HUB}"
                headers["Link"] = f'<{base}{path}?cursor={at + 1}>; rel="next"'
        return Answer(json.dumps(about).encode(), headers=headers)


def _git(data: bytes) -> str:
    return hashlib.sha1(data, usedforsecurity=False).hexdigest()


def _entry(name: str, data: bytes) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "file", "path": name, "size": len(data), "oid": _git(data)}
    sha256 = hashlib.sha256(data).hexdigest()
    lfs = {"lfs": {"oid": sha256, "size": len(data), "pointerSize": 134}}
    return entry | (lfs if name.endswith(_LARGE) else {})


def _resolved(repository: Repository, name: str, *, mirrored: bool) -> Answer:
    data = repository.files.get(name)
    commit = {"X-Repo-Commit": repository.commit}
    if data is None:
        return Answer(b"no such file", 404, {**commit, "X-Error-Code": "EntryNotFound"})
    if not name.endswith(_LARGE):
        return Answer(data, headers={**commit, "ETag": f'"{_git(data)}"'})
    sha256 = hashlib.sha256(data).hexdigest()
    linked = {**commit, "X-Linked-ETag": f'"{sha256}"', "X-Linked-Size": str(len(data))}
    if mirrored:  # a mirror gives all by itself
        return Answer(data, headers={**linked, "ETag": f'"{sha256}"'})
    return Answer(status=302, headers={**linked, "Location": f"https://{LARGE_FILES}/{sha256}"})


class _Handler(BaseHTTPRequestHandler):
    """Answers requests, also those inside of a tunnel."""

    protocol_version = "HTTP/1.1"
    internet: Internet
    context: ssl.SSLContext
    tunnel = ""  # the host at its other end

    def do_CONNECT(self) -> None:
        """Open a tunnel, and be its other end."""
        self.send_response(200, "Connection established")
        self.end_headers()
        self.rfile.close()
        self.connection = self.context.wrap_socket(self.connection, server_side=True)
        self.rfile, self.wfile = self.connection.makefile("rb"), self.connection.makefile("wb", 0)
        self.tunnel, self.close_connection = self.path.partition(":")[0], False

    def do_GET(self) -> None:
        """Say what is at an address."""
        absolute = urlsplit(self.path)
        host = self.tunnel or absolute.netloc or HUB
        path = self.path if not absolute.netloc else self.path.partition(absolute.netloc)[2]
        token = self.headers.get("Authorization", "")
        self.internet.requests.append(Request(host, path, token, self.headers.get("Range", "")))
        answer = self.internet.answer(self.command, host, path, token, mirrored=not (self.tunnel or absolute.netloc))
        first = self._first(answer)
        status = 206 if first else answer.status
        headers = {"Content-Type": "application/octet-stream", **answer.headers}
        headers["Content-Length"] = str(len(answer.data) - first)
        if first:
            headers["Content-Range"] = f"bytes {first}-{len(answer.data) - 1}/{len(answer.data)}"
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.data[first : answer.upto])
        if answer.upto is not None:
            self.close_connection = True

    def finish(self) -> None:
        """Close the connection, which is another than the one that came where a tunnel was opened."""
        super().finish()
        self.connection.close()

    do_HEAD = do_GET  # noqa: N815 (the name that http.server calls)

    def _first(self, answer: Answer) -> int:
        """Return the place from which on bytes are asked for."""
        asked = self.headers.get("Range", "")
        first = int(asked[6:-1]) if asked.startswith("bytes=") and asked.endswith("-") else 0
        return first if answer.status == 200 and first < len(answer.data) else 0

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet."""
