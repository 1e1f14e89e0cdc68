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
"""Share of the differences that lie within the limit; the others have the colour of its end."""
BASE = "bm25"
"""The method that others are compared with, if a board has it."""


@dataclass(frozen=True)
class HeatCell:
    """A cell of the map.

    Args:
        value: a fraction.
        gap: difference to the baseline, None where there is none.
        classes: its colours: `d0`–`d6` of the difference, `a0`–`a6` of the value, `s` for a significant difference, `u`
            for one that is not.
    """

    value: float
    gap: float | None
    classes: str


@dataclass(frozen=True)
class Scale:
    """Colours of a suite.

    Args:
        limit: of differences, a fraction; the colours run from minus to plus of it.
        low: value of the palest colour.
        high: value of the strongest one.
    """

    limit: float
    low: float
    high: float

    def difference(self, value: float) -> int:
        """Bin of a difference, 0 (worse) to 6 (better)."""
        return _bin((value + self.limit) / (2 * self.limit))

    def value(self, value: float) -> int:
        """Bin of a value, 0 (low) to 6 (high)."""
        return _bin((value - self.low) / (self.high - self.low))


def _bin(share: float) -> int:
    """Bin of a share of the whole width; what lies outside has the end's."""
    return min(BINS - 1, max(0, math.floor(BINS * share + 1e-9)))


def scale(boards: Iterable[Board]) -> Scale:
    """Choose the colours of a suite from all its boards of one kind of data.

    Unverified rows decide nothing, or one false result would fade all others; boards that have no other rows are
    coloured by those.
    """
    values: list[float] = []
    gaps: list[float] = []
    for board in boards:
        base = baseline(board)
        for row in (row for row in board.all_rows if row.verified or not board.rows):
            values += row.tasks.values()
            gaps += [abs(value - base.tasks[task]) for task, value in row.tasks.items() if base and task in base.tasks]
    gaps.sort()
    covered = gaps[math.ceil(_COVERED * len(gaps)) - 1] if gaps else 0.0
    limit = next((limit for limit in _LIMITS if limit >= covered), _LIMITS[-1])
    low, high = math.floor(10 * min(values)) / 10, math.ceil(10 * max(values)) / 10
    return Scale(limit, low, high if high > low else low + 0.1)


def baseline(board: Board) -> Row | None:
    """Return the first baseline of the map: BM25, or the last in rank; None for fewer than two rows."""
    if len(board.all_rows) < 2 or not board.rows:
        return None
    return next((row for row in board.rows if row.system.method == BASE), board.rows[-1])


def significant(board: Board, base: Row) -> frozenset[tuple[str, str]]:
    """Rows and tasks whose difference to a baseline is significant."""
    tests = board.tests.cells
    return frozenset((name, task) for task in tests.members for name in tests.decided_against(base.name, task))


def bits(board: Board, base: Row, rows: Sequence[Row]) -> str:
    """`significant` for some rows as digits, row by row and task by task."""
    clear = significant(board, base)
    return "".join("01"[(row.name, column.task) in clear] for row in rows for column in board.columns)


def cells(
    board: Board, row: Row, base: Row | None, clear: frozenset[tuple[str, str]], colours: Scale
) -> tuple[HeatCell | None, ...]:
    """Return the cells of a row.

    Args:
        board: the board.
        row: one of its rows.
        base: the baseline of the map, if there is one.
        clear: `significant` for that baseline.
        colours: of the suite.

    Returns:
        A cell for each task; None for a task that the row lacks.
    """
    row_cells: list[HeatCell | None] = []
    for column in board.columns:
        value = row.tasks.get(column.task)
        if value is None:
            row_cells.append(None)
            continue
        gap, classes = None, f"a{colours.value(text.fraction(value))}"
        if base is not None and column.task in base.tasks:
            gap = text.gap(value, base.tasks[column.task])
            if row.name != base.name:
                mark = "s" if (row.name, column.task) in clear else "u"
                classes = f"d{colours.difference(gap)} {mark} {classes}"
        row_cells.append(HeatCell(value, gap, classes))
    return tuple(row_cells)
