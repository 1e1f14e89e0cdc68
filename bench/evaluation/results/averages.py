"""Averages over tasks: a task's value, the suite's averages, the headline, and the weight of each part in them."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from statistics import fmean
from typing import Any

from bench.core.messages import bare
from bench.evaluation.measures.aggregate import macro
from bench.types import Macro

Stratum = tuple[str, str]
"""A task's id and the name of a leg of it, empty where it has one only."""


def averages(tasks: Mapping[str, Mapping[str, Any]], macros: Sequence[Macro]) -> list[dict[str, Any]]:
    """Unweighted means of the legs of tasks with several, then every macro average whose members are all there."""
    rows = [
        {
            "name": task,
            "note": "mean of its legs",
            "measures": {name: task_value(legs, name) for name in next(iter(legs.values()))["measures"]},
        }
        for task, legs in sorted(tasks.items())
        if len(legs) > 1
    ]
    is_synthetic = any(bare(task) != task for task in tasks)
    for average in macros:
        if average.mini and not is_synthetic:
            continue
        names = sorted({name for legs in tasks.values() for leg in legs.values() for name in leg["measures"]})
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
    """One measure's value by what an average may name: tasks (the mean of their legs) and `task:leg`."""
    by_task = {
        bare(task): task_value(legs, measure)
        for task, legs in tasks.items()
        if all(measure in leg["measures"] for leg in legs.values())
    }
    by_leg = {
        f"{bare(task)}:{name}": float(leg["measures"][measure])
        for task, legs in tasks.items()
        for name, leg in legs.items()
        if name and measure in leg["measures"]
    }
    return by_task | by_leg


def task_value(legs: Mapping[str, Any], measure: str) -> float:
    """A task's value: the unweighted mean over its legs."""
    return float(sum(leg["measures"][measure] for leg in legs.values()) / len(legs))


def headline(tasks: Mapping[str, Mapping[str, Any]], macros: Sequence[Macro], measure: str) -> tuple[str, float]:
    """Return the name and value that stand for a suite.

    Args:
        tasks: contents of scored legs by task and leg.
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
    return name, fmean(task_value(legs, measure) for legs in tasks.values())


def shares(tasks: Mapping[str, Collection[str]], average: Macro | Sequence[Any] | None = None) -> dict[Stratum, float]:
    """Return the weight of every leg that an average is made of; they sum to one where all its members are there.

    `tasks` are names of legs by task id. Members are names, and lists for averages inside: these count as one member
    each, a task as the mean of its legs. None for the mean of the tasks.
    """
    weights: dict[Stratum, float] = defaultdict(float)
    # What an average may name: tasks without the mark of mini ones, and `task:leg`.
    parts = {bare(task): [(task, leg) for leg in legs] for task, legs in tasks.items()}
    parts |= {f"{bare(task)}:{leg}": [(task, leg)] for task, legs in tasks.items() for leg in legs if leg}
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
