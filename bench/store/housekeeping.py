"""Housekeeping of a store: `verify` re-hashes everything, `gc` removes what no result rests on."""

import os
import shutil
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from filelock import Timeout

from bench.core.files import Fault, is_abandoned, is_temporary, read_sealed
from bench.core.locks import lock_file
from bench.store.leases import leased_keys
from bench.store.store import MANIFEST, Store

REMOVED = "removed"
"""Begins the name of what `remove` has moved aside."""
_DAY = 86_400


def verify(store: Store, advance: Callable[[], None]) -> list[Fault]:
    """Re-hash all artefacts and remembered checksums; return faulty files, and mark artefacts to be made again.

    `seen` is called after each artefact. Raises `StoreError` if one cannot be marked.
    """
    faults: list[Fault] = []
    for folder in store.artefacts():
        if artefact_faults := store.faults(folder, thorough=True):
            store.mark(folder, artefact_faults)
            faults += artefact_faults
        advance()
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
    """Yield what can be removed: files of killed runs, and old artefacts of no lease and no result (`used`)."""
    with leased_keys(store) as leased:
        pass
    for folder in store.artefacts():
        age = _age(folder / MANIFEST if (folder / MANIFEST).exists() else folder)
        if folder.name not in used and folder.name not in leased and age >= older_than_days:
            yield Garbage(folder, f"no result rests on it, made {age:.1f} days ago", _size(folder))
    for scratch in sorted((store.root / "work").glob("*")):
        age, key = _age(scratch), _key(scratch)
        finished = _is_finished(store, scratch)
        if (finished or (age >= older_than_days and key not in leased)) and _idle(store, key):
            reason = "what a finished stage left behind" if finished else f"an unfinished stage, {age:.1f} days old"
            yield Garbage(scratch, reason, _size(scratch))
    for litter in sorted(filter(is_temporary, _files(store.root))):
        if is_abandoned(litter) or _age(litter) >= 1:
            yield Garbage(litter, "a temporary file of a killed run", _size(litter))


def remove(store: Store, items: Iterable[Garbage], used: Callable[[], Collection[str]] = frozenset) -> list[Garbage]:
    """Remove garbage that nobody has come to need since it was listed; return what went. Raises `OSError`.

    `used` is asked again, after the leases: a run gives its lease back once its result is there.
    """
    listed, removed = list(items), []  # before the lock, which listing takes too
    with leased_keys(store) as leased:
        needed_keys = {*leased, *used()}
        for item in listed:
            folder = item.path.is_dir()
            if not folder:
                item.path.unlink(missing_ok=True)
            if not folder or _moved_aside(store, item.path, needed_keys):
                removed.append(item)
    for item in removed:
        shutil.rmtree(_trash(store, item.path), ignore_errors=True)
    return removed


def _moved_aside(store: Store, folder: Path, needed_keys: Collection[str]) -> bool:
    """Move a folder to the trash unless somebody needs it or works in it; return whether it is there."""
    trash = _trash(store, folder)
    with suppress(Timeout), lock_file(store.lock_path(_key(folder))).acquire(timeout=0):
        if not folder.exists() or (_key(folder) in needed_keys and not _is_finished(store, folder)):
            return False
        if folder != trash:
            trash.parent.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(trash, ignore_errors=True)
            folder.rename(trash)
        return True
    return False


def _trash(store: Store, folder: Path) -> Path:
    return store.root / "work" / f"{REMOVED}-{_key(folder)}"


def _key(folder: Path) -> str:
    """Return the key of an artefact's folder, or of one under `work`."""
    return folder.name.rpartition("-")[2]


def tidy(store: Store) -> None:
    """Clear what killed runs have left behind: scratch folders of finished stages, temporary files, void leases."""
    with suppress(OSError):  # a store that cannot be written has to stay as it is
        with leased_keys(store):
            pass
        for scratch in (store.root / "work").glob("*"):
            if _is_finished(store, scratch):
                remove(store, [Garbage(scratch, "", 0)])
        for litter in filter(is_temporary, (store.root / "inputs").glob(".*")):
            if is_abandoned(litter) or _age(litter) >= 1:
                litter.unlink(missing_ok=True)


def _is_finished(store: Store, scratch: Path) -> bool:
    """Return whether a folder under `work` is of no use: its stage is finished, or it was removed already."""
    stage, _, key = scratch.name.rpartition("-")
    return scratch.parent.name == "work" and (stage == REMOVED or (store.root / "artefacts" / stage / key).exists())


def _idle(store: Store, key: str) -> bool:
    """Return whether nobody works on this key right now."""
    with suppress(Timeout), lock_file(store.lock_path(key)).acquire(timeout=0):
        return True
    return False


def _age(path: Path) -> float:
    """Return how many days ago a file or folder was written; 0 where it is gone by now."""
    try:
        return (time.time() - path.stat().st_mtime) / _DAY
    except FileNotFoundError:
        return 0.0


def _size(place: Path) -> int:
    """Return the bytes of a file, or of all files below a folder that are still there."""
    total = 0
    for path in (place, *_files(place)):
        with suppress(FileNotFoundError):
            total += path.stat().st_size if path.is_file() else 0
    return total


def _files(folder: Path) -> Iterator[Path]:
    """Yield the files below a folder, passing over folders that go while it is walked."""
    for place, _, names in os.walk(folder):
        yield from (Path(place) / name for name in names)
