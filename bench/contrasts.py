"""The systems of a run held against each other: paired tests over the queries of each suite and setting."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any

from bench.scoring.significance import Comparison, holm, pairwise

_SEED = 0
"""Of sign flips and resamples: the same values always give the same p."""

Table = Mapping[str, Mapping[str, float]]
"""A result's values by stratum (`TASK` or `TASK/LEG`) and query."""


@dataclass(frozen=True)
class OnTask:
    """Two systems on one task.

    Args:
        comparison: first minus second, over the legs of the task.
        corrected: p corrected for the number of pairs and tasks that were tested together (Holm).
    """

    comparison: Comparison
    corrected: float


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
        by_task: by task id; empty where that was not asked for.
        same_trainings: both come from the same training runs, seed by seed, so that these are drawn together.
    """

    about: Mapping[str, Any]
    first: str
    second: str
    measure: str
    comparison: Comparison
    corrected: float | None = None
    by_task: Mapping[str, OnTask] = field(default_factory=dict)
    same_trainings: bool = False

    def row(self) -> dict[str, Any]:
        """As `bench run --json` prints it."""
        return {
            **self.about,
            "system": self.first,
            "other": self.second,
            "measure": self.measure,
            **numbers(self.comparison, self.corrected),
        }


def numbers(found: Comparison, corrected: float | None) -> dict[str, Any]:
    """Lay a comparison out for `--json`: fractions, None where a number is not defined.

    Args:
        found: the comparison.
        corrected: p after correction; None leaves it out.
    """
    return {
        "difference": found.difference,
        "low": found.low,
        "high": found.high,
        "p": found.p_randomisation,
        "p_t": found.p_t,
        **({} if corrected is None else {"p_holm": corrected}),
        "effect": found.effect,
        "detectable": found.detectable,
        "wins": found.wins,
        "ties": found.ties,
        "losses": found.losses,
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
        entry = _Entry(system["label"], seed, (values_of(path.parent, content, primary[suite]),), str(path))
        groups[suite, content["setting"], content["data"]].append(entry)
    found = []
    for (suite, setting, data), entries in groups.items():
        about = {"suite": suite, "setting": setting, "data": data}
        for one, other in combinations(entries, 2):
            tasks = _common((one, other))
            if tasks and (one.seed == other.seed or None in (one.seed, other.seed)):
                seed = one.seed if one.seed is not None else other.seed
                (comparison,) = _table({"one": one, "other": other}, tasks, None).values()
                found.append(_ordered({**about, "seed": seed or 0}, one, other, primary[suite], comparison))
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


def pairs_of(
    rows: Sequence[Row],
    measure: str,
    tasks: Collection[str] | None = None,
    *,
    shares: Mapping[str, float] | None = None,
    by_task: bool = False,
) -> list[Contrast]:
    """Test every two systems on the seeds that both have, corrected for the number of pairs.

    The tests are of per-query means over these seeds; the intervals draw queries and seeds. Two systems that rest on
    the same trainings (the stage's keys are the same, seed by seed) draw their seeds together, others each its own.

    Args:
        rows: of one suite, setting and data; labels unique.
        measure: canonical name.
        tasks: what to look at; None for all tasks that both have, with the same queries.
        shares: weight of each stratum (`TASK` or `TASK/LEG`) in the mean that is tested; what has none is left out of
            it. None for the unweighted mean over strata.
        by_task: test every task by itself, too, corrected for the number of pairs and tasks.

    Returns:
        A contrast a pair that shares a seed and a task, the better system first, in the order of the rows.
    """
    batches = _batches(rows, measure, tasks)
    found: dict[tuple[str, str], Contrast] = {}
    for batch in batches:
        named = [name for name in batch.names if shares is None or name in shares]
        if not named:
            continue
        apart = _split(batch.names, rows[0]) if by_task else {}
        whole = _table(batch.entries, named, shares)
        parts = {task: _table(batch.entries, legs, None) for task, legs in apart.items()}
        for pair in batch.pairs:
            tests = {task: OnTask(table[pair], table[pair].p_randomisation) for task, table in parts.items()}
            one, other = (batch.entries[label] for label in pair)
            made = _ordered({"seeds": list(batch.seeds)}, one, other, measure, whole[pair])
            if made.first != one.label:
                tests = {task: replace(test, comparison=test.comparison.turned()) for task, test in tests.items()}
            found[pair] = replace(made, by_task=tests)
    order = [found[pair] for one, other in combinations(rows, 2) if (pair := (one.label, other.label)) in found]
    chances = holm([contrast.comparison.p_randomisation for contrast in order])
    return _corrected_by_task([replace(one, corrected=chance) for one, chance in zip(order, chances, strict=True)])


@dataclass
class _Batch:
    """Pairs on the same seeds and strata, which are tested together: they can share their random numbers.

    Args:
        seeds: on which they are paired.
        names: of the strata.
        entries: the systems by label.
        pairs: of labels.
    """

    seeds: tuple[int, ...]
    names: tuple[str, ...]
    entries: dict[str, _Entry] = field(default_factory=dict)
    pairs: list[tuple[str, str]] = field(default_factory=list)


def _batches(rows: Sequence[Row], measure: str, tasks: Collection[str] | None) -> list[_Batch]:
    """Sort the pairs that share a seed and a stratum by what they share."""
    values = {
        row.label: {seed: values_of(path.parent, given, measure) for seed, (path, given) in row.results.items()}
        for row in rows
    }
    found: dict[tuple[tuple[int, ...], tuple[str, ...]], _Batch] = {}
    for one, other in combinations(rows, 2):
        seeds = shared_seeds(one, other)
        if not seeds:
            continue
        sides = [_entry(row, values[row.label], [*row.results] if row.deterministic else seeds) for row in (one, other)]
        names = tuple(sorted(name for name in _common(sides) if tasks is None or _task(name, one) in tasks))
        batch = found.setdefault((tuple(seeds), names), _Batch(tuple(seeds), names))
        batch.entries |= {side.label: side for side in sides}
        batch.pairs.append((one.label, other.label))
    return list(found.values())


def _entry(row: Row, values: Mapping[int, Table], seeds: Sequence[int]) -> _Entry:
    """A row on some of its seeds; systems that rest on the same trainings, seed by seed, bear one training's name."""
    keys = [sorted(_training(row, seed)) for seed in seeds]
    training = repr(keys) if all(keys) else row.label
    return _Entry(row.label, None, tuple(values[seed] for seed in seeds), training)


def _split(names: Sequence[str], row: Row) -> dict[str, list[str]]:
    """Strata by their task."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in names:
        found[_task(name, row)].append(name)
    return found


def _corrected_by_task(found: Sequence[Contrast]) -> list[Contrast]:
    """Correct the tests of tasks for their number, all pairs together: whoever looks for a language looks at all."""
    chances = iter(holm([one.comparison.p_randomisation for contrast in found for one in contrast.by_task.values()]))
    return [
        replace(
            contrast, by_task={task: replace(one, corrected=next(chances)) for task, one in contrast.by_task.items()}
        )
        for contrast in found
    ]


def _training(row: Row, seed: int) -> set[str]:
    """The keys of the trainings that a result rests on; empty where nothing was trained."""
    _, content = row.results[seed]
    legs = (leg for legs in content["tasks"].values() for leg in legs.values())
    return {key for leg in legs if (key := leg.get("keys", {}).get("train"))}


def shared_seeds(one: Row, other: Row) -> list[int]:
    """Return the seeds on which two systems can be paired; a deterministic one stands against all."""
    if one.deterministic:
        return sorted(other.results)
    if other.deterministic:
        return sorted(one.results)
    return sorted(one.results.keys() & other.results.keys())


def _task(name: str, row: Row) -> str:
    """The task of `TASK` or `TASK/LEG`."""
    _, content = next(iter(row.results.values()))
    return name if name in content["tasks"] else name.rpartition("/")[0]


@dataclass(frozen=True)
class _Entry:
    """A system: its seed (None for a deterministic one, and for several), values of each run, name of its trainings."""

    label: str
    seed: int | None
    runs: tuple[Table, ...]
    training: str

    def matrix(self, name: str, queries: Sequence[str]) -> list[list[float]]:
        """Values of a stratum [runs, queries]."""
        return [[table[name][query] for query in queries] for table in self.runs]


def _common(sides: Sequence[_Entry]) -> list[str]:
    """The strata that every run of every side has, with the same queries."""
    first, *rest = (table for side in sides for table in side.runs)
    return [
        name
        for name, queries in first.items()
        if all(name in table and queries.keys() == table[name].keys() for table in rest)
    ]


def _ordered(about: Mapping[str, Any], one: _Entry, other: _Entry, measure: str, found: Comparison) -> Contrast:
    """Make a contrast, the better system first."""
    if found.difference < 0:
        one, other, found = other, one, found.turned()
    return Contrast(about, one.label, other.label, measure, found, same_trainings=one.training == other.training)


def _table(
    entries: Mapping[str, _Entry], names: Sequence[str], shares: Mapping[str, float] | None
) -> dict[tuple[str, str], Comparison]:
    """Compare every two of some systems on strata that all have."""
    first = next(iter(entries.values()))
    order = {name: list(first.runs[0][name]) for name in names}
    systems = {key: {name: side.matrix(name, order[name]) for name in names} for key, side in entries.items()}
    weights = None if shares is None else {name: shares[name] for name in names}
    return pairwise(systems, _SEED, weights, {key: side.training for key, side in entries.items()})


def values_of(folder: Path, content: Mapping[str, Any], measure: str) -> dict[str, dict[str, float]]:
    """Read per-query values of a measure by stratum (`TASK` or `TASK/LEG`), then by query, from a result's bundle.

    Args:
        folder: of the result file.
        content: what is in it.
        measure: canonical name; strata without it are left out.
    """
    found = {}
    for task, legs in content["tasks"].items():
        for leg in legs:
            name = stratum(task, leg)
            table = json.loads(gzip.decompress((folder / "per-query" / f"{name}.json.gz").read_bytes()))
            if measure in table["measures"]:
                found[name] = dict(zip(table["queries"], table["measures"][measure], strict=True))
    return found


def stratum(task: str, leg: str) -> str:
    """Name a leg of a task as the bundle's files do: `TASK`, or `TASK/LEG` where it has several."""
    return f"{task}/{leg}" if leg else task
