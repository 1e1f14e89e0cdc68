"""Files in tar archives read as streams: the same records as from the unpacked file, and what is wrong in words."""

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from bench.core.errors import DataError
from bench.data.formats import trec
from bench.data.formats.archive import Member
from bench.data.formats.text import lines
from bench.testing import fields

TEXT = "1\tswali la kwanza\n2\tswali la pili\u2028lenye alama\n"
NOISE = "".join(f"{at * 7919 % 10007} na {at * 104729 % 99991}\n" for at in range(20_000))


def pack(path: Path, files: dict[str, bytes], *, link: str = "", mode: str = "w:gz") -> Path:
    """Write an archive of files, with a symbolic link of a name that escapes it first."""
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]  # the mode is a parameter
        if link:
            entry = tarfile.TarInfo(link)
            entry.type, entry.linkname = tarfile.SYMTYPE, "/etc/hostname"
            archive.addfile(entry)
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return path


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
@pytest.mark.parametrize("prefix", ["", "./"])
def test_a_member_gives_the_lines_of_the_file(tmp_path: Path, mode: str, prefix: str) -> None:
    """Plain or gzipped inside any archive, behind another file or not; texts are cut at line feeds only."""
    files = {"r/first.txt": NOISE.encode(), "r/t.tsv": TEXT.encode(), "r/t.tsv.gz": gzip.compress(TEXT.encode())}
    archive = pack(tmp_path / "a.tar", {prefix + name: data for name, data in files.items()}, mode=mode)
    (tmp_path / "t.tsv").write_bytes(TEXT.encode())
    expected = list(lines(tmp_path / "t.tsv"))
    assert expected == [(1, "1\tswali la kwanza"), (2, "2\tswali la pili\u2028lenye alama")]
    for name in ("r/t.tsv", "r/t.tsv.gz"):
        assert list(lines(Member(archive, name))) == expected
    assert len(list(lines(Member(archive, "r/first.txt")))) == 20_000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar", "t.tsv"]


def test_readers_take_a_member_for_a_file(tmp_path: Path) -> None:
    """The archive decides the bytes; faults name archive, member and line."""
    archive = pack(tmp_path / "a.tar.gz", {"r/t.tsv": TEXT.encode(), "r/bad.tsv": b"1\tone\nno tab\n"})
    source = trec.topics_source(Member(archive, "r/t.tsv"))
    assert (source.name, source.files) == ("t.tsv", (archive,))
    assert [item.id for item in source.read()] == ["1", "2"]
    with pytest.raises(DataError) as caught:
        list(trec.topics_source(Member(archive, "r/bad.tsv")).read())
    assert str(caught.value).startswith(f"{archive}:r/bad.tsv:2: found 'no tab', expected a query id, a tab")


def test_links_missing_and_broken_members(tmp_path: Path) -> None:
    """A link is no file; what is there is listed; an archive or member that is cut short or broken."""
    archive = pack(tmp_path / "a.tar.gz", {f"r/{at}.txt": b"x\n" for at in range(6)}, link="r/t.tsv")
    found = "no such file in the archive (it holds r/t.tsv, r/0.txt, r/1.txt, r/2.txt, r/3.txt and 2 more)"
    with pytest.raises(DataError, check=fields(where=f"{archive}:r/t.tsv", found=found, expected="one")):
        list(lines(Member(archive, "r/t.tsv")))
    with pytest.raises(DataError, check=fields(where="none.tar", found="no such file", expected="a tar archive")):
        list(lines(Member(tmp_path / "none.tar", "r/t.tsv")))
    good = pack(tmp_path / "a.tar.gz", {"r/first.txt": NOISE.encode()}).read_bytes()
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(good[: len(good) // 2])
    with pytest.raises(DataError, match=r"cut\.tar\.gz:r/first\.txt:\d+: found a broken tar archive \("):
        list(lines(Member(cut, "r/first.txt")))
    cut.write_bytes(b"no archive " * 100)
    with pytest.raises(DataError, match=r"found a broken tar archive .*fetch it again"):
        list(lines(Member(cut, "r/first.txt")))
    compressed = gzip.compress(NOISE.encode())
    inner = pack(tmp_path / "b.tar", {"r/cut.gz": compressed[: len(compressed) // 2], "r/plain.gz": b"x\n"}, mode="w")
    with pytest.raises(DataError, match=r"b\.tar:r/cut\.gz:\d+: found a truncated gzip stream"):
        list(lines(Member(inner, "r/cut.gz")))
    with pytest.raises(DataError, check=fields(where="b.tar:r/plain.gz", line=1, found="a corrupt gzip stream")):
        list(lines(Member(inner, "r/plain.gz")))
