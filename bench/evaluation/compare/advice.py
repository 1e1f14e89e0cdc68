"""What to buy next for the open differences of a comparison, with what it costs by the records of the compared rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.evaluation.compare.fairness import ComparedSystem
from bench.evaluation.compare.paired_tests import PairedTest
from bench.evaluation.significance.allocation import Needs, common_luck, needs
from bench.evaluation.significance.trainings import TRAININGS
from bench.evaluation.tables import duration

_SHARED = frozenset({"prepare", "validate", "read"})
"""Stages that are there already, whatever is bought."""
_ONCE = frozenset({"init", "train", "train_point", "tune"})
"""Stages of a seed that all tasks share."""


@dataclass(frozen=True)
class Advice:
    """What would decide an open difference.

    Args:
        test: of the difference.
        needs: seeds, tasks or questions, each with the rest as it is; None where nobody can say.
        reason: why there are none; else empty.
        seeds_seconds: seconds of the further seeds of both systems; None where no number is enough or none is on
            record.
        tasks_seconds: the same of further tasks.
    """

    test: PairedTest
    needs: Needs | None
    reason: str = ""
    seeds_seconds: float | None = None
    tasks_seconds: float | None = None

    @property
    def cheapest(self) -> str:
        """`seeds` or `tasks`, what takes less time of a machine; `questions` where neither is enough; else empty."""
        if self.needs is None:
            return ""
        costs = {
            name: seconds
            for name, count, seconds in (
                ("seeds", self.needs.seeds, self.seeds_seconds),
                ("tasks", self.needs.tasks, self.tasks_seconds),
            )
            if count is not None and seconds is not None
        }
        if costs:
            return min(costs, key=lambda name: costs[name])
        enough = ("seeds", self.needs.seeds), ("tasks", self.needs.tasks), ("questions", self.needs.questions)
        return next((name for name, count in enough if count is not None), "")

    def as_json(self) -> dict[str, Any]:
        """Return what `bench compare --next --json` prints."""
        return {
            "family": self.test.family,
            "system": self.test.first,
            "other": self.test.second,
            "needs": self.needs and asdict(self.needs),
            "reason": self.reason,
            "seeds_seconds": self.seeds_seconds,
            "tasks_seconds": self.tasks_seconds,
            "cheapest": self.cheapest,
        }

    def sentence(self) -> str:
        """Say what is cheapest; empty where nothing is enough or nobody can say."""
        if self.needs is None or not self.cheapest:
            return self.reason and f"{self.test.pair}: {self.reason}"
        count = getattr(self.needs, self.cheapest)
        seconds = {"seeds": self.seeds_seconds, "tasks": self.tasks_seconds}.get(self.cheapest)
        cost = "judgements not counted" if self.cheapest == "questions" else "time unknown"
        cost = cost if seconds is None else f"{duration(seconds)} more"
        return f"{self.test.pair}: {count:,} {self.cheapest} in all ({cost})"


def advise(tests: Sequence[PairedTest], systems: Sequence[ComparedSystem], tasks: int) -> list[Advice]:
    """Return what would decide the open ones of some tests, with 80 % if the true difference is the one that was seen.

    Args:
        tests: of one comparison, each with its tasks.
        systems: that were compared.
        tasks: number of tasks.
    """
    by_label = {system.label: system for system in systems}
    return [
        _advice(test, [by_label[label] for label in (test.first, test.second)], tasks)
        for test in tests
        if not test.comparison.decided
    ]


def _advice(test: PairedTest, pair: Sequence[ComparedSystem], tasks: int) -> Advice:
    comparison = test.comparison
    if comparison.checkpoints:
        released = [system.label for system in pair if system.system.get("deterministic")]
        few = [system for system in pair if not system.system.get("deterministic") and len(system.seeds) < TRAININGS]
        if few:
            reason = f"fewer than {TRAININGS} seeds: the variation between seeds is not known"
        else:
            reason = f"{' and '.join(released)} came trained, without other seeds"
        return Advice(test, None, reason)
    if not comparison.difference:
        return Advice(test, None, "no difference was seen, so that no amount decides it")
    needed = needs(comparison, tasks, common_luck(comparison, list(test.by_task.values())))
    if needed is None:
        return Advice(test, None, "nothing scatters, so that more of it changes nothing")
    trained = [system for system in pair if len(system.seeds) >= TRAININGS]
    per_seed, per_task = (
        [cost(system, tasks) for system in trained or pair] for cost in (_seed_seconds, _task_seconds)
    )
    of_pair = [_task_seconds(system, tasks) for system in pair]
    seeds = tasks_cost = None
    if needed.seeds is not None and None not in per_seed:
        more = needed.seeds - min(len(system.seeds) for system in trained)
        seeds = more * sum(seconds or 0.0 for seconds in per_seed)
    if needed.tasks is not None and None not in per_task and None not in of_pair:
        tasks_cost = (needed.tasks - tasks) * sum(seconds or 0.0 for seconds in of_pair)
    return Advice(test, needed, "", seeds, tasks_cost)


def _records(system: ComparedSystem) -> list[list[dict[str, float]]] | None:
    """Return seconds by stage of every scored subset, seed by seed; None where a result does not say."""
    records = []
    for content in system.contents:
        subsets = [subset.get("seconds") for parts in content["tasks"].values() for subset in parts.values()]
        if not all(subsets):
            return None
        records.append([{name: float(value) for name, value in seconds.items()} for seconds in subsets])
    return records


def _task_seconds(system: ComparedSystem, tasks: int) -> float | None:
    """Return the seconds of one more task with all seeds."""
    records = _records(system)
    if records is None:
        return None
    seconds = (
        value
        for subsets in records
        for stages in subsets
        for stage, value in stages.items()
        if stage.partition("-")[0] not in _SHARED | _ONCE
    )
    return sum(seconds) / tasks


def _seed_seconds(system: ComparedSystem, tasks: int) -> float | None:
    """Return the seconds of one more seed on all tasks."""
    records = _records(system)
    scoring = _task_seconds(system, tasks)
    if records is None or scoring is None:
        return None
    once = [
        sum(max((stages.get(name, 0.0) for stages in subsets), default=0.0) for name in _ONCE) for subsets in records
    ]
    return sum(once) / len(once) + scoring * tasks / len(records)
