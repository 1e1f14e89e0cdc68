"""Paired tests between systems: over the queries of each suite and setting, on the seeds that both have.

Everything that compares results of this harness goes through here: the tests printed after a run, `bench compare`, and
ablations. (The site tests whole boards at once, by the same `bench.evaluation.significance.tests.pairwise`.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

from bench.evaluation.results import Result
from bench.evaluation.significance.tests import Comparison, holm, pairwise

_SEED = 0
"""Of sign flips and resamples: the same values always give the same p."""

QueryValues = Mapping[str, Mapping[str, float]]
"""A result's values by stratum (`TASK` or `TASK/LEG`) and query."""


@dataclass(frozen=True)
class TaskTest:
    """Two systems on one task.

    Args:
        comparison: first minus second, over the legs of the task.
        corrected: p corrected for the number of pairs and tasks that were tested together (Holm).
    """

    comparison: Comparison
    corrected: float


@dataclass(frozen=True)
class PairedTest:
    """Two systems on the same queries.

    Args:
        about: `suite`, `setting`, `data` and `seed` of both.
        first: label of the system that is better on average.
        second: label of the other.
        measure: canonical name.
        comparison: first minus second, over all tasks of the suite that both have.
        corrected: p corrected for the number of pairs (Holm); None where pairs are reported one by one.
        by_task: by task id; empty where that was not asked for.
        same_trainings: both come from the same training runs, seed by seed, so that these are drawn together.
    """

    about: Mapping[str, Any]
    first: str
    second: str
    measure: str
    comparison: Comparison
    corrected: float | None = None
    by_task: Mapping[str, TaskTest] = field(default_factory=dict)
    same_trainings: bool = False

    def row(self) -> dict[str, Any]:
        """As `bench run --json` prints it."""
        return {
            **self.about,
            "system": self.first,
            "other": self.second,
            "measure": self.measure,
            **self.comparison.as_json(self.corrected),
        }


def compare_run(results: Sequence[Result], primary: Mapping[str, str]) -> list[PairedTest]:
    """Compare every two systems that share suite, setting, data and seed (a deterministic one is paired with all).

    Args:
        results: of the run; their bundles lie next to them.
        primary: headline measure by suite.
    """
    groups: dict[tuple[str, str, str], list[_Sample]] = defaultdict(list)
    for result in results:
        about = result.content
        if about.system.grid is not None:
            continue  # the cells of a grid are tested together, corrected for their number (`bench.studies.ablation`)
        seed = None if result.deterministic else about.seed
        sample = _Sample(about.system.label, seed, (values_of(result, primary[about.suite.name]),), str(result.path))
        groups[about.suite.name, about.setting, about.data].append(sample)
    found = []
    for (suite, setting, data), samples in groups.items():
        for one, other in combinations(samples, 2):
            tasks = _common((one, other))
            if tasks and (one.seed == other.seed or None in (one.seed, other.seed)):
                seed = one.seed if one.seed is not None else other.seed
                (comparison,) = _table({"one": one, "other": other}, tasks, None).values()
                where = {"suite": suite, "setting": setting, "data": data, "seed": seed or 0}
                found.append(_ordered(where, one, other, primary[suite], comparison))
    return found


@dataclass(frozen=True)
class SeedResults:
    """A system's results in one cell of the grid of suites, settings and data, one a seed.

    Args:
        label: of the system.
        results: by seed.
        deterministic: its only result is paired with every seed.
    """

    label: str
    results: Mapping[int, Result]
    deterministic: bool = False

    @property
    def any(self) -> Result:
        """One of the results; all have the same tasks."""
        return next(iter(self.results.values()))

    def on(self, seeds: Sequence[int]) -> list[Result]:
        """The results that a pair is tested on."""
        return [*self.results.values()] if self.deterministic else [self.results[seed] for seed in seeds]


def paired_tests(
    rows: Sequence[SeedResults],
    measure: str,
    tasks: Collection[str] | None = None,
    *,
    shares: Mapping[str, float] | None = None,
    by_task: bool = False,
) -> list[PairedTest]:
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
        A test for each pair that shares a seed and a task, the better system first, in the order of the rows.
    """
    batches = _batches(rows, measure, tasks)
    found: dict[tuple[str, str], PairedTest] = {}
    for batch in batches:
        named = [name for name in batch.names if shares is None or name in shares]
        if not named:
            continue
        apart: dict[str, list[str]] = defaultdict(list)
        for name in batch.names if by_task else ():
            apart[_task(name, rows[0])].append(name)
        whole = _table(batch.entries, named, shares)
        parts = {task: _table(batch.entries, legs, None) for task, legs in apart.items()}
        for pair in batch.pairs:
            tests = {task: TaskTest(table[pair], table[pair].p_randomisation) for task, table in parts.items()}
            one, other = (batch.entries[label] for label in pair)
            made = _ordered({"seeds": list(batch.seeds)}, one, other, measure, whole[pair])
            if made.first != one.label:
                tests = {task: replace(test, comparison=test.comparison.turned()) for task, test in tests.items()}
            found[pair] = replace(made, by_task=tests)
    order = [found[pair] for one, other in combinations(rows, 2) if (pair := (one.label, other.label)) in found]
    chances = holm([test.comparison.p_randomisation for test in order])
    # Tests of tasks are corrected for their number, all pairs together: whoever looks for a language looks at all.
    each = iter(holm([one.comparison.p_randomisation for test in order for one in test.by_task.values()]))
    return [
        replace(
            test,
            corrected=chance,
            by_task={task: replace(one, corrected=next(each)) for task, one in test.by_task.items()},
        )
        for test, chance in zip(order, chances, strict=True)
    ]


@dataclass
class _SharedStrata:
    """Pairs on the same seeds and strata, which are tested together: they can share their random numbers.

    Args:
        seeds: on which they are paired.
        names: of the strata.
        entries: the systems by label.
        pairs: of labels.
    """

    seeds: tuple[int, ...]
    names: tuple[str, ...]
    entries: dict[str, _Sample] = field(default_factory=dict)
    pairs: list[tuple[str, str]] = field(default_factory=list)


def _batches(rows: Sequence[SeedResults], measure: str, tasks: Collection[str] | None) -> list[_SharedStrata]:
    """Sort the pairs that share a seed and a stratum by what they share."""
    values = {row.label: {seed: values_of(result, measure) for seed, result in row.results.items()} for row in rows}
    found: dict[tuple[tuple[int, ...], tuple[str, ...]], _SharedStrata] = {}
    for one, other in combinations(rows, 2):
        seeds = shared_seeds(one, other)
        if not seeds:
            continue
        sides = [_entry(row, values[row.label], [*row.results] if row.deterministic else seeds) for row in (one, other)]
        names = tuple(sorted(name for name in _common(sides) if tasks is None or _task(name, one) in tasks))
        batch = found.setdefault((tuple(seeds), names), _SharedStrata(tuple(seeds), names))
        batch.entries |= {side.label: side for side in sides}
        batch.pairs.append((one.label, other.label))
    return list(found.values())


def _entry(row: SeedResults, values: Mapping[int, QueryValues], seeds: Sequence[int]) -> _Sample:
    """A row on some of its seeds; systems that rest on the same trainings, seed by seed, bear one training's name."""
    tasks = [row.results[seed].content.tasks.values() for seed in seeds]
    trained = [{leg.keys.get("train", "") for legs in one for leg in legs.values()} - {""} for one in tasks]
    keys = list(map(sorted, trained))
    training = repr(keys) if all(keys) else row.label
    return _Sample(row.label, None, tuple(values[seed] for seed in seeds), training)


def shared_seeds(one: SeedResults, other: SeedResults) -> list[int]:
    """Return the seeds on which two systems can be paired; a deterministic one is paired with all."""
    if one.deterministic:
        return sorted(other.results)
    if other.deterministic:
        return sorted(one.results)
    return sorted(one.results.keys() & other.results.keys())


def _task(name: str, row: SeedResults) -> str:
    """The task of `TASK` or `TASK/LEG`."""
    return name if name in row.any.content.tasks else name.rpartition("/")[0]


@dataclass(frozen=True)
class _Sample:
    """A system: its seed (None for a deterministic one, and for several), values of each run, name of its trainings."""

    label: str
    seed: int | None
    runs: tuple[QueryValues, ...]
    training: str

    def matrix(self, name: str, queries: Sequence[str]) -> list[list[float]]:
        """Values of a stratum [runs, queries]."""
        return [[table[name][query] for query in queries] for table in self.runs]


def _common(sides: Sequence[_Sample]) -> list[str]:
    """The strata that every run of every side has, with the same queries."""
    first, *rest = (table for side in sides for table in side.runs)
    return [
        name
        for name, queries in first.items()
        if all(name in table and queries.keys() == table[name].keys() for table in rest)
    ]


def _ordered(about: Mapping[str, Any], one: _Sample, other: _Sample, measure: str, found: Comparison) -> PairedTest:
    """Make a test, the better system first."""
    if found.difference < 0:
        one, other, found = other, one, found.turned()
    return PairedTest(about, one.label, other.label, measure, found, same_trainings=one.training == other.training)


def _table(
    entries: Mapping[str, _Sample], names: Sequence[str], shares: Mapping[str, float] | None
) -> dict[tuple[str, str], Comparison]:
    """Compare every two of some systems on strata that all have."""
    first = next(iter(entries.values()))
    order = {name: list(first.runs[0][name]) for name in names}
    systems = {key: {name: side.matrix(name, order[name]) for name in names} for key, side in entries.items()}
    weights = None if shares is None else {name: shares[name] for name in names}
    return pairwise(systems, _SEED, weights, {key: side.training for key, side in entries.items()})


def values_of(result: Result, measure: str) -> dict[str, dict[str, float]]:
    """Read per-query values of a measure by stratum (`TASK` or `TASK/LEG`), then by query, from a result's bundle.

    Args:
        result: whose bundle is read.
        measure: canonical name; strata without it are left out.

    Raises:
        StoreError: a file of the bundle is missing or not as it was written.
    """
    found = {}
    for task, legs in result.content.tasks.items():
        for leg, about in legs.items():
            if measure in about.measures:
                table = result.per_query(task, leg)
                found[stratum(task, leg)] = dict(zip(table.queries, table.measures[measure], strict=True))
    return found


def stratum(task: str, leg: str) -> str:
    """Name a leg of a task as the bundle's files do: `TASK`, or `TASK/LEG` where it has several."""
    return f"{task}/{leg}" if leg else task
