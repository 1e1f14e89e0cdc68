"""Averages over tasks.

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
