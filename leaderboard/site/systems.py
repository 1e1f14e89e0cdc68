"""The systems of a board: their results, one a seed; what each task weighs, their cost, their commands."""

import math
import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from bench.core.errors import StoreError
from bench.core.messages import bare, visible
from bench.evaluation.command import run_command
from bench.evaluation.compare.fairness import ComparedSystem
from bench.evaluation.measures.evaluate import mean
from bench.evaluation.results import shares
from bench.evaluation.results.format import About, Average, Content
from bench.evaluation.results.identity import PRETRAININGS
from bench.evaluation.results.marks import COLLAPSED, collapsed, marked, marks
from bench.evaluation.results.passports import data_difference, one_system_error
from bench.evaluation.results.read import FloatArray, Result
from leaderboard.records import UNVERIFIED, Basis, Records, Verification
from leaderboard.site.text import plural

_WEAKEST_FIRST = list(Basis)
Stratum = tuple[str, str]
"""A task and its subset."""
LONGEST_COMMAND = 8_000
"""Characters of a command that a page shows; what is longer was not typed."""


@dataclass(frozen=True)
class System:
    """Results of one system, all with the same tasks.

    Args:
        name: its label on the board.
        results: one a seed, ascending.
        verification: that of its least checked seed.
    """

    name: str
    results: tuple[Result, ...]
    verification: Verification = field(default_factory=Verification)

    @property
    def first(self) -> Result:
        """The result of the lowest seed."""
        return self.results[0]

    @property
    def fixed(self) -> bool:
        """Whether every training would give its numbers."""
        return self.first.deterministic and not self.first.came_trained

    @cached_property
    def side(self) -> ComparedSystem:
        """It for the fairness checks: validated parts of its results, and free ones of the expected types."""
        contents = []
        for result in self.results:
            content, raw = result.content, part(result.whole, "system")
            system = content.system.model_dump() | {"deterministic": raw.get("deterministic") is True}
            system |= {name: value for name in ("encoder_config", "corpus", "tuning") if (value := part(raw, name))}
            tasks: dict[str, dict[str, Any]] = {}
            for task, subsets in content.tasks.items():
                for name, subset in subsets.items():
                    raw_subset = result.whole["tasks"][task][name]
                    tasks.setdefault(task, {})[name] = {
                        "queries": subset.queries,
                        "protocol": subset.protocol,
                        "metadata": {
                            name: part(subset.metadata, name) for name in PRETRAININGS if name in subset.metadata
                        },
                        "libraries": subset.libraries,
                        "harness": raw_subset.get("harness"),
                        "compute": part(raw_subset, "compute"),
                    }
            heading = {"data": content.data, "regime": content.regime, "seed": content.seed}
            contents.append({"system": system, "suite": content.suite.model_dump(), **heading, "tasks": tasks})
        return ComparedSystem(self.name, contents)

    @cached_property
    def marks(self) -> tuple[str, ...]:
        """What a reader must know of its rows, each sentence once over its seeds."""
        return tuple(dict.fromkeys(sentence for result in self.results for sentence in marks(result.whole)))

    @cached_property
    def collapsed(self) -> bool:
        """Whether different texts had one vector in a training of it, which leaves nothing to rank."""
        return any(collapsed(result.whole) for result in self.results)

    def average(self, name: str) -> Average | None:
        """The average of that name as the first seed has it; all seeds have the same tasks, so the same averages."""
        return next((average for average in self.first.content.averages if average.name == name), None)

    def has(self, task: str, measure: str) -> bool:
        """Whether all its subsets of a task have a measure."""
        subsets = [result.content.tasks.get(task) for result in self.results]
        return all(by_name and all(measure in subset.measures for subset in by_name.values()) for by_name in subsets)

    def task_value(self, task: str, measure: str) -> float:
        """Mean over seeds of the mean over subsets."""
        return mean(_task_value(result, task, measure) for result in self.results)

    def strata(self, task: str) -> list[Stratum]:
        """The subsets of a task, empty where it was not run."""
        return [(task, subset) for subset in self.first.content.tasks.get(task, {})]

    def subset_value(self, stratum: Stratum, measure: str) -> float | None:
        """Mean over seeds of a subset's value; None where a seed lacks it."""
        task, name = stratum
        subsets = [result.content.tasks.get(task, {}).get(name) for result in self.results]
        values = [subset.measures[measure] for subset in subsets if subset is not None and measure in subset.measures]
        return mean(values) if len(values) == len(self.results) else None

    def average_values(self, name: str) -> dict[str, float]:
        """An average's value in every measure, mean over seeds; empty where the system has none of that name."""
        first = self.average(name)
        averages = [average for result in self.results for average in result.content.averages if average.name == name]
        if first is None or len(averages) < len(self.results):
            return {}
        shared = [measure for measure in first.measures if all(measure in average.measures for average in averages)]
        return {measure: mean(average.measures[measure] for average in averages) for measure in shared}

    def seed_scores(self, average: str, tasks: Sequence[str], measure: str) -> tuple[float, ...]:
        """The headline of each seed: an average of that name, or the mean of the tasks where it is empty."""
        if not average:
            return tuple(mean(_task_value(result, task, measure) for task in tasks) for result in self.results)
        scores = []
        for result in self.results:
            values = [kind.measures for kind in result.content.averages if kind.name == average]
            scores += [measures[measure] for measures in values[:1] if measure in measures]
        return tuple(scores)

    def headline_weights(self, columns: Sequence[str], average: str) -> dict[Stratum, float]:
        """Return the weight of each subset of each task in the headline; weights sum to one.

        Where the result does not name an average's members, all its tasks count alike; whether that is so is for the
        caller to see from the value.
        """
        kind = self.average(average)
        tasks = {task: list(subsets) for task, subsets in self.first.content.tasks.items()}
        return shares(tasks, kind.members if kind and kind.members else [bare(task) for task in columns])


def part(value: Any, key: str) -> dict[str, Any]:
    """Return a mapping inside a mapping; empty if there is no mapping at the key."""
    inner = value.get(key) if isinstance(value, Mapping) else None
    return dict(inner) if isinstance(inner, Mapping) else {}


def _task_value(result: Result, task: str, measure: str) -> float:
    return mean(subset.measures[measure] for subset in result.content.tasks[task].values())


def group_systems(results: Sequence[Result], records: Records) -> tuple[list[System], list[str]]:
    """Group results by system.

    What was not verified is marked in its name, gives no other system another name, and adds no seed to a verified one.

    Returns:
        The systems, and notes on seeds that are left out because they ran fewer tasks than others.

    Raises:
        StoreError: two results of one system have the same seed.
    """
    groups: dict[tuple[bool, str, str], list[Result]] = defaultdict(list)
    verifications = {result.path: records.verification(result) for result in results}
    for result in results:
        system = result.content.system
        groups[verifications[result.path].verified, system.label, system.hash].append(result)
    labels = [label for verified, label, _ in groups if verified]
    systems, notes = [], []
    for (verified, label, digest), group in sorted(groups.items(), key=lambda item: item[0][1:]):
        name = label if labels.count(label) == 1 else f"{label} ({digest[:8]})"
        name = name if verified else f"{label} ({digest[:8]}, {UNVERIFIED})"
        group.sort(key=lambda result: (result.content.seed, str(result.path)))
        if len({result.content.seed for result in group}) < len(group):
            raise StoreError(
                where=group[0].path.parent.parent,
                found=f"two results of {label} with one seed",
                expected="one",
                hint="remove one of their folders",
            )
        most = set(max(group, key=lambda result: len(result.content.tasks)).content.tasks)
        complete = tuple(result for result in group if set(result.content.tasks) == most)
        omitted = [str(result.content.seed) for result in group if result not in complete]
        if omitted:
            notes.append(f"{name}: seed {', '.join(omitted)} lacks tasks that other seeds have, and is left out.")
        weakest = min(
            (verifications[result.path] for result in complete),
            key=lambda verification: _WEAKEST_FIRST.index(verification.basis),
        )
        marks_of_name = [COLLAPSED] if any(collapsed(result.whole) for result in complete) else []
        marks_of_name += filter(None, [point_mark(complete[0].content.system)])
        systems.append(System(marked(name, ", ".join(marks_of_name)), complete, weakest))
    return systems, notes


def point_mark(system: About) -> str:
    """Return what follows the name of a point along a training run: `after 50 % of the budget`; empty for a whole one.

    A point costs less than the trainings on a board, or was not cooled down as they were, so it has no rank.
    """
    if system.point is None:
        return ""
    cooled = ", cooled down" if system.point.kind == "cooled" else ""
    return f"after {100 * system.point.share:.3g} % of the budget{cooled}"


def refuse_unlike(systems: Sequence[System]) -> None:
    """Refuse systems that may not share a table.

    Raises:
        StoreError: the seeds or tasks of one do not rest on the same weights and code, or two were not asked the same
            queries over the same corpus and judged alike. Verified systems are compared first, so that they stay.
    """
    asked: dict[Stratum, tuple[Result, Mapping[str, Any]]] = {}
    for system in sorted(systems, key=lambda system: not system.verification.verified):
        if unlike := one_system_error([result.whole["tasks"] for result in system.results]):
            raise StoreError(
                where=system.first.path.parent.parent,
                found=unlike,
                expected="one system over all its seeds and tasks",
                hint="run all of them again, or remove the folder",
            )
        for result in system.results:
            for task, subsets in result.content.tasks.items():
                for name in subsets:
                    entry = result.whole["tasks"][task][name]
                    reference, alike = asked.setdefault((task, name), (result, entry))
                    if unlike := data_difference(alike, entry):
                        raise StoreError(
                            where=f"{reference.path} and {result.path}",
                            found=f"results that do not have the same {unlike} on {bare(task)}",
                            expected="systems with the same queries and judgements",
                            hint="run one of them again, so that both read the same data by the same version, or "
                            "remove its folder",
                        )


def query_values(
    systems: Sequence[System], strata: Iterable[Stratum], measure: str
) -> tuple[dict[str, dict[Stratum, FloatArray]], dict[Stratum, tuple[str, ...]]]:
    """Read the per-query values of systems.

    Args:
        systems: whose bundles are read.
        strata: subsets of tasks; those that a system lacks are left out for it.
        measure: the measure.

    Returns:
        Values `[seeds, queries]` by system and stratum, and the query ids of every stratum.

    Raises:
        StoreError: two results hold other queries for the same task, or a bundle is damaged.
    """
    values: dict[str, dict[Stratum, FloatArray]] = {system.name: {} for system in systems}
    ids: dict[Stratum, tuple[str, ...]] = {}
    for task, subset in strata:
        reference: tuple[tuple[str, ...], Result] | None = None
        for system in systems:
            columns = []
            for result in system.results:
                if measure not in getattr(result.content.tasks.get(task, {}).get(subset), "measures", ()):
                    continue
                queries, column = result.values(task, subset, measure)
                reference = reference or (queries, result)
                if queries != reference[0]:
                    counts = f"{plural(len(reference[0]), 'query', 'queries')} and {len(queries):,}"
                    raise StoreError(
                        where=f"{reference[1].path} and {result.path}",
                        found=f"different queries for {task} ({counts})",
                        expected="the same",
                        hint="rerun the older result or remove its folder",
                    )
                columns.append(column)
                ids[task, subset] = queries
            if len(columns) == len(system.results):
                values[system.name][task, subset] = np.stack(columns)
    return values, ids


@dataclass(frozen=True)
class Cost:
    """Of a system, mean over seeds; None if a result does not report it, or for training if nothing was trained.

    Args:
        seconds: of training and tuning, wall clock.
        tokens: read in both.
        flops: floating-point operations of both.
        encode: seconds of building the index and encoding the queries of all tasks.
        search: seconds of searching for the queries of all tasks.
        index: bytes of the documents' vectors of all tasks, as 32-bit floats.
        parameters: of the encoder.
        dimensions: of a vector.
    """

    seconds: float | None = None
    tokens: float | None = None
    flops: float | None = None
    encode: float | None = None
    search: float | None = None
    index: float | None = None
    parameters: int | None = None
    dimensions: int | None = None


def total_cost(results: Sequence[Result]) -> Cost:
    """Sum the cost of a system's results, one a seed; training is `train` and `tune`, and a second tuning `tune-2`."""
    times = [stage_seconds(result) for result in results]

    def spent(*stages: str) -> float | None:
        return (
            mean(sum(time for stage, time in seed.items() if stage.partition("-")[0] in stages) for seed in times)
            or None
        )

    training = [stage_metadata(result, *PRETRAININGS, "tune") for result in results]
    encoded = [metadata for result in results for metadata in stage_metadata(result, "encode")]
    vectors = [
        metadata for metadata in encoded if _is_count(metadata.get("vectors")) and _is_count(metadata.get("dimensions"))
    ]
    dimensions = {metadata["dimensions"] for metadata in vectors}
    parameters = [metadata.get("parameters") for result in results for metadata in stage_metadata(result, "init")]
    return Cost(
        seconds=_mean_total(training, "seconds"),
        tokens=_mean_total(training, "tokens"),
        flops=_mean_total(training, "flops"),
        encode=spent("encode", "index"),
        search=spent("search"),
        index=sum(4.0 * metadata["vectors"] * metadata["dimensions"] for metadata in vectors) / len(results) or None,
        parameters=max((count for count in parameters if count is not None and _is_count(count)), default=None),
        dimensions=dimensions.pop() if len(dimensions) == 1 else None,
    )


def _mean_total(training: Sequence[Sequence[dict[str, Any]]], key: str) -> float | None:
    """Return the sum of a fact over the trainings of a seed, mean over seeds; None if one does not report it."""
    sums = []
    for metadata in training:
        values = [fact.get(key) for fact in metadata]
        numbers = [float(value) for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
        numbers = [number for number in numbers if math.isfinite(number) and number >= 0]
        if not numbers or len(numbers) < len(values):
            return None
        sums.append(sum(numbers))
    return mean(sums) if sums else None


def _is_count(value: Any) -> bool:
    """Return whether a value is a whole number of a plausible size, as results of others may hold anything."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53


def stage_seconds(result: Result) -> dict[str, float]:
    """Return the seconds of every stage, summed over the subsets of a result; what several share counts once."""
    times: dict[str, dict[str, float]] = defaultdict(dict)
    for task, subsets in result.content.tasks.items():
        for name, subset in subsets.items():
            seconds = result.whole["tasks"][task][name].get("seconds")
            for stage, spent in (seconds if isinstance(seconds, dict) else {}).items():
                if isinstance(spent, int | float) and not isinstance(spent, bool) and 0 <= spent < 1e12:
                    times[stage][subset.keys.get(stage) or f"{task} {name}"] = float(spent)
    return {stage: sum(by_key.values()) for stage, by_key in times.items()}


def stage_metadata(result: Result, *stages: str) -> list[dict[str, Any]]:
    """Return the metadata of every run of some stages behind a result; one that several tasks share counts once."""
    by_key: dict[str, dict[str, Any]] = {}
    for task, subsets in result.content.tasks.items():
        for subset in subsets.values():
            for stage, metadata in subset.metadata.items():
                if stage.partition("-")[0] in stages and isinstance(metadata, dict):
                    by_key[subset.keys.get(stage) or f"{stage} {task}"] = metadata
    return list(by_key.values())


def command_line(results: Sequence[Content], *, whole_suite: bool) -> str:
    """Compose `bench run …` for a system's results, one a seed, as a shell takes it; no word can become another.

    One that is longer than anybody types is replaced by the command that replays the result file. Where the whole suite
    was run, no task is named.
    """
    typed = run_command([content.model_dump() for content in results], whole=whole_suite)
    line = " ".join(shlex.quote(visible(word).replace("\n", " ")) for word in typed)
    return line if len(line) <= LONGEST_COMMAND else "bench reproduce path/to/result.json"
