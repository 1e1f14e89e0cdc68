"""Quality against cost: which rows no other one beats at their price, and the drawing."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from leaderboard.curves import short
from leaderboard.svg import Axis, axis
from leaderboard.text import duration, number, visible

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, FREE = 720, 300, 48, 28, 14, 120
_LABEL = 40  # characters of a name beside its mark


@dataclass(frozen=True)
class Point:
    """A row in the plane.

    Args:
        name: of the row.
        cost: in seconds of training; None where nothing was trained.
        score: a fraction.
    """

    name: str
    cost: float | None
    score: float


def frontier(points: Sequence[Point]) -> list[Point]:
    """The points that no cheaper one, and none as cheap, is as good as; cheapest first. Untrained ones cost nothing."""
    found: list[Point] = []
    for point in sorted(points, key=lambda one: (one.cost or 0.0, -one.score, one.name)):
        if not found or point.score > found[-1].score:
            found.append(point)
    return found


def draw(points: Sequence[Point], label: str) -> Markup:
    """Draw points on a logarithmic axis of cost, those without any to the left of it; the frontier is a step.

    Args:
        points: at least one.
        label: a sentence for who cannot see it.
    """
    up = axis((100 * point.score for point in points), width=HEIGHT - TOP - BOTTOM)
    logs = [math.log10(point.cost) for point in points if point.cost]
    across = (
        Axis(math.floor(min(logs)), math.ceil(max(logs)) + (len(set(logs)) == 1), 1.0, WIDTH - LEFT - FREE)
        if logs
        else None
    )
    if up is None:
        return Markup()
    best = frontier(points)
    body = [*_frame(across, up), _step(best, across, up), *_marks(points, best, across, up)]
    return Markup(  # noqa: S704 (numbers of ours; texts are escaped)
        f'<svg class="scatter" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{escape(visible(label))}">{"".join(body)}</svg>'
    )


def _frame(across: Axis | None, up: Axis) -> Iterator[str]:
    """Grid, numbers, and the place of what was not trained here."""
    for value in up.ticks:
        y = _y(up, value)
        yield f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{short(value)}</text>'
    yield f'<text x="{LEFT}" y="{HEIGHT - 6}">not trained here</text>'
    if across is not None:
        for value in across.ticks:
            x = LEFT + FREE + across.pixel(value)
            yield f'<text x="{x:.1f}" y="{HEIGHT - 6}" text-anchor="middle">{duration(10**value)}</text>'


def _step(best: Sequence[Point], across: Axis | None, up: Axis) -> str:
    """The frontier: what can be had for each price."""
    path = ""
    for point in best:
        x, y = _x(across, point), _y(up, 100 * point.score)
        path += f"H{x:.1f}V{y:.1f}" if path else f"M{x:.1f} {y:.1f}"
    return f'<path class="frontier" d="{path}H{WIDTH}"/>'


def _marks(points: Sequence[Point], best: Sequence[Point], across: Axis | None, up: Axis) -> Iterator[str]:
    """A mark a point, filled on the frontier, where its name stands beside it; all have their name as a hint."""
    for place, point in enumerate(points):
        x, y = _x(across, point), _y(up, 100 * point.score)
        kind = "" if point in best else ' class="hollow"'
        hint = escape(visible(f"{point.name}: {number(point.score)}, {duration(point.cost)}"))
        yield f'<g data-k="{place}"><circle{kind} cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{hint}</title></circle>'
        if point in best:
            anchor = ' text-anchor="end"' if x > WIDTH - FREE else ""
            label = escape(visible(point.name)[:_LABEL])
            yield f'<text x="{x + (-7 if anchor else 7):.1f}" y="{y - 6:.1f}"{anchor}>{label}</text>'
        yield "</g>"


def _x(across: Axis | None, point: Point) -> float:
    """Where a cost stands, from the left."""
    if across is None or not point.cost:
        return LEFT + 12.0
    return LEFT + FREE + across.pixel(math.log10(point.cost))


def _y(up: Axis, value: float) -> float:
    """Where a value stands, from the top."""
    return TOP + up.width - up.pixel(value)
