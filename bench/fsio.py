"""Files that are whole or not there: atomic writes, hashes, canonical JSON."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from bench.types import Json

_BLOCK = 1 << 20


def canonical(value: Json) -> bytes:
    """JSON as bytes that depend on the value alone: sorted keys, no blanks, UTF-8, no NaN.

    Raises:
        ValueError: on a NaN or an infinity, which JSON does not have.
        TypeError: on what is not of type `Json`.
    """
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode()


def digest(value: Json) -> str:
    """Sha256 of the canonical JSON, 64 hexadecimal digits."""
    return hashlib.sha256(canonical(value)).hexdigest()


def sha256_file(path: Path) -> str:
    """Sha256 of a file's bytes, 64 hexadecimal digits. Raises `OSError` as `open` does."""
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

    The temporary name is fixed, so a killed writer leaves at most one file, which the next writer replaces; two writers
    of one path need a lock. Raises `OSError`; then the old file, if any, still stands.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.part")
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


def write_bytes(path: Path, data: bytes) -> None:
    """Write `data` to `path` atomically."""
    with atomic(path) as stream:
        stream.write(data)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write an object as readable JSON (two blanks, keys in the order given), atomically."""
    write_bytes(path, (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode())


def copy_file(source: Path, target: Path) -> None:
    """Copy a file's bytes atomically; metadata stays behind."""
    with source.open("rb") as reader, atomic(target) as writer:
        while block := reader.read(_BLOCK):
            writer.write(block)
