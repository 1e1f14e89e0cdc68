"""Records of what was fetched into a folder of data: one sealed JSON file each, under `ROOT/.bench-data/`.

Layout (format 1)::

    .bench-data/records/PATH.json   sealed: size, checksums, source, time, and the files that came out of an archive
    .bench-data/partial/PATH.json   which version a partial file holds, so that no other is appended to it
    .bench-data/locks/…             one lock a file, so that two commands at once fetch it once
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from glob import escape
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from bench.core import locks
from bench.core.files import read_sealed, write_sealed
from bench.core.workspace import Advance, noop

FOLDER = ".bench-data"
"""Folder of our own notes in a folder of data."""

_BLOCK = 1 << 20


@dataclass(frozen=True)
class Digests:
    """Size in bytes and checksums in hexadecimal of a file."""

    size: int
    sha256: str
    md5: str
    lines: int  # that are not blank, as readers of text count them


@dataclass(frozen=True)
class Record:
    """What is known of a file that was fetched, or of an archive that was unpacked."""

    path: str  # under the folder of data, with forward slashes
    size: int  # bytes
    sha256: str
    md5: str
    source: str  # address that it came from, without secrets; empty for a file found in its place
    time: str  # UTC, ISO 8601
    stamp: tuple[int, int]  # of the file when this was written: size and modification time (nanoseconds)
    folder: str = ""  # where it was unpacked, under the folder of data; empty for a file that is read as it is
    # what came out of it: name under `folder` → size, sha256 and modification time (nanoseconds)
    files: Mapping[str, tuple[int, str, int]] | None = None
    by_hub: bool = False  # the hub stated the sha256 before the bytes came
    lines: int | None = None  # that are not blank; None in records of before they were counted


def record_file(root: Path, path: str) -> Path:
    """Return the path of a file's record, whether it exists or not."""
    return root / FOLDER / "records" / f"{path}.json"


def recall(root: Path, path: str) -> Record | None:
    """Return what is known of a file, None where nothing is or the record itself was damaged."""
    try:
        content = read_sealed(record_file(root, path))
    except (OSError, ValueError):
        return None
    content["stamp"] = tuple(content["stamp"])
    if content["files"] is not None:
        content["files"] = {name: tuple(row) for name, row in content["files"].items()}
    content.pop("format")
    return Record(**content)


def remember(root: Path, record: Record) -> None:
    """Write a record; raises `OSError`."""
    content = {"format": 1, **asdict(record)}
    if not record.by_hub:
        del content["by_hub"]  # as records were before there was that field, so that older versions read them
    write_sealed(record_file(root, record.path), content)


def partial_file(root: Path, path: str) -> Path:
    """Return where the bytes of an unfinished file lie."""
    target = root / path
    return target.with_name(f".{target.name}.part")


def partial_note(root: Path, path: str) -> Path:
    """Return where it is noted which version the bytes of an unfinished file are of."""
    return root / FOLDER / "partial" / f"{path}.json"


def stamp(path: Path) -> tuple[int, int]:
    """Return size and modification time (nanoseconds), which change when a file is written to."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns


def digests(path: Path, advance: Advance = noop) -> Digests:
    """Read a file once for its size and both checksums; raises `OSError`."""
    with path.open("rb") as stream:
        return copy(stream, None, advance)


def copy(source: IO[bytes], target: IO[bytes] | None, advance: Advance = noop) -> Digests:
    """Read a stream to its end, write it to another where there is one, and return its size and checksums."""
    sha256, md5, size = hashlib.sha256(), hashlib.md5(usedforsecurity=False), 0
    lines, begun = 0, False  # begun: the line that has not ended yet is not blank
    while block := source.read(_BLOCK):
        if target is not None:
            target.write(block)
        sha256.update(block)
        md5.update(block)
        size += len(block)
        first, *others = block.split(b"\n")
        begun = begun or _is_full(first)
        if others:
            lines += begun + sum(map(_is_full, others[:-1]))
            begun = _is_full(others[-1])
        advance(len(block))
    return Digests(size, sha256.hexdigest(), md5.hexdigest(), lines + begun)


def _is_full(line: bytes) -> bool:
    return bool(line) and not line.isspace()


@contextmanager
def locked(root: Path, path: str, notice: Callable[[str], None]) -> Iterator[None]:
    """Hold the lock of a file; give notice while another command holds it.

    Nobody else writes about the file then, so what a killed command left of its notes is removed.
    """
    place = root / FOLDER / "locks" / f"{hashlib.sha256(path.encode()).hexdigest()[:32]}.lock"
    with locks.locked(place, notice, f"another command is at work on {path}; waiting for it"):
        for note in (record_file(root, path), partial_note(root, path)):
            for litter in note.parent.glob(f".{escape(note.name)}.*.part"):
                litter.unlink(missing_ok=True)
        yield


def public_url(url: str) -> str:
    """Return an address without what may be secret: user, password, query and fragment."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return "an address that cannot be read"
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" + ("?…" if parts.query else "")
