"""Make sure that an official file is where its suite reads it: fetch what is missing or damaged, unpack what is packed.

A file comes from the first of its addresses that gives it, in as many pieces as it takes, and gets its name only when
it is whole and its checksums hold. A partial file `.NAME.part` next to it survives a kill. It is continued only from a
version that is provably the same (ETag or Last-Modified), or where a published checksum decides at the end. The hub
says size and sha256 of a file before its bytes: these count as published where nothing else was. Where no sha256 was
published, that of the first fetch is recorded, and whatever comes later is compared with it.

Up to four files come at a time, by a client each; one's failure stops no other.
"""

import contextvars
import hashlib
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from http import HTTPStatus
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Protocol

import requests
from rich.filesize import decimal

from bench.core.errors import BenchError, StoreError
from bench.core.files import explain, fsync_folder, read_sealed, utc_now, write_sealed
from bench.core.publications import Release
from bench.data.fetching import records
from bench.data.fetching.client import AddressError, Client, Hosts, RetryPolicy, length, offer
from bench.data.fetching.hub import Offer, hub_file
from bench.data.fetching.local_files import LocalFile, look
from bench.data.fetching.records import Digests, Record, public_url
from bench.data.fetching.unpack import unpack

_PACKED = (".gz", ".tgz")
_RANGE = re.compile(r"bytes (?P<first>\d{1,18})-\d{1,18}/(?P<total>\d{1,18})")
_PARTIAL_KEPT = "what was fetched is kept: fix that, then type the same command again"
AT_ONCE = 4
"""Files at a time: one connection seldom fills a line, and a host is asked by no more than this."""


class FetchError(BenchError):
    """A file that none of its addresses gave."""


class ProgressCallback(Protocol):
    """Follows how a file comes."""

    def at(self, count: int, total: int | None) -> None:
        """Take the number of bytes done so far, and their total where that is known."""

    def notice(self, sentence: str) -> None:
        """Take something that a person should know."""


class NoProgress:
    """Ignores all."""

    def at(self, *event: object, **fields: object) -> None:
        """Ignore it."""

    notice = at


def ensure(file: LocalFile, client: Client | None, watch: ProgressCallback | None = None) -> LocalFile:
    """Fetch and unpack one file as far as needed; a complete one is left alone.

    Args:
        file: the file as it is now.
        client: sends requests; None never touches the network, so that what is missing stays missing.
        watch: follows the bytes, first of the file, then of what is unpacked; default: nobody does.

    Returns:
        The file as it is afterwards.

    Raises:
        FetchError: if no address gave the file.
        StoreError: if the folder cannot be written or the disk is too full.
        DataError: for an archive that is damaged or holds what is refused.
    """
    watch, release, root = watch or NoProgress(), file.release, file.root
    if file.complete:
        return file
    usable = False  # there as published and, where no sha256 was published, as it was fetched first
    if (root / release.path).is_file():
        with writing(release.path):
            digests, record = records.digests(root / release.path), records.recall(root, release.path)
        is_first = bool(release.sha256 or not record or record.sha256 == digests.sha256)
        usable = is_first and not difference_from(release, digests)
    if not usable and (client is None or not release.urls):
        return file
    with writing(release.path):
        record = records.recall(root, release.path)
        if record and (not usable or file.state == "damaged"):
            # Of what is no longer true the checksum stays, to compare the next file with.
            stamp = record.stamp if usable else (-1, -1)
            records.remember(root, replace(record, stamp=stamp, folder="", files=None))
    if client is not None and not usable:
        fetch(release, root, client, watch)
    if release.unpack:
        with writing(release.path), records.locked(root, release.path, watch.notice):
            if not look(release, root).complete:
                _unpack(release, root, watch)
    return look(release, root)


def _unpack(release: Release, root: Path, watch: ProgressCallback) -> None:
    """Unpack an archive and record its files."""
    path, total = root / release.path, 0

    def advance(count: float) -> None:
        nonlocal total
        total += int(count)
        watch.at(total, None)

    files = unpack(path, root / release.unpack, advance=advance)
    record = records.recall(root, release.path)
    if record is None or record.stamp != records.stamp(path):
        digests = records.digests(path)
        record = Record(release.path, digests.size, digests.sha256, digests.md5, "", utc_now(), records.stamp(path))
        record = replace(record, lines=digests.lines)
    times = {name: records.stamp(root / release.unpack / name)[1] for name in files}
    stamped = {name: (*digests, times[name]) for name, digests in files.items()}
    records.remember(root, replace(record, folder=release.unpack, files=stamped))


@dataclass(frozen=True)
class _Partial:
    """The bytes of a file under a folder of data that have come so far, and their version."""

    root: Path
    path: str

    @property
    def file(self) -> Path:
        """Where the bytes are."""
        return records.partial_file(self.root, self.path)

    @property
    def _note(self) -> Path:
        """Where it is noted which version they are of."""
        return records.partial_note(self.root, self.path)

    @property
    def size(self) -> int:
        """How many there are."""
        return self.file.stat().st_size if self.file.is_file() else 0

    def facts(self) -> dict[str, Any]:
        """Return address, validator and total of the version that they are of; empty where that is not known."""
        try:
            return read_sealed(self._note)
        except (OSError, ValueError):
            return {}

    def begin(self, facts: dict[str, Any]) -> None:
        """Drop all bytes; those to come are of this version."""
        self.drop()
        self.file.parent.mkdir(parents=True, exist_ok=True)
        write_sealed(self._note, facts)

    def drop(self) -> None:
        """Drop all."""
        self.file.unlink(missing_ok=True)
        self._note.unlink(missing_ok=True)


def fetch(release: Release, root: Path, client: Client, watch: ProgressCallback | None = None) -> Record:
    """Fetch a file from the first of its addresses that gives it; a file that another command fetches is waited for.

    Args:
        release: addresses, and size and checksums where they were published.
        root: folder of data; the file goes to `root / release.path`.
        client: sends requests.
        watch: follows the bytes; default: nobody does.

    Returns:
        The record of the file, which is written too.

    Raises:
        FetchError: if no address gave the file.
        StoreError: if the folder cannot be written or the disk is too full.
    """
    watch = watch or NoProgress()
    with writing(release.path), records.locked(root, release.path, watch.notice):
        record = records.recall(root, release.path)
        target = root / release.path
        if record and target.is_file() and records.stamp(target) == record.stamp:
            return record
        reasons = []
        for url in release.urls:
            try:
                return _fetch(release, root, url, client, watch)
            except AddressError as error:
                reasons.append(f"{public_url(url)} {error.reason}")
                if url != release.urls[-1]:
                    watch.notice(f"{reasons[-1]}; trying the next address")
    found = "; ".join(reasons) or "it has no address"
    hint = f"type the same command to try again, or put the file at {target} by hand"
    facts = [f"{release.size:,} bytes"] if release.size is not None else []
    facts += [f"{name} {value}" for name, value in (("sha256", release.sha256), ("md5", release.md5)) if value]
    raise FetchError(
        f"{release.path} was not fetched: {found}; {hint}",
        where=target,
        found=found,
        expected=", ".join(facts) or "a file",
        hint=hint,
    )


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Raise `StoreError` for a failure of the file system."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"stopped while fetching {path}: {explain(error)}; {_PARTIAL_KEPT}") from error


def _fetch(release: Release, root: Path, url: str, client: Client, watch: ProgressCallback) -> Record:
    """Fetch from one address, as often as that gets further or attempts are left. Raises `AddressError`."""
    part = _Partial(root, release.path)
    most = part.size
    client.begin(url, watch.notice)
    while True:
        try:
            pieces, expected = _continue(release, part, url, client, watch)
            return _keep(release, expected, part, url, pieces)
        except AddressError as error:
            if not error.retry:
                raise
            if part.size > most:
                most = part.size
                client.begin(url, watch.notice)
            client.wait(error)


def _continue(
    release: Release, part: _Partial, url: str, client: Client, watch: ProgressCallback
) -> tuple[bool, Release]:
    """Fetch the rest of a partial file; return whether it came in several pieces, and what is known of it by now.

    Raises `AddressError`.
    """
    offset, noted = part.size, part.facts()
    validator = str(noted.get("validator", "")) if noted.get("url") == _name(url) else ""
    known = release
    if noted.get("url") in [_name(address) for address in release.urls]:
        known = _supplemented(release, str(noted.get("sha256", "")), noted.get("size"))
    if offset and not (validator or known.sha256 or known.md5):
        offset = 0
    if offset and offset == (known.size or noted.get("total")):
        return True, known
    headers = {"Range": f"bytes={offset}-"} if offset else {}
    if offset and validator:
        headers["If-Range"] = validator
    with client.get(url, headers) as answer:
        offered = offer(url, answer)
        _refuse_others(release, url, offered, watch)
        if answer.status_code == HTTPStatus.OK:
            offset, total, known = 0, length(answer), release
        else:
            content_range = _RANGE.fullmatch(answer.headers.get("Content-Range", "").strip())
            total = int(content_range["total"]) if content_range and int(content_range["first"]) == offset else None
            changed = offered.sha256 and known.sha256.lower() not in ("", offered.sha256)
            if total is None or changed or (validator and _validator(answer) not in ("", validator)):
                part.drop()
                raise AddressError("has another version than the one begun", retry=True)
        known = _supplemented(known, offered.sha256, offered.size)
        _plausible(known, answer, total)
        if not offset:
            facts = {"url": _name(url), "validator": _validator(answer), "total": total}
            part.begin({**facts, "sha256": offered.sha256, "size": offered.size})
        total = known.size or total
        size, free = (total or 0) - offset, shutil.disk_usage(part.file.parent).free
        if size > free:
            raise StoreError(
                f"{part.path} needs {decimal(size)} more, and the disk of {part.root} has {decimal(free)} left; free "
                "some, or choose another folder by --data-dir"
            )
        _write(part, offset, total, client.blocks(answer), watch)
        ends = total is not None or "chunked" in answer.headers.get("Transfer-Encoding", "")
    if not (ends or known.sha256 or known.md5):
        watch.notice(f"{part.path}: the server does not give its length, so it may have been cut")
    return offset > 0, known


def _supplemented(release: Release, sha256: str, size: int | None) -> Release:
    """Return a release with what its host says of it where nothing was published."""
    return replace(release, sha256=release.sha256 or sha256, size=size if release.size is None else release.size)


def _refuse_others(release: Release, url: str, offered: Offer, watch: ProgressCallback) -> None:
    """Raise `AddressError` where the hub offers another file or commit; give notice of another name."""
    if offered.sha256 and release.sha256 and offered.sha256 != release.sha256.lower():
        raise AddressError(f"offers another file: sha256 {offered.sha256}, expected {release.sha256.lower()}")
    file = hub_file(url)
    if file and offered.commit and file.repository.is_pinned and offered.commit != file.repository.revision:
        raise AddressError(f"offers another revision: {offered.commit}, expected {file.repository.revision}")
    if file and offered.name:
        watch.notice(f"the data set {file.repository.name} is called {offered.name} now; it is fetched all the same")


def _validator(answer: requests.Response) -> str:
    """Return what identifies a version: a strong ETag, else the time of the last change; empty without either."""
    tag = answer.headers.get("ETag", "")
    return tag if tag and not tag.startswith("W/") else answer.headers.get("Last-Modified", "")


def _plausible(release: Release, answer: requests.Response, total: int | None) -> None:
    """Raise `AddressError` for an answer of another size, an encoded one, or a web page, before its bytes come."""
    if release.size is not None and total not in (None, release.size):
        raise AddressError(f"offers {total:,} bytes, expected {release.size:,}")
    encoding = answer.headers.get("Content-Encoding", "identity")
    if encoding != "identity" and not release.path.endswith(_PACKED):
        raise AddressError(f"sends the file encoded ({encoding}), though asked not to")
    kind = answer.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind == "text/html" and not (release.sha256 or release.md5 or release.path.endswith((".html", ".htm"))):
        raise AddressError("answers with a web page instead of the file")


def _write(part: _Partial, have: int, total: int | None, blocks: Iterator[bytes], watch: ProgressCallback) -> None:
    """Append what comes, and count it. Raises `AddressError`."""
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
        raise AddressError(f"sends more than {total:,} bytes")
    if total is not None and have < total:
        raise AddressError(f"broke off after {have:,} of {total:,} bytes", retry=True)


def _keep(release: Release, expected: Release, part: _Partial, url: str, pieces: bool) -> Record:
    """Check a whole file, name and record it; `expected` also has what the hub says. Raises `AddressError`."""
    digests, target = records.digests(part.file), part.root / release.path
    previous = records.recall(part.root, release.path)
    difference = difference_from(expected, digests)
    if not (difference or release.sha256) and previous and previous.sha256 != digests.sha256:
        place = records.record_file(part.root, release.path)
        first = f"{previous.sha256} as on {previous.time}; remove {place} to take the new one"
        difference = f"sha256 {digests.sha256}, expected {first}"
    if difference:
        page = "; it is a web page, such as that of a login" * _is_page(part.file)
        part.drop()
        # Pieces may be of two versions, or of two servers; what came in one go is what this address gives.
        raise AddressError(f"gave another file: {difference}{page}", retry=pieces)
    part.file.replace(target)
    fsync_folder(target.parent)
    part.drop()
    stamp = records.stamp(target)
    record = Record(release.path, digests.size, digests.sha256, digests.md5, public_url(url), utc_now(), stamp)
    record = replace(record, by_hub=bool(expected.sha256 and not release.sha256), lines=digests.lines)
    records.remember(part.root, record)
    return record


def _is_page(path: Path) -> bool:
    """Return whether a file begins as a web page does."""
    with path.open("rb") as stream:
        return stream.read(512).lstrip().lower().startswith((b"<!doctype html", b"<html"))


def difference_from(release: Release, digests: Digests) -> str:
    """Return how a file differs from what was published of it, empty where it does not."""
    if release.size is not None and digests.size != release.size:
        return f"{digests.size:,} bytes, expected {release.size:,}"
    if not (digests.size or release.size == 0 or release.sha256 or release.md5):
        return "0 bytes, expected a file with content"
    for name, expected, value in (("sha256", release.sha256, digests.sha256), ("md5", release.md5, digests.md5)):
        if expected and expected.lower() != value:
            return f"{name} {value}, expected {expected.lower()}"
    return ""


def _name(url: str) -> str:
    """Return the hash of an address, which may hold secrets."""
    return hashlib.sha256(url.encode()).hexdigest()


class _StopError(Exception):
    """The command ends: nobody wants the rest of a file now."""


class _Interruptible:
    """Follows a file, and leaves it between two blocks where the command ends; what came is kept."""

    def __init__(self, watch: ProgressCallback, stop: threading.Event) -> None:
        self._watch, self._stop = watch, stop

    def at(self, count: int, total: int | None) -> None:
        """Pass it on."""
        if self._stop.is_set():
            raise _StopError
        self._watch.at(count, total)

    def notice(self, sentence: str) -> None:
        """Pass it on."""
        self._watch.notice(sentence)


def _wait(stop: threading.Event, seconds: float) -> None:
    """Wait, but no longer than the command."""
    if stop.wait(seconds):
        raise _StopError


def ensure_all(
    files: Sequence[LocalFile],
    watch: Callable[[int, LocalFile], AbstractContextManager[ProgressCallback]],
    ended: Callable[[LocalFile, str], object] = lambda *_: None,
    *,
    offline: bool = False,
    policy: RetryPolicy | None = None,
) -> tuple[dict[str, LocalFile], dict[str, str]]:
    """Fetch and unpack files as far as needed, begun in their order.

    Args:
        files: as they are now.
        watch: number (from 1) and file → what follows that file as long as it is at work; called from several threads.
        ended: gets each file as it is afterwards, and why it failed, else nothing; called from several threads.
        offline: nothing is fetched; what is here is unpacked.
        policy: how long is waited for hosts; default: `RetryPolicy`'s.

    Returns:
        The files as they are afterwards, and why others failed, both by path and in the order of `files`.

    Raises:
        StoreError: if the folder cannot be written or the disk is too full; the others stop too.
    """
    stop, hosts = threading.Event(), Hosts()
    policy = policy or RetryPolicy(sleep=partial(_wait, stop))
    work: SimpleQueue[tuple[int, LocalFile]] = SimpleQueue()
    for entry in enumerate(files, 1):
        work.put(entry)
    fetched: dict[str, LocalFile] = {}
    failed: dict[str, str] = {}
    fatal: list[BaseException] = []

    def drain() -> None:
        try:
            with Client(policy, hosts) as client:
                while not stop.is_set():
                    fetch_next(None if offline else client)
        except Empty:
            pass
        except BaseException as error:  # raised again where the files were asked for
            if not isinstance(error, _StopError):
                fatal.append(error)
            stop.set()

    def fetch_next(client: Client | None) -> None:
        number, file = work.get_nowait()
        path = file.release.path
        with watch(number, file) as follower:
            try:
                fetched[path] = ensure(file, client, _Interruptible(follower, stop))
            except StoreError:
                raise
            except BenchError as error:
                failed[path] = str(error)
        ended(fetched.get(path, file), failed.get(path, ""))

    # Daemons: a process that is interrupted does not wait for a host that says nothing.
    threads = [
        threading.Thread(target=contextvars.copy_context().run, args=(drain,), daemon=True)
        for _ in range(min(AT_ONCE, len(files)))
    ]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        stop.set()
    if fatal:
        raise fatal[0]
    order = [file.release.path for file in files]
    return (
        {path: fetched[path] for path in order if path in fetched},
        {path: failed[path] for path in order if path in failed},
    )
