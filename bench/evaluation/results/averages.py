"""Averages over tasks: a task's value, the suite's averages, the headline, and the weight of each part in them."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from statistics import fmean
from typing import Any

from bench.core.messages import bare
from bench.evaluation.measures.evaluate import macro
from bench.types import Macro

Stratum = tuple[str, str]
"""A task's id and the name of a subset of it, empty where it has one only."""


def averages(tasks: Mapping[str, Mapping[str, Any]], macros: Sequence[Macro]) -> list[dict[str, Any]]:
    """Unweighted means of the subsets of tasks with several, then every macro average whose members are all there."""
    rows = [
        {
            "name": task,
            "note": "mean of its subsets",
            "measures": {name: task_value(subsets, name) for name in next(iter(subsets.values()))["measures"]},
        }
        for task, subsets in sorted(tasks.items())
        if len(subsets) > 1
    ]
    is_synthetic = any(bare(task) != task for task in tasks)
    for average in macros:
        if average.mini and not is_synthetic:
            continue
        names = sorted(
            {name for subsets in tasks.values() for subset in subsets.values() for name in subset["measures"]}
        )
        measures_by_name: dict[str, Mapping[str, str]] = {**{name: {"": name} for name in names}, **average.mixed}
        values = {}
        for name, measures in measures_by_name.items():
            member_values = _values(tasks, measures[""])
            for member in measures.keys() - {""}:
                member_values.pop(member, None)
                member_values |= {
                    task: value for task, value in _values(tasks, measures[member]).items() if task == member
                }
            value = macro(average, member_values)
            if value is not None:
                values[name] = value
        if values:
            rows.append({"name": average.name, "note": average.note, "members": _members(average), "measures": values})
    return rows


def _members(average: Macro) -> list[Any]:
    """What an average is over: task ids, and lists for averages inside it."""
    return [_members(member) if isinstance(member, Macro) else member for member in average.members]


def _values(tasks: Mapping[str, Mapping[str, Any]], measure: str) -> dict[str, float]:
    """One measure's value by what an average may name: tasks (the mean of their subsets) and `task:subset`."""
    by_task = {
        bare(task): task_value(subsets, measure)
        for task, subsets in tasks.items()
        if all(measure in subset["measures"] for subset in subsets.values())
    }
    by_subset = {
        f"{bare(task)}:{name}": float(subset["measures"][measure])
        for task, subsets in tasks.items()
        for name, subset in subsets.items()
        if name and measure in subset["measures"]
    }
    return by_task | by_subset


def task_value(subsets: Mapping[str, Any], measure: str) -> float:
    """A task's value: the unweighted mean over its subsets."""
    return float(sum(subset["measures"][measure] for subset in subsets.values()) / len(subsets))


def headline(tasks: Mapping[str, Mapping[str, Any]], macros: Sequence[Macro], measure: str) -> tuple[str, float]:
    """Return the name and value that represent a suite.

    Args:
        tasks: contents of scored subsets by task and subset.
        macros: the suite's averages.
        measure: canonical name.

    Returns:
        Those of the first average, or of the one that is meant for the embedded world; where members are missing, the
        mean of the tasks.
    """
    heads = [*macros[:1], *(average for average in macros[1:] if average.mini)]
    names = {average.name for average in heads}
    for average in averages(tasks, heads):
        if average["name"] in names and measure in average["measures"]:
            return average["name"], float(average["measures"][measure])
    first, *further = tasks
    name = f"mean of {len(tasks)} tasks" if further else first
    return name, fmean(task_value(subsets, measure) for subsets in tasks.values())


def shares(tasks: Mapping[str, Collection[str]], average: Macro | Sequence[Any] | None = None) -> dict[Stratum, float]:
    """Return the weight of every subset that an average is made of; they sum to one where all its members are there.

    `tasks` are names of subsets by task id. Members are names, and lists for averages inside: these count as one member
    each, a task as the mean of its subsets. None for the mean of the tasks.
    """
    weights: dict[Stratum, float] = defaultdict(float)
    # What an average may name: tasks without the mark of mini ones, and `task:subset`.
    parts = {bare(task): [(task, subset) for subset in subsets] for task, subsets in tasks.items()}
    parts |= {
        f"{bare(task)}:{subset}": [(task, subset)] for task, subsets in tasks.items() for subset in subsets if subset
    }
    members = [bare(task) for task in tasks] if average is None else average
    todo = [(_members(members) if isinstance(members, Macro) else members, 1.0)]
    while todo:
        group, share = todo.pop()
        for member in group:
            member_share = share / len(group)
            if isinstance(member, list):
                todo.append((member, member_share))
                continue
            strata = parts.get(str(member), [])
            for stratum in strata:
                weights[stratum] += member_share / len(strata)
    return dict(weights)
