"""What the values of a setting are drawn from when settings are searched."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Choice:
    """Search one of some values, all equally likely."""

    values: tuple[Any, ...]  # at least one, all different


@dataclass(frozen=True)
class Uniform:
    """Search the numbers between two, all equally likely."""

    low: float  # the lowest
    high: float  # the highest, above `low`


@dataclass(frozen=True)
class LogUniform:
    """Search the numbers between two, all equally likely on a logarithmic scale (learning rates, temperatures)."""

    low: float  # the lowest, above zero
    high: float


Space = Choice | Uniform | LogUniform
"""What `bench sweep` draws a setting's values from."""
