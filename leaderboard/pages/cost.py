"""Quality against cost: for every board a drawing and a table, and the rows that no cheaper one beats."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Self

from markupsafe import Markup

from bench.evaluation.svg import Axis, Plane, axis, circle, element, figure, segment, short
from bench.evaluation.svg import text as svg_text
from bench.evaluation.tables import duration
from leaderboard.records import Basis
from leaderboard.site import captions, text
from leaderboard.site.render import Files, Renderer
from leaderboard.site.rows import Entry, by_board, by_tree
from leaderboard.site.site import Site

_ROWS = 250  # of all tables of a page; beyond, only the frontier is listed
WIDTH, HEIGHT, MARGIN_LEFT, MARGIN_BOTTOM, MARGIN_TOP, UNTRAINED = 720, 300, 48, 28, 14, 120
MOST_LABELS = 30
"""Points up to which each has its name in the drawing; of more, those of the frontier."""
_UNITS = {1: (0.01, 0.1, 1, 3, 10, 30), 60: (1, 3, 10, 30), 3_600: (1, 3, 10, 30, 100, 300, 1_000, 10_000)}
_TICKS = [math.log10(unit * count) for unit, counts in _UNITS.items() for count in counts]
_LABEL, _LINE = 40, 13  # characters of a name next to its mark, and the height of a line
_LETTER, _MARK, _BELOW = 7.5, 5, 3
"""Pixels of a letter in a wide typeface, of half a mark with its edge, and of a letter below its line."""


def files(site: Site, renderer: Renderer) -> Files:
    """Yield a page for every tree in which a training's cost is known."""
    for tree, entries in by_tree(site).items():
        # A cost is known where it is reported or nothing was trained here.
        scored = [
            entry
            for entry in entries
            if entry.row.score is not None
            and entry.row.verified
            and not entry.row.point
            and (entry.row.cost.seconds is not None or not entry.row.system.budget)
        ]
        all_rows = len(scored) <= _ROWS
        sections = [
            _section(rows, all_rows=all_rows)
            for rows in by_board(scored).values()
            if any(entry.row.cost.seconds for entry in rows)
        ]
        if sections:
            yield renderer.page(
                "cost.html",
                f"{tree.folder}cost",
                title=tree.titled("Quality against cost"),
                of=tree,
                boards=sections,
                handed_in=any(entry.row.verification.basis is not Basis.RUN_HERE for entry in scored),
            )


def _section(entries: Sequence[Entry], *, all_rows: bool) -> dict[str, Any]:
    """Return a board's section, which lists all rows or those of the frontier.

    Returns:
        What the template shows: the board, the path of its page (`suite`), title and sentence; the drawing of all rows
        that have a score; the rows that are listed, with their number in the drawing, the cheapest first; the names
        on the frontier (`best`); and how many rows are not listed (`more`), or have no name in the drawing (`unnamed`).
    """
    board = entries[0].board
    points = [Point(entry.row.name, entry.row.cost.seconds, entry.row.score or 0.0) for entry in entries]
    best = frozenset(point.name for point in frontier(points))
    rows = sorted(enumerate(entries), key=lambda pair: (pair[1].row.cost.seconds or 0.0, pair[1].row.name))
    listed = rows if all_rows else [pair for pair in rows if pair[1].row.name in best]
    title = captions.heading(board)
    return {
        "board": board,
        "suite": f"{board.stem}.html",
        "title": title,
        "sentence": sentence(points),
        "drawing": draw(points, f"{title}: {board.measure} against seconds of training. {sentence(points)}"),
        "rows": listed,
        "best": best,
        "more": len(rows) - len(listed),
        "unnamed": len(rows) - len(best) if len(rows) > MOST_LABELS else 0,
    }


def sentence(points: Sequence[Point]) -> str:
    """Return the frontier in words; whether a step is significant is for the table's tests."""
    steps = [
        f"{point.name} ({text.number(point.score)}, {duration(point.cost) if point.cost else 'not trained'})"
        for point in frontier(points)
    ]
    if len(steps) == 1:
        return f"No system scores higher than the cheapest, {steps[0]}."
    return f"Each of these scores higher than every cheaper system: {text.listed(steps)}."


@dataclass(frozen=True)
class Point:
    """A row in the plane.

    Args:
        name: of the row.
        cost: seconds of training; None where nothing was trained.
        score: a fraction.
    """

    name: str
    cost: float | None
    score: float


def frontier(points: Sequence[Point]) -> list[Point]:
    """The points that no cheaper one, and none as cheap, is as good as; cheapest first. Untrained ones cost nothing."""
    best: list[Point] = []
    for point in sorted(points, key=lambda point: (point.cost or 0.0, -point.score, point.name)):
        if not best or point.score > best[-1].score:
            best.append(point)
    return best


def draw(points: Sequence[Point], label: str) -> Markup:
    """Draw points, at least one, on a logarithmic axis of cost, those without any to the left; the frontier is a step.

    The label is a sentence for those who cannot see it.
    """
    up = axis((100 * point.score for point in points), width=HEIGHT - MARGIN_TOP - MARGIN_BOTTOM)
    if up is None:
        return Markup()
    logs = [math.log10(point.cost) for point in points if point.cost]
    width = WIDTH - MARGIN_LEFT - UNTRAINED
    across = _Times.over(logs, width) if logs else None
    plane = Plane(up, MARGIN_LEFT, WIDTH, MARGIN_TOP, across, start=MARGIN_LEFT + UNTRAINED)
    best = frontier(points)
    places = {
        point: (plane.x(math.log10(point.cost)) if point.cost else MARGIN_LEFT + 12.0, plane.y(100 * point.score))
        for point in points
    }
    (x, y), *steps_up = (places[point] for point in best)
    labelled = points if len(points) <= MOST_LABELS else best
    steps = "".join(f"H{right:.1f}V{up_:.1f}" for right, up_ in steps_up)
    free = (_LabelPlacer(_LINE, places.values()), _LabelPlacer(2 * _LINE))
    body = [
        *plane.levels(short),
        svg_text(MARGIN_LEFT, HEIGHT - 6, "not trained", "aside"),
        *plane.numbers(HEIGHT - 6, lambda value: duration(10**value)),
        element("path", kind="frontier", d=f"M{x:.1f} {y:.1f}{steps}H{WIDTH}"),
        *(
            _mark(place, point, *places[point], free if point in labelled else None, best=point in best)
            for place, point in enumerate(points)
        ),
    ]
    return Markup(figure(WIDTH, HEIGHT, body, "scatter", label))  # noqa: S704 (all texts are escaped)


@dataclass(frozen=True)
class _Times(Axis):
    """A logarithmic axis of seconds; its numbers are times that people say."""

    @classmethod
    def over(cls, logs: Sequence[float], width: int) -> Self:
        """Return the shortest one that holds all values."""
        below = [tick for tick in _TICKS[:-1] if tick <= min(logs)]
        start = max(below, default=_TICKS[0])
        return cls(start, next((tick for tick in _TICKS if tick >= max(logs) and tick > start), _TICKS[-1]), 1.0, width)

    @property
    def ticks(self) -> list[float]:
        """Those times from one end to the other."""
        return [tick for tick in _TICKS if self.start <= tick <= self.end]


class _LabelPlacer:
    """Finds room for texts of a height: each in its place, or above or below where another one or a mark is."""

    def __init__(self, high: int, marks: Collection[tuple[float, float]] = ()) -> None:
        self._high = high
        self._marks = marks
        self._placed: list[tuple[float, float, float]] = []  # start, end, baseline

    def line(self, start: float, end: float, y: float) -> float:
        """Return the baseline nearest to `y` on which nothing lies between two places."""
        for baseline in (y + sign * step * self._high for step in range(20) for sign in (1, -1)):
            texts = (start < x2 and end > x1 and abs(baseline - y2) < self._high for x1, x2, y2 in self._placed)
            marks = (
                start < x + _MARK and end > x - _MARK and -_MARK - _BELOW < baseline - y < _LINE + _MARK - _BELOW
                for x, y in self._marks
            )
            if not any(texts) and not any(marks):
                break
        self._placed.append((start, end, baseline))
        return baseline


def _mark(
    place: int, point: Point, x: float, y: float, free: tuple[_LabelPlacer, _LabelPlacer] | None, *, best: bool
) -> str:
    """Return a mark, filled on the frontier, with its name, and its number for narrow screens.

    Args:
        place: number of the point in the table, from 0.
        point: the point.
        x: pixels from the left.
        y: pixels from the top.
        free: finds room for its name and for its number; None for a mark without them.
        best: whether it is on the frontier.
    """
    mark = circle(
        x, y, "4", None if best else "hollow", f"{point.name}: {text.number(point.score)}, {duration(point.cost)}"
    )
    if free is None:
        return element("g", mark, data_k=place)
    name, at_edge = point.name[:_LABEL], x > WIDTH - UNTRAINED
    wide = _LETTER * len(name)
    line = free[0].line(*((x - 7 - wide, x - 7) if at_edge else (x + 7, x + 7 + wide)), y - 5)
    words = svg_text(x - 7 if at_edge else x + 7, line, name, "name", "end" if at_edge else None)
    leader = "" if abs(line - y) < 2 * _LINE else segment(x, y, x - 5 if at_edge else x + 5, line - 4, "grid name")
    number = svg_text(x, free[1].line(x - 12, x + 12, y - 10), str(place + 1), "number", "middle")
    return element("g", leader, mark, words, number, data_k=place)
