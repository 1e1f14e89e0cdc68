"""Line charts as text, for a terminal: the same `Chart` that is drawn as SVG, in at most 80 columns.

A line is a letter at its points, and dots between them; a bar over a point is the range of its values (seeds). Level
lines are dashes with their letter at the right end. A place that several lines share has `*`.
"""

import math
from collections.abc import Sequence
from itertools import pairwise
from string import ascii_lowercase, ascii_uppercase

from bench.evaluation.svg import Axis, Chart, Counts, Series, axis, short

_LETTERS = ascii_lowercase + ascii_uppercase
_SHARED, _BETWEEN, _RANGE, _LEVEL = "*", "·", "│", "-"
_WEAK = {" ": 0, _LEVEL: 1, _BETWEEN: 2, _RANGE: 3}
"""What gives way to what where two parts of a drawing meet; letters give way to nothing."""


def text_chart(chart: Chart, width: int = 80, height: int = 16) -> str:
    """Draw a chart; x is a scale of `bench.evaluation.svg.Counts`.

    Args:
        chart: its lines.
        width: columns that it may take.
        height: rows between the axes.

    Raises:
        ValueError: no line has a value.
    """
    values = [value for line in chart.lines for point in line.points for value in point.values]
    up = axis(values, width=height, most=4)
    if up is None:
        raise ValueError("a chart without a value")
    numbers = {_row(up, height, tick): up.exact(tick) for tick in up.ticks}
    margin = max(map(len, numbers.values())) + 2
    places = [line for line in chart.lines if not line.level] or list(chart.lines)
    across = Counts(tuple(sorted({point.x for line in places for point in line.points})), width - margin, inset=1)
    grid = [[" "] * (width - margin) for _ in range(height)]
    for letter, line in zip(_LETTERS, chart.lines, strict=False):
        _draw(grid, line, letter, up, across)
    rows = [
        f"{numbers.get(at, ''):>{margin - 2}} {'┤' if at in numbers else '│'}{''.join(cells).rstrip()}"
        for at, cells in enumerate(grid)
    ]
    ticks, base = [" "] * (width - margin), ["─"] * (width - margin)
    free = 0
    for tick in across.ticks:
        column, words = round(across.pixel(tick)), short(tick)
        base[min(column, len(base) - 1)] = "┴"
        begin = min(max(0, column - len(words) // 2), len(ticks) - len(words))
        if begin >= free:
            ticks[begin : begin + len(words)] = words
            free = begin + len(words) + 1
    legend = [f"  {letter} {line.name}" for letter, line in zip(_LETTERS, chart.lines, strict=False)]
    return "\n".join(
        [
            f"{chart.y} by {chart.x}"[:width],
            *(row[:width] for row in rows),
            f"{'':>{margin - 2}} └{''.join(base)}"[:width],
            f"{'':>{margin}}{''.join(ticks).rstrip()}",
            *(entry[:width] for entry in legend),
        ]
    )


def _row(up: Axis, height: int, value: float) -> int:
    """Return the row of a value, 0 the highest."""
    share = (value - up.start) / (up.end - up.start)
    return min(height - 1, max(0, round((height - 1) * (1 - share))))


def _draw(grid: list[list[str]], line: Series, letter: str, up: Axis, across: Counts) -> None:
    """Draw a line over what is there."""
    height, last = len(grid), len(grid[0]) - 1

    def draw(column: int, row: int, mark: str) -> None:
        cell = grid[row][column]
        if mark in _WEAK:
            if cell in _WEAK and _WEAK[cell] < _WEAK[mark]:
                grid[row][column] = mark
        else:
            grid[row][column] = mark if cell in _WEAK or cell == mark else _SHARED

    if line.level:
        row = _row(up, height, math.fsum(point.mean for point in line.points) / len(line.points))
        for column in range(last):
            draw(column, row, _LEVEL)
        draw(last, row, letter)
        return
    points = sorted(line.points, key=lambda point: point.x)
    columns = [min(last, round(across.pixel(point.x))) for point in points]
    for (first, second), (begin, end) in zip(pairwise(points), pairwise(columns), strict=True):
        for column in range(begin + 1, end):
            share = (column - begin) / (end - begin)
            draw(column, _row(up, height, first.mean + share * (second.mean - first.mean)), _BETWEEN)
    for point, column in zip(points, columns, strict=True):
        ends: Sequence[int] = [_row(up, height, value) for value in (max(point.values), min(point.values))]
        for row in range(ends[0], ends[1] + 1):
            draw(column, row, _RANGE)
        draw(column, _row(up, height, point.mean), letter)
