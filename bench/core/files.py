"""Files that are whole or not there: atomic writes, hashes, canonical JSON."""

import errno
import hashlib
import json
import os
import secrets
import shutil
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any

from bench.core.records import Json

_UNREAD: ContextVar[bool] = ContextVar("unread", default=False)


@contextmanager
def unread() -> Iterator[None]:
    """Plan without the input files: they are not read within, and need not be here."""
    before = _UNREAD.set(True)
    try:
        yield
    finally:
        _UNREAD.reset(before)


is_unread = _UNREAD.get
"""Return whether a plan is made without the input files."""


@dataclass(frozen=True)
class Fault:
    """A file of the store or of the results folder that is not as it was written, and what is wrong with it."""

    path: Path
    found: str


def canonical(value: Json) -> bytes:
    """Return JSON as bytes by its value alone: sorted keys, no blanks, UTF-8. Raises `ValueError` on a NaN."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def digest(value: Json) -> str:
    """Return the sha256 of the canonical JSON, 64 hexadecimal digits."""
    return hashlib.sha256(canonical(value)).hexdigest()


def sha256_file(path: Path) -> str:
    """Return the sha256 of a file's bytes, 64 hexadecimal digits. Raises `OSError` as `open` does."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def fsync_folder(folder: Path) -> None:
    """Make the names in a folder survive a power cut (a rename is only as durable as its folder)."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def atomic(path: Path) -> Iterator[IO[bytes]]:
    """Open `path` for writing so that it appears whole or not at all: temporary file, fsync, rename.

    Two writers do not disturb each other; the last one wins. A killed writer leaves a temporary file (`is_temporary`),
    which nobody reads. Raises `OSError`; then the old file, if any, is untouched.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{_machine()}-{os.getpid()}-{secrets.token_hex(3)}.part")
    try:
        with temporary.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
        fsync_folder(path.parent)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def is_temporary(path: Path) -> bool:
    """Return whether a file is the temporary file of an interrupted write."""
    return path.name.startswith(".") and path.suffix == ".part"


def is_abandoned(path: Path) -> bool:
    """Return whether the writer of a temporary file is gone, as far as this machine knows: it ran here, and died."""
    *_, machine, process, _ = path.name.removesuffix(".part").replace(".", "-").split("-")
    return machine == _machine() and process.isdigit() and not is_running(int(process))


def is_running(process: int) -> bool:
    """Return whether a process of this machine runs; one that has ended and waits for its parent does not."""
    import psutil

    try:
        status: str = psutil.Process(process).status()
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True
    return status not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)


def clear_abandoned(folder: Path) -> None:
    """Remove the temporary files of writers that are gone from a folder, as far as it can be written."""
    with suppress(OSError):
        for path in filter(is_temporary, folder.glob(".*")):
            if is_abandoned(path):
                path.unlink(missing_ok=True)


@cache
def _machine() -> str:
    """Identify this machine among others that share a folder, without its name."""
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:6]


def write_bytes(path: Path, data: bytes) -> None:
    """Write `data` to `path` atomically."""
    with atomic(path) as stream:
        stream.write(data)


def copy_file(source: Path, target: Path) -> None:
    """Copy a file's bytes atomically; metadata stays behind."""
    with source.open("rb") as reader, atomic(target) as writer:
        shutil.copyfileobj(reader, writer)


def _render(value: Mapping[str, Any]) -> bytes:
    """Return JSON that a person can read; the same value always gives the same bytes."""
    return f"{json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1)}\n".encode()


def write_sealed(path: Path, value: Mapping[str, Any]) -> None:
    """Write an object as JSON with a last key `seal`, the sha256 of all the others, atomically."""
    write_bytes(path, _render({**value, "seal": digest(value)}))


def read_sealed(path: Path) -> dict[str, Any]:
    """Read what `write_sealed` wrote, without the seal. Raises `ValueError` if one byte is not as it was written."""
    raw = path.read_bytes()
    value = json.loads(raw)
    if not isinstance(value, dict) or _render(value) != raw:
        raise ValueError("not as it was written")
    seal = value.pop("seal", None)
    if seal != digest(value):
        raise ValueError("its content does not match its seal")
    return value


def utc_now() -> str:
    """Return the time in UTC, to the second, as ISO 8601."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


_EXPLAINED = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "permission is denied",
    errno.EPERM: "the operation is not permitted",
    errno.EFBIG: "the file would be larger than is allowed",
    errno.ENOTDIR: "a file is in the place of a folder",
    errno.EISDIR: "a folder is in the place of a file",
}


def explain(error: OSError) -> str:
    """Return in plain words what went wrong, with the file's name where the system gives it."""
    reason = _EXPLAINED.get(error.errno or 0, error.strerror or str(error) or type(error).__name__)
    return reason + (f" ({error.filename})" if error.filename else "")
