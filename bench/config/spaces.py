"""What the values of a setting are drawn from when settings are searched."""

import tomllib
from dataclasses import dataclass
from typing import Any

from bench.core.errors import UsageError


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


def parse_space(text: str) -> tuple[str, Space]:
    """Read `KEY=LOW..HIGH`, a range, or `KEY=A,B,C`, a choice; a range of numbers above zero is logarithmic.

    Returns:
        The key, without `method.`, and the space.

    Raises:
        UsageError: neither of the two, a range that is none, or a value twice.
    """
    key, _, values = text.partition("=")
    key = key.strip().removeprefix("method.")
    expected = "KEY=LOW..HIGH or KEY=VALUE,VALUE, e.g. learning_rate=2e-5..5e-4 or warm_up=0.05,0.1"
    if not key or not values.strip():
        raise UsageError(found=f"--space {text}", expected=expected)
    low, dots, high = values.partition("..")
    if dots and "," not in values and (ends := _numbers(low, high)):
        if not -float("inf") < ends[0] < ends[1] < float("inf"):
            raise UsageError(found=f"--space {text}", expected="a lower number before a higher one")
        return key, LogUniform(*ends) if ends[0] > 0 else Uniform(*ends)
    choices = tuple(_value(part.strip()) for part in values.split(","))
    if len(set(map(repr, choices))) < len(choices):
        raise UsageError(found=f"--space {text}", expected="values that differ")
    return key, Choice(choices)


def _numbers(low: str, high: str) -> tuple[float, float] | None:
    """Return two numbers; None where one of the texts is none."""
    try:
        return float(low), float(high)
    except ValueError:
        return None


def _value(text: str) -> Any:
    """Return a number or a truth value as TOML writes them, and anything else as a text."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    return value if isinstance(value, int | float | str) else text
