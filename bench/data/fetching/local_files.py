"""Local copies of a suite's official files: found by name and size, or examined byte by byte. No network."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Literal

from bench.core.errors import BenchError, PluginError, UsageError
from bench.core.messages import bare, unknown
from bench.core.publications import Release
from bench.core.workspace import Advance, noop
from bench.data.fetching import official, records
from bench.data.fetching.hub import FORM, SCHEME, hub_file
from bench.data.fetching.records import Record
from bench.types import DataRequest, Suite, Task

State = Literal["present", "packed", "partial", "damaged", "missing"]
"""`packed`: the archive is there and was not unpacked. `damaged`: there, but not as it was published or fetched."""

DEV = "@dev"
BY_HUB = "sha256 by the hub"
"""A file was compared with what the hub said of it before it came."""

_ARCHIVE = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
_COMPRESSED = (".gz", ".bz2", ".xz")
_DIGITS = {"sha256": 64, "md5": 32}


@dataclass(frozen=True)
class LocalFile:
    """One official file and what is there of it."""

    release: Release
    root: Path  # folder of data in which it is looked for, or into which it would be fetched
    state: State
    size: int = 0  # bytes that are there, of an unpacked archive those of its files
    reason: str = ""  # what is wrong, or why nothing is there; else empty
    # compared with `sha256`, `md5`, `sha256 by the hub`, `sha256 when fetched` or `size`; empty where nothing is known
    basis: str = ""
    local: bool = False  # incomplete, and unpacking what is here is all that is left to do

    @property
    def path(self) -> Path:
        """Where the file lies, or would lie."""
        return self.root / self.release.path

    @property
    def complete(self) -> bool:
        """Nothing is to be done."""
        return self.state == "present"

    @property
    def by_hand(self) -> bool:
        """Only a person can get it."""
        return not (self.complete or self.local or self.release.urls)


def releases(suite: Suite) -> tuple[Release, ...]:
    """Return a suite's official files. Raises `PluginError` for an impossible path or checksum, or a path twice."""
    releases = tuple(suite.releases()) if suite.releases else ()
    for release in releases:
        if fault := _fault(release):
            raise PluginError(f"suite {suite.name} lists {release.path!r} with {fault}; fix its releases()")
    paths = [release.path for release in releases]
    repeated = next((path for path in paths if paths.count(path) > 1), None) if len(set(paths)) < len(paths) else None
    if repeated:
        raise PluginError(f"suite {suite.name} lists {repeated!r} twice; fix its releases()")
    return releases


def asked_tasks(suite: Suite, names: Sequence[str]) -> tuple[str, ...]:
    """Return the tasks that were asked for, all of them if none was named; dev questions end with `@dev`.

    Names are as typed: with or without the suite's prefix; one may name all below it, or a group of files that no task
    needs (`pairs`). Raises `UsageError` where the suite has no official data, or no task or group of such a name.
    """
    if "official" not in suite.data:
        raise UsageError(f"suite {suite.name} has no official data in this release; it has: {', '.join(suite.data)}")
    all_tasks, dev = suite.task_names("official"), _dev_names(suite)
    groups = dict.fromkeys(group for release in releases(suite) for group in release.tasks)
    selected: dict[str, None] = {}
    for name in names:
        task_name = bare(name).removeprefix(f"{suite.name}/")
        matching = [task for task in all_tasks if task == task_name or task.startswith(f"{task_name}/")]
        matching += [task_name] if task_name.removesuffix(DEV) in dev and task_name.endswith(DEV) else []
        matching = matching or [group for group in groups if group == task_name]
        if not matching:
            more = [group for group in groups if not _is_group_of_tasks(group, all_tasks)]
            raise UsageError(unknown(f"task of {suite.name}", name, (*all_tasks, *more)))
        selected |= dict.fromkeys(matching)
    return tuple(selected) if names else all_tasks


def local_files(suite: Suite, places: Sequence[Path], tasks: Sequence[str] = ()) -> tuple[LocalFile, ...]:
    """Look for a suite's official files by name and size, under the first place that has their folder.

    `tasks` are as `asked_tasks` returns them: files that none of them needs are left out. Empty for all tasks.
    """
    files, task_names = [], {*suite.task_names("official")}

    def is_task(name: str) -> bool:
        return name.removesuffix(DEV) in task_names

    for release in releases(suite):
        needed_by_all = not release.tasks and (not tasks or any(map(is_task, tasks)))
        if not (needed_by_all or _is_needed(release, tasks or suite.task_names("official"))):
            continue
        folder = PurePosixPath(release.unpack or release.path).parts[0]
        root = official.root_of(folder, places)
        loads = _loads(suite, root, folder)

        def laid_out(release: Release = release, loads: Callable[[str], bool] = loads) -> bool:
            names = suite.task_names("official")
            needing = [task for task in names if not release.tasks or _is_needed(release, [task])]
            return bool(needing) and all(map(loads, needing))

        files.append(look(release, root, laid_out))
    return tuple(files)


def look(release: Release, root: Path, laid_out: Callable[[], bool] = lambda: False) -> LocalFile:
    """Look for one file under the folder of data, by name and size.

    `laid_out` returns whether all that an archive holds is there: people unpack archives by hand and remove them.
    """
    target, record = root / release.path, records.recall(root, release.path)
    if release.unpack and record and record.files is not None and record.folder == release.unpack:
        fault = _unpacked_fault(root, record)
        size = sum(size for size, *_ in record.files.values())
        archive = target.is_file() and release.size in (None, target.stat().st_size)
        return LocalFile(release, root, "damaged" if fault else "present", size, fault, local=bool(fault) and archive)
    if target.is_file():
        size = target.stat().st_size
        expected = release.size if release.size is not None else record.size if record else None
        if expected is not None and size != expected:
            return LocalFile(release, root, "damaged", size, f"{size:,} bytes, expected {expected:,}", "size")
        basis = "" if expected is None else "size"
        if release.unpack and not laid_out():
            return LocalFile(release, root, "packed", size, "not unpacked yet", basis, local=True)
        return LocalFile(release, root, "present", size, "", basis)
    part = records.partial_file(root, release.path)
    if part.is_file():
        return LocalFile(release, root, "partial", part.stat().st_size, "its fetching was interrupted")
    plain = target.with_suffix("") if release.path.endswith(_COMPRESSED) else target
    if plain.is_file() or (release.path.endswith(_ARCHIVE) and laid_out()):
        return LocalFile(release, root, "present", 0, "its files are there, unpacked")
    return LocalFile(release, root, "missing", 0, "no such file")


def examine(file: LocalFile, advance: Advance = noop) -> LocalFile:
    """Compare checksums with those published, or of the day it came. Raises `OSError`; `advance` gets bytes read."""
    if file.state not in ("present", "packed"):
        return file
    root, release = file.root, file.release
    record, basis = records.recall(root, release.path), file.basis
    if file.path.is_file():
        digests = records.digests(file.path, advance)
        published = {name: getattr(release, name).lower() for name in _DIGITS if getattr(release, name)}
        expected_digests = ({"sha256": record.sha256} if record else {}) | published
        for name, expected in expected_digests.items():
            value = getattr(digests, name)
            if value != expected:
                reason = f"{name} {value}, expected {expected}"
                return replace(file, state="damaged", reason=reason, basis=name, local=False)
        recorded = BY_HUB if record and record.by_hub else "sha256 when fetched" if record else basis
        basis = next(iter(published), recorded)
    if release.unpack and record and record.files is not None:
        for name, (_, expected, _) in record.files.items():
            path = root / record.folder / name
            value = records.digests(path, advance).sha256
            if value != expected:
                reason = f"{path}: sha256 {value}, expected {expected}"
                basis, local = "sha256 when unpacked", file.path.is_file()
                return replace(file, state="damaged", reason=reason, basis=basis, local=local)
        basis = basis or "sha256 when unpacked"
    return replace(file, basis=basis)


def untouched(file: LocalFile) -> bool:
    """Return whether a file came by us, and neither it nor what was unpacked of it was written to since."""
    record = records.recall(file.root, file.release.path)
    if record is None or (file.path.is_file() and records.stamp(file.path) != record.stamp):
        return False
    folder = file.root / record.folder
    return all(records.stamp(folder / name) == (size, time) for name, (size, _, time) in (record.files or {}).items())


def is_worth_reading(file: LocalFile, *, reread: bool) -> bool:
    """Return whether `examine` could learn more of a file than its size.

    Args:
        file: as `look` returns it.
        reread: read also what was fetched by us and has not changed since.
    """
    release = file.release
    if file.state not in ("present", "packed") or reread:
        return file.state in ("present", "packed")
    has_digest = bool(release.sha256 or release.md5 or records.recall(file.root, release.path))
    return has_digest and not untouched(file)


def bytes_to_fetch(files: Iterable[LocalFile]) -> dict[str, int]:
    """Return how much has to be fetched: bytes, and the number of files whose size nobody published."""
    remote = [file for file in files if not (file.complete or file.local)]
    return {
        "bytes_left": sum(max(0, (file.release.size or 0) - file.size * (file.state == "partial")) for file in remote),
        "files_left_of_unknown_size": sum(file.release.size is None for file in remote),
    }


def unread(file: LocalFile) -> int:
    """Bytes that `examine` would read."""
    return (file.path.stat().st_size if file.path.is_file() else 0) + (
        file.size if file.release.unpack and file.state == "present" else 0
    )


def missing_file(task: Task) -> Path | None:
    """Return the first file of `Subset.sources` that is not there; None where all are, so that the task can run."""
    paths = (path for subset in task.subsets for source in subset.sources for path in source.files)
    return next((path for path in paths if not path.exists()), None)


def _loads(suite: Suite, root: Path, folder: str) -> Callable[[str], bool]:
    """Return a check of whether a task's files, dev questions included, are in a folder of data."""
    request = DataRequest("official", root, offline=True)
    dev = _dev_names(suite)

    @cache
    def loads(task: str) -> bool:
        if not (root / folder).is_dir():
            return False
        try:
            loaded = [suite.load(task, request), *([suite.dev(task, request)] if suite.dev and task in dev else ())]
        except BenchError:
            return False
        return not any(map(missing_file, loaded))

    return loads


def _dev_names(suite: Suite) -> tuple[str, ...]:
    if suite.dev is None:
        return ()
    return (suite.dev_names or suite.task_names)("official")


def _is_needed(release: Release, tasks: Sequence[str]) -> bool:
    """Return whether one of the tasks needs a file, which may name a group of them; or is the group that it is of."""
    test_tasks = sorted({task.removesuffix(DEV) for task in tasks})
    return any(_is_group_of_tasks(group, test_tasks) for group in release.tasks)


def _is_group_of_tasks(group: str, tasks: Sequence[str]) -> bool:
    return any(task == group or task.startswith(f"{group}/") for task in tasks)


def _unpacked_fault(root: Path, record: Record) -> str:
    """Return what is wrong with the files that came out of an archive, empty where all have their sizes."""
    for name, (expected, *_) in (record.files or {}).items():
        path = root / record.folder / name
        if not path.is_file():
            return f"{path}: no such file"
        size = path.stat().st_size
        if size != expected:
            return f"{path}: {size:,} bytes, expected {expected:,}"
    return ""


def _fault(release: Release) -> str:
    if not _inside(release.path) or len(PurePosixPath(release.path).parts) < 2:
        return "a path that is not FOLDER/FILE"
    if release.unpack and not _inside(release.unpack):
        return f"the folder {release.unpack!r} to unpack into"
    for name, digits in _DIGITS.items():
        value = getattr(release, name)
        if value and not re.fullmatch(rf"[0-9a-fA-F]{{{digits}}}", value):
            return f"the {name} {value!r}"
    if malformed := next((url for url in release.urls if url.startswith(SCHEME) and not hub_file(url)), None):
        return f"the address {malformed!r}, which is not of the form {FORM}"
    if release.size is not None and release.size < 0:
        return f"a size of {release.size}"
    return "" if release.urls or release.instructions else "neither addresses nor instructions"


def _inside(path: str) -> bool:
    """Return whether a path stays in the folder of data, and out of our own there."""
    parts = PurePosixPath(path).parts
    outside = path.startswith("/") or "\\" in path or ".." in parts or records.FOLDER in parts
    return not outside and path == PurePosixPath(path).as_posix() and path != "."
