"""The store: nothing half-written is found, nothing finished is made twice, nothing damaged goes unnoticed."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bench.errors import StoreError, UsageError
from bench.fsio import read_sealed, write_sealed
from bench.store import MANIFEST, Recipe, Store
from bench.types import Json
from bench.workspace import Workspace

RECIPE = Recipe("index", "a title", {"k1": 0.9, "inputs": {}})
Work = Callable[[Workspace], Mapping[str, Json]]


def _writes(text: str) -> Work:
    def work(space: Workspace) -> Mapping[str, Json]:
        (space.out / "sub").mkdir()
        (space.out / "sub" / "data.bin").write_bytes(text.encode())
        return {"length": len(text)}

    return work


def test_key_is_the_hash_of_the_identity_alone() -> None:
    """Title and provenance change nothing; stage and every identity value do."""
    assert Recipe("index", "another title", RECIPE.identity, {"host": "x"}).key == RECIPE.key
    assert Recipe("search", "a title", RECIPE.identity).key != RECIPE.key
    assert Recipe("index", "a title", {"k1": 0.91, "inputs": {}}).key != RECIPE.key
    assert len(RECIPE.key) == 32


def test_made_once_then_found(tmp_path: Path) -> None:
    """The second call runs nothing and finds the same bytes and facts."""
    store = Store(tmp_path)
    first, state = store.make(RECIPE, _writes("abc"))
    again, state_again = store.make(RECIPE, _writes("never written"))
    assert (state, state_again) == ("ran", "cached")
    assert again.facts == first.facts == {"length": 3}
    assert (again.folder / "sub" / "data.bin").read_bytes() == b"abc"
    assert not list((tmp_path / "work").iterdir())


def test_a_failed_stage_leaves_no_artefact_but_its_parts(tmp_path: Path) -> None:
    """What was finished inside a stage survives its failure, and the next attempt starts from an empty `out`."""
    store, seen = Store(tmp_path), []

    def fails(space: Workspace) -> Mapping[str, Json]:
        seen.append(space.parts.done("one"))
        assert not list(space.out.iterdir())
        space.parts.get("one", lambda: b"costly")
        (space.out / "half").write_bytes(b"half")
        if len(seen) == 1:
            raise RuntimeError("killed")
        return {}

    with pytest.raises(RuntimeError):
        store.make(RECIPE, fails)
    assert store.state(RECIPE) == "missing"
    store.make(RECIPE, fails)
    assert seen[0] is None
    assert seen[1] is not None


def test_a_damaged_part_is_made_again(tmp_path: Path) -> None:
    """A part counts as done only while its bytes match its checksum."""
    store, made = Store(tmp_path), []

    def work(space: Workspace) -> Mapping[str, Json]:
        path = space.parts.get("one", lambda: made.append(1) or b"costly")  # type: ignore[func-returns-value]
        if len(made) == 1:
            path.write_bytes(b"cosTly")
            raise RuntimeError("killed")
        return {"part": path.read_text()}

    with pytest.raises(RuntimeError):
        store.make(RECIPE, work)
    artefact, _ = store.make(RECIPE, work)
    assert artefact.facts == {"part": "costly"}
    assert len(made) == 2


@pytest.mark.parametrize("name", [MANIFEST, "sub/data.bin"])
def test_any_flipped_byte_is_found_and_the_artefact_made_again(tmp_path: Path, name: str) -> None:
    """Every single byte of the data and of the manifest is guarded."""
    notices: list[str] = []
    store = Store(tmp_path, notices.append)
    artefact, _ = store.make(RECIPE, _writes("abc"))
    good = (artefact.folder / name).read_bytes()
    for place in range(len(good)):
        damaged = bytearray(good)
        damaged[place] ^= 1
        (artefact.folder / name).write_bytes(damaged)
        assert store.state(RECIPE) == "corrupt", f"byte {place} of {name}"
    _, state = store.make(RECIPE, _writes("abc"))
    assert state == "ran"
    assert store.state(RECIPE) == "cached"
    assert name in notices[0]


def test_damage_that_keeps_size_and_time_is_found_by_a_thorough_look(tmp_path: Path) -> None:
    """Rot below the file system shows in the hash only; the mark then has the next run make it again."""
    store = Store(tmp_path)
    artefact, _ = store.make(RECIPE, _writes("abc"))
    target = artefact.folder / "sub" / "data.bin"
    target.write_bytes(b"abd")
    content = read_sealed(artefact.folder / MANIFEST)
    status = target.stat()  # pretend that the times are those of the commit
    content["files"]["sub/data.bin"]["stamp"] = [status.st_size, status.st_mtime_ns, status.st_ctime_ns]
    write_sealed(artefact.folder / MANIFEST, content)
    assert store.state(RECIPE) == "cached"
    faults = store.faults(artefact.folder, thorough=True)
    assert [fault.path for fault in faults] == [target]
    store.mark(artefact.folder, faults)
    assert store.state(RECIPE) == "corrupt"
    assert store.make(RECIPE, _writes("abc"))[1] == "ran"
    assert not store.faults(artefact.folder, thorough=True)


def test_a_missing_and_an_added_file_are_faults(tmp_path: Path) -> None:
    """The manifest lists exactly what is there."""
    store = Store(tmp_path)
    artefact, _ = store.make(RECIPE, _writes("abc"))
    (artefact.folder / "stranger").write_bytes(b"")
    assert [fault.found for fault in store.faults(artefact.folder)] == ["a file that the stage did not write"]
    (artefact.folder / "stranger").unlink()
    (artefact.folder / "sub" / "data.bin").unlink()
    assert [fault.found for fault in store.faults(artefact.folder)] == ["no such file"]


def test_a_copied_store_is_hashed_once_and_then_trusted(tmp_path: Path) -> None:
    """New file times alone are no damage, and are remembered."""
    store = Store(tmp_path)
    artefact, _ = store.make(RECIPE, _writes("abc"))
    os.utime(artefact.folder / "sub" / "data.bin", (1, 1))
    before = (artefact.folder / MANIFEST).read_bytes()
    assert store.state(RECIPE) == "cached"
    after = (artefact.folder / MANIFEST).read_bytes()
    assert before != after
    assert store.state(RECIPE) == "cached"
    assert (artefact.folder / MANIFEST).read_bytes() == after


def test_a_full_disk_is_a_sentence(tmp_path: Path) -> None:
    """The message says what happened, that finished stages are kept, and what to do."""

    def full(space: Workspace) -> Mapping[str, Json]:
        raise OSError(errno.ENOSPC, "No space left on device", str(space.out / "x"))

    with pytest.raises(StoreError, match=r"the disk is full .*finished stages are kept: mend that, then type the same"):
        Store(tmp_path).make(RECIPE, full)


def test_input_hash_follows_the_bytes(tmp_path: Path) -> None:
    """A changed file has a new hash, an unchanged one is not read again, a damaged memory is not believed."""
    store, path = Store(tmp_path / "store"), tmp_path / "corpus.jsonl"
    path.write_bytes(b"one")
    first = store.hash_input(path)
    assert first == "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"  # sha256sum of "one"
    memo = next((tmp_path / "store" / "inputs").iterdir())
    memo.write_bytes(memo.read_bytes().replace(b"7692", b"7693"))
    assert store.hash_input(path) == first
    path.write_bytes(b"two")
    assert store.hash_input(path) != first


def test_a_missing_input_is_the_users_to_mend(tmp_path: Path) -> None:
    """Exit code 2, and the path."""
    with pytest.raises(UsageError, match=r"cannot read .*nowhere\.jsonl"):
        Store(tmp_path).hash_input(tmp_path / "nowhere.jsonl")
