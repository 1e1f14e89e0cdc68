"""The map of a board by task: differences to a baseline in seven bins, values in seven, and which of them are clear.

Limits are those of the suite, so that one colour means one size in all settings. A difference is clear where its paired
test of that task is, corrected over all pairs and tasks of the board.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from leaderboard.site import text
from leaderboard.site.boards import Board, Row

BINS = 7
_LIMITS = (0.05, 0.1, 0.2, 0.4, 1.0)
_COVERED = 0.9
"""Part of the differences that lie within the limit; the others have the colour of its end."""
BASE = "bm25"
"""The method that others are compared with, if it is there."""


@dataclass(frozen=True)
class HeatCell:
    """A cell of the map."""

    value: float  # fraction
    gap: float | None  # difference to the baseline, None where there is none
    # its colours: `d0`–`d6` of the difference, `a0`–`a6` of the value, `s` for a significant difference, `u` for
    # another
    classes: str


@dataclass(frozen=True)
class Scale:
    """Colours of a suite."""

    limit: float  # of differences, a fraction; the colours run from minus to plus of it
    low: float  # value of the palest colour
    high: float  # value of the strongest one

    def difference(self, value: float) -> int:
        """Bin of a difference, 0 (worse) to 6 (better)."""
        return _bin((value + self.limit) / (2 * self.limit))

    def value(self, value: float) -> int:
        """Bin of a value, 0 (low) to 6 (high)."""
        return _bin((value - self.low) / (self.high - self.low))


def scale(boards: Iterable[Board]) -> Scale:
    """Choose the colours of a suite from all its boards of one kind of data."""
    values: list[float] = []
    sizes: list[float] = []
    for board in boards:
        base = baseline(board)
        for row in (row for row in board.every if row.state.verified or not board.rows):
            values += row.tasks.values()
            sizes += [abs(value - base.tasks[task]) for task, value in row.tasks.items() if base and task in base.tasks]
    sizes.sort()
    wanted = sizes[math.ceil(_COVERED * len(sizes)) - 1] if sizes else 0.0
    limit = next((one for one in _LIMITS if one >= wanted), _LIMITS[-1])
    low, high = math.floor(10 * min(values)) / 10, math.ceil(10 * max(values)) / 10
    return Scale(limit, low, high if high > low else low + 0.1)


def baseline(board: Board) -> Row | None:
    """Return the first baseline of the map: BM25, or the last in rank; None for fewer than two rows."""
    if len(board.every) < 2 or not board.rows:
        return None
    return next((row for row in board.rows if row.system.method == BASE), board.rows[-1])


def significant(board: Board, base: Row) -> frozenset[tuple[str, str]]:
    """Rows and tasks whose difference to a baseline is significant."""
    cells = board.tests.cells
    return frozenset(
        (row.name, task)
        for task in cells.members
        for row in board.every
        if cells.has(row.name, base.name, task) and cells.comparison(row.name, base.name, task).decided
    )


def bits(board: Board, base: Row, rows: Sequence[Row]) -> str:
    """`significant` for some rows as digits, row by row and task by task."""
    found = significant(board, base)
    return "".join("01"[(row.name, column.task) in found] for row in rows for column in board.columns)


def cells(
    board: Board, row: Row, base: Row | None, significant: frozenset[tuple[str, str]], colours: Scale
) -> tuple[HeatCell | None, ...]:
    """Return the cells of a row, one a task; None for a task that it lacks."""
    return tuple(_cell(row, column.task, base, significant, colours) for column in board.columns)


def _cell(
    row: Row, task: str, base: Row | None, significant: frozenset[tuple[str, str]], colours: Scale
) -> HeatCell | None:
    if task not in row.tasks:
        return None
    value = row.tasks[task]
    shade = f"a{colours.value(text.fraction(value))}"
    if base is None or task not in base.tasks:
        return HeatCell(value, None, shade)
    gap = text.gap(value, base.tasks[task])
    if row.name == base.name:
        return HeatCell(value, gap, shade)
    clear = "s" if (row.name, task) in significant else "u"
    return HeatCell(value, gap, f"d{colours.difference(gap)} {clear} {shade}")


def _bin(share: float) -> int:
    """Bin of a share of the whole width; what lies outside has the end's."""
    return min(BINS - 1, max(0, math.floor(BINS * share + 1e-9)))
