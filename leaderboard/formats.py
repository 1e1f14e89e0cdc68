"""A board as the files beside its page: CSV and JSON, fractions."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from typing import Any

from bench.substitutes import mark
from leaderboard import text
from leaderboard.kit import banner
from leaderboard.tables import Board, Row
from leaderboard.telling import sentence


def board_csv(board: Board) -> bytes:
    """The table as CSV, fractions; other data than official and substitutes say so in a first line and in a column."""
    stream = io.StringIO()
    if board.data != "official":
        stream.write(f"# {board.data} data: not comparable with official numbers\n")
    if board.stands_for:
        stream.write(f"# {mark(board.stands_for)}\n")
    writer = csv.writer(stream, lineterminator="\n")
    tasks = [column.task for column in board.columns]
    about_board = {
        "data": board.data,
        "suite": board.suite,
        "stands_for": board.stands_for,
        "setting": board.setting,
        "measure": board.measure,
    }
    head = ("system", "hash", *about_board, "seeds", "score", "low", "high", "ranks", "tied")
    writer.writerow([*head, *map(text.cell, board.averages), *map(text.cell, tasks)])
    for row in _every(board):
        about = (*about_board.values(), " ".join(map(str, row.seeds)))
        numbers = (row.score, row.low, row.high)
        writer.writerow(
            [
                text.cell(row.name),
                row.system.hash,
                *map(text.cell, about),
                *map(_blank, numbers),
                text.place(row.ranks) if row.ranks else "",
                str(row.tied).lower(),
                *(_blank(row.averages.get(name)) for name in board.averages),
                *(_blank(row.tasks.get(task)) for task in tasks),
            ]
        )
    return stream.getvalue().encode()


def _blank(value: float | None) -> str:
    """A fraction in a cell, nothing for what is not there."""
    return "" if value is None else str(text.fraction(value))


def _every(board: Board) -> Iterator[Row]:
    """Ranked rows, then the others."""
    yield from board.rows
    yield from board.incomplete


def board_json(board: Board) -> bytes:
    """The board for machines: fractions, every measure, comparisons of the best row, commands."""
    content = {
        "schema": "retrieval-bench/board/1",
        "note": banner(board.data, board.stands_for),
        "suite": {
            "name": board.suite,
            "title": board.title,
            "version": board.version,
            "stands_for": board.stands_for or None,
        },
        "setting": board.setting,
        "data": board.data,
        "measure": board.measure,
        "headline": board.headline,
        "whole_suite": board.whole,
        "tasks": [{"task": column.task, "queries": column.queries} for column in board.columns],
        "sentence": sentence(board),
        "pairs_tested": board.pairs,
        "rows": [_row_json(row) for row in _every(board)],
        "best_against": [
            {
                "system": name,
                **{key: text.fraction(getattr(one, key)) for key in ("difference", "low", "high", "p_randomisation")},
                "p_holm": text.fraction(chance),
                **{key: getattr(one, key) for key in ("n", "wins", "ties", "losses")},
            }
            for name, (one, chance) in board.best_against.items()
        ],
    }
    return (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _row_json(row: Row) -> dict[str, Any]:
    """A row for machines."""
    return {
        "system": row.name,
        "method": row.system.method,
        "hash": row.system.hash,
        "seeds": list(row.seeds),
        **_rounded({"score": row.score, "low": row.low, "high": row.high}),
        "ranks": list(row.ranks) if row.ranks else None,
        "tied_with_best": row.tied,
        "averages": _rounded(row.averages),
        "tasks": _rounded(row.tasks),
        "measures": _rounded(row.measures),
        "command": row.command,
        "libraries": dict(row.libraries),
    }


def _rounded(values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Fractions as files hold them."""
    return {name: None if value is None else text.fraction(value) for name, value in values.items()}
