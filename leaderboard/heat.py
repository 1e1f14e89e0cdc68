"""The map of a board by task: differences to a baseline in seven bins, values in seven, and which of them are clear.

Limits are those of the suite, so that one colour means one size in all settings. A difference is clear where its paired
test of that task is, corrected (Holm) over all differences that the map shows to this baseline.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.scoring.ranks import LEVEL
from bench.scoring.significance import holm
from leaderboard.tables import Board, Row

BINS = 7
_LIMITS = (0.05, 0.1, 0.2, 0.4, 1.0)
_COVERED = 0.9
"""Part of the differences that lie within the limit; the others have the colour of its end."""
BASE = "bm25"
"""The method that others are held against where it is there."""


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


def scale(boards: Iterable[Board]) -> Scale:
    """Choose the colours of a suite from all its boards of one kind of data."""
    values: list[float] = []
    sizes: list[float] = []
    for board in boards:
        base = baseline(board)
        for row in every(board):
            values += row.tasks.values()
            sizes += [abs(value - base.tasks[task]) for task, value in row.tasks.items() if base and task in base.tasks]
    sizes.sort()
    wanted = sizes[math.ceil(_COVERED * len(sizes)) - 1] if sizes else 0.0
    limit = next((one for one in _LIMITS if one >= wanted), _LIMITS[-1])
    low, high = math.floor(10 * min(values)) / 10, math.ceil(10 * max(values)) / 10
    return Scale(limit, low, high if high > low else low + 0.1)


def every(board: Board) -> list[Row]:
    """Ranked rows, then the others."""
    return [*board.rows, *board.incomplete]


def baseline(board: Board) -> Row | None:
    """The row that the map is held against at first: BM25, or the last in rank; None where no two rows are there."""
    if len(every(board)) < 2 or not board.rows:
        return None
    return next((row for row in board.rows if row.system.method == BASE), board.rows[-1])


def clear(board: Board, base: Row) -> frozenset[tuple[str, str]]:
    """Rows and tasks whose difference to a baseline is significant."""
    cells, chances = [], []
    for task, pairs in board.tests.tasks.items():
        for row in every(board):
            if (row.name, base.name) in pairs:
                one = pairs.comparison(row.name, base.name)
                cells.append((row.name, task, one.difference))
                chances.append(one.p_randomisation)
    corrected = holm(chances)
    return frozenset(
        (name, task) for (name, task, gap), p in zip(cells, corrected, strict=True) if p <= LEVEL and gap != 0
    )


def bits(board: Board, base: Row, rows: Sequence[Row]) -> str:
    """`clear` for some rows as digits, row by row and task by task."""
    found = clear(board, base)
    return "".join("01"[(row.name, column.task) in found] for row in rows for column in board.columns)


def _bin(share: float) -> int:
    """Bin of a share of the whole width; what lies outside has the end's."""
    return min(BINS - 1, max(0, math.floor(BINS * share + 1e-9)))
