"""Write results: one sealed file per (system, suite, regime, data, seed), into which tasks merge, and its bundle.

Layout under the results folder::

    DATA/SUITE/REGIME/SYSTEM-HASH8/seed-N/result.json               sealed
    DATA/SUITE/REGIME/SYSTEM-HASH8/seed-N/runs/TASK[/SUBSET].trec.gz   cut at the deepest measure
    DATA/SUITE/REGIME/SYSTEM-HASH8/seed-N/runs/TASK[/SUBSET].trec.gz.empty   queries that found nothing, if any
    DATA/SUITE/REGIME/SYSTEM-HASH8/seed-N/per-query/TASK[/SUBSET].json.gz
    DATA/SUITE/REGIME/SYSTEM-HASH8/seed-N/cards.json                the method's and the suite's cards
    DATA/SUITE/REGIME/SYSTEM-HASH8/seed-N/curves.json               of its trainings (`bench.evaluation.curves`), if
    it had any

The same store content always gives the same bytes, so results can be kept in git and compared.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from filelock import FileLock

from bench.core.errors import StoreError
from bench.core.files import (
    canonical,
    copy_file,
    explain,
    is_temporary,
    sha256_file,
    write_bytes,
    write_sealed,
)
from bench.core.names import one_place
from bench.evaluation.results.averages import averages
from bench.evaluation.results.format import CARDS, CURVES, RESULT, SCHEMA, Content, bundle_folder, place, silent_place
from bench.evaluation.results.identity import ONE_LABEL, OTHER_LABEL, same_place_error, same_system_error
from bench.evaluation.results.passports import OTHER_DATA, replacement_error
from bench.evaluation.results.read import Result, checked, read_result
from bench.types import Macro


@dataclass(frozen=True)
class Heading:
    """What one result file is about, as in `Content`, and the cards."""

    system: Mapping[str, Any]
    suite: Mapping[str, Any]
    regime: str
    data: str  # `official`, `mini` (`mini-few-names` and the like in another world) or `local`
    profile: str
    seed: int  # 0 for a deterministic method
    cards: Mapping[str, str]  # Markdown by `method` and `suite`

    @property
    def folder(self) -> Path:
        """Its place under the results folder."""
        return bundle_folder(vars(self))


@dataclass(frozen=True)
class Entry:
    """The scored subset of a task, ready to be merged."""

    task: str
    subset: str  # empty where the task has one only
    content: Mapping[str, Any]  # that of `format.Subset`
    run: Path  # cut at the deepest measure, gzip
    values: Path  # per query, gzip
    curves: Mapping[str, Any] = field(default_factory=dict)  # of its trainings, by their stage's key
    silent: Path | None = None  # queries that found nothing, an id a line; None where each found something


@dataclass(frozen=True)
class Published:
    """A result file on disk after merging; a notice says that a damaged one was replaced."""

    path: Path
    content: Mapping[str, Any]
    notices: tuple[str, ...] = field(default=())

    @cached_property
    def result(self) -> Result:
        """The same, as readers take it."""
        return Result(self.path, Content.model_validate(self.content))


def publish(root: Path, heading: Heading, entries: Sequence[Entry], macros: Sequence[Macro]) -> Published:
    """Merge scored subsets into their result file under `root`; other subsets stay, and equal bytes are not rewritten.

    An average is given only where all its members are there.

    Raises:
        StoreError: the folder cannot be written, the format does not allow what the file would hold, or the file is
            another system's or version's, which stays as it is. The store keeps what was computed.
    """
    folder = root / heading.folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(root / ".lock"):
            return _merge(folder, heading, entries, macros)
    except OSError as error:
        raise StoreError(
            f"cannot write the result to {folder}: {explain(error)}; all stages are finished and kept in the store: "
            "fix that or choose another folder by --results, then type the same command again"
        ) from error


def _merge(folder: Path, heading: Heading, entries: Sequence[Entry], macros: Sequence[Macro]) -> Published:
    path, notices = folder / RESULT, []
    old: dict[str, Any] = {}
    if path.exists():
        try:
            old = read_result(path)
        except ValueError as error:
            path.rename(folder / f"{RESULT}.corrupt")
            notices.append(
                f"{path} was damaged ({error}); it now ends in .corrupt, and this run's tasks were written anew"
            )
    new: dict[str, dict[str, Any]] = {}
    for entry in entries:
        new.setdefault(entry.task, {})[entry.subset] = entry.content
    _refuse_unlike(path, old, heading, new)
    for litter in filter(is_temporary, folder.rglob("*")):
        litter.unlink()
    tasks: dict[str, Any] = {name: dict(subsets) for name, subsets in old.get("tasks", {}).items()}
    files: dict[str, str] = dict(old.get("files", {}))
    for task, subsets in new.items():
        tasks.setdefault(task, {}).update(subsets)
    for entry in entries:
        _copy_files(folder, entry, files)
    curves = _curves(folder / CURVES, files.pop(CURVES, None), tasks, entries)
    for name, extra in ((CARDS, dict(heading.cards)), *([(CURVES, curves)] if curves else [])):
        target, data = folder / name, canonical(extra) + b"\n"
        if not target.is_file() or target.read_bytes() != data:
            write_bytes(target, data)
        files[name] = sha256_file(target)
    content = {
        "schema": SCHEMA,
        **{part.name: getattr(heading, part.name) for part in fields(heading) if part.name != "cards"},
        "macro": averages(tasks, macros),
        "tasks": {name: tasks[name] for name in sorted(tasks)},
        "files": {name: files[name] for name in sorted(files)},
    }
    checked(path, content)
    if content != old:
        write_sealed(path, content)
    return Published(path, content, tuple(notices))


def _copy_files(folder: Path, entry: Entry, files: dict[str, str]) -> None:
    """Copy the files of a subset into a bundle, and put their sha256 into `files` by their names there."""
    runs, values = (place(kind, entry.task, entry.subset) for kind in ("runs", "per-query"))
    silent = silent_place(entry.task, entry.subset)
    if entry.silent is None and files.pop(silent, ""):
        (folder / silent).unlink(missing_ok=True)
    for source, name in ((entry.run, runs), (entry.values, values), (entry.silent, silent)):
        if source is None:
            continue
        files[name] = sha256_file(source)
        if not (folder / name).is_file() or sha256_file(folder / name) != files[name]:
            copy_file(source, folder / name)


def _refuse_unlike(
    path: Path, old: Mapping[str, Any], heading: Heading, new: Mapping[str, Mapping[str, Mapping[str, Any]]]
) -> None:
    """Raise `StoreError` where a file holds another system's results, or what is another task of nearly the same name.

    That is a task of the same name on other data, or one whose name differs in case alone.
    """
    if old and (unlike := same_system_error(old["system"], heading.system)):
        raise StoreError(
            where=path,
            found=f"the result of another system ({unlike})",
            expected="results of one system in a file",
            hint="choose another folder by --results; nothing was overwritten",
        )
    if old and (unlike := same_place_error(old["system"], heading.system)):
        raise StoreError(where=path, found=f"the result of {unlike}", expected=ONE_LABEL, hint=OTHER_LABEL)
    if unlike := replacement_error(old.get("tasks", {}), new):
        raise StoreError(where=path, found=unlike, expected="one data set for each name", hint=OTHER_DATA)
    if clash := one_place([*old.get("tasks", ()), *new]):
        raise StoreError(
            where=path,
            found=f"tasks {clash[0]} and {clash[1]}",
            expected="names that differ in more than case, which some file systems ignore",
            hint="rename one, or choose another folder by --results; nothing was overwritten",
        )


def _curves(path: Path, checksum: str | None, tasks: Mapping[str, Any], entries: Sequence[Entry]) -> dict[str, Any]:
    """Return the curves of every training that a task rests on, new ones and those of the bundle."""
    is_intact = checksum is not None and path.is_file() and sha256_file(path) == checksum
    curves: dict[str, Any] = json.loads(path.read_bytes()) if is_intact else {}
    for entry in entries:
        curves.update(entry.curves)
    stage_keys = {key for subsets in tasks.values() for subset in subsets.values() for key in subset["keys"].values()}
    return {key: curve for key, curve in curves.items() if key in stage_keys}
