"""The systems of a run held against each other: paired tests over the queries of each suite and setting."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from bench.scoring.significance import Comparison, pairwise

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
    """

    about: Mapping[str, Any]
    first: str
    second: str
    measure: str
    comparison: Comparison

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
            "queries": found.n,
        }


def contrasts(contents: Sequence[tuple[Path, Mapping[str, Any]]], primary: Mapping[str, str]) -> list[Contrast]:
    """Compare every two systems that share suite, setting, data and seed (a deterministic one stands against all).

    Args:
        contents: result files with what they hold; their bundles lie beside them.
        primary: headline measure by suite.
    """
    groups: dict[tuple[str, str, str], list[_Entry]] = defaultdict(list)
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
                found.append(_contrast(about, one, other, tasks, primary[suite]))
    return found


@dataclass(frozen=True)
class _Entry:
    """One result: its system, its seed (None for a deterministic one), its values by task and query."""

    label: str
    seed: int | None
    tasks: Mapping[str, Mapping[str, float]]


def _contrast(about: Mapping[str, Any], one: _Entry, other: _Entry, tasks: Sequence[str], measure: str) -> Contrast:
    """Contrast two systems on the tasks that both have, the better one first."""
    values = [{name: list(entry.tasks[name].values()) for name in tasks} for entry in (one, other)]
    comparison = pairwise({"one": values[0], "other": values[1]}, _SEED)["one", "other"]
    if comparison.difference < 0:
        one, other = other, one
        comparison = pairwise({"one": values[1], "other": values[0]}, _SEED)["one", "other"]
    seed = one.seed if one.seed is not None else other.seed
    return Contrast({**about, "seed": seed or 0}, one.label, other.label, measure, comparison)


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
