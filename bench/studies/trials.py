"""The trials of a sweep: how settings are drawn from a search space, and which of them is chosen."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from bench.config.spaces import Choice, LogUniform, Space
from bench.core.errors import UsageError

RULE = "highest average of the suite's headline measure on dev, the first of equal ones"
_DIGITS = 4
_FINITE = 100_000
"""Spaces of up to so many combinations are listed, so that none is drawn twice."""

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Trial:
    """One choice of settings."""

    number: int  # from 0, which is the settings as they are without a sweep
    values: Values  # what was drawn, by config key
    score: float | None  # average on dev, a fraction; None where the training failed
    tasks: Mapping[str, float]  # its value on every task
    seconds: float  # of the stages that rest on these settings, as long as they took when they ran
    keys: Mapping[str, Mapping[str, str]]  # of the artefacts, by task (and leg) and stage
    failed: str = ""  # why it has no score, in a sentence; empty where it has one


def draw(space: Mapping[str, Space], defaults: Values, trials: int, seed: int) -> list[dict[str, Any]]:
    """Draw at most so many trials of a method; fewer where the space has fewer combinations.

    Space and defaults (the values without a sweep) are by config key, and so is what is returned; the first trial is
    empty, which is the defaults. The same seed always draws the same trials, and fewer trials are the first ones of
    more.
    """
    chance = random.Random(seed)  # noqa: S311 (nothing secret)
    names = sorted(space)
    choices = [one.values for name in names if isinstance(one := space[name], Choice)]
    finite = len(choices) == len(names) and math.prod(map(len, choices)) <= _FINITE
    if finite:
        others = [dict(zip(names, values, strict=True)) for values in product(*choices)] if names else []
        others = [one for one in others if any(one[name] != defaults.get(name) for name in names)]
        return [{}, *chance.sample(others, min(len(others), trials - 1))] if others else [{}]
    return [{}, *({name: _value(space[name], chance) for name in names} for _ in range(trials - 1))]


def _value(space: Space, chance: random.Random) -> Any:
    """Draw one value; numbers have four significant digits, so that a file and a table say them as they were."""
    if isinstance(space, Choice):
        return chance.choice(space.values)
    if isinstance(space, LogUniform):
        number = math.exp(chance.uniform(math.log(space.low), math.log(space.high)))
    else:
        number = chance.uniform(space.low, space.high)
    return min(max(float(f"{number:.{_DIGITS}g}"), space.low), space.high)


def best(trials: Sequence[Trial]) -> Trial:
    """Choose by the rule. Raises `UsageError` where no trial has a score."""
    scored = [trial for trial in trials if trial.score is not None]
    if not scored:
        raise UsageError(f"all {len(trials)} trials failed; the first one said: {trials[0].failed}")
    return max(scored, key=lambda trial: (trial.score, -trial.number))
