"""What part each leg of each task has in an average: the weights that make a test ask about the number in the table."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from bench.types import Macro
from bench.wording import bare

Stratum = tuple[str, str]
"""A task's id and the name of a leg of it, empty where it has one only."""


def shares(tasks: Mapping[str, Collection[str]], average: Macro | None = None) -> dict[Stratum, float]:
    """Return the weight of every leg that an average is made of; they sum to one where all its members are there.

    Args:
        tasks: names of the legs by task id, at least one.
        average: nested averages count as one member each, a task as the mean of its legs; None for the mean of the
            tasks.
    """
    found: dict[Stratum, float] = defaultdict(float)
    if average is None:
        for task, legs in tasks.items():
            for leg in legs:
                found[task, leg] += 1 / len(tasks) / len(legs)
        return dict(found)
    parts = _parts(tasks)
    todo = [(average, 1.0)]
    while todo:
        group, share = todo.pop()
        for member in group.members:
            own = share / len(group.members)
            if isinstance(member, Macro):
                todo.append((member, own))
                continue
            strata = parts.get(member, [])
            for stratum in strata:
                found[stratum] += own / len(strata)
    return dict(found)


def _parts(tasks: Mapping[str, Collection[str]]) -> dict[str, list[Stratum]]:
    """Return the legs of what an average may name: tasks without what marks mini ones, and `task:leg`."""
    whole = {bare(task): [(task, leg) for leg in legs] for task, legs in tasks.items()}
    single = {f"{bare(task)}:{leg}": [(task, leg)] for task, legs in tasks.items() for leg in legs if leg}
    return whole | single
