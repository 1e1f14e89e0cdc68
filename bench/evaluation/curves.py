"""Curves of a training: its log, thinned until it is small enough to lie next to a result."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MOST = 300
"""Points of a line, at most."""
_LINES = 16
_X_AXES = ("tokens", "questions", "step")
"""What a curve is drawn against: the first of them that the log counts."""
_EXCLUDED = {*_X_AXES, "learning_rate", "best_step", "gradient_norm", "first_loss"}
LABELS = {"probe accuracy": "neighbour accuracy", "probe document_accuracy": "document accuracy"}
"""What pages call lines whose name in the log says less: of held-out documents, sentences and halves are found."""
_EXCLUDED_OF_PROBES = {"chance", "full_rank", "deviation"}


def curves(log: Path) -> dict[str, Any]:
    """Return the curves of a training log.

    Args:
        log: JSON lines, as trainings write them; lines that are no object, and values that are no finite numbers, are
            skipped.

    Returns:
        `across` (what x counts: tokens, questions or steps) and `lines`, by name the lists `x` and `y` of at most
        `MOST` points each.
    """
    with log.open(encoding="utf-8") as stream:
        log_lines = [line for text in stream if isinstance(line := json.loads(text), dict)]
    x_axis = next((name for name in _X_AXES if any(_number(line.get(name)) for line in log_lines)), _X_AXES[-1])
    points_by_name: dict[str, list[tuple[float, float]]] = {}
    for line in log_lines:
        probe = line.get("probe")
        probed = probe.items() if isinstance(probe, dict) else ()
        values = line | {f"probe {name}": value for name, value in probed if name not in _EXCLUDED_OF_PROBES}
        for name, value in values.items() if _number(line.get(x_axis)) else ():
            if name not in _EXCLUDED and _number(value):
                points_by_name.setdefault(name, []).append((line[x_axis], value))
    names = sorted(points_by_name, key=lambda name: (name != "loss", name))[:_LINES]
    lines = {name: thinned(sorted(points_by_name[name], key=lambda point: point[0])) for name in names}
    return {
        "across": x_axis,
        "lines": {name: {"x": [x for x, _ in line], "y": [y for _, y in line]} for name, line in lines.items()},
    }


def thinned(points: Sequence[tuple[float, float]], most: int = MOST) -> list[tuple[float, float]]:
    """Thin a line to its ends and the extremes of equal stretches, so that no peak is lost.

    Args:
        points: (x, y), x ascending.
        most: number of points that may remain, 4 or more.
    """
    if len(points) <= most:
        return list(points)
    inner, stretches = points[1:-1], (most - 2) // 2
    extremes = []
    for at in range(stretches):
        part = inner[at * len(inner) // stretches : (at + 1) * len(inner) // stretches]
        places = range(len(part))
        ends = {min(places, key=lambda place: part[place][1]), max(places, key=lambda place: part[place][1])}
        extremes += [part[place] for place in sorted(ends)]
    return [points[0], *extremes, points[-1]]


def _number(value: object) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
