"""Ask one address whether it still has its file, by the first 64 kB of it.

open     it answers with the file, as far as size, checksum and first bytes show
moved    so does another address, to which this one leads for good
other    it answers with something else: another size, another checksum, a web page
gone     it says that there is no such file
unknown  it says neither: no answer, no permission, or an error of its own
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Literal

import requests

from bench.core.publications import Release
from bench.core.workspace import noop
from bench.data.fetching import hub, listing
from bench.data.fetching.client import AddressError, Client, RetryPolicy, length, offer
from bench.data.fetching.hub import HubError, HubFile, Repository, hub_file
from bench.data.fetching.records import public_url

Verdict = Literal["open", "moved", "other", "gone", "unknown"]
PATIENCE = RetryPolicy(connect=10, read=20, attempts=2, longest=5)
FIRST = 1 << 16
"""Bytes that are asked for."""

_GONE = (HTTPStatus.NOT_FOUND, HTTPStatus.GONE)
_GONE_FAULTS = ("missing", "revision", "file")
_FOR_GOOD = (HTTPStatus.MOVED_PERMANENTLY, HTTPStatus.PERMANENT_REDIRECT)
_TOTAL = re.compile(r"bytes (?:\d{1,18}-\d{1,18}|\*)/(?P<total>\d{1,18})")
_MD5 = re.compile(r'"(?P<md5>[0-9a-f]{32})"')
_BEGINNINGS: Mapping[str, tuple[bytes, ...]] = {
    ".gz": (b"\x1f\x8b",),
    ".tgz": (b"\x1f\x8b",),
    ".bz2": (b"BZh",),
    ".xz": (b"\xfd7zXZ\x00",),
    ".zip": (b"PK\x03\x04",),
    ".parquet": (b"PAR1",),
    ".json": (b"{", b"["),
    ".jsonl": (b"{",),
}
_PAGE = (b"<!doctype html", b"<html")


@dataclass(frozen=True)
class Probed:
    """What one address answered."""

    address: str
    verdict: Verdict
    reason: str = ""  # what differs or is missing, where the verdict is not `open`; else what else is known
    size: int | None = None  # bytes, as the host says
    checksum: str = ""  # sha256 or md5, as the host says or as the whole file has it; empty where neither is known
    moved_to: str = ""


def probe(address: str, release: Release, client: Client) -> Probed:
    """Ask one address of a file. Raises nothing: what goes wrong is the verdict.

    Args:
        address: of the file; one with a `*` is asked for its list.
        release: what was published of it.
        client: sends requests.
    """
    if "*" in address:
        return _listed(address)
    client.begin(address, noop)
    try:
        with client.get(address, {"Range": f"bytes=0-{FIRST - 1}"}) as answer:
            return _judged(address, release, answer, _beginning(answer, client))
    except AddressError as error:
        return Probed(address, "gone" if error.status in _GONE else "unknown", error.reason)


def probe_model(repository: str, revision: str, file: str, client: Client) -> Probed:
    """Ask the hub for a file of a model; the reason names the commit where none is pinned."""
    location = HubFile(Repository("model", repository, revision or "main"), file)
    client.begin(location.url, noop)
    try:
        with client.get(location.url, {"Range": f"bytes=0-{FIRST - 1}"}) as answer:
            offered = hub.offer(((step.url, step.headers) for step in (*answer.history, answer)), location)
            if offered.name:
                return Probed(location.url, "moved", f"called {offered.name} now", moved_to=public_url(answer.url))
            if revision and offered.commit and offered.commit != revision:
                return Probed(location.url, "other", f"commit {offered.commit}, expected {revision}")
            probed = _judged(location.url, Release(file, (), ""), answer, _beginning(answer, client))
    except AddressError as error:
        return Probed(location.url, "gone" if error.status in _GONE else "unknown", error.reason)
    unpinned = f"not pinned; {offered.commit} now" if not revision and offered.commit else ""
    return replace(probed, reason=probed.reason or unpinned)


def _listed(pattern: str) -> Probed:
    try:
        files = listing.tree(pattern)
    except HubError as error:
        return Probed(pattern, "gone" if error.fault in _GONE_FAULTS else "unknown", error.found)
    return Probed(pattern, "open", f"{len(files):,} file{'s' * (len(files) != 1)}", sum(file.size for file in files))


def _beginning(answer: requests.Response, client: Client) -> bytes:
    """Return the first bytes of a body, whatever more the host sends. Raises `AddressError`."""
    content = b""
    if answer.status_code != HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        for block in client.blocks(answer):
            content += block
            if len(content) >= FIRST:
                break
    return content[:FIRST]


def _judged(address: str, release: Release, answer: requests.Response, content: bytes) -> Probed:
    """Compare an answer with what was published of the file."""
    offered, size = offer(address, answer), _size(answer)
    size = offered.size if offered.size is not None else size
    checksum = offered.sha256 or _tag(answer)
    if size is not None and size == len(content):
        name = "md5" if release.md5 and not release.sha256 else "sha256"
        checksum = hashlib.new(name, content, usedforsecurity=False).hexdigest()
    moved_to = _moved_to(address, answer)
    difference = _difference(release, size, checksum, content, answer)
    if difference:
        return Probed(address, "other", difference, size, checksum, moved_to)
    if offered.name or moved_to:
        return Probed(address, "moved", f"called {offered.name} now" * bool(offered.name), size, checksum, moved_to)
    return Probed(address, "open", "", size, checksum)


def _difference(release: Release, size: int | None, checksum: str, content: bytes, answer: requests.Response) -> str:
    """Return how an answer differs from what was published, or from its kind of file; empty where it does not."""
    kind = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    page = content.lstrip().lower().startswith(_PAGE)
    if page or (kind == "text/html" and not _is(release.path, content)):
        return "a web page"
    if size == 0 and release.size != 0:
        return "0 bytes"
    if size is not None and release.size is not None and size != release.size:
        return f"{size:,} bytes, expected {release.size:,}"
    for name, expected in (("sha256", release.sha256), ("md5", release.md5)):
        if expected and len(checksum) == len(expected) and checksum != expected.lower():
            return f"{name} {checksum}, expected {expected.lower()}"
    if content and not _is(release.path, content):
        return f"no {PurePosixPath(release.path).suffix} file"
    return ""


def _is(path: str, content: bytes) -> bool:
    """Return whether content begins as a file of that ending does; true for endings that say nothing of it."""
    suffix = PurePosixPath(path).suffix
    beginnings = _BEGINNINGS.get(suffix)
    return beginnings is None or content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(beginnings)


def _size(answer: requests.Response) -> int | None:
    total = _TOTAL.fullmatch(answer.headers.get("Content-Range", "").strip())
    if total:
        return int(total["total"])
    return length(answer) if answer.status_code == HTTPStatus.OK else None


def _tag(answer: requests.Response) -> str:
    """Return the md5 that some hosts give as the ETag; those of sha256's length are seldom of the content (GitHub)."""
    tag = _MD5.fullmatch(answer.headers.get("ETag", ""))
    return tag["md5"] if tag else ""


def _moved_to(address: str, answer: requests.Response) -> str:
    """Return where an address leads for good, empty where it does not; what a mirror redirects to in passing is not."""
    if hub_file(address):
        return ""
    steps = [*answer.history, answer]
    targets = [after for before, after in pairwise(steps) if before.status_code in _FOR_GOOD]
    return public_url(targets[-1].url) if targets else ""
