"""The passport of sources, and whether an address still has its file, asked by the first 64 kB of it.

open     it answers with the file, as far as size, checksum and first bytes show
moved    so does another address, to which this one leads for good
other    it answers with something else: another size, another checksum, a web page
gone     it says that there is no such file
unknown  it says neither: no answer, no permission, or an error of its own

The passport has every file of every suite, corpus and preset, its addresses, and whose its figures are. It is read off
what suites, corpora and presets say, which nothing repeats by hand; `docs/sources.py` writes it into
`suites/sources.json` for others. Files of corpora are named by patterns: some have tens of thousands.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any, Literal

import requests

from bench.core.publications import Release
from bench.core.workspace import noop
from bench.data.corpora.named import CorpusPart
from bench.data.fetching import hub, listing
from bench.data.fetching.client import AddressError, Client, RetryPolicy, length, offer
from bench.data.fetching.hub import HubError, HubFile, Repository, hub_file
from bench.data.fetching.local_files import releases
from bench.data.fetching.records import public_url
from bench.types import Method, PretrainingCorpus, Suite

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
FIRST_FETCH = "first fetch"
"""Where the checksum of a file is from that nobody published: what comes first is recorded, and compared ever after."""
SCRATCH = "scratch:"
CONFIG = "config.json"
"""The file of a model that is asked for: every one has it."""


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


@dataclass(frozen=True)
class HubModel:
    """A model of the hub that presets read or start from."""

    repository: str
    revision: str  # a commit; empty where none is pinned
    used_by: tuple[str, ...]  # presets as `METHOD/PRESET`, and `--profile NAME`


def models(methods: Iterable[Method], backbones: Mapping[str, str]) -> tuple[HubModel, ...]:
    """Return the models of presets, by name.

    Args:
        methods: whose presets are looked at.
        backbones: more, by who names them: a Hugging Face id with or without `@REVISION`.
    """
    users: dict[str, list[str]] = {}
    for method in methods:
        for name, preset in method.presets.items():
            for model in filter(None, (preset.values.get("model"), preset.backbone)):
                users.setdefault(str(model), []).append(f"{method.name}/{name}")
    for name, backbone in backbones.items():
        users.setdefault(backbone, []).append(name)
    parts = {model: model.partition("@") for model in users if not model.startswith(SCRATCH)}
    return tuple(
        HubModel(repository, revision, tuple(users[model]))
        for model, (repository, _, revision) in sorted(parts.items())
    )


def file_row(release: Release) -> dict[str, Any]:
    """Return what the table says of one file."""
    return {
        "path": release.path,
        "addresses": list(release.urls),
        "size": release.size,
        "sha256": release.sha256 or None,
        "md5": release.md5 or None,
        "origin": release.origin or FIRST_FETCH,
        **({} if release.urls else {"by_hand": release.instructions}),
    }


def corpus_row(corpus: PretrainingCorpus) -> dict[str, Any]:
    """Return what the table says of a corpus: its addresses as patterns, and the files of each language."""
    if corpus.mix:
        return {"licence": corpus.licence, "mix": corpus.mix}
    row: dict[str, Any] = {
        "licence": corpus.licence,
        "revision": corpus.revision,
        "addresses": list(corpus.urls),
        "sizes": dict(corpus.languages),
        "sha256": dict(corpus.sha256) or None,
        "origin": corpus.origin or FIRST_FETCH,
    }
    optional = {"files": corpus.shards, "codes": corpus.codes, "first": corpus.first}
    return row | {name: value for name, value in optional.items() if value}


def table(suites: Iterable[Suite], corpora: Iterable[PretrainingCorpus], presets: Iterable[HubModel]) -> dict[str, Any]:
    """Return the whole passport, as plain values."""
    return {
        "format": 1,
        "suites": {
            suite.name: {"licence": suite.licence, "files": [file_row(release) for release in releases(suite)]}
            for suite in suites
        },
        "corpora": {corpus.name: corpus_row(corpus) for corpus in corpora},
        "models": [
            {"repository": model.repository, "revision": model.revision or None, "used_by": list(model.used_by)}
            for model in presets
        ],
    }


def first_files(corpus: PretrainingCorpus, languages: Iterable[str] = ()) -> Iterator[Release]:
    """Yield the first file of each language of a corpus, or the pattern that the hub lists; a mixture has none."""
    if corpus.mix:
        return
    selected = tuple(languages) or tuple(corpus.languages)
    part, paths = CorpusPart(corpus, selected), set[str]()
    for language in selected:
        release = part.files(language, {})[0]
        if release.path not in paths:
            paths.add(release.path)
            yield release
