"""Unpack archives that others made: nothing outside the folder, nothing but files and folders, no bombs.

Members pass tarfile's `data` filter and stricter rules of our own: no links, no names that collide on some file system.
Headers, names and padding are counted as content is, before they fill the memory. Everything is unpacked aside and
checked first; only a whole archive is moved to its place, where it replaces files of the same names.
"""

import errno
import io
import os
import re
import shutil
import stat
import tarfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from lzma import LZMAError
from pathlib import Path, PurePosixPath
from typing import IO

from bench.core.errors import DataError
from bench.core.files import fsync_folder
from bench.core.workspace import Advance, noop
from bench.data.fetching.records import FOLDER, copy
from bench.data.formats.archive import TarStream, tar_stream
from bench.data.formats.faults import RecordError

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_BROKEN = (zipfile.BadZipFile, tarfile.TarError, zlib.error, LZMAError, EOFError, NotImplementedError, ValueError)
_OF_THE_ARCHIVE = (None, errno.EINVAL, errno.ENAMETOOLONG)
"""Codes of failures that no other folder or disk would mend; broken data of bz2 and gzip have none."""
_SENSITIVE = re.compile(r"[\x00-\x1f\x7f\\]|^[A-Za-z]:")
"""Control characters, and what another system takes for a path of its own."""
_ENCRYPTED = 0x1
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""What zipfile decompresses in bounded memory."""
_ENTRY = 256  # bytes of a zip's directory, for each member that is allowed
_NAMES = 1 << 26  # characters of all names, each counted with those of its folders
_DEEPEST = 100


@dataclass(frozen=True)
class Limits:
    """Bounds that no honest archive exceeds."""

    ratio: int = 200  # unpacked bytes for one of the archive
    least: int = 1 << 30  # bytes that are always allowed
    files: int = 100_000  # members


def unpack(
    archive: Path, folder: Path, limits: Limits | None = None, advance: Advance = noop
) -> dict[str, tuple[int, str]]:
    """Unpack a zip or tar (plain, gz, bz2, xz) whole into a folder, which is made if need be.

    Args:
        archive: the archive; its first bytes give its kind.
        folder: where its files go; files of the same names are replaced.
        limits: bounds on members and unpacked bytes; default: `Limits()`.
        advance: called with numbers of bytes unpacked.

    Returns:
        Size in bytes and sha256 of every file, by its name under the folder.

    Raises:
        DataError: if it is damaged, no such archive, or holds what is refused; nothing of it is in the folder then.
    """
    aside = folder / f".{archive.name}.unpacking"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    try:
        files = _write_all(archive, aside, limits or Limits(), advance)
        if not files:
            raise _refused(archive, "no file at all")
        for name in files:
            with (aside / name).open("rb") as stream:
                os.fsync(stream.fileno())
        _install(aside, folder)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    fsync_folder(folder)
    return files


def _write_all(archive: Path, aside: Path, limits: Limits, advance: Advance) -> dict[str, tuple[int, str]]:
    """Check and write every member."""
    files: dict[str, tuple[int, str]] = {}
    names = _Names(archive)
    room = max(limits.least, limits.ratio * archive.stat().st_size)
    with _reading(archive, limits) as members:
        for number, (info, content) in enumerate(members, 1):
            if number > limits.files:
                raise _refused(archive, f"more than {limits.files:,} members")
            name = names.take(info, aside)
            target = aside / name
            if info.isdir() or name == ".":
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)

            def count(size: float) -> None:
                nonlocal room
                room -= int(size)
                advance(size)
                if room < 0:
                    raise _refused(archive, f"more than {limits.ratio} times its own size when unpacked")

            with content() as source, target.open("xb") as stream:
                digests = copy(source, stream, count)
            files[name] = (digests.size, digests.sha256)
    return files


class _Names:
    """The names of an archive: none leads elsewhere, no two are one on any file system."""

    def __init__(self, archive: Path) -> None:
        self._archive = archive
        self._seen: dict[str, bool] = {}
        self._room = _NAMES

    def take(self, info: tarfile.TarInfo, aside: Path) -> str:
        """Return a member's path below `aside`, `.` for that itself. Raises `DataError` for what is refused."""
        if not (info.isfile() or info.isdir()):
            kind = "a link" if info.issym() or info.islnk() else "a device"
            raise _refused(self._archive, f"{kind} called {info.name!r}")
        path = PurePosixPath(info.name)
        if path.is_absolute() or ".." in path.parts or _SENSITIVE.search(info.name):
            raise _refused(self._archive, f"the name {info.name!r}", "names that stay in the folder")
        if len(path.parts) > _DEEPEST:
            raise _refused(self._archive, "a name of more than 100 parts", "folders less deep")
        if FOLDER in path.parts:
            raise _refused(self._archive, f"the name {info.name!r}", f"no {FOLDER}, which is ours")
        try:
            tarfile.data_filter(info, str(aside))
        except tarfile.FilterError:
            raise _refused(self._archive, f"the name {info.name!r}", "names that stay in the folder") from None
        for depth in range(1, len(path.parts)):
            self._claim("/".join(path.parts[:depth]), True)
        if path.parts:
            self._claim(path.as_posix(), info.isdir())
        return path.as_posix()

    def _claim(self, name: str, folder: bool) -> None:
        self._room -= len(name)
        if self._room < 0:
            raise _refused(self._archive, f"names of more than {_NAMES:,} characters")
        key = unicodedata.normalize("NFC", name).casefold()
        if key not in self._seen:
            self._seen[key] = folder
        elif not (folder and self._seen[key]):
            raise _refused(self._archive, f"two members of the name {name!r}", "one, on any file system")


_Members = Iterator[tuple[tarfile.TarInfo, Callable[[], IO[bytes]]]]
"""(member, opens its content): those of a zip as a tar would describe them, so that one rule judges both."""


@contextmanager
def _reading(archive: Path, limits: Limits) -> Iterator[_Members]:
    """Open an archive by what it is, whatever it is called. Raises `DataError` for a damaged one."""
    with archive.open("rb") as stream:
        is_zip = stream.read(4) in _ZIP
    try:
        if is_zip:
            with _ZipBytes(archive, limits.files * _ENTRY) as raw, zipfile.ZipFile(raw) as zip_file:
                yield _zip(archive, zip_file, limits)
        else:
            with tar_stream(archive) as stream:
                yield ((info, partial(_content, stream, info)) for info in stream)
    except RecordError as error:
        raise _refused(archive, error.found, error.expected) from None
    except _BROKEN as error:
        raise _damaged(archive, error) from error
    except OSError as error:
        if error.errno in _OF_THE_ARCHIVE:
            raise _damaged(archive, error) from error
        raise


class _ZipBytes(io.FileIO):
    """The bytes of a zip, whose directory is read at once: none is larger than `most` bytes."""

    def __init__(self, path: Path, most: int) -> None:
        super().__init__(path)
        self._most = max(most, 1 << 20)

    def read(self, size: int | None = -1) -> bytes:
        """Read at most `size` bytes. Raises `RecordError` for more than is allowed at once."""
        count = os.fstat(self.fileno()).st_size - self.tell() if size is None or size < 0 else size
        if count > self._most:
            raise RecordError(f"a directory of {count:,} bytes", f"at most {self._most:,}")
        return super().read(count) or b""


def _zip(archive: Path, zip_file: zipfile.ZipFile, limits: Limits) -> _Members:
    if len(zip_file.infolist()) > limits.files:
        raise _refused(archive, f"more than {limits.files:,} members")
    for entry in zip_file.infolist():
        info, kind = tarfile.TarInfo(entry.filename), stat.S_IFMT(entry.external_attr >> 16)
        if kind == stat.S_IFLNK:
            info.type = tarfile.SYMTYPE
        elif kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            info.type = tarfile.FIFOTYPE
        elif entry.filename.endswith("/"):  # not `is_dir`, which falls over an empty name
            info.type = tarfile.DIRTYPE
        if entry.flag_bits & _ENCRYPTED:
            raise _refused(archive, f"an encrypted file called {info.name!r}")
        if entry.compress_type not in _METHODS:
            raise _refused(archive, f"{info.name!r}, compressed by method {entry.compress_type}", "deflate")
        yield info, partial(zip_file.open, entry)


def _content(stream: TarStream, info: tarfile.TarInfo) -> IO[bytes]:
    content = stream.content(info)
    if content is None:
        raise tarfile.ReadError(f"{info.name} has no content")
    return content


def _install(aside: Path, folder: Path) -> None:
    """Move what was unpacked to its place: whole folders where there is none yet, else file by file."""
    for path in sorted(aside.iterdir()):
        target = folder / path.name
        if path.is_dir() and target.is_dir():
            _install(path, target)
            fsync_folder(target)
        elif path.is_dir() and target.exists():
            raise FileExistsError(20, "there is a file where a folder is needed", str(target))
        else:
            path.replace(target)


def _refused(archive: Path, content: str, expected: str = "files and folders alone") -> DataError:
    """Return the error for what is refused."""
    return DataError(archive, None, content, expected, "nothing of it was unpacked")


def _damaged(archive: Path, error: Exception) -> DataError:
    content = f"a damaged archive ({str(error) or type(error).__name__})"
    return DataError(archive, None, content, "a whole zip or tar", "nothing of it was unpacked; fetch it again")
