"""Unpack an archive from elsewhere: nothing outside the folder, nothing but files and folders, no bombs.

Everything is written aside and checked first; only a whole archive is moved to its place. What stands there already
is replaced file by file.
"""

from __future__ import annotations

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

from bench.data.ledger import FOLDER, Advance, copy, silent
from bench.errors import DataError
from bench.fsio import fsync_folder

_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_BROKEN = (zipfile.BadZipFile, tarfile.TarError, zlib.error, LZMAError, EOFError, NotImplementedError, UnicodeError)
_SENSITIVE = re.compile(r"[\x00-\x1f\x7f\\]|^[A-Za-z]:")
"""Control characters, and what another system takes for a path of its own."""
_ENCRYPTED = 0x1


@dataclass(frozen=True)
class Limits:
    """What no honest archive exceeds.

    Args:
        ratio: unpacked bytes for one of the archive.
        least: bytes that are always allowed.
        files: members.
    """

    ratio: int = 200
    least: int = 1 << 30
    files: int = 1_000_000


@dataclass(frozen=True)
class _Member:
    """One entry of an archive.

    Args:
        name: as it stands there.
        folder: it is a folder.
        fault: why it is refused, empty where it is a plain file or folder.
        open: opens a file's bytes.
    """

    name: str
    folder: bool
    fault: str
    open: Callable[[], IO[bytes]]


def unpack(
    archive: Path, folder: Path, limits: Limits | None = None, advance: Advance = silent
) -> dict[str, tuple[int, str]]:
    """Unpack a zip or tar (plain, gz, bz2, xz) whole into a folder.

    Args:
        archive: the file.
        folder: where to; made if need be.
        limits: against bombs.
        advance: hears of unpacked bytes.

    Returns:
        Every file by its name under the folder: size and sha256.

    Raises:
        DataError: it is damaged, no such archive, or holds what is refused; then nothing of it was put into the folder.
        OSError: as writing does.
    """
    aside = folder / f".{archive.name}.unpacking"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    try:
        files = _write_all(archive, aside, limits or Limits(), advance)
        if not files:
            raise _refused(archive, "no file at all")
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
    with _reading(archive, aside) as members:
        for number, member in enumerate(members, 1):
            if number > limits.files:
                raise _refused(archive, f"more than {limits.files:,} members")
            if member.fault:
                raise _refused(archive, f"{member.fault} called {member.name!r}")
            name = names.take(member)
            if name is None:
                continue
            target = aside / name
            if member.folder:
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)

            def count(size: int) -> None:
                nonlocal room
                room -= size
                advance(size)
                if room < 0:
                    raise _refused(archive, f"more than {limits.ratio} times its own size when unpacked")

            with member.open() as source, target.open("xb") as stream:
                found = copy(source, stream, count)
                stream.flush()
                os.fsync(stream.fileno())
            files[name] = (found.size, found.sha256)
    return files


class _Names:
    """The names of an archive, none of which may lead elsewhere or fall on another, on any file system."""

    def __init__(self, archive: Path) -> None:
        """Know none."""
        self._archive = archive
        self._seen: dict[str, bool] = {}

    def take(self, member: _Member) -> str | None:
        """Return a member's name under the folder; None for the folder itself.

        Raises:
            DataError: the name is refused.
        """
        path = PurePosixPath(member.name)
        if path.is_absolute() or ".." in path.parts or _SENSITIVE.search(member.name):
            raise _refused(self._archive, f"the name {member.name!r}", "names that stay in the folder")
        if not path.parts:
            return None
        if FOLDER in path.parts:
            raise _refused(self._archive, f"the name {member.name!r}", f"no {FOLDER}, which is ours")
        for depth in range(1, len(path.parts)):
            self._claim("/".join(path.parts[:depth]), True)
        self._claim(path.as_posix(), member.folder)
        return path.as_posix()

    def _claim(self, name: str, folder: bool) -> None:
        key = unicodedata.normalize("NFC", name).casefold()
        if key not in self._seen:
            self._seen[key] = folder
        elif not (folder and self._seen[key]):
            raise _refused(self._archive, f"two members that fall on {name!r}", "one, on any file system")


@contextmanager
def _reading(archive: Path, aside: Path) -> Iterator[Iterator[_Member]]:
    """Open an archive by what it is, whatever it is called; damage becomes a sentence."""
    with archive.open("rb") as stream:
        is_zip = stream.read(4) in _ZIP
    try:
        if is_zip:
            with zipfile.ZipFile(archive) as found:
                yield _zip(found)
        else:
            with tarfile.open(archive, "r:*") as found:
                yield _tar(found, aside)
    except _BROKEN as error:
        raise _damaged(archive, error) from error
    except OSError as error:
        if error.errno is None:  # so do bz2 and gzip tell of broken data
            raise _damaged(archive, error) from error
        raise


def _zip(found: zipfile.ZipFile) -> Iterator[_Member]:
    """The members of a zip."""
    for info in found.infolist():
        kind = stat.S_IFMT(info.external_attr >> 16)
        fault = ""
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            fault = "a link" if kind == stat.S_IFLNK else "a device"
        elif info.flag_bits & _ENCRYPTED:
            fault = "an encrypted file"
        yield _Member(info.filename, info.is_dir(), fault, partial(found.open, info))


def _tar(found: tarfile.TarFile, aside: Path) -> Iterator[_Member]:
    """The members of a tar; Python's own filter has its say too, where it is there (not before 3.11.4)."""
    judge = getattr(tarfile, "data_filter", None)
    for info in found:
        fault = ""
        if info.issym() or info.islnk():
            fault = "a link"
        elif not (info.isfile() or info.isdir()):
            fault = "a device"
        elif judge is not None:
            try:
                judge(info, str(aside))
            except tarfile.FilterError:
                fault = "something that leads elsewhere,"
        yield _Member(info.name, info.isdir(), fault, partial(_content, found, info))
    while found.fileobj is not None and found.fileobj.read(1 << 20):
        pass  # to the very end, where the checksum of what was packed stands


def _content(found: tarfile.TarFile, info: tarfile.TarInfo) -> IO[bytes]:
    """Open a file of a tar."""
    stream = found.extractfile(info)
    if stream is None:
        raise tarfile.ReadError(f"{info.name} has no content")
    return stream


def _install(aside: Path, folder: Path) -> None:
    """Move what was unpacked to its place: whole folders where there is none yet, else file by file."""
    for path in sorted(aside.iterdir()):
        target = folder / path.name
        if path.is_dir() and target.is_dir():
            _install(path, target)
            fsync_folder(target)
        elif path.is_dir() and target.exists():
            raise FileExistsError(20, "a file stands where a folder is needed", str(target))
        else:
            path.replace(target)


def _refused(archive: Path, found: str, expected: str = "files and folders alone") -> DataError:
    """Compose the sentence."""
    return DataError(archive, None, found, expected, "nothing of it was unpacked")


def _damaged(archive: Path, error: Exception) -> DataError:
    """Compose the sentence."""
    found = f"a damaged archive ({str(error) or type(error).__name__})"
    return DataError(archive, None, found, "a whole zip or tar", "nothing of it was unpacked; fetch it again")
