"""What the values of a setting are drawn from when settings are searched."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Choice:
    """Search one of some values, all equally likely.

    Args:
        values: at least one, all different.
    """

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Uniform:
    """Search the numbers between two, all equally likely.

    Args:
        low: the lowest.
        high: the highest, above `low`.
    """

    low: float
    high: float


@dataclass(frozen=True)
class LogUniform:
    """Search the numbers between two, all equally likely on a logarithmic scale (learning rates, temperatures).

    Args:
        low: the lowest, above zero.
        high: the highest, above `low`.
    """

    low: float
    high: float


Space = Choice | Uniform | LogUniform
"""What `bench sweep` draws a setting's values from."""
