"""Results: one sealed file per (system, suite, setting, data, seed), into which tasks merge, and its bundle beside it.

Layout under the results folder::

    DATA/SUITE/SETTING/SYSTEM-HASH8/seed-N/result.json               sealed
    DATA/SUITE/SETTING/SYSTEM-HASH8/seed-N/runs/TASK[/LEG].trec.gz   cut at the deepest measure
    DATA/SUITE/SETTING/SYSTEM-HASH8/seed-N/per-query/TASK[/LEG].json.gz
    DATA/SUITE/SETTING/SYSTEM-HASH8/seed-N/cards.json                the method's and the suite's cards
    DATA/SUITE/SETTING/SYSTEM-HASH8/seed-N/curves.json               of its trainings (`bench.curves`), if it had any

The same store content always gives the same bytes, so results can be kept in git and compared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from filelock import FileLock

from bench.errors import StoreError
from bench.fsio import canonical, copy_file, explain, is_temporary, read_sealed, sha256_file, write_bytes, write_sealed
from bench.scoring.aggregate import macro
from bench.store import Fault
from bench.types import Macro
from bench.wording import bare

SCHEMA = "retrieval-bench/result/1"
RESULT, CARDS, CURVES = "result.json", "cards.json", "curves.json"


@dataclass(frozen=True)
class Heading:
    """What one result file is about.

    Args:
        system: `label`, `hash`, `method`, `version`, `config` (resolved), as the system describes itself.
        suite: `name`, `version`, `title`.
        setting: how the encoder was tuned.
        data: `official`, `mini` (`mini-few-names` and the like in another world) or `local`.
        profile: the size that was asked for.
        seed: 0 for deterministic methods.
        cards: Markdown by `method` and `suite`.
    """

    system: Mapping[str, Any]
    suite: Mapping[str, Any]
    setting: str
    data: str
    profile: str
    seed: int
    cards: Mapping[str, str]

    @property
    def folder(self) -> Path:
        """Its place under the results folder."""
        label = re.sub(r"[^A-Za-z0-9._@+=-]+", "-", str(self.system["label"]))
        name = f"{label}-{str(self.system['hash'])[:8]}"
        return Path(self.data) / str(self.suite["name"]) / self.setting / name / f"seed-{self.seed}"


@dataclass(frozen=True)
class Entry:
    """The scored leg of a task, ready to be merged.

    Args:
        task: canonical id.
        leg: empty where the task has one leg only.
        content: measures, official values, number of queries, protocol, keys of the stages, costs.
        run: the run cut at the deepest measure (gzip).
        values: per-query values (gzip).
        curves: of the trainings that it rests on, by their stage's key, which `content` names.
    """

    task: str
    leg: str
    content: Mapping[str, Any]
    run: Path
    values: Path
    curves: Mapping[str, Any] = field(default_factory=dict)

    def place(self, kind: str, ending: str) -> str:
        """Path of one of its files in the bundle, with forward slashes."""
        return f"{kind}/{self.task}{'/' + self.leg if self.leg else ''}.{ending}"


@dataclass(frozen=True)
class Published:
    """A result as it stands on disk after merging.

    Args:
        path: the result file.
        content: what is in it.
        notices: sentences for people (a damaged file that was replaced).
    """

    path: Path
    content: Mapping[str, Any]
    notices: tuple[str, ...] = field(default=())


def publish(root: Path, heading: Heading, entries: Sequence[Entry], macros: Sequence[Macro]) -> Published:
    """Merge scored legs into their result file; nothing is rewritten that already stands there.

    Args:
        root: the results folder.
        heading: which result.
        entries: the legs scored now; others that the file holds already stay.
        macros: the suite's averages; one is given only where all its members are there.

    Raises:
        StoreError: the folder cannot be written. The store keeps what was computed.
    """
    folder = root / heading.folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(root / ".lock"):
            return _merge(folder, heading, entries, macros)
    except OSError as error:
        raise StoreError(
            f"cannot write the result to {folder}: {explain(error)}; all stages are finished and kept in the store: "
            "mend that or choose another folder by --results, then type the same command again"
        ) from error


def _merge(folder: Path, heading: Heading, entries: Sequence[Entry], macros: Sequence[Macro]) -> Published:
    path, notices = folder / RESULT, []
    old: dict[str, Any] = {}
    if path.exists():
        try:
            old = read_sealed(path)
        except ValueError as error:
            path.rename(folder / f"{RESULT}.corrupt")
            notices.append(
                f"{path} was damaged ({error}); it now ends in .corrupt, and this run's tasks were written anew"
            )
    for litter in filter(is_temporary, folder.rglob("*")):
        litter.unlink()
    tasks: dict[str, Any] = {name: dict(legs) for name, legs in old.get("tasks", {}).items()}
    files: dict[str, str] = dict(old.get("files", {}))
    for entry in entries:
        tasks.setdefault(entry.task, {})[entry.leg] = entry.content
        for source, name in (
            (entry.run, entry.place("runs", "trec.gz")),
            (entry.values, entry.place("per-query", "json.gz")),
        ):
            files[name] = _put(source, folder / name)
    drawn = _curves(folder / CURVES, files.pop(CURVES, None), tasks, entries)
    for name, told in ((CARDS, dict(heading.cards)), *([(CURVES, drawn)] if drawn else [])):
        files[name] = _write(canonical(told) + b"\n", folder / name)
    content = {
        "schema": SCHEMA,
        "system": heading.system,
        "suite": heading.suite,
        "setting": heading.setting,
        "data": heading.data,
        "profile": heading.profile,
        "seed": heading.seed,
        "macro": averages(tasks, macros),
        "tasks": {name: tasks[name] for name in sorted(tasks)},
        "files": {name: files[name] for name in sorted(files)},
    }
    if content != old:
        write_sealed(path, content)
    return Published(path, content, tuple(notices))


def _curves(path: Path, known: str | None, tasks: Mapping[str, Any], entries: Sequence[Entry]) -> dict[str, Any]:
    """The curves of every training that a task rests on: those of now, and those that the bundle holds already."""
    there = known is not None and path.is_file() and sha256_file(path) == known
    held: dict[str, Any] = json.loads(path.read_bytes()) if there else {}
    for entry in entries:
        held.update(entry.curves)
    used = {key for legs in tasks.values() for leg in legs.values() for key in leg["keys"].values()}
    return {key: curve for key, curve in held.items() if key in used}


def _write(data: bytes, target: Path) -> str:
    """Write a file of the bundle unless the same bytes stand there; return their sha256."""
    if not target.is_file() or target.read_bytes() != data:
        write_bytes(target, data)
    return sha256_file(target)


def _put(source: Path, target: Path) -> str:
    """Copy a file into the bundle unless the same bytes stand there; return their sha256."""
    wanted = sha256_file(source)
    if not target.is_file() or sha256_file(target) != wanted:
        copy_file(source, target)
    return wanted


def averages(tasks: Mapping[str, Mapping[str, Any]], macros: Sequence[Macro]) -> list[dict[str, Any]]:
    """Means of the legs of tasks that have several, then every macro average whose members are all there.

    A task's value is the unweighted mean of its legs.
    """
    found = [
        {
            "name": task,
            "note": "mean of its legs",
            "measures": {name: task_value(legs, name) for name in next(iter(legs.values()))["measures"]},
        }
        for task, legs in sorted(tasks.items())
        if len(legs) > 1
    ]
    made_up = any(bare(task) != task for task in tasks)
    for average in macros:
        if average.mini and not made_up:
            continue
        names = {name for legs in tasks.values() for leg in legs.values() for name in leg["measures"]}
        values = {}
        for name in sorted(names):
            value = macro(average, _values(tasks, name))
            if value is not None:
                values[name] = value
        if values:
            found.append({"name": average.name, "note": average.note, "members": _members(average), "measures": values})
    return found


def _members(average: Macro) -> list[Any]:
    """What an average is over: task ids, and lists for averages inside it."""
    return [_members(member) if isinstance(member, Macro) else member for member in average.members]


def _values(tasks: Mapping[str, Mapping[str, Any]], measure: str) -> dict[str, float]:
    """One measure's value by what an average may name: tasks (the mean of their legs) and `task:leg`."""
    by_task = {bare(task): task_value(legs, measure) for task, legs in tasks.items() if _has(legs, measure)}
    by_leg = {
        f"{bare(task)}:{name}": float(leg["measures"][measure])
        for task, legs in tasks.items()
        for name, leg in legs.items()
        if name and measure in leg["measures"]
    }
    return by_task | by_leg


def _has(legs: Mapping[str, Any], measure: str) -> bool:
    return all(measure in leg["measures"] for leg in legs.values())


def task_value(legs: Mapping[str, Any], measure: str) -> float:
    """A task's value: the unweighted mean over its legs."""
    return float(sum(leg["measures"][measure] for leg in legs.values()) / len(legs))


def headline(tasks: Mapping[str, Mapping[str, Any]], macros: Sequence[Macro], measure: str) -> tuple[str, float]:
    """Return the name and value of the first average, or of the embedded world's; where members lack, the tasks' mean.

    Args:
        tasks: legs by task id, at least one.
        macros: the suite's averages.
        measure: canonical name.
    """
    heads = [*macros[:1], *(one for one in macros[1:] if one.mini)]
    names = {one.name for one in heads}
    for average in averages(tasks, heads):
        if average["name"] in names and measure in average["measures"]:
            return average["name"], float(average["measures"][measure])
    first, *rest = tasks
    name = f"mean of {len(tasks)} tasks" if rest else first
    return name, fmean(task_value(legs, measure) for legs in tasks.values())


def result_files(root: Path) -> list[Path]:
    """Every result file under a results folder, in a fixed order."""
    return sorted(root.rglob(RESULT))


def faults(path: Path) -> list[Fault]:
    """What is wrong with a result file or its bundle."""
    try:
        content = read_sealed(path)
    except (OSError, ValueError) as error:
        return [Fault(path, f"a result that cannot be trusted: {error}")]
    return list(_bundle_faults(path.parent, content["files"]))


def _bundle_faults(folder: Path, files: Mapping[str, str]) -> Iterator[Fault]:
    for name, expected in files.items():
        target = folder / name
        if not target.is_file():
            yield Fault(target, "no such file")
        elif (actual := sha256_file(target)) != expected:
            yield Fault(target, f"sha256 {actual[:12]}…, expected {expected[:12]}…")


def keys(root: Path) -> set[str]:
    """The keys of all artefacts that the results of a folder rest on."""
    found: set[str] = set()
    for path in result_files(root):
        try:
            content = read_sealed(path)
        except (OSError, ValueError):
            continue  # `bench verify` names it; a damaged result protects nothing
        for legs in content["tasks"].values():
            for leg in legs.values():
                found.update(leg["keys"].values())
    return found
