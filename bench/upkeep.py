"""Housekeeping of a store: `verify` re-hashes everything, `gc` removes what no result rests on."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from bench import results
from bench.fsio import is_temporary, read_sealed
from bench.store import MANIFEST, Fault, Store

REMOVED = "removed"
"""Begins the name of what `remove` has moved aside."""
_DAY = 86_400


@dataclass(frozen=True)
class Verdict:
    """What `verify` found.

    Args:
        artefacts: how many were re-hashed.
        results: how many result files with their bundles were re-hashed.
        faults: every file that is not as it was written.
    """

    artefacts: int
    results: int
    faults: tuple[Fault, ...]


def verify(store: Store, results_folder: Path, seen: Callable[[], None]) -> Verdict:
    """Re-hash every artefact, remembered checksum and result; mark damaged artefacts so that the next run remakes them.

    Args:
        store: what is checked.
        results_folder: may be missing.
        seen: called after each thing that was checked.

    Raises:
        StoreError: a damaged artefact cannot be marked.
    """
    faults: list[Fault] = []
    folders = store.artefacts()
    for folder in folders:
        found = store.faults(folder, thorough=True)
        if found:
            store.mark(folder, found)
            faults += found
        seen()
    for memo in sorted((store.root / "inputs").glob("*.json")):
        try:
            read_sealed(memo)
        except (OSError, ValueError) as error:
            faults.append(Fault(memo, f"a remembered checksum that cannot be trusted: {error}"))
            memo.unlink(missing_ok=True)  # only a memory: the file is hashed again
    files = results.result_files(results_folder)
    for path in files:
        faults += results.faults(path)
        seen()
    return Verdict(len(folders), len(files), tuple(faults))


@dataclass(frozen=True)
class Garbage:
    """One thing that `gc` may remove.

    Args:
        path: a folder or file.
        reason: why nobody needs it.
        size: bytes.
    """

    path: Path
    reason: str
    size: int


def garbage(store: Store, results_folder: Path, older_than_days: float) -> Iterator[Garbage]:
    """Find what can go: leavings of killed runs, and artefacts older than so many days that no result rests on.

    Work in progress is never listed: a stage at work holds the lock of its key.
    """
    used = results.keys(results_folder)
    for folder in store.artefacts():
        if folder.name in used:
            continue
        age = (time.time() - _finished(folder)) / _DAY
        if age >= older_than_days:
            yield Garbage(folder, f"no result in {results_folder} rests on it, made {age:.1f} days ago", _size(folder))
    for scratch in sorted((store.root / "work").glob("*")):
        age = (time.time() - scratch.stat().st_mtime) / _DAY
        stage, _, key = scratch.name.rpartition("-")
        finished = stage == REMOVED or (store.root / "artefacts" / stage / key).exists()
        if (finished or age >= older_than_days) and _idle(store, key):
            reason = "leavings of a stage that is finished" if finished else f"an unfinished stage, {age:.1f} days old"
            yield Garbage(scratch, reason, _size(scratch))
    for litter in sorted(filter(is_temporary, store.root.rglob("*"))):
        if litter.exists() and (time.time() - litter.stat().st_mtime) / _DAY >= min(older_than_days, 1):
            yield Garbage(litter, "a temporary file of a killed run", litter.stat().st_size)


def remove(store: Store, item: Garbage) -> None:
    """Remove one piece of garbage; a kill half-way leaves no half artefact. Raises `OSError` if the system refuses."""
    if not item.path.is_dir():
        item.path.unlink(missing_ok=True)
        return
    trash = store.root / "work" / f"{REMOVED}-{item.path.name}"
    trash.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(trash, ignore_errors=True)
    item.path.rename(trash)
    shutil.rmtree(trash)


def _idle(store: Store, key: str) -> bool:
    """Nobody works on this key right now."""
    lock = FileLock(store.root / "locks" / f"{key}.lock")
    try:
        with lock.acquire(timeout=0):
            return True
    except Timeout:
        return False


def _finished(folder: Path) -> float:
    """Seconds since the epoch when an artefact was committed."""
    manifest = folder / MANIFEST
    return (manifest if manifest.exists() else folder).stat().st_mtime


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
