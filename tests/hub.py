"""A Hugging Face hub on loopback: models and data sets at commits, a host of bytes that it redirects to, refusals."""

from __future__ import annotations

import hashlib
import json
import os
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest

REFUSALS: Mapping[str, tuple[int, dict[str, str]]] = {
    "gated": (403, {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access to this resource is restricted."}),
    "missing": (404, {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"}),
    "private": (401, {"X-Error-Message": "Invalid username or password."}),
    "token": (401, {"X-Error-Message": "Invalid credentials in Authorization header"}),
    "forbidden": (403, {"X-Error-Message": "Your token may not"}),
    "disabled": (403, {"X-Error-Message": "Access to this resource is disabled."}),
    "busy": (429, {}),
}
"""Status and headers by which the hub refuses, as its own library reads them."""


def use(url: str, home: Path, patch: pytest.MonkeyPatch, token: str = "") -> None:
    """Let this process use a hub, with an empty cache, as a new one does that has these variables.

    The hub's library reads them when it is imported, and then no more.
    """
    for name in [name for name in os.environ if name.startswith(("HF_", "HUGGING_FACE_"))]:
        patch.delenv(name)
    for name, value in {"HF_ENDPOINT": url, "NO_PROXY": "*", **({"HF_TOKEN": token} if token else {})}.items():
        patch.setenv(name, value)
    names = {"ENDPOINT": url, "HUGGINGFACE_CO_URL_TEMPLATE": f"{url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"}
    places = {"HF_HOME": home, "HF_TOKEN_PATH": home / "token", "HF_HUB_CACHE": home / "hub"}
    for name, value in {**names, **{name: str(place) for name, place in places.items()}}.items():
        patch.setattr(f"huggingface_hub.constants.{name}", value)


@dataclass
class Repository:
    """A model or data set: files by commit, and which commit a branch or tag has."""

    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    references: dict[str, str] = field(default_factory=dict)
    refusal: str = ""  # a key of `REFUSALS`
    token: str = ""  # that alone may read it; others are told that there is no such repository

    def push(self, files: Mapping[str, bytes], branch: str = "main") -> str:
        """Add a commit of these files; return it."""
        commit = hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()  # noqa: S324 (as git names commits)
        self.commits[commit] = dict(files)
        self.references[branch] = commit
        return commit


@dataclass
class Hub:
    """Repositories by `datasets/OWNER/NAME` and `models/OWNER/NAME`, and what was asked."""

    repositories: dict[str, Repository] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)  # old → new, of both with `datasets/` or `models/`
    received: list[tuple[str, str, str]] = field(default_factory=list)  # host, path and `Authorization`
    ranges: list[str] = field(default_factory=list)  # asked of the host of bytes
    url: str = ""
    bytes_url: str = ""  # the host that has the bytes
    spoilt: dict[str, bytes] = field(default_factory=dict)  # path → what the host of bytes gives in place of the file
    cut: dict[str, int] = field(default_factory=dict)  # path → after how many bytes it breaks off
    stated_commit: str = ""  # what the hub says that it gives, whatever that is
    silent: bool = False  # it takes requests and never answers

    def add(self, name: str, files: Mapping[str, bytes]) -> str:
        """Push to a repository, a new one if need be; return the commit."""
        return self.repositories.setdefault(name, Repository()).push(files)

    def tokens(self) -> dict[str, set[str]]:
        """Which hosts got which `Authorization`, empty for none."""
        hosts: dict[str, set[str]] = {}
        for host, _, header in self.received:
            hosts.setdefault(host, set()).add(header)
        return hosts


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *_: object) -> None:
        """Keep quiet."""

    def answer(self, status: int, content: object = b"", headers: Mapping[str, str] | None = None) -> None:
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def do_GET(self) -> None:
        """Answer for the hub, or for the host of bytes."""
        host = f"{urlsplit(self.hub.url).scheme}://{self.headers['Host']}"
        path = unquote(urlsplit(self.path).path).strip("/")  # a proxy is asked for whole addresses
        self.hub.received.append((host, path, self.headers.get("Authorization", "")))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.hub.silent:
            time.sleep(1.0)
            self.close_connection = True
            return
        if host == self.hub.bytes_url:
            self.give(path)
            return
        is_api, parts = path.startswith("api/"), path.removeprefix("api/").split("/")
        parts = parts if parts[0] in ("datasets", "models") else ["models", *parts]
        name, rest = "/".join(parts[:3]), parts[3:]
        if name in self.hub.renamed:
            new = self.hub.renamed[name]
            shown = new if is_api else new.removeprefix("models/")
            self.answer(307, headers={"Location": "/".join(["/api" * is_api, shown, *rest])})
            return
        repository = self.hub.repositories.get(name)
        refusal = repository.refusal if repository else "missing"
        if repository and repository.token and self.headers.get("Authorization") != f"Bearer {repository.token}":
            refusal = "token" if self.headers.get("Authorization") else "private"
        if repository is None or refusal:
            status, headers = REFUSALS[refusal]
            self.answer(status, {"error": refusal}, headers)
            return
        revision = "/".join(rest[1:2]) or "main"
        commit = repository.references.get(revision, revision)
        if commit not in repository.commits:
            self.answer(404, {"error": "no"}, {"X-Error-Code": "RevisionNotFound"})
        elif is_api:
            self.describe(name, rest, repository.commits[commit], commit, body)
        else:
            self.resolve(repository.commits[commit], "/".join(rest[2:]), commit)

    do_HEAD = do_POST = do_GET  # noqa: N815 (the names that http.server calls)

    def describe(self, name: str, rest: list[str], files: dict[str, bytes], commit: str, body: bytes) -> None:
        if rest[:1] == ["tree"] or rest[:1] == ["paths-info"]:
            below = "/".join(rest[2:])
            paths = json.loads(body)["paths"] if body.startswith(b"{") else None
            self.answer(200, [entry for entry in _entries(files) if _is_wanted(entry["path"], below, paths)])
            return
        siblings = [{"rfilename": path} for path in files]
        self.answer(200, {"id": name.partition("/")[2], "sha": commit, "siblings": siblings, "private": False})

    def resolve(self, files: dict[str, bytes], path: str, commit: str) -> None:
        """Redirect to the host of bytes, as the hub does for large files, and say what they will be."""
        if path not in files:
            self.answer(404, {"error": "no"}, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit})
            return
        sha256 = hashlib.sha256(files[path]).hexdigest()
        stated = {"X-Linked-Size": str(len(files[path])), "X-Linked-ETag": f'"{sha256}"', "ETag": f'"{sha256}"'}
        where = f"{self.hub.bytes_url}/{commit}/{path}"
        self.answer(302, headers={**stated, "X-Repo-Commit": self.hub.stated_commit or commit, "Location": where})

    def give(self, path: str) -> None:
        commit, _, name = path.partition("/")
        repositories = self.hub.repositories.values()
        data = next(repository.commits[commit][name] for repository in repositories if commit in repository.commits)
        data, cut = self.hub.spoilt.get(name, data), self.hub.cut.get(name)
        part = self.headers.get("Range", "")
        self.hub.ranges.append(part)
        tag = f'"{hashlib.sha256(data).hexdigest()}"'
        part = part if self.headers.get("If-Range") in (None, tag) else ""
        first = int(part[6:].partition("-")[0]) if part else 0
        last = int(part.partition("-")[2] or len(data) - 1) if part else len(data) - 1
        headers = {"ETag": tag, "Content-Type": "application/octet-stream", "Content-Length": str(last + 1 - first)}
        if part:
            headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
        self.answer(206 if part else 200, data[first : last + 1][:cut], headers)
        self.close_connection = cut is not None


def _entries(files: Mapping[str, bytes]) -> list[dict[str, Any]]:
    """List files and folders as the hub does."""
    folders = {"/".join(path.split("/")[:depth]) for path in files for depth in range(1, path.count("/") + 1)}
    entries: list[dict[str, Any]] = [{"type": "directory", "path": folder, "oid": "0" * 40} for folder in folders]
    for path, data in files.items():
        oid = hashlib.sha256(data).hexdigest()
        lfs = {"oid": oid, "size": len(data), "pointerSize": 100}
        entries.append({"type": "file", "path": path, "size": len(data), "oid": oid[:40], "lfs": lfs})
    return entries


def _is_wanted(path: str, below: str, paths: list[str] | None) -> bool:
    return path in paths if paths is not None else not below or path.startswith(f"{below}/")


@contextmanager
def running(tls: ssl.SSLContext | None = None) -> Iterator[Hub]:
    """Run a hub without repositories, encrypted where a context is given."""
    hub, scheme = Hub(), "https" if tls else "http"
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Of", (_Handler,), {"hub": hub}))
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that leaves is part of the play
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    port = server.server_address[1]
    hub.url, hub.bytes_url = f"{scheme}://localhost:{port}", f"{scheme}://127.0.0.1:{port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
