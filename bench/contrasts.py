"""The systems of a run held against each other: paired tests over the queries of each suite and setting."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

from bench.scoring.significance import Comparison, holm, pairwise

_SEED = 0
"""Of sign flips and resamples: the same values always give the same p."""


@dataclass(frozen=True)
class Contrast:
    """Two systems on the same queries.

    Args:
        about: `suite`, `setting`, `data` and `seed` of both.
        first: label of the system that is better on average.
        second: label of the other.
        measure: canonical name.
        comparison: first minus second, over all tasks of the suite that both have.
        corrected: p corrected for the number of pairs (Holm); None where pairs are told one by one.
    """

    about: Mapping[str, Any]
    first: str
    second: str
    measure: str
    comparison: Comparison
    corrected: float | None = None

    def row(self) -> dict[str, Any]:
        """As `bench run --json` prints it."""
        found = self.comparison
        return {
            **self.about,
            "system": self.first,
            "other": self.second,
            "measure": self.measure,
            "difference": found.difference,
            "low": found.low,
            "high": found.high,
            "p": found.p_randomisation,
            "p_t": found.p_t,
            **({} if self.corrected is None else {"p_holm": self.corrected}),
            "queries": found.n,
        }


def contrasts(contents: Sequence[tuple[Path, Mapping[str, Any]]], primary: Mapping[str, str]) -> list[Contrast]:
    """Compare every two systems that share suite, setting, data and seed (a deterministic one stands against all).

    Args:
        contents: result files with what they hold; their bundles lie beside them.
        primary: headline measure by suite.
    """
    groups: dict[tuple[str, str, str], list[_Entry]] = defaultdict(list)
    # The cells of a grid are tested together, with a correction for their number (`bench.ablation`).
    contents = [(path, content) for path, content in contents if "grid" not in content["system"]]
    for path, content in contents:
        suite, system = content["suite"]["name"], content["system"]
        seed = None if system["deterministic"] else content["seed"]
        entry = _Entry(system["label"], seed, _values(path.parent, content, primary[suite]))
        groups[suite, content["setting"], content["data"]].append(entry)
    found = []
    for (suite, setting, data), entries in groups.items():
        about = {"suite": suite, "setting": setting, "data": data}
        for one, other in combinations(entries, 2):
            tasks = [name for name, values in one.tasks.items() if values.keys() == other.tasks.get(name, {}).keys()]
            if tasks and (one.seed == other.seed or None in (one.seed, other.seed)):
                seed = one.seed if one.seed is not None else other.seed
                found.append(_contrast({**about, "seed": seed or 0}, one, other, tasks, primary[suite]))
    return found


@dataclass(frozen=True)
class Row:
    """A system's results in one cell of the grid of suites, settings and data, one a seed.

    Args:
        label: of the system.
        results: result files with what they hold, by seed.
        deterministic: its only result stands against every seed.
    """

    label: str
    results: Mapping[int, tuple[Path, Mapping[str, Any]]]
    deterministic: bool = False


def pairs_of(rows: Sequence[Row], measure: str, tasks: Collection[str] | None = None) -> list[Contrast]:
    """Test every two systems on per-query means over the seeds that both have, corrected for the number of pairs.

    Args:
        rows: of one suite, setting and data; labels unique.
        measure: canonical name.
        tasks: what to look at; None for all tasks that both have, with the same queries.

    Returns:
        A contrast a pair that shares a seed and a task, the better system first, in the order of the rows.
    """
    values = {
        row.label: {seed: _values(path.parent, given, measure) for seed, (path, given) in row.results.items()}
        for row in rows
    }
    found = []
    for one, other in combinations(rows, 2):
        seeds = shared_seeds(one, other)
        if not seeds:
            continue
        sides = [
            _over_seeds([values[row.label][seed] for seed in (row.results if row.deterministic else seeds)])
            for row in (one, other)
        ]
        names = [
            name
            for name, queries in sides[0].items()
            if queries.keys() == sides[1].get(name, {}).keys() and (tasks is None or _task(name, one) in tasks)
        ]
        if names:
            about = {"seeds": seeds}
            entries = [_Entry(row.label, None, side) for row, side in zip((one, other), sides, strict=True)]
            found.append(_contrast(about, entries[0], entries[1], names, measure))
    chances = holm([contrast.comparison.p_randomisation for contrast in found])
    return [replace(contrast, corrected=chance) for contrast, chance in zip(found, chances, strict=True)]


def shared_seeds(one: Row, other: Row) -> list[int]:
    """Return the seeds on which two systems can be paired; a deterministic one stands against all."""
    if one.deterministic:
        return sorted(other.results)
    if other.deterministic:
        return sorted(one.results)
    return sorted(one.results.keys() & other.results.keys())


def _over_seeds(tables: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    """Average each query's value over seeds, on the tasks that all seeds have with the same queries."""
    first, *rest = tables
    return {
        name: {query: fmean(table[name][query] for table in tables) for query in queries}
        for name, queries in first.items()
        if all(queries.keys() == table.get(name, {}).keys() for table in rest)
    }


def _task(name: str, row: Row) -> str:
    """The task of `TASK` or `TASK/LEG`."""
    _, content = next(iter(row.results.values()))
    return name if name in content["tasks"] else name.rpartition("/")[0]


@dataclass(frozen=True)
class _Entry:
    """One result: its system, its seed (None for a deterministic one), its values by task and query."""

    label: str
    seed: int | None
    tasks: Mapping[str, Mapping[str, float]]


def _contrast(about: Mapping[str, Any], one: _Entry, other: _Entry, tasks: Sequence[str], measure: str) -> Contrast:
    """Contrast two systems on the tasks that both have, the better one first."""
    order = {name: list(one.tasks[name]) for name in tasks}
    values = [{name: [entry.tasks[name][query] for query in order[name]] for name in tasks} for entry in (one, other)]
    comparison = pairwise({"one": values[0], "other": values[1]}, _SEED)["one", "other"]
    if comparison.difference < 0:
        one, other = other, one
        comparison = pairwise({"one": values[1], "other": values[0]}, _SEED)["one", "other"]
    return Contrast(about, one.label, other.label, measure, comparison)


def _values(folder: Path, content: Mapping[str, Any], measure: str) -> dict[str, dict[str, float]]:
    """Per-query values of a measure by task (and leg), then by query, from the bundle."""
    found = {}
    for task, legs in content["tasks"].items():
        for leg in legs:
            name = f"{task}/{leg}" if leg else task
            table = json.loads(gzip.decompress((folder / "per-query" / f"{name}.json.gz").read_bytes()))
            if measure in table["measures"]:
                found[name] = dict(zip(table["queries"], table["measures"][measure], strict=True))
    return found
