"""Which task of a suite to begin with: the cheapest that still has enough questions to separate systems."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.pipeline.cells import ExperimentCell
from bench.pipeline.graph import SubsetStages
from bench.store.graph import closure

ENOUGH = 300
"""Questions: with these the mean of a measure between 0 and 1 is uncertain by three points at most (0.5 / √300)."""
LONG = 3600.0
"""Seconds from which a run is called long, so that a shorter one is worth naming."""


@dataclass(frozen=True)
class FirstTask:
    """A task of a suite, and what a run of it alone takes."""

    suite: str
    task: str  # as `--task` takes it
    questions: int
    seconds: float  # of it alone, training included
    of: float  # seconds of all tasks


def first_tasks(
    cells: Sequence[ExperimentCell], subsets: Sequence[Sequence[SubsetStages]], seconds: Mapping[str, float]
) -> list[FirstTask]:
    """Return the task to begin with of each suite of which several are planned.

    None is named of a suite where no task has enough questions, where their numbers are unknown, or where the task
    saves less than half.

    Args:
        cells: of a plan.
        subsets: of each cell, those that are scored.
        seconds: that each stage takes, by its key.
    """
    targets: dict[str, dict[str, list[SubsetStages]]] = {}
    for cell, cell_subsets in zip(cells, subsets, strict=True):
        for subset in cell_subsets:
            targets.setdefault(cell.suite.name, {}).setdefault(subset.task.id, []).append(subset)
    tasks = []
    for suite, by_task in targets.items():
        whole = _seconds([subset for task_subsets in by_task.values() for subset in task_subsets], seconds)
        options = []
        for task, task_subsets in by_task.items():
            asked = {subset.subset.name: subset.score.subset.questions for subset in task_subsets}
            questions = int(sum(asked.values()))
            if questions >= ENOUGH:
                alone = _seconds(task_subsets, seconds)
                options.append(FirstTask(suite, task.removeprefix(f"{suite}/"), questions, alone, whole))
        best = min(options, key=lambda option: option.seconds, default=None)
        if best and len(by_task) > 1 and best.seconds < whole / 2:
            tasks.append(best)
    return tasks


def _seconds(subsets: Sequence[SubsetStages], seconds: Mapping[str, float]) -> float:
    return sum(seconds.get(stage.key, 0.0) for stage in closure([subset.score for subset in subsets]))
