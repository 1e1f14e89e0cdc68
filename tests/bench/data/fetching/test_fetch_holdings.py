"""What is there of official files: where they are looked for, and what a suite may say of them. No network."""

import hashlib
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.core.caches import cache_folder
from bench.core.errors import DataError, PluginError, UsageError
from bench.core.publications import Release
from bench.data.fetching import official, records
from bench.data.fetching.fetch import ensure
from bench.data.fetching.local_files import LocalFile, asked_tasks, examine, local_files, releases, unread, untouched
from bench.data.fetching.official import data_cache
from bench.testing import fields
from bench.types import Corpus, DataRequest, Source, Subset, Suite, Task
from tests.conftest import cases, present

TEXT = b"official\n"
SHA256 = hashlib.sha256(TEXT).hexdigest()
PLAIN = Release("toy/a.txt", ("https://example.org/a.txt",), "CC0", len(TEXT), SHA256, tasks=("a",))
PACKED = Release("toy/b.zip", ("https://example.org/b.zip",), "CC0", tasks=("b",), unpack="toy")
READ = {"a": "a.txt", "b": "b/inside.txt", "group/c": "a.txt"}
"""Task → the file that it reads."""


def make_suite(*listed: Release, **fields: Any) -> Suite:
    """A suite whose tasks read one file each, and which lists these files."""

    def load(name: str, request: DataRequest) -> Task:
        path = official.folder(request, "toy") / READ[name]
        if not path.is_file():
            raise UsageError(f"{path}: found no such file")
        nothing: Source[Any] = Source("toy", "toy/1", (path,), lambda: iter(()))
        return Task(f"toy/{name}", "official", (Subset("", nothing, nothing, Corpus("toy", nothing)),), ("RR@10",))

    texts = {"name": "toy", "version": "1", "title": "Toy", "summary": "A toy.", "citation": "None.", "licence": "CC0"}
    kinds: dict[str, Any] = {"regimes": ("unsupervised",), "data": ("official",), "macros": (), "primary": "RR@10"}
    reads = {"task_names": lambda _: tuple(READ), "load": load, "folder": None}
    return Suite(**{**texts, **kinds, **reads, "card": lambda: "", "releases": lambda: listed, **fields})


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of data, and a cache that is empty."""
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "data" / "toy").mkdir(parents=True)
    return tmp_path / "data"


def states(files: tuple[LocalFile, ...]) -> dict[str, str]:
    return {file.release.path: file.state for file in files}


def pack(root: Path) -> Path:
    with zipfile.ZipFile(root / PACKED.path, "w") as archive:
        archive.writestr("b/inside.txt", TEXT)
    return root / PACKED.path


def test_the_cache_follows_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable of ours before all; relative places of XDG's are ignored, as its specification has it."""
    monkeypatch.setenv("HOME", "/home/me")
    for platform, environment, expected in (
        ("linux", {}, "/home/me/.cache/retrieval-bench"),
        ("linux", {"XDG_CACHE_HOME": "/var/x"}, "/var/x/retrieval-bench"),
        ("linux", {"XDG_CACHE_HOME": "x"}, "/home/me/.cache/retrieval-bench"),
        ("darwin", {"XDG_CACHE_HOME": "/var/x"}, "/home/me/Library/Caches/retrieval-bench"),
        ("linux", {"BENCH_CACHE": "~/mine", "XDG_CACHE_HOME": "/var/x"}, "/home/me/mine"),
        ("win32", {"LOCALAPPDATA": "/w"}, "/w/retrieval-bench/cache"),
    ):
        assert cache_folder(environment, platform) == Path(expected)


def test_folders_of_data(root: Path) -> None:
    """The folder of data where it has the suite, else the cache; a run looks into the first that has it."""
    folder, cached = root / "toy", data_cache() / "toy"
    cached.mkdir(parents=True)
    assert official.folder(DataRequest("official", root), "toy") == folder
    assert official.folder(DataRequest("official"), "toy") == cached
    folder.rmdir()
    assert official.folder(DataRequest("official", root), "toy") == cached
    cached.rmdir()
    for request in (DataRequest("official", root), DataRequest("official")):
        with pytest.raises(UsageError, match=r"`bench data fetch toy` fetches what may be fetched"):
            official.folder(request, "toy")
    check = fields(where="nowhere", found="no such folder", expected="the folder of data")
    with pytest.raises(UsageError, check=check):
        official.folder(DataRequest("official", root / "nowhere"), "toy")
    folder.mkdir()
    other_root = root.parent / "other"
    (other_root / "toy").mkdir(parents=True)
    (other_root / "toy/a.txt").write_bytes(TEXT)
    suite = make_suite(PLAIN)
    assert [file.root for file in local_files(suite, [root, other_root])] == [root]
    (root / "toy").rmdir()
    assert [(file.root, file.state) for file in local_files(suite, [root, other_root])] == [(other_root, "present")]
    assert [file.root for file in local_files(suite, [root, root.parent / "none"])] == [root]


@pytest.mark.parametrize(("change", "fault"), cases("release-faults"))
def test_what_a_suite_may_not_say(change: dict[str, Any], fault: str) -> None:
    """A path that leads out of the folder of data, a checksum that is none, no way to get it."""
    with pytest.raises(PluginError, match="fix its releases") as caught:
        releases(make_suite(replace(PLAIN, **change)))
    assert fault in str(caught.value)


def test_what_a_suite_lists(root: Path) -> None:
    """No file twice; tasks with and without prefix, by group, with dev questions where there are some."""
    with pytest.raises(PluginError, match=r"lists 'toy/a\.txt' twice"):
        releases(make_suite(PLAIN, PACKED, PLAIN))
    assert releases(make_suite(releases=None)) == ()
    suite = make_suite(PLAIN)
    assert asked_tasks(suite, []) == ("a", "b", "group/c")
    assert asked_tasks(suite, ["toy/b", "group", "b"]) == ("b", "group/c")
    for name in ("d", "a@dev"):
        with pytest.raises(UsageError, match=f"no task of toy '{name}'"):
            asked_tasks(suite, [name])
    with_dev = make_suite(PLAIN, dev=suite.load, dev_names=lambda _: ("a",))
    assert asked_tasks(with_dev, ["a@dev", "toy/a"]) == ("a@dev", "a")
    with pytest.raises(UsageError, match="no official data"):
        asked_tasks(make_suite(PLAIN, data=("mini",)), [])
    listed = (PLAIN, replace(PACKED, tasks=("group",)), Release("toy/all.txt", ("https://example.org/x",), "CC0"))
    suite = make_suite(*listed)
    assert list(states(local_files(suite, [root], ("group/c",)))) == ["toy/b.zip", "toy/all.txt"]
    assert list(states(local_files(suite, [root], ("a@dev",)))) == ["toy/a.txt", "toy/all.txt"]
    assert len(local_files(suite, [root])) == 3


def test_a_plain_file(root: Path) -> None:
    """Missing, begun, of the wrong size, of the right one; its compressed form laid out plain."""
    suite = make_suite(PLAIN, Release("toy/t.tsv.gz", ("https://example.org/t",), "CC0"))
    assert states(local_files(suite, [root])) == {"toy/a.txt": "missing", "toy/t.tsv.gz": "missing"}
    (root / "toy/.a.txt.part").write_bytes(b"off")
    (root / "toy/t.tsv").write_bytes(b"x")
    files = local_files(suite, [root])
    assert states(files) == {"toy/a.txt": "partial", "toy/t.tsv.gz": "present"}
    assert files[0].size == 3
    (root / "toy/a.txt").write_bytes(b"short")
    (file, _) = local_files(suite, [root])
    assert (file.state, file.reason, file.basis) == ("damaged", "5 bytes, expected 9", "size")
    (root / "toy/a.txt").write_bytes(TEXT)
    (file, _) = local_files(suite, [root])
    assert (file.state, file.complete, file.path) == ("present", True, root / "toy/a.txt")


def test_an_archive_that_was_laid_out_by_hand(root: Path) -> None:
    """Its tasks load without it, so nobody misses it; a cache beside does not count."""
    suite = make_suite(PACKED)
    assert states(local_files(suite, [root])) == {"toy/b.zip": "missing"}
    inside = root / "toy/b/inside.txt"
    inside.parent.mkdir()
    inside.write_bytes(TEXT)
    (file,) = local_files(suite, [root])
    assert (file.state, file.reason) == ("present", "its files are there, unpacked")
    assert states(local_files(suite, [root.parent / "other"])) == {"toy/b.zip": "missing"}
    pack(root)
    assert states(local_files(suite, [root])) == {"toy/b.zip": "present"}
    inside.unlink()
    (file,) = local_files(suite, [root])
    assert (file.state, file.local, file.by_hand) == ("packed", True, False)


def test_dev_questions_count_too(root: Path) -> None:
    """An archive laid out without them is missed."""
    inside = root / "toy/b/inside.txt"
    inside.parent.mkdir()
    inside.write_bytes(TEXT)
    plain = make_suite(PACKED)

    def dev(name: str, request: DataRequest) -> Task:
        raise UsageError("found no dev questions")

    assert states(local_files(plain, [root])) == {"toy/b.zip": "present"}
    assert states(local_files(make_suite(PACKED, dev=dev), [root])) == {"toy/b.zip": "missing"}
    with_dev = make_suite(PACKED, dev=dev, dev_names=lambda _: ("a",))
    assert states(local_files(with_dev, [root])) == {"toy/b.zip": "present"}


def test_examining(root: Path) -> None:
    """Published checksums decide; every byte is counted; what nobody published is not held against anything."""
    progress: list[float] = []
    (root / "toy/a.txt").write_bytes(TEXT)
    (file,) = local_files(make_suite(PLAIN), [root])
    assert unread(file) == len(TEXT)
    examined = examine(file, progress.append)
    assert (examined.state, examined.basis, sum(progress)) == ("present", "sha256", len(TEXT))
    (root / "toy/a.txt").write_bytes(TEXT[::-1])
    (file,) = local_files(make_suite(replace(PLAIN, md5="0" * 32)), [root])
    examined = examine(file)
    other_digest = hashlib.sha256(TEXT[::-1]).hexdigest()
    assert (examined.state, examined.basis, examined.local) == ("damaged", "sha256", False)
    assert examined.reason == f"sha256 {other_digest}, expected {SHA256}"
    (file,) = local_files(make_suite(replace(PLAIN, sha256="", size=None)), [root])
    assert (examine(file).state, examine(file).basis) == ("present", "")


def test_unpacking_without_a_network(root: Path) -> None:
    """An archive that lies there is unpacked and remembered; what is written to since is seen and mended."""
    archive, suite = pack(root), make_suite(PACKED)
    (file,) = local_files(suite, [root])
    unpacked = ensure(file, None)
    assert (unpacked.state, unpacked.size) == ("present", len(TEXT))
    inside = root / "toy/b/inside.txt"
    assert inside.read_bytes() == TEXT
    record = present(records.recall(root, PACKED.path))
    assert (record.source, record.folder, record.sha256) == (
        "",
        "toy",
        hashlib.sha256(archive.read_bytes()).hexdigest(),
    )
    assert untouched(unpacked)
    inside.write_bytes(TEXT[::-1])
    (file,) = local_files(suite, [root])
    assert (file.state, untouched(file)) == ("present", False)
    examined = examine(file)
    assert (examined.state, examined.basis, examined.local) == ("damaged", "sha256 when unpacked", True)
    assert ensure(examined, None).complete
    assert inside.read_bytes() == TEXT
    archive.unlink()
    (file,) = local_files(suite, [root])
    assert (examine(file).state, examine(file).basis) == ("present", "sha256 when unpacked")
    inside.unlink()
    (file,) = local_files(suite, [root])
    assert (file.state, file.local, ensure(file, None).state) == ("damaged", False, "damaged")


def test_an_archive_that_does_harm_is_not_unpacked(root: Path) -> None:
    """It stays as it is, and nothing is remembered of it."""
    with zipfile.ZipFile(root / PACKED.path, "w") as archive:
        archive.writestr("../outside.txt", TEXT)
    (file,) = local_files(make_suite(PACKED), [root])
    with pytest.raises(DataError, match="nothing of it was unpacked"):
        ensure(file, None)
    assert records.recall(root, PACKED.path) is None
    assert sorted(path.name for path in (root / "toy").iterdir()) == ["b.zip"]


DAMAGES: list[Callable[[bytes], bytes]] = [lambda raw: raw[:-5], lambda raw: raw.replace(b"toy", b"tay"), lambda _: b""]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_record_is_as_good_as_none(root: Path, damage: Callable[[bytes], bytes]) -> None:
    """Then the archive is unpacked again."""
    pack(root)
    ensure(local_files(make_suite(PACKED), [root])[0], None)
    (root / "toy/b/inside.txt").unlink()
    note = records.record_file(root, PACKED.path)
    note.write_bytes(damage(note.read_bytes()))
    (file,) = local_files(make_suite(PACKED), [root])
    assert (records.recall(root, PACKED.path), file.state) == (None, "packed")
    assert ensure(file, None).complete
