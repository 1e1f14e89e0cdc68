"""The systems of a board: their results, one a seed; what each task weighs, their cost, their commands."""

import math
import shlex
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.core.errors import StoreError
from bench.core.messages import bare
from bench.evaluation.command import run_command
from bench.evaluation.measures.aggregate import mean
from bench.evaluation.results import shares
from bench.evaluation.results.format import Average, Content
from bench.evaluation.results.read import FloatArray, Result
from bench.evaluation.tables import visible
from leaderboard.records import UNVERIFIED, Records, State
from leaderboard.site.text import plural

Stratum = tuple[str, str]
"""A task and its leg."""


@dataclass(frozen=True)
class System:
    """Results of one system, one a seed, all with the same tasks."""

    name: str
    results: tuple[Result, ...]
    state: State = State.RUN_HERE  # that of its least checked seed

    @property
    def first(self) -> Result:
        """The result of the lowest seed."""
        return self.results[0]

    @property
    def fixed(self) -> bool:
        """Whether every training would give its numbers."""
        return self.first.deterministic and not self.first.came_trained

    @property
    def trainings(self) -> str:
        """Name of its trainings, shared by systems that come from the same ones, seed by seed; else its own."""
        keys = [result.trainings for result in self.results]
        return repr(keys) if all(keys) else self.name

    def average(self, name: str) -> Average | None:
        """The average of that name as the first seed has it; all seeds have the same tasks, so the same averages."""
        return next((average for average in self.first.content.averages if average.name == name), None)

    def has(self, task: str, measure: str) -> bool:
        """Whether all its legs of a task have a measure."""
        legs = [result.content.tasks.get(task) for result in self.results]
        return all(parts and all(measure in leg.measures for leg in parts.values()) for parts in legs)

    def task(self, task: str, measure: str) -> float:
        """Mean over seeds of the mean over legs."""
        return mean(_of_task(result, task, measure) for result in self.results)

    def strata(self, task: str) -> list[Stratum]:
        """The legs of a task, none where it is not there."""
        return [(task, leg) for leg in self.first.content.tasks.get(task, {})]

    def stratum(self, stratum: Stratum, measure: str) -> float | None:
        """Mean over seeds of a leg's value; None where a seed lacks it."""
        task, leg = stratum
        found = [result.content.tasks.get(task, {}).get(leg) for result in self.results]
        held = [one.measures[measure] for one in found if one is not None and measure in one.measures]
        return mean(held) if len(held) == len(self.results) else None


def _of_task(result: Result, task: str, measure: str) -> float:
    return mean(leg.measures[measure] for leg in result.content.tasks[task].values())


def of_seeds(one: System, average: str, tasks: Sequence[str], measure: str) -> tuple[float, ...]:
    """The headline of each seed: an average of that name, or the mean of the tasks where there is none."""
    if not average:
        return tuple(mean(_of_task(result, task, measure) for task in tasks) for result in one.results)
    kinds_by_seed = ([kind for kind in result.content.averages if kind.name == average] for result in one.results)
    return tuple(kinds[0].measures[measure] for kinds in kinds_by_seed if kinds and measure in kinds[0].measures)


def grouped(results: Sequence[Result], records: Records) -> tuple[list[System], list[str]]:
    """Group results by system; of seeds that ran other tasks only those with the most are kept, and a note says so.

    What was not verified is marked in its name, gives no other system another name, and adds no seed to a verified one.
    """
    groups: dict[tuple[bool, str, str], list[Result]] = defaultdict(list)
    states = {result.path: records.state(result) for result in results}
    for result in results:
        about = result.content.system
        groups[states[result.path].verified, about.label, about.hash].append(result)
    labels = [label for verified, label, _ in groups if verified]
    found, notes = [], []
    for (verified, label, digest), group in sorted(groups.items(), key=lambda item: item[0][1:]):
        name = label if labels.count(label) == 1 else f"{label} ({digest[:8]})"
        name = name if verified else f"{label} ({digest[:8]}, {UNVERIFIED})"
        group.sort(key=lambda result: (result.content.seed, str(result.path)))
        seeds = [result.content.seed for result in group]
        if len(set(seeds)) < len(seeds):
            raise StoreError(
                where=group[0].path.parent.parent,
                found=f"two results of {label} with one seed",
                expected="one",
                hint="remove one of their folders",
            )
        most = set(max(group, key=lambda result: len(result.content.tasks)).content.tasks)
        kept = [result for result in group if set(result.content.tasks) == most]
        left = [str(result.content.seed) for result in group if result not in kept]
        if left:
            notes.append(f"{name}: seed {', '.join(left)} lacks tasks that other seeds have, and is left out.")
        found.append(System(name, tuple(kept), min(states[result.path] for result in kept)))
    return found, notes


def averaged(one: System, name: str) -> dict[str, float]:
    """An average's value in every measure, mean over seeds; empty where the system has none of that name."""
    first = one.average(name)
    found = [average for result in one.results for average in result.content.averages if average.name == name]
    if first is None or len(found) < len(one.results):
        return {}
    shared = [measure for measure in first.measures if all(measure in average.measures for average in found)]
    return {measure: mean(average.measures[measure] for average in found) for measure in shared}


def weights(one: System, columns: Sequence[str], average: str) -> dict[Stratum, float]:
    """Return the weight of each leg of each task in the headline; weights sum to one.

    Where the result does not name an average's members, all its tasks count alike; whether that is so is for the caller
    to see from the value.
    """
    named = one.average(average)
    tasks = {task: list(legs) for task, legs in one.first.content.tasks.items()}
    return shares(tasks, named.members if named and named.members else [bare(task) for task in columns])


def values(
    systems: Sequence[System], strata: Iterable[Stratum], measure: str
) -> tuple[dict[str, dict[Stratum, FloatArray]], dict[Stratum, tuple[str, ...]]]:
    """Read per-query values [seeds, queries] of the strata that a system has, and the ids of these queries.

    Raises `StoreError` where two results hold other queries for the same task.
    """
    found: dict[str, dict[Stratum, FloatArray]] = {one.name: {} for one in systems}
    ids: dict[Stratum, tuple[str, ...]] = {}
    for task, leg in strata:
        asked: tuple[tuple[str, ...], Result] | None = None
        for one in systems:
            columns = []
            for result in one.results:
                if measure not in getattr(result.content.tasks.get(task, {}).get(leg), "measures", ()):
                    continue
                queries, column = result.values(task, leg, measure)
                asked = asked or (queries, result)
                if queries != asked[0]:
                    counts = f"{plural(len(asked[0]), 'query', 'queries')} and {len(queries):,}"
                    raise StoreError(
                        where=f"{asked[1].path} and {result.path}",
                        found=f"different queries for {task} ({counts})",
                        expected="the same",
                        hint="rerun the older result or remove its folder",
                    )
                columns.append(column)
                ids[task, leg] = queries
            if len(columns) == len(one.results):
                found[one.name][task, leg] = np.stack(columns)
    return found, ids


STAGES = ("train", "tune")
"""Stages that train; a second tuning is `tune-2`."""


@dataclass(frozen=True)
class Cost:
    """Of a system, mean over seeds; None if a result does not report it, or for training if nothing was trained."""

    seconds: float | None = None  # of training and tuning, on the clock
    tokens: float | None = None  # read in both
    flops: float | None = None  # floating-point operations of both
    encode: float | None = None  # seconds, of all tasks: building the index and encoding the queries
    search: float | None = None  # seconds, of all tasks
    index: float | None = None  # bytes of the documents' vectors, of all tasks, as 32-bit floats
    parameters: int | None = None  # of the encoder
    dimensions: int | None = None  # of a vector


def cost(results: Sequence[Result]) -> Cost:
    """Sum the cost of a system's results, one a seed."""
    trained = [facts_of(result, *STAGES) for result in results]

    def total(name: str) -> float | None:
        sums = []
        for facts in trained:
            values = [one.get(name) for one in facts]
            numbers = [float(one) for one in values if isinstance(one, int | float) and not isinstance(one, bool)]
            good = [one for one in numbers if math.isfinite(one) and one >= 0]
            if not good or len(good) < len(values):  # a training that does not report it
                return None
            sums.append(sum(good))
        return mean(sums) if sums else None

    times = [seconds(result) for result in results]

    def spent(*stages: str) -> float | None:
        return mean(sum(each[stage] for stage in each if stage.partition("-")[0] in stages) for each in times) or None

    encoded = [one for result in results for one in facts_of(result, "encode")]
    vectors = [one for one in encoded if _is_count(one.get("vectors"), one.get("dimensions"))]
    sizes = {one["dimensions"] for one in vectors}
    grown = [
        one["parameters"] for result in results for one in facts_of(result, "init") if _is_count(one.get("parameters"))
    ]
    return Cost(
        total("seconds"),
        total("tokens"),
        total("flops"),
        spent("encode", "index"),
        spent("search"),
        sum(4.0 * one["vectors"] * one["dimensions"] for one in vectors) / len(results) or None,
        max(grown, default=None),
        sizes.pop() if len(sizes) == 1 else None,
    )


def _is_count(*values: Any) -> bool:
    """Return whether all values are whole numbers of a plausible size, as results of others may hold anything."""
    return all(isinstance(one, int) and not isinstance(one, bool) and 0 <= one < 1 << 53 for one in values)


def seconds(result: Result) -> dict[str, float]:
    """Return the seconds of every stage, summed over the legs of a result; what several legs share counts once."""
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for task, legs in result.content.tasks.items():
        for name, leg in legs.items():
            free = result.whole["tasks"][task][name].get("seconds")
            for stage, spent in (free if isinstance(free, dict) else {}).items():
                if isinstance(spent, int | float) and not isinstance(spent, bool) and 0 <= spent < 1e12:
                    found[stage][leg.keys.get(stage) or f"{task} {name}"] = float(spent)
    return {stage: sum(each.values()) for stage, each in found.items()}


def facts_of(result: Result, *stages: str) -> list[dict[str, Any]]:
    """The facts of every run of some stages behind a result; one that several tasks share counts once."""
    found: dict[str, dict[str, Any]] = {}
    for task, legs in result.content.tasks.items():
        for leg in legs.values():
            for stage, facts in leg.facts.items():
                if stage.partition("-")[0] in stages and isinstance(facts, dict):
                    found[leg.keys.get(stage) or f"{stage} {task}"] = facts
    return list(found.values())


LONGEST = 8_000
"""Characters of a command that a page shows; what is longer was not typed."""


def command(results: Sequence[Content], *, whole: bool) -> str:
    """Compose `bench run …` for a system's results, one a seed, as a shell takes it; no word can become another.

    One that is longer than anybody types is replaced by the command that replays the result file. Where the `whole`
    suite was run, no task is named.
    """
    said = run_command([one.model_dump() for one in results], whole=whole)
    typed = " ".join(shlex.quote(visible(word).replace("\n", " ")) for word in said)
    return typed if len(typed) <= LONGEST else "bench reproduce path/to/result.json"
