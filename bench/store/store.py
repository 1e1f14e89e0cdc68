"""The folder of content-addressed stage outputs: keys, atomic commits, checksums, locks, provenance.

Layout under the root (format 2)::

    artefacts/STAGE/KEY/manifest.json   sealed: identity, provenance, metadata, sha256 of every file
    artefacts/STAGE/KEY/…               what the stage wrote
    work/STAGE-KEY/parts/…              finished pieces of a stage that is not finished; survive a kill
    work/STAGE-KEY/stamps.json          size and times of the files of the user's that these were made from
    inputs/HASH.json                    sealed: sha256 of a file of the user's, by path, size and time
    versions/HASH.json                  sealed: the version in which a plugin's method last ran
    locks/…                             one lock a key, so that two runs at once do the work once
    leases/…                            what runs at work rest on (`bench.store.leases`); `gc` spares it
"""

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.core.errors import DataError, StoreError, UsageError
from bench.core.files import (
    Fault,
    clear_abandoned,
    digest,
    explain,
    fsync_folder,
    is_temporary,
    read_sealed,
    sha256_file,
    utc_now,
    write_bytes,
    write_sealed,
)
from bench.core.locks import locked
from bench.core.workspace import Advance, Log, Parts, Workspace, noop
from bench.store.stage import KEY_DIGITS, Stage

FORMAT = 2
"""Of the store; every manifest names it."""
MANIFEST = "manifest.json"
MARK = "CORRUPT"
"""A file that `bench verify` leaves in an artefact with a fault, so that the next run makes it again."""
_STAMPS = "stamps.json"
"""Next to the parts of a stage that is not finished: size and times of the files that they were made from."""
_REMEMBERED = ("files", "metadata", "seconds")
"""What a store remembers of a manifest that it has proven."""


@dataclass(frozen=True)
class Artefact:
    """A finished stage output whose bytes are as they were written."""

    folder: Path  # where its files lie; nobody writes there any more
    metadata: Mapping[str, Any]  # what the stage found worth telling
    seconds: float  # of the wall clock, of the attempt that finished it


def _stamp(path: Path) -> list[int]:
    """What changes when somebody writes to a file: size, modification time and change time (nanoseconds)."""
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _stamps_of_parts(scratch: Path) -> dict[str, list[int]]:
    """Return the stamps of the files that parts of an interrupted stage were made from; none where it read none."""
    try:
        stamps: dict[str, list[int]] = json.loads((scratch / _STAMPS).read_bytes())
    except (OSError, ValueError):
        return {}
    return stamps


def _changed(path: Path) -> DataError:
    """Return the error for a file of the user's that was replaced or written to after its checksum was taken."""
    hint = "nothing was stored of it; type the same command again when nobody writes to the file"
    return DataError(path, None, "a file that changed while it was read", "the bytes that the run began with", hint)


def _files(folder: Path) -> list[Path]:
    """Every file under a folder but the manifest and unfinished temporaries, in a fixed order."""
    inside = (Path(parent, name) for parent, _, names in os.walk(folder) for name in names)
    paths = (path for path in inside if path.is_file() and not is_temporary(path))
    return sorted(path for path in paths if path not in (folder / MANIFEST, folder / MARK))


def _require_format(root: Path) -> None:
    """Refuse a store of another version, by the first manifest that can be read; one version made all of them.

    Raises:
        StoreError: the format is older or newer.
    """
    for manifest in root.glob(f"artefacts/*/*/{MANIFEST}"):
        try:
            number = json.loads(manifest.read_bytes())["format"]
        except (OSError, ValueError, KeyError, TypeError):
            continue  # `bench verify` names it
        if number == FORMAT:
            return
        if isinstance(number, int) and number < FORMAT:
            hint = "a version before 0.2.0 made it: name another folder by --store, or use that version"
        else:
            hint = "a newer version made it: type `pip install --upgrade retrieval-bench`"
        raise StoreError(where=root, found=f"a store of format {number!r:.20}", expected=f"format {FORMAT}", hint=hint)


_STARTED_KINDS: set[str] = set()
"""Kinds of work done in this process: the first of each loads libraries."""


class Store:
    """Finds, makes and checks artefacts, for several processes at once; `notice` gets sentences for people."""

    def __init__(self, root: Path, notice: Callable[[str], None] = lambda _: None) -> None:
        """Remember the place; write nothing. Raises `StoreError` for a store of another format."""
        _require_format(root)
        self.root, self.notice = root, notice
        self._proven: dict[Path, tuple[list[int], dict[str, Any]]] = {}  # manifest → its stamp, its `_REMEMBERED`

    def folder(self, stage: Stage) -> Path:
        """Return where a stage's artefact lies, or would lie."""
        return self.root / "artefacts" / stage.name / stage.key

    def state(self, stage: Stage) -> str:
        """Return `cached`, `missing` or `corrupt`; rehashes only files whose size or times changed."""
        folder = self.folder(stage)
        if not folder.exists():
            return "missing"
        if not self.faults(folder):
            return "cached"
        return "corrupt" if folder.exists() else "missing"  # another process may have removed it meanwhile

    def open(self, stage: Stage) -> Artefact | None:
        """Return the artefact if it is there and sound, else None."""
        if self.state(stage) != "cached":
            return None
        folder = self.folder(stage)
        manifest = self._proven[folder / MANIFEST][1]
        return Artefact(folder, manifest["metadata"], manifest["seconds"])

    def faults(self, folder: Path, thorough: bool = False) -> list[Fault]:
        """Compare an artefact's files with its manifest (once a process); a thorough comparison rehashes all."""
        manifest = folder / MANIFEST
        try:
            if (folder / MARK).exists() and not thorough:
                return [Fault(folder, f"marked to be made again: {(folder / MARK).read_text(errors='replace')}")]
            stamp, (proven, remembered) = _stamp(manifest), self._proven.get(manifest, ([], {}))
            if thorough or stamp != proven:
                clear_abandoned(folder)
                content = read_sealed(manifest)
                remembered = {name: content[name] for name in _REMEMBERED}
                self._proven[manifest] = stamp, remembered
        except (OSError, ValueError) as error:
            return [Fault(manifest, f"a manifest that cannot be trusted: {error}")]
        listed = remembered["files"]
        present = {path.relative_to(folder).as_posix(): path for path in _files(folder)}
        faults = [Fault(folder / name, "no such file") for name in listed if name not in present]
        faults += [
            Fault(path, "a file that the stage did not write") for name, path in present.items() if name not in listed
        ]
        restamp = False
        for name, entry in listed.items():
            path = present.get(name)
            try:
                if path is None or (not thorough and _stamp(path) == entry["stamp"]):
                    continue
                actual, stamp = sha256_file(path), _stamp(path)
            except FileNotFoundError:  # `bench gc` of another process moves a folder aside
                faults.append(Fault(folder / name, "no such file"))
                continue
            if actual != entry["sha256"]:
                faults.append(Fault(path, f"sha256 {actual[:12]}…, expected {entry['sha256'][:12]}…"))
            elif stamp != entry["stamp"]:
                entry["stamp"], restamp = stamp, True
        if restamp and not faults and os.access(folder, os.W_OK):  # a copied store: hash once, not on every run
            with self.writing(f"renewing {manifest}"):
                write_sealed(manifest, {**read_sealed(manifest), "files": listed})
        return faults

    def provenance(self, stage: Stage) -> Mapping[str, Any]:
        """Return what was kept with a stage's artefact besides its identity; nothing where it is not sound."""
        if self.state(stage) != "cached":
            return {}
        try:
            provenance: Mapping[str, Any] = read_sealed(self.folder(stage) / MANIFEST)["provenance"]
        except FileNotFoundError:  # `bench gc` of another process took it away
            return {}
        return provenance

    def mark(self, folder: Path, faults: list[Fault]) -> None:
        """Have the next run make an artefact again, which stays until the new one is whole; outlives a kill."""
        with self.writing(f"marking {folder} as corrupt"):
            write_bytes(folder / MARK, "\n".join(f"{fault.path.name}: {fault.found}" for fault in faults).encode())

    def make(self, stage: Stage, advance: Advance = noop, log: Log = noop) -> tuple[Artefact, str]:
        """Return the artefact and `cached` or `ran`; make it under a lock if it is missing or corrupt.

        The artefacts of its inputs are there, and everything finished before is kept.

        Raises:
            StoreError: the store cannot be written (full disk, read-only).
            DataError: a file that the stage reads is not the one whose checksum is in its key, or changed under it.
        """
        if ready := self.open(stage):
            return ready, "cached"
        with self.writing(f"making {stage.name} of {stage.title}"), self.lock(stage.key, stage.title):
            if ready := self.open(stage):
                return ready, "cached"
            for fault in self.faults(self.folder(stage)) if self.folder(stage).exists() else []:
                self.notice(f"{fault.path}: found {fault.found}; making it again")
            return self._build(stage, advance, log), "ran"

    def _build(self, stage: Stage, advance: Advance, log: Log) -> Artefact:
        folders = {name: self.folder(dependency) for name, dependency in stage.inputs.items()}
        scratch = self.root / "work" / f"{stage.name}-{stage.key}"
        stamps = self._stamps(stage)
        if stamps != _stamps_of_parts(scratch):
            shutil.rmtree(scratch, ignore_errors=True)
        out = scratch / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir(parents=True)
        if stamps:
            write_bytes(scratch / _STAMPS, json.dumps(stamps).encode())
        provenance, kind = stage.provenance, stage.cost.kind
        if any((scratch / "parts").glob("*")):  # the seconds are not those of all the work
            provenance = {**provenance, "resumed": True}
        start = time.monotonic()
        metadata = stage.run(Workspace(out, Parts(scratch / "parts"), advance, log, self.notice), folders)
        seconds = time.monotonic() - start
        for name, stamp in stamps.items():
            if _stamp(Path(name)) != stamp:
                shutil.rmtree(scratch)
                raise _changed(Path(name))
        files = _files(out)
        for path in files:
            with path.open("rb") as stream:
                os.fsync(stream.fileno())
        manifest = {
            "format": FORMAT,
            "stage": stage.name,
            "title": stage.title,
            "key": stage.key,
            "identity": stage.identity(),
            "provenance": {**provenance, "finished": utc_now(), "first": kind not in _STARTED_KINDS},
            "metadata": metadata,
            "seconds": round(seconds, 3),
            "files": {
                path.relative_to(out).as_posix(): {"sha256": sha256_file(path), "stamp": _stamp(path)} for path in files
            },
        }
        _STARTED_KINDS.add(kind)
        write_sealed(out / MANIFEST, manifest)
        folder = self.folder(stage)
        if folder.exists():  # corrupt, or it would have been used
            shutil.rmtree(scratch / "old", ignore_errors=True)
            folder.rename(scratch / "old")
        folder.parent.mkdir(parents=True, exist_ok=True)
        out.rename(folder)
        fsync_folder(folder.parent)
        shutil.rmtree(scratch)
        proven = read_sealed(folder / MANIFEST)
        return Artefact(folder, proven["metadata"], proven["seconds"])

    def _stamps(self, stage: Stage) -> dict[str, list[int]]:
        """Return the stamps of the files that a stage is about to read. Raises `DataError` for one with other bytes."""
        stamps = {}
        for path, checksum in stage.files.items():
            stamps[str(path)] = _stamp(path)
            if self.hash_input(path) != checksum:
                raise _changed(path)
        return stamps

    def lock_path(self, name: str) -> Path:
        """Return where the lock of a key lies."""
        return self.root / "locks" / f"{name}.lock"

    def lock(self, name: str, title: str) -> AbstractContextManager[None]:
        """Hold the lock of a key; say so when another run has it."""
        return locked(self.lock_path(name), self.notice, f"another run is at work on {title}; waiting for it")

    @contextmanager
    def writing(self, what: str) -> Iterator[None]:
        """Turn a failure of the file system into a sentence."""
        try:
            yield
        except OSError as error:
            hint = "finished stages are kept: fix that, then type the same command again"
            raise StoreError(f"stopped while {what}: {explain(error)}; {hint}") from error

    def hash_input(self, path: Path) -> str:
        """Sha256 of a user's file, remembered by path, size and times; `UsageError` if it cannot be read."""
        memo = self.root / "inputs" / f"{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:KEY_DIGITS]}.json"
        try:
            stamp = _stamp(path)
            if memo.exists():
                with suppress(OSError, ValueError):  # a damaged memo: the file is hashed again
                    record = read_sealed(memo)
                    if record["stamp"] == stamp:
                        return str(record["sha256"])
            value = sha256_file(path)
        except OSError as error:
            raise UsageError(f"cannot read {path}: {explain(error)}") from error
        with self.writing(f"remembering the checksum of {path.name}"):
            write_sealed(memo, {"path": str(path.resolve()), "stamp": stamp, "sha256": value})
        return value

    def last_version(self, method: str) -> str | None:
        """Return the version in which a method last ran on this store; None where it never did."""
        try:
            return str(read_sealed(self._version_file(method))["version"])
        except (OSError, ValueError, KeyError):
            return None

    def remember_version(self, method: str, version: str) -> None:
        """Remember in which version a method runs. Raises `StoreError` where the store cannot be written."""
        if self.last_version(method) != version:
            with self.writing(f"remembering the version of {method}"):
                write_sealed(self._version_file(method), {"method": method, "version": version})

    def _version_file(self, method: str) -> Path:
        return self.root / "versions" / f"{digest(method)[:KEY_DIGITS]}.json"

    def artefacts(self) -> list[Path]:
        """Every artefact folder, in a fixed order."""
        return sorted(path for path in (self.root / "artefacts").glob("*/*") if path.is_dir())
