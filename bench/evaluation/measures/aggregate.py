"""Averages over tasks, and who is best on how many of them.

Conventions: all averages are unweighted. A value that is not there is absent from the mapping, never 0 or NaN.
"""

import math
from collections.abc import Iterable, Mapping

from bench.core.errors import UsageError
from bench.types import Macro


def mean(values: Iterable[float]) -> float:
    """Return the unweighted mean, the same number whatever the order. Raises `UsageError` for no values."""
    numbers = list(values)
    if not numbers:
        raise UsageError("there is nothing to average; expected at least one value")
    return math.fsum(numbers) / len(numbers)


def macro(average: Macro, values: Mapping[str, float]) -> float | None:
    """Return the mean of an average's members, nested averages first; None unless every member is there.

    `values` are of one measure by task id, without `mini/` and its like. Raises `UsageError` for an average of nothing.
    """
    members = [macro(m, values) if isinstance(m, Macro) else values.get(m) for m in average.members]
    present = [value for value in members if value is not None]
    return mean(present) if len(present) == len(members) else None


def best_on(values: Mapping[str, Mapping[str, float]], digits: int = 1) -> dict[str, int]:
    """Count, for each system, on how many tasks it is the best; a tie is credited to everybody in it.

    Values, by system and task, are compared as they are printed, to so many `digits` (Contriever, Tables 2, 10, 11).
    """
    printed = {system: {task: round(value, digits) for task, value in row.items()} for system, row in values.items()}
    highest: dict[str, float] = {}
    for row in printed.values():
        for task, value in row.items():
            highest[task] = max(value, highest.get(task, value))
    return {system: sum(value == highest[task] for task, value in row.items()) for system, row in printed.items()}
