"""What a row cost: the training and tuning that stand behind its numbers, each counted once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bench.scoring.aggregate import mean
from leaderboard.read import Result

STAGES = ("train", "tune")
"""Whose facts tell of training; a second tuning is `tune-2`."""


@dataclass(frozen=True)
class Cost:
    """Of training and tuning, mean over seeds; None where no result tells it or nothing was trained.

    Args:
        seconds: on the clock.
        tokens: read.
        flops: floating-point operations.
    """

    seconds: float | None = None
    tokens: float | None = None
    flops: float | None = None


def cost(results: Sequence[Result]) -> Cost:
    """Sum the cost of a system's results, one a seed."""
    told = [_trained(result) for result in results]
    return Cost(*(_mean([_sum(facts, name) for facts in told]) for name in ("seconds", "tokens", "flops")))


def _trained(result: Result) -> list[dict[str, Any]]:
    """The facts of every training behind a result; one that several tasks share counts once."""
    found: dict[str, dict[str, Any]] = {}
    for task, legs in result.content.tasks.items():
        for leg in legs.values():
            for stage, facts in leg.facts.items():
                if stage.partition("-")[0] in STAGES and isinstance(facts, dict):
                    found[leg.keys.get(stage) or f"{stage} {task}"] = facts
    return list(found.values())


def _sum(trainings: Sequence[dict[str, Any]], name: str) -> float | None:
    """Sum a fact; None where a training does not tell it."""
    told = [facts.get(name) for facts in trainings]
    numbers = [float(one) for one in told if isinstance(one, int | float) and not isinstance(one, bool)]
    good = [one for one in numbers if math.isfinite(one) and one >= 0]
    return sum(good) if good and len(good) == len(told) else None


def _mean(values: Sequence[float | None]) -> float | None:
    """Mean; None where a seed lacks it."""
    held = [value for value in values if value is not None]
    return mean(held) if held and len(held) == len(values) else None
