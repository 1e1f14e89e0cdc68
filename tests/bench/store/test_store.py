"""The store: nothing half-written is found, nothing finished is made twice, nothing damaged goes unnoticed."""

import errno
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from bench.core.errors import DataError, StoreError, UsageError
from bench.core.files import digest, read_sealed, write_sealed
from bench.core.workspace import Workspace
from bench.store.fingerprinted import Fingerprinted
from bench.store.input_hashes import InputHashes
from bench.store.stage import NOT_IN_KEY, Cost, Stage
from bench.store.store import MANIFEST, Store, _files
from bench.testing import fields
from bench.types import Json, Source

Work = Callable[[Workspace], Mapping[str, Json]]


@dataclass(frozen=True, kw_only=True)
class Worked(Stage):
    """A stage whose work is given."""

    name, code = "index", 1
    k1: float = 0.9
    label: str = field(default="a title", metadata=NOT_IN_KEY)
    work: Work = field(metadata=NOT_IN_KEY)

    title = property(lambda self: self.label)
    cost = property(lambda _: Cost("index", 1, 1))

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        return self.work(space)


class Searched(Worked):
    """The same of another verb."""

    name = "search"


def _writes(text: str) -> Work:
    def work(space: Workspace) -> Mapping[str, Json]:
        (space.out / "sub").mkdir()
        (space.out / "sub" / "data.bin").write_bytes(text.encode())
        return {"length": len(text)}

    return work


ABC = Worked(work=_writes("abc"))


def test_made_once_then_found(tmp_path: Path) -> None:
    """Keys hash the identity alone, not title or provenance; the second call finds the same bytes and metadata."""
    assert replace(ABC, label="another title", notes={"host": "x"}).key == ABC.key
    assert [len(key) for key in {ABC.key, Searched(work=ABC.work).key, replace(ABC, k1=0.91).key}] == [32] * 3
    store = Store(tmp_path)
    first, state = store.make(ABC)
    cached, later = store.make(replace(ABC, work=_writes("never written")))
    assert (state, later) == ("ran", "cached")
    assert cached.metadata == first.metadata == {"length": 3}
    assert (cached.folder / "sub" / "data.bin").read_bytes() == b"abc"
    assert not list((tmp_path / "work").iterdir())


def test_a_failed_stage_leaves_no_artefact_but_its_parts(tmp_path: Path) -> None:
    """What was finished inside a stage survives its failure, and the next attempt starts from an empty `out`.

    That attempt is said to be resumed, one without parts of another is not.
    """
    store, parts = Store(tmp_path), []

    def fails(space: Workspace) -> Mapping[str, Json]:
        parts.append(space.parts.done("one"))
        assert not list(space.out.iterdir())
        space.parts.get("one", lambda: b"costly")
        (space.out / "half").write_bytes(b"half")
        if len(parts) == 1:
            raise RuntimeError("killed")
        return {}

    with pytest.raises(RuntimeError):
        store.make(Worked(work=fails))
    assert store.state(ABC) == "missing"
    store.make(Worked(work=fails))
    assert [part is None for part in parts] == [True, False]
    assert store.provenance(Worked(work=fails))["resumed"] is True
    store.make(another := Worked(work=_writes("abc"), k1=1.2))
    assert "resumed" not in store.provenance(another)


def test_a_damaged_part_is_made_again(tmp_path: Path) -> None:
    """A part counts as done only while its bytes match its checksum."""
    store, builds = Store(tmp_path), []

    def work(space: Workspace) -> Mapping[str, Json]:
        path = space.parts.get("one", lambda: builds.append(1) or b"costly")  # type: ignore[func-returns-value]
        if len(builds) == 1:
            path.write_bytes(b"cosTly")
            raise RuntimeError("killed")
        return {"part": path.read_text()}

    with pytest.raises(RuntimeError):
        store.make(Worked(work=work))
    artefact, _ = store.make(Worked(work=work))
    assert (artefact.metadata, len(builds)) == ({"part": "costly"}, 2)


@pytest.mark.parametrize("name", [MANIFEST, "sub/data.bin"])
def test_any_flipped_byte_is_found_and_the_artefact_made_again(tmp_path: Path, name: str) -> None:
    """Every single byte of the data and of the manifest is guarded."""
    notices: list[str] = []
    store = Store(tmp_path, notices.append)
    artefact, _ = store.make(ABC)
    good = (artefact.folder / name).read_bytes()
    for place in range(len(good)):
        (artefact.folder / name).write_bytes(good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :])
        assert store.state(ABC) == "corrupt", f"byte {place} of {name}"
    assert (store.make(ABC)[1], store.state(ABC)) == ("ran", "cached")
    assert name in notices[0]


def test_damage_that_keeps_size_and_time_is_found_by_a_thorough_look(tmp_path: Path) -> None:
    """Rot below the file system shows in the hash only; the mark then has the next run make it again."""
    store = Store(tmp_path)
    artefact, _ = store.make(ABC)
    target = artefact.folder / "sub" / "data.bin"
    target.write_bytes(b"abd")
    content = read_sealed(artefact.folder / MANIFEST)
    status = target.stat()  # pretend that the times are those of the commit
    content["files"]["sub/data.bin"]["stamp"] = [status.st_size, status.st_mtime_ns, status.st_ctime_ns]
    write_sealed(artefact.folder / MANIFEST, content)
    assert store.state(ABC) == "cached"
    faults = store.faults(artefact.folder, thorough=True)
    assert [fault.path for fault in faults] == [target]
    store.mark(artefact.folder, faults)
    assert (store.state(ABC), store.make(ABC)[1]) == ("corrupt", "ran")
    assert not store.faults(artefact.folder, thorough=True)


def test_a_sealed_file_is_json_with_an_indent(tmp_path: Path) -> None:
    """Of one blank, whatever is empty, nested or quoted in it."""
    nasty: Any = {"": [{}, [], [[1, {"é\n": None}], 1e300, True], '"x": [{,'], "b": {1.5: {"c": ""}, 2: [-0.0]}}
    write_sealed(path := tmp_path / "a.json", nasty)
    assert path.read_text() == json.dumps({**nasty, "seal": digest(nasty)}, indent=1, ensure_ascii=False) + "\n"


def test_a_manifest_is_proven_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However often the artefact is looked at; a thorough look proves it again."""
    store, proofs = Store(tmp_path), list[Path]()
    manifest = store.make(ABC)[0].folder / MANIFEST

    def counted(path: Path) -> dict[str, Any]:
        proofs.append(path)
        return read_sealed(path)

    monkeypatch.setattr("bench.store.store.read_sealed", counted)
    artefacts = [store.open(ABC) for _ in range(3)]
    assert (len({str(artefact) for artefact in artefacts}), store.state(ABC), len(proofs)) == (1, "cached", 1)
    store.faults(manifest.parent, thorough=True)
    os.utime(manifest)
    assert (store.state(ABC), store.state(ABC), len(proofs)) == ("cached", "cached", 3)


def test_added_and_missing_files_and_times(tmp_path: Path) -> None:
    """The manifest lists exactly what is there; new file times alone are no damage, and are remembered."""
    store = Store(tmp_path)
    artefact, _ = store.make(ABC)
    os.utime(artefact.folder / "sub" / "data.bin", (1, 1))
    before = (artefact.folder / MANIFEST).read_bytes()
    observations = [(store.state(ABC), (artefact.folder / MANIFEST).read_bytes()) for _ in range(2)]
    assert observations == [("cached", observations[0][1])] * 2
    assert observations[0][1] != before
    (artefact.folder / "stranger").write_bytes(b"")
    assert [fault.found for fault in store.faults(artefact.folder)] == ["a file that the stage did not write"]
    (artefact.folder / "stranger").unlink()
    (artefact.folder / "sub" / "data.bin").unlink()
    assert [fault.found for fault in store.faults(artefact.folder)] == ["no such file"]


@pytest.mark.parametrize("whole", [True, False])
def test_what_another_process_takes_away_while_it_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    """An artefact that went is missing; one that lost a file is corrupt. Either is made again."""
    store = Store(tmp_path / "store")
    folder = store.make(ABC)[0].folder
    gone = folder if whole else folder / "sub" / "data.bin"

    def listed(place: Path) -> list[Path]:
        files = _files(place)
        if gone.exists():
            gone.rename(tmp_path / "gone")
        return files

    monkeypatch.setattr("bench.store.store._files", listed)
    assert store.state(ABC) == ("missing" if whole else "corrupt")
    monkeypatch.undo()
    assert store.make(ABC)[1] == "ran"


def test_provenance_that_another_process_takes_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes between the look and the reading: there is none."""
    store = Store(tmp_path / "store")
    folder = store.make(ABC)[0].folder
    assert store.provenance(ABC)

    def read(path: Path) -> dict[str, Any]:
        folder.rename(tmp_path / "gone")
        return read_sealed(path)

    monkeypatch.setattr("bench.store.store.read_sealed", read)
    assert store.provenance(ABC) == {}


@pytest.mark.parametrize(
    ("number", "hint"),
    [
        (1, "a version before 0.2.0 made it: name another folder by --store, or use that version"),
        (3, "a newer version made it: type `pip install --upgrade retrieval-bench`"),
        ("x" * 99, "a newer version made it: type `pip install --upgrade retrieval-bench`"),
    ],
)
def test_a_store_of_another_format_is_refused_and_stays_as_it_is(tmp_path: Path, number: object, hint: str) -> None:
    """By the first manifest that can be read; a damaged one says nothing."""
    artefact, _ = Store(tmp_path).make(ABC)
    damaged = tmp_path / "artefacts" / "encode" / "0" / MANIFEST
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"[")
    assert Store(tmp_path).state(ABC) == "cached"
    manifest = artefact.folder / MANIFEST
    write_sealed(manifest, {**read_sealed(manifest), "format": number})
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    with pytest.raises(StoreError, check=fields(where=str(tmp_path), expected="format 2", hint=hint)) as caught:
        Store(tmp_path)
    assert caught.value.found == f"a store of format {number!r:.20}"
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_full_disk_is_a_sentence(tmp_path: Path) -> None:
    """The message says what happened, that finished stages are kept, and what to do."""

    def full(space: Workspace) -> Mapping[str, Json]:
        raise OSError(errno.ENOSPC, "No space left on device", str(space.out / "x"))

    with pytest.raises(StoreError, match=r"the disk is full .*finished stages are kept: fix that, then type the same"):
        Store(tmp_path).make(Worked(work=full))


def test_input_hash_follows_the_bytes(tmp_path: Path) -> None:
    """A changed file has a new hash, a damaged memory is not believed, a missing file is the user's to mend."""
    store, path = Store(tmp_path / "store"), tmp_path / "corpus.jsonl"
    path.write_bytes(b"one")
    first = store.hash_input(path)
    assert first == "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"  # sha256sum of "one"
    memo = next((tmp_path / "store" / "inputs").iterdir())
    memo.write_bytes(memo.read_bytes().replace(b"7692", b"7693"))
    assert store.hash_input(path) == first
    path.write_bytes(b"two")
    assert store.hash_input(path) != first
    with pytest.raises(UsageError, match=r"cannot read .*nowhere\.jsonl"):
        Store(tmp_path).hash_input(tmp_path / "nowhere.jsonl")


@dataclass(frozen=True, kw_only=True)
class Reads(Worked):
    """A stage that reads a file of the user's."""

    texts: Fingerprinted[str]


def _reading(store: Store, path: Path, work: Work) -> Reads:
    source = Source("texts", "lines-1", (path,), lambda: iter(path.read_text().splitlines()))
    return Reads(texts=InputHashes(store).take(source), work=work)


def _replaced(path: Path, text: str) -> None:
    """Put another file at a path by one rename, as a fetch or an editor does."""
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").rename(path)


def test_a_file_that_changes_before_or_while_it_is_read_is_not_stored(tmp_path: Path) -> None:
    """Neither what was read of the new bytes nor parts of it are stored; a new plan has another key."""
    path, store = tmp_path / "texts.txt", Store(tmp_path / "store")
    path.write_text("old")

    def replaces(space: Workspace) -> Mapping[str, Json]:
        _replaced(path, "new")
        space.parts.get("one", path.read_bytes)
        (space.out / "copy").write_bytes(path.read_bytes())
        return {}

    def copies(space: Workspace) -> Mapping[str, Json]:
        assert space.parts.done("one") is None
        (space.out / "copy").write_bytes(path.read_bytes())
        return {}

    stage = _reading(store, path, replaces)
    for _ in "while it is read", "before it is read":
        with pytest.raises(DataError) as caught:
            store.make(stage)
        assert caught.value.where == str(path)
        assert caught.value.found == "a file that changed while it was read"
        assert store.state(stage) == "missing"
        assert not any((tmp_path / "store" / "work").iterdir())
    later = _reading(store, path, copies)
    assert later.key != stage.key
    assert (store.make(later)[0].folder / "copy").read_text() == "new"
    _replaced(path, "old")
    assert (store.make(replace(stage, work=copies))[0].folder / "copy").read_text() == "old"


def test_a_file_that_changes_and_changes_back_while_it_is_read_is_not_stored(tmp_path: Path) -> None:
    """Equal bytes before and after are not enough: times of the file tell that somebody wrote to it."""
    path, store = tmp_path / "texts.txt", Store(tmp_path / "store")
    path.write_text("old")

    def sees_new_bytes(space: Workspace) -> Mapping[str, Json]:
        _replaced(path, "new")
        (space.out / "copy").write_bytes(path.read_bytes())
        _replaced(path, "old")
        return {}

    stage = _reading(store, path, sees_new_bytes)
    with pytest.raises(DataError, match="changed while it was read"):
        store.make(stage)
    assert store.state(stage) == "missing"


def test_parts_of_an_interrupted_stage_are_dropped_where_its_file_was_written_to(tmp_path: Path) -> None:
    """A kill comes before the file is looked at again, so parts count only for the file that they were made from."""
    path, store, parts = tmp_path / "texts.txt", Store(tmp_path / "store"), []
    path.write_text("old")

    def dies(space: Workspace) -> Mapping[str, Json]:
        space.parts.get("one", path.read_bytes)
        raise KeyboardInterrupt

    def resumes(space: Workspace) -> Mapping[str, Json]:
        parts.append(space.parts.done("one"))
        raise KeyboardInterrupt

    stage = _reading(store, path, dies)
    with pytest.raises(KeyboardInterrupt):
        store.make(stage)
    for is_replaced in False, True:
        if is_replaced:
            _replaced(path, "old")
        with pytest.raises(KeyboardInterrupt):
            store.make(replace(stage, work=resumes))
    assert parts[0] is not None
    assert parts[1] is None
