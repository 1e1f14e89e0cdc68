"""Housekeeping of a store: `verify` re-hashes everything, `gc` removes what no result rests on."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from bench.core.files import Fault, is_temporary, read_sealed
from bench.store.store import MANIFEST, Store

REMOVED = "removed"
"""Begins the name of what `remove` has moved aside."""
_DAY = 86_400


def verify(store: Store, seen: Callable[[], None]) -> list[Fault]:
    """Re-hash every artefact and remembered checksum; mark damaged artefacts so that the next run makes them again.

    `seen` is called after each artefact.

    Returns:
        Every file that is not as it was written.

    Raises:
        StoreError: a damaged artefact cannot be marked.
    """
    faults: list[Fault] = []
    for folder in store.artefacts():
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
    return faults


@dataclass(frozen=True)
class Garbage:
    """One thing that `gc` may remove."""

    path: Path
    reason: str  # why nobody needs it
    size: int  # bytes


def garbage(store: Store, used: Collection[str], older_than_days: float) -> Iterator[Garbage]:
    """Yield what can be removed: files of killed runs, and artefacts older than so many days that no result uses.

    Work in progress is never listed: a stage at work holds the lock of its key.

    `used` are keys of the artefacts that results rest on.
    """
    for folder in store.artefacts():
        if folder.name in used:
            continue
        age = (time.time() - _finished(folder)) / _DAY
        if age >= older_than_days:
            yield Garbage(folder, f"no result rests on it, made {age:.1f} days ago", _size(folder))
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
