"""Fetch one official file: mirrors, retries, resumption, checksums; it stands under its name whole and right, or not.

A partial file `.NAME.part` lies beside where the file will stand and outlives a kill. It is continued only from a
version that is provably the same (ETag or Last-Modified), or where a published checksum decides at the end.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Protocol

import requests
from rich.filesize import decimal

from bench.data import ledger
from bench.data.ledger import Digests, Record
from bench.data.urls import bare
from bench.data.web import Client, TroubleError, length
from bench.errors import BenchError, StoreError
from bench.fsio import explain, fsync_folder, write_sealed
from bench.publications import Release

_PACKED = (".gz", ".tgz")
_RANGE = re.compile(r"bytes (?P<first>\d+)-\d+/(?P<total>\d+)")
_KEPT = "what was fetched is kept: mend that, then type the same command again"


class FetchError(BenchError):
    """A file that none of its addresses gave."""


class Watch(Protocol):
    """Hears how a file comes."""

    def at(self, done: int, total: int | None) -> None:
        """So many bytes are there, of so many where that is known."""

    def notice(self, sentence: str) -> None:
        """Something that a person should know."""


class Unwatched:
    """Tells nobody."""

    def at(self, done: int, total: int | None) -> None:
        """Say nothing."""

    def notice(self, sentence: str) -> None:
        """Say nothing."""


@dataclass(frozen=True)
class _Partial:
    """What has come of a file so far, and from where.

    Args:
        root: the folder of data.
        path: of the file under it.
    """

    root: Path
    path: str

    @property
    def file(self) -> Path:
        """Where the bytes are."""
        return partial_file(self.root, self.path)

    @property
    def size(self) -> int:
        """How many there are."""
        return self.file.stat().st_size if self.file.is_file() else 0

    def facts(self) -> dict[str, Any]:
        """Whose bytes they are."""
        return ledger.partial_facts(self.root, self.path)

    def begin(self, facts: dict[str, Any]) -> None:
        """Forget all bytes; those to come are of this version."""
        self.drop()
        self.file.parent.mkdir(parents=True, exist_ok=True)
        write_sealed(ledger.partial_note(self.root, self.path), facts)

    def drop(self) -> None:
        """Forget all."""
        self.file.unlink(missing_ok=True)
        ledger.partial_note(self.root, self.path).unlink(missing_ok=True)


def partial_file(root: Path, path: str) -> Path:
    """Where the bytes of an unfinished file lie."""
    target = root / path
    return target.with_name(f".{target.name}.part")


def fetch(release: Release, root: Path, client: Client, watch: Watch | None = None) -> Record:
    """Fetch a file to its place under the folder of data, from the first of its addresses that gives it.

    Waits while another command fetches the same file, and then does not fetch it again.

    Args:
        release: the file; it has addresses.
        root: the folder of data.
        client: who asks.
        watch: hears how it comes.

    Returns:
        The record, which is kept too.

    Raises:
        FetchError: none of the addresses gave the file; it says what each did.
        StoreError: the folder cannot be written, or has not the room.
    """
    watch = watch or Unwatched()
    with writing(release.path), ledger.locked(root, release.path, watch.notice):
        known = ledger.recall(root, release.path)
        target = root / release.path
        if known and target.is_file() and ledger.stamp(target) == known.stamp:
            return known
        told = []
        for url in release.urls:
            try:
                return _fetch(release, root, url, client, watch)
            except TroubleError as trouble:
                told.append(f"{bare(url)} {trouble.reason}")
                if url != release.urls[-1]:
                    watch.notice(f"{told[-1]}; trying the next address")
    raise FetchError(
        f"{release.path} was not fetched: {'; '.join(told) or 'it has no address'}; type the "
        f"same command to try again, or put the file at {target} by hand"
    )


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Turn a failure of the file system into a sentence."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"stopped while fetching {path}: {explain(error)}; {_KEPT}") from error


def _fetch(release: Release, root: Path, url: str, client: Client, watch: Watch) -> Record:
    """Fetch from one address, again and again as long as that gets further or patience lasts."""
    part, patience = _Partial(root, release.path), client.patience
    most, failures = part.size, 0
    while True:
        try:
            pieces = _continue(release, part, url, client, watch)
            return _keep(release, part, url, pieces)
        except TroubleError as trouble:
            if not trouble.again:
                raise
            failures = 1 if part.size > most else failures + 1
            most = max(most, part.size)
            if failures >= patience.attempts:
                if not trouble.answered:
                    client.give_up(url)
                raise TroubleError(f"{trouble.reason} ({failures} attempts)", answered=trouble.answered) from trouble
            seconds = patience.wait(failures, trouble.after)
            watch.notice(f"{bare(url)} {trouble.reason}; trying again in {seconds:g} s")
            patience.sleep(seconds)


def _continue(release: Release, part: _Partial, url: str, client: Client, watch: Watch) -> bool:
    """Bring the partial file to its end; return whether its bytes came in several pieces."""
    have, facts = part.size, part.facts()
    validator = str(facts.get("validator", "")) if facts.get("url") == _name(url) else ""
    if have and not (validator or release.sha256 or release.md5):
        have = 0
    if have and have == (release.size or facts.get("total")):
        return True
    asked = {"Range": f"bytes={have}-"} if have else {}
    if have and validator:
        asked["If-Range"] = validator
    with client.get(url, asked) as answer:
        if answer.status_code == HTTPStatus.OK:
            have, total = 0, length(answer)
        else:
            total = _rest(answer, have)
            if total is None or (validator and _validator(answer) not in ("", validator)):
                part.drop()
                raise TroubleError("has another version than the one begun", again=True)
        _plausible(release, answer, total)
        if not have:
            part.begin({"url": _name(url), "validator": _validator(answer), "total": total})
        total = release.size or total
        _room(part, (total or 0) - have)
        _write(part, have, total, client.blocks(answer), watch)
        ends = total is not None or "chunked" in answer.headers.get("Transfer-Encoding", "")
    if not (ends or release.sha256 or release.md5):
        watch.notice(f"{part.path}: the server does not say how long it is, so it may have been cut")
    return have > 0


def _rest(answer: requests.Response, have: int) -> int | None:
    """The whole length that a partial answer tells, None where it is not the rest that was asked for."""
    found = _RANGE.fullmatch(answer.headers.get("Content-Range", "").strip())
    return int(found["total"]) if found and int(found["first"]) == have else None


def _validator(answer: requests.Response) -> str:
    """What tells a version from another: a strong ETag, else the time of the last change; empty where there is none."""
    tag = answer.headers.get("ETag", "")
    return tag if tag and not tag.startswith("W/") else answer.headers.get("Last-Modified", "")


def _plausible(release: Release, answer: requests.Response, total: int | None) -> None:
    """Refuse an answer that cannot be the file, before its bytes are fetched.

    Raises:
        TroubleError: it is of another size, encoded, or a page to look at.
    """
    if release.size is not None and total not in (None, release.size):
        raise TroubleError(f"offers {total:,} bytes, expected {release.size:,}")
    encoding = answer.headers.get("Content-Encoding", "identity")
    if encoding != "identity" and not release.path.endswith(_PACKED):
        raise TroubleError(f"sends the file encoded ({encoding}), though asked not to")
    kind = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind == "text/html" and not (release.sha256 or release.md5 or release.path.endswith((".html", ".htm"))):
        raise TroubleError("answers with a web page instead of the file")


def _room(part: _Partial, needed: int) -> None:
    """Refuse to begin what the disk cannot hold.

    Raises:
        StoreError: there is less room than is needed.
    """
    free = shutil.disk_usage(part.file.parent).free
    if needed > free:
        raise StoreError(
            f"{part.path} needs {decimal(needed)} more, and the disk of {part.root} has {decimal(free)} left; free "
            "some, or choose another folder by --data-dir"
        )


def _write(part: _Partial, have: int, total: int | None, blocks: Iterator[bytes], watch: Watch) -> None:
    """Append what comes; count it."""
    watch.at(have, total)
    with part.file.open("ab") as stream:
        for block in blocks:
            stream.write(block)
            have += len(block)
            watch.at(have, total)
            if total is not None and have > total:
                break
        stream.flush()
        os.fsync(stream.fileno())
    if total is not None and have > total:
        part.drop()
        raise TroubleError(f"sends more than {total:,} bytes")
    if total is not None and have < total:
        raise TroubleError(f"broke off after {have:,} of {total:,} bytes", again=True)


def _keep(release: Release, part: _Partial, url: str, pieces: bool) -> Record:
    """Check what has come, and give it its name."""
    found, target = ledger.digests(part.file), part.root / release.path
    wrong = disagreement(release, found)
    if wrong:
        part.drop()
        # Pieces may be of two versions, or of two servers; what came in one go is what this address gives.
        raise TroubleError(f"gave another file: {wrong}", again=pieces)
    part.file.replace(target)
    fsync_folder(target.parent)
    part.drop()
    stamp = ledger.stamp(target)
    record = Record(release.path, found.size, found.sha256, found.md5, bare(url), now(), stamp)
    ledger.remember(part.root, record)
    return record


def disagreement(release: Release, found: Digests) -> str:
    """Say in what a file differs from what was published of it; empty where it does not."""
    if release.size is not None and found.size != release.size:
        return f"{found.size:,} bytes, expected {release.size:,}"
    for name, expected, value in (("sha256", release.sha256, found.sha256), ("md5", release.md5, found.md5)):
        if expected and expected.lower() != value:
            return f"{name} {value}, expected {expected.lower()}"
    return ""


def now() -> str:
    """UTC, to the second, ISO 8601."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _name(url: str) -> str:
    """An address as it may be written down: it can hold secrets."""
    return hashlib.sha256(url.encode()).hexdigest()
