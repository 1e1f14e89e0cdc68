"""Unpacking archives from elsewhere: whole ones of every kind, and whatever could do harm."""

import bz2
import gzip
import hashlib
import io
import lzma
import os
import stat
import tarfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.core.errors import DataError
from bench.data.fetching import unpack as module
from bench.data.fetching.unpack import Limits, unpack
from bench.testing import fields
from tests.conftest import cases, traced, tree

FILES = {
    "set/corpus.jsonl": b'{"_id": "1"}\n' * 500,
    "set/qrels/test.tsv": b"1\t1\t1\n",
    "README.md": "Straße\n".encode(),
}
EXPECTED = {name: (len(data), hashlib.sha256(data).hexdigest()) for name, data in FILES.items()}


def a_zip(path: Path, files: dict[str, bytes] | None = None) -> Path:
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
    progress: list[float] = []
    assert unpack(archive, tmp_path / "data", advance=progress.append) == EXPECTED
    assert tree(tmp_path / "data") == FILES
    assert sum(progress) == sum(map(len, FILES.values()))
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["README.md", "set"]


def test_what_stands_there_is_replaced_file_by_file(tmp_path: Path) -> None:
    """Files of the user's own beside them stay; a file of the same name is replaced."""
    folder = tmp_path / "data" / "set"
    folder.mkdir(parents=True)
    (folder / "mine.txt").write_bytes(b"mine")
    (folder / "corpus.jsonl").write_bytes(b"damaged")
    unpack(a_zip(tmp_path / "release.zip"), tmp_path / "data")
    assert tree(tmp_path / "data") == {**FILES, "set/mine.txt": b"mine"}


def test_names_that_no_file_can_have(tmp_path: Path) -> None:
    """A member without a name (found by a fuzzer), a part that is too long, a directory that begins before the file."""
    info = zipfile.ZipInfo("x")
    info.filename = ""
    with zipfile.ZipFile(tmp_path / "release.zip", "w") as archive:
        archive.writestr(info, b"evil")
    with pytest.raises(DataError, check=fields(where="release.zip")):
        unpack(tmp_path / "release.zip", tmp_path / "data")
    data = tmp_path / "data"
    with pytest.raises(DataError, check=fields(found="a damaged archive ([Errno 36] File name too long")):
        unpack(a_zip(tmp_path / "release.zip", {"n" * 300: b""}), data)
    raw = bytearray(a_zip(tmp_path / "release.zip").read_bytes())
    raw[-6:-2] = (len(raw) * 3).to_bytes(4, "little")  # where the directory begins, as its end says
    (tmp_path / "release.zip").write_bytes(raw)
    with pytest.raises(DataError, check=fields(found="a damaged archive")):
        unpack(tmp_path / "release.zip", data)


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


@pytest.mark.parametrize("name", cases("member-names"))
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


@pytest.mark.parametrize("names", cases("colliding-names"))
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
    progress: list[float] = []
    with pytest.raises(DataError, match="more than 200 times its own size when unpacked"):
        unpack(archive, tmp_path / "data", Limits(least=1000), progress.append)
    assert sum(progress) < 8_000_000
    with pytest.raises(DataError, match="more than 2 members"):
        unpack(a_tar(tmp_path / "release.tar"), tmp_path / "data", Limits(files=2))
    assert tree(tmp_path / "data") == {}
    assert unpack(archive, tmp_path / "data").keys() == {"set/zeros"}


def raw_member(name: str, kind: bytes, data: bytes) -> bytes:
    """Return a member of a tar, or a header before one, with its data."""
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(data)
    return info.tobuf(tarfile.USTAR_FORMAT) + data + bytes(-len(data) % 512)


def pax(count: int) -> bytes:
    return b"".join(b"13 k%06d=v\n" % at for at in range(count))


END = bytes(1024)
GOOD = raw_member("good", tarfile.REGTYPE, b"good")
HEADERS: dict[str, Callable[[], bytes]] = {
    "a record of pax": lambda: raw_member("x", tarfile.XHDTYPE, b"100000000 a=" + bytes(100_000_000)),
    "records of pax": lambda: raw_member("x", tarfile.XHDTYPE, pax(200_000)),
    "a long name": lambda: raw_member("x", tarfile.GNUTYPE_LONGNAME, b"n" * 100_000_000),
    "a long link": lambda: raw_member("x", tarfile.GNUTYPE_LONGLINK, b"n" * 100_000_000),
    "many headers in a row": lambda: raw_member("x", tarfile.XHDTYPE, pax(70)) * 20_000,
    "headers of many files": lambda: b"".join(
        raw_member("x", tarfile.XHDTYPE, pax(1000)) + raw_member(f"{at}", tarfile.REGTYPE, b"") for at in range(120)
    ),
}
"""What precedes the last member of tars whose headers would fill the memory."""


@pytest.mark.parametrize("what", HEADERS)
def test_headers_are_counted_before_they_fill_the_memory(tmp_path: Path, what: str) -> None:
    """Long names and records of any claimed size, alone or many: refused, at a hundredth of their size."""
    archive = tmp_path / "release.tar.gz"
    archive.write_bytes(gzip.compress(HEADERS[what]() + GOOD + END, 1))
    with traced() as peak:
        with pytest.raises(DataError, check=fields(found="too many bytes of headers", expected="what tar writes")):
            unpack(archive, tmp_path / "data")
        assert peak() < 4_000_000
    assert tree(tmp_path / "data") == {}


def test_headers_take_no_time(tmp_path: Path) -> None:
    """2.5 MB of digits: tarfile before Python 3.11.10 needs half a second for 16 kB, growing with the square."""
    for size in (15_000, 2_500_000):
        record = b"%d comment=%s\n" % (size, b"1" * (size - len(b"%d comment=\n" % size)))
        data = (raw_member("x", tarfile.XHDTYPE, record) + GOOD) * (2_500_000 // size) + END
        (tmp_path / "release.tar").write_bytes(data)
        began = time.process_time()
        with pytest.raises(DataError, check=fields(where="release.tar", expected="what tar writes")):
            unpack(tmp_path / "release.tar", tmp_path / "data")
        assert time.process_time() - began < 0.5
    assert tree(tmp_path / "data") == {}


def test_global_records_are_not_kept_for_every_file(tmp_path: Path) -> None:
    """Each member would hold a copy of them."""
    archive = tmp_path / "release.tar.gz"
    members = (raw_member(f"{at}", tarfile.REGTYPE, b"x") for at in range(400))
    archive.write_bytes(gzip.compress(raw_member("x", tarfile.XGLTYPE, pax(1000)) + b"".join(members) + END, 1))
    with traced() as peak:
        assert len(unpack(archive, tmp_path / "data")) == 400
        assert peak() < 8_000_000


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_padding_behind_the_end_is_counted(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    """A tape's record of zeros is read, more of them not, however well they are packed."""
    zeros, archive = pack(bytes(1 << 20)), tmp_path / "release"
    archive.write_bytes(pack(GOOD + END) + zeros * 10)
    assert unpack(archive, tmp_path / "data").keys() == {"good"}
    archive.write_bytes(pack(GOOD + END) + zeros * 20)
    with pytest.raises(DataError, check=fields(found="too many bytes of padding behind its last file")):
        unpack(archive, tmp_path / "data")


def test_the_directory_of_a_zip_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In bytes before it is parsed, and in members before the first one is written."""
    archive = a_zip(tmp_path / "release.zip", {f"{at:0200}": b"" for at in range(6000)})
    monkeypatch.setattr(os, "fsync", lambda _: pytest.fail("something was written for good"))
    for files, found in ((100, "a directory of 1,476,"), (5999, "more than 5,999 members")):
        progress: list[float] = []
        with pytest.raises(DataError, check=fields(found=found)):
            unpack(archive, tmp_path / "data", Limits(files=files), progress.append)
        assert not progress


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_of_other_methods(tmp_path: Path, method: int) -> None:
    """They are decompressed at one go, whatever the size."""
    with zipfile.ZipFile(tmp_path / "release.zip", "w", method) as archive:
        archive.writestr("zeros", bytes(1000))
    with pytest.raises(DataError, check=fields(found=f"'zeros', compressed by method {method}", expected="deflate")):
        unpack(tmp_path / "release.zip", tmp_path / "data")


@pytest.mark.parametrize(
    ("name", "found"), [("a/" * 101 + "b", "a name of more than 100 parts"), ("a/" * 90 + "b", "names of more than")]
)
def test_names_are_counted_with_their_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, found: str
) -> None:
    """A short name of many parts is many names."""
    monkeypatch.setattr(module, "_NAMES", 8_000)
    with pytest.raises(DataError, check=fields(found=found)):
        unpack(a_zip(tmp_path / "release.zip", {name: b""}), tmp_path / "data")


def test_damage(tmp_path: Path) -> None:
    """Cut, changed in the middle, no archive, nothing in it: a sentence, and nothing half unpacked."""
    noise = {f"set/{number}": hashlib.sha256(bytes([number])).digest() * 311 for number in range(20)}
    for name, make in MAKERS.items():
        archive = tmp_path / name
        if make is a_zip:
            a_zip(archive, noise)
        else:
            a_tar(archive, "w" if name == "release.tar" else f"w:{name.rpartition('.')[2]}", noise)
        raw = archive.read_bytes()
        changed = bytearray(raw)
        changed[len(raw) // 2] ^= 0xFF
        broken = [raw[: len(raw) // 2], bytes(changed), b"not an archive", b""]
        for at, content in enumerate(broken):
            if name == "release.tar" and at == 1:
                continue  # a plain tar has no checksum of its content
            archive.write_bytes(content)
            with pytest.raises(DataError, match=r"a damaged archive|no file at all"):
                unpack(archive, tmp_path / "data" / name)
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
