"""A page a board for any two of its rows: the verdict, each language, what differs in the settings, which queries.

Without the script the page is the table of all pairs. With it, two rows are chosen, and their statistics, settings and
doubts are read from a file a row (`data/pairs`), which holds the pairs with all rows below it.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from bench.fairness import warnings
from bench.scoring.significance import Comparison, chance_text
from bench.substitutes import mark
from leaderboard import telling, text
from leaderboard.kit import Files, Renderer
from leaderboard.perquery import LARGEST, leg_name, put
from leaderboard.places import FIRST, suite_stem
from leaderboard.read import FloatArray
from leaderboard.rows import Entry, compare_stem, of_trees
from leaderboard.tables import LEVEL, Board
from leaderboard.tested import Pairs

_SHOWN = 250
"""Pairs that stand in the page's own table."""
DOUBTED = 5_000
"""Pairs of a board whose doubts are told; of a larger one `bench compare` tells them."""
_LISTED = 20_000
"""Pairs of tasks that the CSV lists."""
_COUNTS = ("wins", "ties", "losses", "n")
_MICRO = 1_000_000
Numbers = dict[tuple[str, str], list[int | str | None]]
"""What the script shows of every pair of some tests."""
_CHOICES = ("method", "version", "backbone", "budget", "budget_flops", "readout")


def files(renderer: Renderer, every: Sequence[Entry]) -> Files:
    """The pages of all boards with two tested rows, and the list of them in every tree."""
    for (data, inside), held in of_trees(every).items():
        groups: dict[tuple[str, str], list[Entry]] = {}
        for entry in held:
            if entry.row.name in entry.board.tests.whole.names:
                groups.setdefault((entry.board.suite, entry.board.setting), []).append(entry)
        boards = [own for own in groups.values() if len(own) > 1]
        for own in boards:
            yield from _board(renderer, own)
        if boards:
            yield (
                f"{inside}compare/index.html",
                renderer.page(
                    "compares.html",
                    f"{inside}compare/index",
                    title="Compare two systems" if data == FIRST else f"Compare two systems · {data} data",
                    data=data,
                    stands_for=held[0].board.stands_for,
                    boards=[
                        (own[0].board, _title(own[0].board), compare_stem(own[0].board), _apart(own[0].board))
                        for own in boards
                    ],
                ),
            )


def _board(renderer: Renderer, own: Sequence[Entry]) -> Files:
    """The page of a board, its pairs as CSV, and a file a row."""
    board, stem = own[0].board, compare_stem(own[0].board)
    yield f"{stem}.csv", _csv(board)
    whole = _numbers(board.tests.whole)
    alone = len(board.columns) == 1  # then the task is the headline
    tasks = [whole] if alone else [_numbers(board.tests.tasks.get(column.task)) for column in board.columns]
    for place, entry in enumerate(own):
        yield f"{entry.inside}data/pairs/{entry.id}.js", _script(entry, own[place + 1 :], whole, tasks)
    pairs = list(combinations(board.tests.whole.names, 2))
    yield (
        f"{stem}.html",
        renderer.page(
            "compare.html",
            stem,
            title=_title(board),
            data=board.data,
            stands_for=board.stands_for,
            board=board,
            sentence=sentence(board),
            suite=f"{suite_stem(board.suite, board.setting, board.data, board.stands_for)}.html",
            pairs=[(*pair, *_tested(board, *pair)) for pair in pairs[:_SHOWN]],
            doubted=len(pairs) <= DOUBTED,
            more=max(0, len(pairs) - _SHOWN),
            name=stem.rpartition("/")[2],
            told=text.json_for_page(_told(stem, own)),
            stems={entry.row.name: f"{entry.stem}.html" for entry in own},
        ),
    )


def _title(board: Board) -> str:
    """How the page is called."""
    return f"Compare · {telling.title(board)} · {board.setting}"


def sentence(board: Board) -> str:
    """How many pairs can be told apart, and how large a difference must be for that."""
    apart, pairs = _apart(board)
    said = f"{apart} of {text.plural(pairs, 'pair')} of systems can be told apart"
    if board.tests.detectable is None:
        return f"{said}."
    return f"{said}; differences under {text.number(board.tests.detectable)} points can mostly not be seen here."


def _apart(board: Board) -> tuple[int, int]:
    """How many pairs are significantly different, and how many there are."""
    names, chances = board.tests.whole.names, board.tests.whole.corrected
    differences = board.tests.whole.column("difference").tolist()
    told = zip(combinations(names, 2), differences, strict=True)
    return sum(chances[pair] <= LEVEL and difference != 0 for pair, difference in told), _pairs_of(board)


def _pairs_of(board: Board) -> int:
    """How many pairs there are."""
    return math.comb(len(board.tests.whole.names), 2)


def _tested(board: Board, first: str, second: str) -> tuple[Comparison, float]:
    """Two rows held against each other, with Holm's p."""
    return board.tests.whole.comparison(first, second), board.tests.whole.corrected[first, second]


def _told(stem: str, own: Sequence[Entry]) -> dict[str, Any]:
    """What the script needs before two rows are chosen."""
    board, first = own[0].board, own[0].system.first.content
    names = {column.task: column.name for column in board.columns}
    return {
        "data": f"{'../' * stem.count('/')}{own[0].inside}data/",
        "measure": board.measure,
        "tasks": [column.name for column in board.columns],
        "legs": [
            [leg_name(task, leg), f"{names.get(task, task)} {leg}".strip()]
            for task, legs in first.tasks.items()
            for leg in legs
        ],
        "rows": [{"slug": text.slug(entry.row.name), "name": entry.row.name, "id": entry.id} for entry in own],
    }


def _script(entry: Entry, below: Sequence[Entry], whole: Numbers, tasks: Sequence[Numbers]) -> bytes:
    """The file of a row; where it would be too large, tasks and doubts are left to the table and the settings."""
    key, told = f"pairs-{entry.id}", _pairs(entry, below, whole, tasks)
    found = put(key, told)
    if len(found) <= LARGEST:
        return found
    pairs = {other: {"whole": pair["whole"], "tasks": [], "doubts": []} for other, pair in told["pairs"].items()}
    return put(key, {**told, "pairs": pairs})


def _pairs(entry: Entry, below: Sequence[Entry], whole: Numbers, tasks: Sequence[Numbers]) -> dict[str, Any]:
    """A row's settings, and its pairs with the rows below it: numbers in millionths, doubts as sentences."""
    doubted = _pairs_of(entry.board) <= DOUBTED
    return {
        "settings": _settings(entry),
        "pairs": {
            other.id: {
                "whole": whole[entry.row.name, other.row.name],
                "tasks": [_task(task, entry.row.name, other.row.name) for task in tasks],
                "doubts": warnings([entry.side, other.side]) if doubted else [],
            }
            for other in below
        },
    }


def _settings(entry: Entry) -> dict[str, str]:
    """Everything that was chosen, by key."""
    system = entry.row.system.model_dump()
    chosen = {key: str(system[key]) for key in _CHOICES if system.get(key)}
    chosen |= {"corpus": system["corpus"]["name"]} if system.get("corpus") else {}
    return chosen | {key: value for key, value, _ in entry.settings()}


def _numbers(pairs: Pairs | None) -> Numbers:
    """By pair: difference, interval, Holm's p in words, 1 if significant, detectable; queries won, tied, lost, all."""
    if pairs is None:
        return {}
    fractions = [_millionths(pairs.column(name)) for name in ("difference", "low", "high", "detectable")]
    counts = [pairs.column(name).astype(int).tolist() for name in _COUNTS]
    found: Numbers = {}
    for pair, difference, low, high, least, *rest in zip(
        combinations(pairs.names, 2), *fractions, *counts, strict=True
    ):
        chance = pairs.corrected[pair]
        clear = int(chance <= LEVEL and difference != 0)
        found[pair] = [difference, low, high, chance_text(chance), clear, least, *rest]
    return found


def _millionths(column: FloatArray) -> list[int | None]:
    """Fractions as whole numbers; None for NaN."""
    return [None if value != value else round(value) for value in (_MICRO * column).tolist()]  # noqa: PLR0124 (NaN)


def _task(numbers: Numbers, first: str, second: str) -> list[int | str | None] | None:
    """The numbers of a task, Holm's p over the pairs of that task; None where it was not tested.

    Systems stand in another order in a task's tests, by name.
    """
    if (first, second) in numbers:
        return numbers[first, second][:5]
    if (second, first) not in numbers:
        return None
    difference, low, high, *rest = numbers[second, first][:5]
    return [*(None if value is None else -int(value) for value in (difference, high, low)), *rest]


def _csv(board: Board) -> bytes:
    """All pairs of a board, fractions."""
    stream = io.StringIO()
    if board.data != FIRST:
        stream.write(f"# {board.data} data: not comparable with official numbers\n")
    if board.stands_for:
        stream.write(f"# {mark(board.stands_for)}\n")
    writer = csv.writer(stream, lineterminator="\n")
    numbers = ("difference", "low", "high", "p_randomisation", "p_holm", "detectable", *_COUNTS)
    writer.writerow(["data", "suite", "setting", "measure", "task", "system", "other", *numbers])
    about = (board.data, board.suite, board.setting, board.measure)
    for task, pairs in _listed(board):
        columns = [_cells(pairs, name) for name in numbers if name != "p_holm"]
        for (first, second), *values in zip(combinations(pairs.names, 2), *columns, strict=True):
            values.insert(numbers.index("p_holm"), round(pairs.corrected[first, second], 6))
            writer.writerow([*map(text.cell, (*about, task, first, second)), *values])
    return stream.getvalue().encode()


def _cells(pairs: Pairs, name: str) -> list[float | str]:
    """Numbers as files hold them, counts as whole numbers; empty for NaN."""
    column = pairs.column(name)
    values = column.astype(int) if name in _COUNTS else np.round(column, 6)
    return ["" if value != value else value for value in values.tolist()]  # noqa: PLR0124 (NaN)


def _listed(board: Board) -> Iterator[tuple[str, Pairs]]:
    """Tests by task (empty for the headline, which is first); of a board with very many pairs the headline alone."""
    yield "", board.tests.whole
    if _pairs_of(board) * len(board.tests.tasks) <= _LISTED:
        yield from board.tests.tasks.items()
