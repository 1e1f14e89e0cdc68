"""Files in tar archives read as streams: the same records as from the unpacked file, and what is wrong in words."""

import gzip
import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from bench.core.errors import DataError
from bench.data.formats import archive as archive_module
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


def scans(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note every pass over an archive from now on, by its name."""
    passes, real = list[str](), archive_module.tar_stream

    def counted(path: Path) -> Any:
        passes.append(path.name)
        return real(path)

    monkeypatch.setattr(archive_module, "tar_stream", counted)
    return passes


@pytest.mark.parametrize("behind", [False, True])
def test_one_pass_over_a_large_file_has_its_small_neighbours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, behind: bool
) -> None:
    """Before or behind it; a changed archive is read anew, and a file that was left in the middle leads no further."""
    content = b"".join(b"%d %d\n" % (at, at * 7919 % 10007) for at in range(1_000_000))
    assert len(content) > archive_module._SMALL
    small = {"r/t.tsv": TEXT.encode(), "r/q.txt": b"q\n", "r/z.tsv.gz": gzip.compress(TEXT.encode())}
    large = {"c/docs.jsonl.gz": gzip.compress(content, 0)}
    path = pack(tmp_path / "a.tar", large | small if behind else small | large, mode="w")
    passes = scans(monkeypatch)
    next(lines(Member(path, "c/docs.jsonl.gz")))
    list(lines(Member(path, "r/q.txt")))
    assert len(passes) == (2 if behind else 1)
    assert len(list(lines(Member(path, "c/docs.jsonl.gz")))) == 1_000_000
    del passes[:]
    for name, first in (("r/t.tsv", "1\tswali la kwanza"), ("r/q.txt", "q"), ("r/z.tsv.gz", "1\tswali la kwanza")):
        assert next(lines(Member(path, name))) == (1, first)
    assert passes == []
    pack(path, {"r/q.txt": b"another\n", "r/w.txt": b"w\n"}, mode="w")
    assert list(lines(Member(path, "r/q.txt"))) == [(1, "another")]


def test_no_more_is_kept_than_has_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Archives of long ago go first; of one, files that come first stay."""
    monkeypatch.setattr(archive_module, "_CACHED", 20)
    archive_module._file_cache.clear()
    for archive in "abc":
        files = {f"{name}.txt": archive.encode() * 7 + b"\n" for name in "xyzw"}
        list(lines(Member(pack(tmp_path / f"{archive}.tar", files, mode="w"), "w.txt")))
    list(lines(Member(tmp_path / "c.tar", "x.txt")))
    kept = {Path(stamp[0]).name: sorted(files) for stamp, files in archive_module._file_cache.items()}
    assert kept == {"c.tar": ["x.txt", "y.txt"]}


def test_what_is_broken_behind_a_file_does_no_harm_to_it(tmp_path: Path) -> None:
    """As when nothing looked behind it; who wants the broken one is told."""
    whole = pack(tmp_path / "a.tar", {"r/t.tsv": TEXT.encode(), "r/q.txt": b"q" * 4000}, mode="w").read_bytes()
    path = tmp_path / "cut.tar"
    path.write_bytes(whole[:3000])
    assert [number for number, _ in lines(Member(path, "r/t.tsv"))] == [1, 2]
    with pytest.raises(DataError, match=r"cut\.tar:r/q\.txt:\d+: found a broken tar archive \("):
        list(lines(Member(path, "r/q.txt")))
