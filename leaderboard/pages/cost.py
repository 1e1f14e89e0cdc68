"""Quality against cost: a drawing and a table a board, and which rows nothing cheaper is as good as."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from leaderboard import telling, text
from leaderboard.kit import Files, Renderer
from leaderboard.places import FIRST, suite_stem
from leaderboard.rows import Entry, of_trees
from leaderboard.scatter import Point, draw, frontier
from leaderboard.tables import Board

_ROWS = 250  # of all tables of a page; beyond, only the frontier is listed


@dataclass(frozen=True)
class Shown:
    """A board on the page.

    Args:
        board: the table.
        suite: path of its page.
        title: for people.
        sentence: what the frontier says.
        drawing: all rows that have a score.
        rows: those that are listed, with their number in the drawing, the cheapest first.
        best: names on the frontier.
        left: how many rows are not listed.
    """

    board: Board
    suite: str
    title: str
    sentence: str
    drawing: Markup
    rows: Sequence[tuple[int, Entry]]
    best: frozenset[str]
    left: int


def files(renderer: Renderer, every: Sequence[Entry]) -> Files:
    """A page for every tree in which a training's cost is known."""
    for (data, inside), held in of_trees(every).items():
        scored = [entry for entry in held if entry.row.score is not None and _known(entry)]
        boards = dict.fromkeys((entry.board.suite, entry.board.setting) for entry in scored if entry.row.cost.seconds)
        few = len(scored) <= _ROWS
        shown = [
            _shown([one for one in scored if (one.board.suite, one.board.setting) == key], few=few) for key in boards
        ]
        if shown:
            yield (
                f"{inside}cost.html",
                renderer.page(
                    "cost.html",
                    f"{inside}cost",
                    title="Quality against cost" if data == FIRST else f"Quality against cost · {data} data",
                    data=data,
                    stands_for=held[0].board.stands_for,
                    boards=shown,
                ),
            )


def _shown(held: Sequence[Entry], *, few: bool) -> Shown:
    """A board with its drawing."""
    board = held[0].board
    points = [Point(entry.row.name, entry.row.cost.seconds, entry.row.score or 0.0) for entry in held]
    best = frozenset(point.name for point in frontier(points))
    rows = sorted(enumerate(held), key=lambda pair: (pair[1].row.cost.seconds or 0.0, pair[1].row.name))
    listed = rows if few else [pair for pair in rows if pair[1].row.name in best]
    title = f"{telling.title(board)} · {board.setting}"
    said = sentence(points)
    return Shown(
        board=board,
        suite=f"{suite_stem(board.suite, board.setting, board.data, board.stands_for)}.html",
        title=title,
        sentence=said,
        drawing=draw(points, f"{title}: {board.measure} against seconds of training. {said}"),
        rows=listed,
        best=best,
        left=len(rows) - len(listed),
    )


def sentence(points: Sequence[Point]) -> str:
    """What the frontier says, from the points alone; whether a step of it is significant is for the table's tests."""
    best = frontier(points)
    steps = [f"{point.name} ({text.number(point.score)}, {_price(point)})" for point in best]
    if len(steps) == 1:
        return f"No row scores higher than the cheapest, {steps[0]}."
    return f"Each of these scores higher than everything cheaper: {text.listed(steps)}."


def _known(entry: Entry) -> bool:
    """Whether the cost is known: it is told, or nothing was trained here."""
    return entry.row.cost.seconds is not None or not entry.row.system.budget


def _price(point: Point) -> str:
    """A cost in words."""
    return text.duration(point.cost) if point.cost else "not trained here"
