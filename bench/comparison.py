"""Results of a folder held against each other: found by label or path, tested in pairs, with costs and doubts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.contrasts import Contrast, Row, pairs_of, shared_seeds
from bench.errors import StoreError, UsageError
from bench.fairness import Side, warnings
from bench.fsio import read_sealed
from bench.results import RESULT, headline, result_files
from bench.types import Suite
from bench.wording import unknown

Found = tuple[Path, Mapping[str, Any]]


@dataclass(frozen=True)
class Compared:
    """Systems on a suite, in a setting and on data of one kind.

    Args:
        about: `suite`, `setting`, `data`, and `stands_for` (empty for a benchmark itself).
        measure: canonical name.
        where: what `values` are: the suite's average or the mean of the tasks.
        tasks: that all systems have.
        values: of each system by label, a fraction, the mean over its seeds.
        sides: the systems, in the order asked for.
        tests: of every pair, corrected for their number (Holm).
        doubts: sentences on what makes the comparison unfair.
    """

    about: Mapping[str, str]
    measure: str
    where: str
    tasks: tuple[str, ...]
    values: Mapping[str, float]
    sides: tuple[Side, ...]
    tests: tuple[Contrast, ...]
    doubts: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """As `bench compare --json` prints it."""
        systems = [
            {
                "system": side.label,
                "hash": side.system["hash"],
                "seeds": side.seeds,
                "value": self.values[side.label],
                "costs": side.costs(),
            }
            for side in self.sides
        ]
        pairs = [{**test.row(), "seeds": list(test.about["seeds"])} for test in self.tests]
        return {
            **self.about,
            "measure": self.measure,
            "where": self.where,
            "tasks": list(self.tasks),
            "systems": systems,
            "tests": pairs,
            "warnings": list(self.doubts),
        }


def compare(
    names: Sequence[str],
    root: Path,
    suite: Suite,
    *,
    data: str | None = None,
    setting: str | None = None,
    measure: str | None = None,
) -> list[Compared]:
    """Hold systems against each other wherever all of them have results.

    Args:
        names: labels, names of result folders (label and hash), result files or their folders; at least two.
        root: the results folder.
        suite: of the results.
        data: only `official`, `mini` or `local` results; None for all.
        setting: only this setting; None for all.
        measure: None for the suite's headline measure.

    Raises:
        UsageError: fewer than two systems, a name without results, a label of several systems, no common ground, a
            measure that the results do not have.
        StoreError: a result file that is damaged.
    """
    if len(set(names)) < 2:
        raise UsageError(
            f"found {len(set(names))} system, expected two or more: bench compare A B --suite {suite.name}"
        )
    shelf = [
        (path, content)
        for path, content in _all(root, names)
        if content["suite"]["name"] == suite.name
        and data in (None, content["data"])
        and setting in (None, content["setting"])
    ]
    picked = {name: _pick(name, shelf, root, suite.name) for name in dict.fromkeys(names)}
    cells: dict[tuple[str, str], dict[str, list[Found]]] = defaultdict(lambda: defaultdict(list))
    for name, results in picked.items():
        for path, content in results:
            cells[content["data"], content["setting"]][name].append((path, content))
    whole = {cell: own for cell, own in cells.items() if len(own) == len(picked)}
    if not whole:
        had = "; ".join(f"{name}: {_cells_of(results)}" for name, results in picked.items())
        raise UsageError(f"no data and setting in which all {len(picked)} have results on {suite.name} ({had})")
    about = {"suite": suite.name, "stands_for": suite.stands_for}
    return [
        _compared({**about, "setting": where[1], "data": where[0]}, own, suite, measure or suite.primary)
        for where, own in whole.items()
    ]


def _all(root: Path, names: Sequence[str]) -> list[Found]:
    """Every readable result of a folder and every one named by its path."""
    paths = [_file(name) for name in names if _is_path(name)]
    found: list[Found] = []
    for path in dict.fromkeys([*(path.resolve() for path in paths), *(one.resolve() for one in result_files(root))]):
        try:
            found.append((path, read_sealed(path)))
        except (OSError, ValueError) as error:
            raise StoreError(f"{path} cannot be trusted: {error}; run the command that made it again") from error
    return found


def _cells_of(results: Sequence[Found]) -> str:
    """Data and settings of some results."""
    return ", ".join(sorted({f"{content['data']} {content['setting']}" for _, content in results}))


def _is_path(name: str) -> bool:
    """Tell a path from a label, which may have the name of a folder that happens to stand here."""
    return name.endswith(".json") or (Path(name) / RESULT).is_file()


def _file(name: str) -> Path:
    """The result file of a path. Raises `UsageError` where there is none."""
    path = Path(name) if name.endswith(".json") else Path(name) / RESULT
    if not path.is_file():
        raise UsageError(f"{path}: found no such file, expected a {RESULT}")
    return path


def _pick(name: str, shelf: Sequence[Found], root: Path, suite: str) -> list[Found]:
    """The results of one system.

    Raises:
        UsageError: there are none, or the label stands for several systems.
    """
    if _is_path(name):
        target = _file(name).resolve()
        found = [(path, content) for path, content in shelf if path == target]
    else:
        found = [(path, one) for path, one in shelf if name in (one["system"]["label"], path.parent.parent.name)]
    if not found:
        labels = sorted({content["system"]["label"] for _, content in shelf})
        raise UsageError(f"{unknown('system', name, labels)} (results on {suite} in {root})")
    hashes = {content["system"]["hash"] for _, content in found}
    if len(hashes) > 1:
        folders = ", ".join(sorted({path.parent.parent.name for path, _ in found}))
        raise UsageError(f"{name} stands for {len(hashes)} systems; name one of them: {folders}")
    return found


def _compared(about: Mapping[str, str], own: Mapping[str, Sequence[Found]], suite: Suite, measure: str) -> Compared:
    """Test and doubt the systems of one cell."""
    labels = _labels(own)
    everything, own = own, _on_common_seeds(own)
    rows = [
        Row(
            labels[name],
            {content["seed"]: (path, content) for path, content in results},
            bool(results[0][1]["system"]["deterministic"]),
        )
        for name, results in own.items()
    ]
    sides = tuple(Side(labels[name], [content for _, content in results]) for name, results in own.items())
    tasks = tuple(sorted(set.intersection(*(_tasks(content, measure) for side in sides for content in side.contents))))
    if not tasks:
        raise UsageError(
            f"found no task with {measure} that all systems have; run them on the same tasks of {suite.name}"
        )
    where, values = "", {}
    for side in sides:
        found = [headline({task: one["tasks"][task] for task in tasks}, suite.macros, measure) for one in side.contents]
        where, values[side.label] = found[0][0], sum(number for _, number in found) / len(found)
    whole = [Side(labels[name], [content for _, content in results]) for name, results in everything.items()]
    doubts = [*_left_out(sides, tasks, measure), *_seedless(rows), *warnings(whole)]
    return Compared(about, measure, where, tasks, values, sides, tuple(pairs_of(rows, measure, tasks)), tuple(doubts))


def _on_common_seeds(own: Mapping[str, Sequence[Found]]) -> Mapping[str, Sequence[Found]]:
    """Keep the seeds that all systems have, if there are any; a deterministic one stands against all."""
    seeds = [
        {content["seed"] for _, content in results}
        for results in own.values()
        if not results[0][1]["system"]["deterministic"]
    ]
    common = set.intersection(*seeds) if seeds else set()
    if not common:
        return own
    return {
        name: [one for one in results if one[1]["system"]["deterministic"] or one[1]["seed"] in common]
        for name, results in own.items()
    }


def _labels(own: Mapping[str, Sequence[Found]]) -> dict[str, str]:
    """Call systems by their labels, and by label and hash where two have the same."""
    plain = {name: str(results[0][1]["system"]["label"]) for name, results in own.items()}
    counted = list(plain.values())
    return {
        name: label if counted.count(label) == 1 else f"{label}-{str(own[name][0][1]['system']['hash'])[:8]}"
        for name, label in plain.items()
    }


def _tasks(content: Mapping[str, Any], measure: str) -> set[str]:
    return {task for task, legs in content["tasks"].items() if all(measure in leg["measures"] for leg in legs.values())}


def _left_out(sides: Sequence[Side], tasks: Sequence[str], measure: str) -> list[str]:
    """Tell what some systems have and others lack."""
    every = {task for side in sides for content in side.contents for task in _tasks(content, measure)}
    rest = sorted(every - set(tasks))
    return [f"compared on {len(tasks)} tasks; not all systems have {', '.join(rest)}"] if rest else []


def _seedless(rows: Sequence[Row]) -> list[str]:
    """Tell which pairs share no seed and so cannot be tested."""
    return [
        f"{one.label} and {other.label} share no seed, so they are not tested"
        for place, one in enumerate(rows)
        for other in rows[place + 1 :]
        if not shared_seeds(one, other)
    ]
