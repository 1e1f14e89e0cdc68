"""Files inside tar archives, read as a stream: nothing is unpacked to disk, so no name in an archive can do harm.

Conventions: readers take a `Member` wherever they take a `Path`. Finding it means reading the archive up to it, which
is slow behind a large neighbour. So small files are kept on the way, and those behind a file that was read to its end:
one pass over the collection of a benchmark has its questions and judgements too. Headers are bounded, since tarfile
holds a long name or a pax record of whatever size is claimed in memory.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any

from bench.core.errors import DataError
from bench.data.formats.faults import RecordError

if TYPE_CHECKING:
    import tarfile

MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bzip2", b"\xfd7zXZ\x00": "xz"}
"""What compressed files begin with, and what their form is called."""

_LISTED = 5
_FETCH_AGAIN = "write or fetch it again"
_BLOCK = 1 << 14  # bytes read at once
_HEADERS_OF = "headers"
_HEADER = 1 << 14  # bytes of the headers of one member: long names, records of pax
_PLAIN = 2048  # bytes of headers that every member may have: its own, and a short one of pax
_SPARE = 1 << 20  # bytes of all headers beyond those
_PADDING = 1 << 24  # bytes behind the last member, since tapes are written in whole records
_SMALL = 1 << 23  # bytes of a file that is kept
_CACHED = 1 << 26  # bytes of all files that are kept, of however many archives
_DIGITS = re.compile(rb"[0-9]{100}")
"""What no header holds, and what tarfile before Python 3.11.10 needs time for that grows with the square."""


def decompressed(path: Path, kind: str | None) -> io.BufferedIOBase:
    """Open a file of a `kind` in `MAGIC` (None: plain); of a broken stream `read1` gives what comes before."""
    if kind == "gzip":
        return gzip.GzipFile(path)
    if kind == "bzip2":
        return bz2.BZ2File(path)
    return lzma.LZMAFile(path) if kind == "xz" else io.BufferedReader(io.FileIO(path))


class BoundedStream:
    """A stream, read forwards, that raises `RecordError` rather than read more than `left` bytes of `what`."""

    def __init__(self, stream: IO[bytes] | io.BufferedIOBase, left: float, what: str) -> None:
        self._stream, self._place, self.left, self.what = stream, 0, left, what

    def read(self, size: int) -> bytes:
        """Read at most `size` bytes. Raises `tarfile.ReadError` where the compressed stream is broken."""
        import tarfile

        if size > self.left:
            raise RecordError(f"too many bytes of {self.what}", "what tar writes", _FETCH_AGAIN)
        try:
            block = self._stream.read(size)
        except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise tarfile.ReadError(str(error)) from error
        if self.what == _HEADERS_OF and self.left < float("inf") and _DIGITS.search(block):
            raise RecordError(f"a number of 100 digits and more in {self.what}", "what tar writes", _FETCH_AGAIN)
        self.left -= len(block)
        self._place += len(block)
        return block

    def tell(self) -> int:
        """Return how many bytes were read."""
        return self._place

    def seek(self, place: int) -> None:
        """Read on to a place, or to the end. Raises `tarfile.StreamError` for a place that is behind."""
        import tarfile

        if place < self._place:
            raise tarfile.StreamError("a stream is read forwards alone")
        while self._place < place and self.read(min(_BLOCK, place - self._place)):
            pass


class TarStream:
    """The members of a tar archive, one after another, in bounded memory; content is read before the next member."""

    def __init__(self, stream: IO[bytes] | io.BufferedIOBase) -> None:
        import tarfile

        opened: Any = tarfile.TarFile  # its types know files alone, and not what has a `read`
        self._bounded = BoundedStream(stream, _HEADER, _HEADERS_OF)
        self._archive = opened(fileobj=self._bounded)

    def __iter__(self) -> Iterator[tarfile.TarInfo]:
        """Stream the members, then read to the very end, where a compressed stream has its checksum."""
        archive, bounded, start, spare = self._archive, self._bounded, 0, _SPARE
        while (info := archive.next()) is not None:
            spare -= max(0, info.offset_data - start - _PLAIN)
            if spare < 0:
                raise RecordError(f"too many bytes of {_HEADERS_OF}", "what tar writes", _FETCH_AGAIN)
            archive.members.clear()  # else all would be held, each with a copy of the archive's global records
            archive.pax_headers.clear()
            bounded.left = float("inf")
            yield info
            start = archive.offset
            bounded.seek(start)
            bounded.left = _HEADER
        bounded.left, bounded.what = _PADDING, "padding behind its last file"
        while bounded.read(_BLOCK):
            pass

    def content(self, info: tarfile.TarInfo) -> io.BufferedReader | None:
        """Open the content of the member at hand, None where it has none."""
        stream: io.BufferedReader | None = self._archive.extractfile(info)
        return stream


@contextmanager
def tar_stream(path: Path) -> Iterator[TarStream]:
    """Open a tar, plain or compressed. Raises `RecordError` for oversized headers, else what the libraries raise."""
    with path.open("rb") as stream:
        head = stream.read(6)
    kind = next((name for magic, name in MAGIC.items() if head.startswith(magic)), None)
    with decompressed(path, kind) as stream:
        yield TarStream(stream)


_Stamp = tuple[str, int, int]
_file_cache: dict[_Stamp, dict[str, bytes]] = {}
"""Small files by archive and name, in this process; the archive that was met last comes last."""


def _small_files(path: Path) -> dict[str, bytes]:
    """Return what is kept of an archive as it is now, to be added to; archives of long ago make room."""
    status = path.stat()
    stamp = str(path.absolute()), status.st_size, status.st_mtime_ns
    files = _file_cache[stamp] = _file_cache.pop(stamp, {})
    # Lists, since another thread may add to them meanwhile.
    while (
        len(_file_cache) > 1
        and sum(len(content) for small in [*_file_cache.values()] for content in [*small.values()]) > _CACHED
    ):
        _file_cache.pop(next(iter(_file_cache)), None)
    return files


def _keep(archive: TarStream, entry: tarfile.TarInfo, files: dict[str, bytes]) -> None:
    """Keep a regular file that is small, the first of its name, while there is room."""
    name = entry.name.removeprefix("./")
    room = _CACHED - sum(map(len, [*files.values()]))
    if entry.isreg() and entry.size <= min(_SMALL, room) and name not in files:
        stream = archive.content(entry)
        content = stream.read() if stream else b""
        if stream and len(content) == entry.size:
            files[name] = content


@dataclass(frozen=True)
class Member:
    """A regular file in a tar archive (plain, .gz, .bz2 or .xz), itself plain or ending in .gz."""

    archive: Path
    path: str  # in the archive, without a leading `./`

    def __str__(self) -> str:
        """Return archive and name, as messages show them."""
        return f"{self.archive}:{self.path}"

    @property
    def name(self) -> str:
        """The last part of the name."""
        return PurePosixPath(self.path).name

    @property
    def suffix(self) -> str:
        """The ending of the name, e.g. `.gz`."""
        return PurePosixPath(self.path).suffix

    @contextmanager
    def open(self) -> Iterator[io.BufferedIOBase]:
        """Open the file for reading bytes, decompressed where its name ends in .gz.

        Raises `DataError` (no archive, or no such file in it), `RecordError` (a broken archive), and what reading the
        compressed file inside raises: `OSError`, `EOFError`, `zlib.error`.
        """
        import tarfile

        listed: list[str] = []
        count = 0
        try:
            files = _small_files(self.archive)
            if self.path in files:
                yield self._opened(io.BytesIO(files[self.path]))
                return
            with tar_stream(self.archive) as archive:
                for entry in (entries := iter(archive)):
                    name = entry.name.removeprefix("./")
                    _keep(archive, entry, files)
                    stream: io.BytesIO | io.BufferedReader | None = None
                    if entry.isreg() and name == self.path:
                        cached = files.get(name)
                        stream = archive.content(entry) if cached is None else io.BytesIO(cached)
                    if stream is not None:
                        yield self._opened(stream)
                        with suppress(tarfile.TarError, RecordError, OSError):  # what lies behind was not asked for
                            _keep_behind(archive, stream, entries, files)
                        return
                    listed += [name] * (count < _LISTED)
                    count += 1
        except tarfile.TarError as error:
            raise RecordError(f"a broken tar archive ({error})", "a whole one", _FETCH_AGAIN) from None
        except FileNotFoundError:
            raise DataError(self.archive, None, "no such file", "a tar archive") from None
        names = ", ".join(listed) + (f" and {count - _LISTED} more" if count > _LISTED else "")
        raise DataError(str(self), None, f"no such file in the archive (it holds {names or 'nothing'})", "one")

    def _opened(self, stream: io.BytesIO | io.BufferedReader) -> io.BufferedIOBase:
        """Decompress the file where its name ends in .gz."""
        return gzip.GzipFile(fileobj=stream) if self.suffix == ".gz" else stream


def _keep_behind(
    archive: TarStream,
    read: io.BytesIO | io.BufferedReader,
    entries: Iterator[tarfile.TarInfo],
    files: dict[str, bytes],
) -> None:
    """Keep the small files behind one that was read to its end, up to the next that is not small."""
    if read.read(1):
        return
    for entry in entries:
        if entry.size > _SMALL:
            return
        _keep(archive, entry, files)


File = Path | Member
"""What line readers take."""
