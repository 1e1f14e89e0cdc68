r"""Lines of a text file, plain or compressed, with their numbers; Unicode's normal forms of a text.

Conventions: lines end at "\n" and nowhere else (texts hold U+2028 and U+0085, at which `str.splitlines` would cut);
one "\r" before it is dropped; text is UTF-8, with or without a byte order mark; numbers count from 1. Memory holds one
block and one line, whatever the size of the file.
"""

import codecs
import difflib
import lzma
import os
import unicodedata
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bench.core.errors import DataError
from bench.data.formats.archive import MAGIC, File, Member, decompressed
from bench.data.formats.faults import Faults, RecordError

COMPRESSED = (".gz", ".bz2", ".xz")
"""Endings of the compressed files that are read as they are."""

_BLOCK = 1 << 17
_LONGEST = 1 << 26
_FETCH_AGAIN = "write or fetch it again"
_NAMES = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz"}
_ARCHIVES = (".zip", ".zst", ".7z", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".lz4", ".rar")
_FOREIGN = {b"PK\x03\x04": "a zip archive", b"\x28\xb5\x2f\xfd": "a zstd stream"}
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_MARKS = 1000  # in a row that are sorted at a time
_RUN = rf"(?:(?<!\p{{M}})|\G)\p{{M}}{{{_MARKS}}}"


@dataclass
class ByteMeter:
    """How far the files are read that somebody reads."""

    bytes: int = 0  # as they lie on disk


_METER: ContextVar[ByteMeter | None] = ContextVar("meter", default=None)


@contextmanager
def metered() -> Iterator[ByteMeter]:
    """Yield what counts the bytes that are read here; of compressed files, those of the file."""
    token = _METER.set(meter := ByteMeter())
    try:
        yield meter
    finally:
        _METER.reset(token)


def uncompressed(path: Path) -> str:
    """Return a file's name without the ending of its compression, e.g. `en.jsonl` for `en.jsonl.gz`."""
    ending = path.suffix.lower()
    return path.name[: -len(ending)] if ending in COMPRESSED else path.name


def lines(path: File, faults: Faults | None = None) -> Iterator[tuple[int, str]]:
    """Stream (number, text without the line end) of a plain, .gz, .bz2 or .xz file, or of a file in a tar archive.

    `faults` takes lines that are not UTF-8, which are then left out; without it the first ends the reading. Raises
    `DataError` if the file is missing, empty, an archive, not what its ending says, truncated or corrupt (with the line
    reached), or a line is longer than 64 MiB.
    """
    first = 1
    try:
        for piece in pieces(path):
            raw = piece.removeprefix(codecs.BOM_UTF8) if first == 1 else piece
            try:
                text = raw.decode()
            except UnicodeDecodeError:
                yield from _one_by_one(path, first, raw, faults)
            else:
                if "\r" in text:
                    yield from enumerate([line.removesuffix("\r") for line in text.split("\n")], first)
                else:
                    yield from enumerate(text.split("\n"), first)
            first += piece.count(b"\n") + 1
    except RecordError as error:
        raise error.at(path, first) from None
    if first == 1:
        raise DataError(str(path), None, "an empty file", "at least one line", _FETCH_AGAIN)


def _one_by_one(path: File, first: int, piece: bytes, faults: Faults | None) -> Iterator[tuple[int, str]]:
    """Decode line by line a piece that holds a wrong byte, so that the line can be named."""
    for number, raw in enumerate(piece.split(b"\n"), first):
        try:
            yield number, raw.decode().removesuffix("\r")
        except UnicodeDecodeError as error:
            problem = f"byte 0x{raw[error.start]:02x} at place {error.start + 1} of the line, which is not UTF-8"
            fault = DataError(str(path), number, problem, "UTF-8 text", "convert the file, e.g. with iconv")
            if faults is None:
                raise fault from None
            faults.add(fault)


def pieces(path: File) -> Iterator[bytes]:
    """Cut the stream into pieces of whole lines, each without its last line end.

    Raises as `blocks`, and `RecordError` for a line longer than 64 MiB.
    """
    unfinished: list[bytes] = []  # the blocks of a line whose end has not come yet
    size = 0
    for block in blocks(path):
        complete, newline, tail = block.rpartition(b"\n")
        if newline:
            yield b"".join((*unfinished, complete))
            unfinished, size = [], 0
        unfinished.append(tail)
        size += len(tail)
        if size > _LONGEST:
            raise RecordError("a line longer than 64 MiB", "one record a line")
    if last := b"".join(unfinished):
        yield last


def blocks(path: File) -> Iterator[bytes]:
    """Stream the file's bytes, decompressed.

    Raises `DataError` if the file is missing, empty, an archive, or not what its ending says; `RecordError` for a
    stream that breaks.
    """
    if isinstance(path, Path):
        _look(path)
    kind = _NAMES.get(path.suffix.lower())
    try:
        with path.open() if isinstance(path, Member) else decompressed(path, kind) as stream:
            place = 0
            while block := stream.read1(_BLOCK):
                if (meter := _METER.get()) and isinstance(path, Path):
                    with suppress(OSError):  # of a pipe
                        before, place = place, os.lseek(stream.fileno(), 0, os.SEEK_CUR)
                        meter.bytes += place - before
                yield block
    except EOFError:
        raise RecordError(f"a truncated {kind} stream", f"a whole {kind} stream", _FETCH_AGAIN) from None
    except (OSError, zlib.error, lzma.LZMAError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise RecordError(f"that it cannot be read ({error.strerror})", "a readable file") from None
        raise RecordError(f"a corrupt {kind} stream ({error})", f"a sound {kind} stream", _FETCH_AGAIN) from None


def _look(path: Path) -> None:
    """Refuse what cannot be a readable text file, by its name and its first bytes."""
    if path.name.lower().endswith(_ARCHIVES):
        raise DataError(path, None, "an archive", f"plain text or one of {', '.join(COMPRESSED)}", "unpack it first")
    if path.is_dir():
        raise DataError(path, None, "a folder", "a file")
    if not path.exists():
        raise missing(path)
    if not path.is_file():
        return  # a pipe: looking at its first bytes would take them away
    try:
        with path.open("rb") as stream:
            head = stream.read(8)
    except OSError as error:
        raise DataError(path, None, f"that it cannot be read ({error.strerror})", "a readable file") from None
    if not head:
        raise DataError(path, None, "an empty file", "at least one line", _FETCH_AGAIN)
    kind = next((name for magic, name in MAGIC.items() if head.startswith(magic)), None)
    kind_by_name = _NAMES.get(path.suffix.lower())
    foreign = next((name for magic, name in _FOREIGN.items() if head.startswith(magic)), None)
    if foreign:
        raise DataError(path, None, foreign, f"plain text or one of {', '.join(COMPRESSED)}", "unpack it first")
    if kind_by_name and kind != kind_by_name:
        problem = f"a {kind} stream" if kind else f"bytes {head.hex(' ')} at its start"
        hint = "rename it to what it is, or write or fetch it again"
        raise DataError(path, None, problem, f"a {kind_by_name} stream, as its name says", hint)
    if kind and not kind_by_name:
        ending = next(suffix for suffix, name in _NAMES.items() if name == kind)
        raise DataError(path, None, f"a {kind} stream", "plain text, as its name says", f"rename it to end in {ending}")
    if head.startswith(_UTF16):
        raise DataError(path, 1, "UTF-16 text", "UTF-8 text", "convert the file, e.g. with iconv")


def missing(path: Path) -> DataError:
    """Return the error for a missing file, with the nearest names of its folder."""
    folder = path.parent
    if not folder.is_dir():
        return DataError(path, None, "no such file", "a file", f"there is no folder {folder} either")
    names = sorted(entry.name for entry in folder.iterdir())
    if near := difflib.get_close_matches(path.name, names, n=3, cutoff=0.5):
        hint = f"similar names: {', '.join(near)}"
    else:
        listed = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        hint = f"the folder holds {listed or 'nothing'}"
    return DataError(path, None, "no such file", "a file", hint)


def normalize(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Return a text in a normal form, of marks in a row each thousand by itself.

    Python's sorting of marks is quadratic: a megabyte takes an hour. UAX 15 speaks of 30 on a letter.
    """
    if not any(map(unicodedata.combining, text[:: _MARKS // 2])):  # then no run is longer
        return unicodedata.normalize(form, text)
    import regex  # here, for hardly a text needs it, and it is slow to load

    pieces, start = [], 0
    for match in regex.finditer(_RUN, text):
        pieces.append(unicodedata.normalize(form, text[start : match.end()]))
        start = match.end()
    return "".join((*pieces, unicodedata.normalize(form, text[start:])))
