"""Unpacking archives from elsewhere: whole ones of every kind, and whatever could do harm."""

from __future__ import annotations

import hashlib
import io
import stat
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.core.errors import DataError
from bench.data.fetching.unpack import Limits, unpack
from bench.testing import fields

FILES = {
    "set/corpus.jsonl": b'{"_id": "1"}\n' * 500,
    "set/qrels/test.tsv": b"1\t1\t1\n",
    "README.md": "Straße\n".encode(),
}
EXPECTED = {name: (len(data), hashlib.sha256(data).hexdigest()) for name, data in FILES.items()}


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def a_zip(path: Path, files: dict[str, bytes] | None = None) -> Path:
    """Write a zip with a folder of its own entry."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("set")
        for name, data in (files or FILES).items():
            archive.writestr(name, data)
    return path


def a_tar(path: Path, mode: str = "w", files: dict[str, bytes] | None = None, prefix: str = "./") -> Path:
    """Write a tar as `tar -C folder -c .` does."""
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]  # the mode is one of the three packed ones
        folder = tarfile.TarInfo(".")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, data in (files or FILES).items():
            info = tarfile.TarInfo(prefix + name)
            info.size, info.mode = len(data), 0o100
            archive.addfile(info, io.BytesIO(data))
    return path


def one_member(path: Path, info: tarfile.TarInfo) -> Path:
    """Write a tar of a good file and a member that is something else."""
    with tarfile.open(path, "w:gz") as archive:
        good = tarfile.TarInfo("set/good")
        good.size = 4
        archive.addfile(good, io.BytesIO(b"good"))
        archive.addfile(info, io.BytesIO(b"evil") if info.isfile() else None)
    return path


MAKERS: dict[str, Callable[[Path], Path]] = {
    "release.zip": a_zip,
    "release.tar": a_tar,
    "release.tar.gz": lambda path: a_tar(path, "w:gz"),
    "release.tar.bz2": lambda path: a_tar(path, "w:bz2"),
    "release.tar.xz": lambda path: a_tar(path, "w:xz"),
    "release.bin": a_zip,
}


@pytest.mark.parametrize("name", MAKERS)
def test_every_kind_gives_the_same_files(tmp_path: Path, name: str) -> None:
    """What an archive is decides, not its name; the files are told with size and sha256, and nothing else is left."""
    archive = MAKERS[name](tmp_path / name)
    heard: list[float] = []
    assert unpack(archive, tmp_path / "data", advance=heard.append) == EXPECTED
    assert tree(tmp_path / "data") == FILES
    assert sum(heard) == sum(map(len, FILES.values()))
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["README.md", "set"]


def test_what_stands_there_is_replaced_file_by_file(tmp_path: Path) -> None:
    """Files of the user's own beside them stay; a file of the same name is replaced."""
    own = tmp_path / "data" / "set"
    own.mkdir(parents=True)
    (own / "mine.txt").write_bytes(b"mine")
    (own / "corpus.jsonl").write_bytes(b"damaged")
    unpack(a_zip(tmp_path / "release.zip"), tmp_path / "data")
    assert tree(tmp_path / "data") == {**FILES, "set/mine.txt": b"mine"}


@pytest.mark.parametrize("taken", ["set", "set/qrels/test.tsv/deeper"])
def test_a_file_where_a_folder_is_needed(tmp_path: Path, taken: str) -> None:
    """And the other way round: the file system's own complaint."""
    place = tmp_path / "data" / taken
    if taken == "set":
        place.parent.mkdir(parents=True)
        place.write_bytes(b"a file")
    else:
        place.mkdir(parents=True)
    with pytest.raises(OSError, match=r"there is a file where a folder is needed|directory"):
        unpack(a_zip(tmp_path / "release.zip"), tmp_path / "data")


NAMES = [
    "/absolute",
    "../outside",
    "set/../../outside",
    "set/..",
    "C:/windows",
    "set\\..\\..\\outside",
    "line\nbreak",
    "set/.bench-data/records/x.json",
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_names_that_lead_elsewhere(tmp_path: Path, name: str, kind: str) -> None:
    """Refused whole: the good file of the same archive is not unpacked either."""
    if kind == "zip":
        archive = a_zip(tmp_path / "release.zip", {"set/good": b"good", name: b"evil"})
    else:
        archive = a_tar(tmp_path / "release.tar", "w", {"set/good": b"good", name: b"evil"}, prefix="")
    data = tmp_path / "deep" / "data"
    with pytest.raises(DataError, match="nothing of it was unpacked"):
        unpack(archive, data)
    assert tree(tmp_path / "deep") == {}
    assert list(data.iterdir()) == []


def member(name: str, kind: bytes, link: str = "") -> tarfile.TarInfo:
    """An entry of a tar that is no plain file."""
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


SPECIAL = [
    (member("set/link", tarfile.SYMTYPE, "/etc/passwd"), "a link called 'set/link'"),
    (member("set/link", tarfile.SYMTYPE, "good"), "a link called 'set/link'"),
    (member("set/hard", tarfile.LNKTYPE, "set/good"), "a link called 'set/hard'"),
    (member("set/pipe", tarfile.FIFOTYPE), "a device called 'set/pipe'"),
    (member("set/disk", tarfile.BLKTYPE), "a device called 'set/disk'"),
    (member("set/tty", tarfile.CHRTYPE), "a device called 'set/tty'"),
]


@pytest.mark.parametrize(("info", "found"), SPECIAL)
def test_links_and_devices_in_a_tar(tmp_path: Path, info: tarfile.TarInfo, found: str) -> None:
    """None of them, wherever they lead."""
    with pytest.raises(DataError, check=fields(found=found)):
        unpack(one_member(tmp_path / "release.tar.gz", info), tmp_path / "data")
    assert tree(tmp_path / "data") == {}


@pytest.mark.parametrize(("kind", "found"), [(stat.S_IFLNK, "a link"), (stat.S_IFIFO, "a device")])
def test_links_and_devices_in_a_zip(tmp_path: Path, kind: int, found: str) -> None:
    """A zip keeps them as files with a mark."""
    info = zipfile.ZipInfo("set/link")
    info.external_attr = (kind | 0o777) << 16
    archive = a_zip(tmp_path / "release.zip", {"set/good": b"good"})
    with zipfile.ZipFile(archive, "a") as opened:
        opened.writestr(info, b"/etc/passwd")
    with pytest.raises(DataError, check=fields(found=f"{found} called 'set/link'")):
        unpack(archive, tmp_path / "data")
    assert tree(tmp_path / "data") == {}


FALLING = [
    ["a/x", "a/x"],
    ["a/x", "A/X"],
    ["stra\u00dfe", "STRASSE"],
    ["caf\u00e9", "cafe\u0301"],
    ["a", "a/x"],
    ["a/x", "a"],
]


@pytest.mark.parametrize("names", FALLING)
def test_names_that_fall_on_each_other(tmp_path: Path, names: list[str]) -> None:
    """The same name twice, on file systems that heed no case or composition too, and a file that is a folder."""
    with tarfile.open(tmp_path / "release.tar", "w") as archive:
        for name in names:
            info = tarfile.TarInfo(name)
            info.size = 1
            archive.addfile(info, io.BytesIO(b"x"))
    with pytest.raises(DataError, match="two members of the name"):
        unpack(tmp_path / "release.tar", tmp_path / "data")
    assert tree(tmp_path / "data") == {}


def test_bombs(tmp_path: Path) -> None:
    """Too many bytes for the size of the archive, or too many files; writing stops at the limit."""
    archive = a_zip(tmp_path / "release.zip", {"set/zeros": bytes(20_000_000)})
    assert archive.stat().st_size < 25_000
    heard: list[float] = []
    with pytest.raises(DataError, match="more than 200 times its own size when unpacked"):
        unpack(archive, tmp_path / "data", Limits(least=1000), heard.append)
    assert sum(heard) < 8_000_000
    with pytest.raises(DataError, match="more than 2 members"):
        unpack(a_tar(tmp_path / "release.tar"), tmp_path / "data", Limits(files=2))
    assert tree(tmp_path / "data") == {}
    assert unpack(archive, tmp_path / "data").keys() == {"set/zeros"}


def test_damage(tmp_path: Path) -> None:
    """Cut, changed in the middle, no archive, nothing in it: a sentence, and nothing half unpacked."""
    noise = {f"set/{number}": hashlib.sha256(bytes([number])).digest() * 311 for number in range(20)}
    for name, make in MAKERS.items():
        whole = tmp_path / name
        if make is a_zip:
            a_zip(whole, noise)
        else:
            a_tar(whole, "w" if name == "release.tar" else f"w:{name.rpartition('.')[2]}", noise)
        raw = whole.read_bytes()
        changed = bytearray(raw)
        changed[len(raw) // 2] ^= 0xFF
        broken = [raw[: len(raw) // 2], bytes(changed), b"not an archive", b""]
        for at, content in enumerate(broken):
            if name == "release.tar" and at == 1:
                continue  # a plain tar has no checksum of its content
            whole.write_bytes(content)
            with pytest.raises(DataError, match=r"a damaged archive|no file at all"):
                unpack(whole, tmp_path / "data" / name)
            assert tree(tmp_path / "data") == {}


def test_an_encrypted_zip(tmp_path: Path) -> None:
    """Refused by its flag, before a password is asked for."""
    archive = a_zip(tmp_path / "release.zip", {"set/secret": b"secret"})
    raw = bytearray(archive.read_bytes())
    at = raw.rindex(b"PK\x01\x02")  # the directory's entry of the last file
    raw[at + 8] |= 1
    archive.write_bytes(raw)
    with pytest.raises(DataError, match="an encrypted file called 'set/secret'"):
        unpack(archive, tmp_path / "data")
