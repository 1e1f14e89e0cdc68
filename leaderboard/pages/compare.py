"""A page a board for any two of its rows: the verdict, each language, what differs in the settings, which queries.

Without the script the page is the table of all pairs. With it, two rows are chosen, and their statistics, settings and
doubts are read from a file a row (`data/pairs`), which holds the pairs with all rows below it.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from bench.evaluation.compare.fairness import pair_warnings
from bench.evaluation.significance.families import Family
from bench.evaluation.tables import DIGITS, Table, chance_text, encoded, plain_columns
from leaderboard.site import captions, text
from leaderboard.site.boards import Board
from leaderboard.site.perquery import LARGEST, as_script, subset_name
from leaderboard.site.render import Files, Renderer
from leaderboard.site.rows import Entry, by_board, by_tree
from leaderboard.site.site import Site
from leaderboard.site.statistics import HEADLINE
from leaderboard.site.text import micros

_SHOWN = 250
"""Pairs in the page's own table."""
DOUBTED = 5_000
"""Pairs up to which a page lists doubts about fairness; `bench compare` lists those of larger boards."""
_LISTED = 20_000
"""Pairs of tasks that the CSV lists."""
_COUNTS = ("wins", "ties", "losses", "n")
_TASK_NUMBERS = 6
"""Numbers of a pair that a task has too: all but the counts of queries."""
Numbers = dict[tuple[str, str], list[int | str | None]]
"""What the script shows of every pair of some tests."""
_CHOICES = ("method", "version", "backbone", "budget", "budget_flops", "budget_steps", "readout")


def files(site: Site, renderer: Renderer) -> Files:
    """Yield the pages of all boards with two tested rows, and the list of them in every tree."""
    for tree, entries in by_tree(site).items():
        tested = [entry for entry in entries if entry.row.name in entry.board.tests.ranks.members.get(HEADLINE, ())]
        groups = [rows for rows in by_board(tested).values() if len(rows) > 1]
        for rows in groups:
            yield from _board(renderer, rows)
        if groups:
            boards = [rows[0].board for rows in groups]
            yield renderer.page(
                "compares.html",
                f"{tree.folder}compare/index",
                title=tree.titled("Compare two systems"),
                of=tree,
                boards=[
                    (board, f"Compare · {captions.heading(board)}", board.compare_stem, _significant(board))
                    for board in boards
                ],
            )


def _board(renderer: Renderer, rows: Sequence[Entry]) -> Files:
    """Yield the page of a board, its pairs as CSV, and a file a row.

    The file of a row has its pairs with all rows below it, so that every pair is stored once. Where it would be larger
    than `LARGEST` bytes, tasks and doubts are left out of it.
    """
    board, stem = rows[0].board, rows[0].board.compare_stem
    yield f"{stem}.csv", _csv(board)
    ranks, cells = board.tests.ranks, board.tests.cells
    headline = _numbers(ranks, HEADLINE)
    # a single task is the headline
    tasks = [_numbers(cells, column.task) for column in board.columns] if len(board.columns) > 1 else [headline]
    for position, entry in enumerate(rows, 1):
        key, content = f"pairs-{entry.id}", _pairs(entry, rows[position:], headline, tasks)
        script = as_script(key, content)
        if len(script) > LARGEST:  # tasks and doubts are left to the table and the settings
            pairs = {name: {**pair, "tasks": [], "doubts": []} for name, pair in content["pairs"].items()}
            script = as_script(key, {**content, "pairs": pairs})
        yield f"{entry.inside}data/pairs/{entry.id}.js", script
    ranked_pairs = list(ranks.pairs())
    names = {column.task: column.name for column in board.columns}
    subsets = [(task, subset) for task, by_subset in rows[0].system.first.content.tasks.items() for subset in by_subset]
    page_data = {  # what the script needs before two rows are chosen
        "data": f"{'../' * stem.count('/')}{rows[0].inside}data/",
        "measure": board.measure,
        "tasks": [column.name for column in board.columns],
        "subsets": [
            [subset_name(task, subset), f"{names.get(task, task)} {subset}".strip()] for task, subset in subsets
        ],
        "rows": [{"slug": text.slug(entry.row.name), "name": entry.row.name, "id": entry.id} for entry in rows],
    }
    yield renderer.page(
        "compare.html",
        stem,
        title=f"Compare · {captions.heading(board)}",
        of=board.tree,
        board=board,
        sentence=sentence(board),
        suite=f"{board.stem}.html",
        pairs=[(*pair, ranks.comparison(*pair)) for pair in ranked_pairs[:_SHOWN]],
        doubted=len(ranked_pairs) <= DOUBTED,
        more=max(0, len(ranked_pairs) - _SHOWN),
        name=stem.rpartition("/")[2],
        page_data=text.json_for_page(page_data),
        stems={entry.row.name: f"{entry.stem}.html" for entry in rows},
    )


def sentence(board: Board) -> str:
    """Return how many pairs differ significantly, and how large a difference can be detected."""
    significant, pairs = _significant(board)
    counts = f"{significant} of {text.plural(pairs, 'pair')} of systems differ significantly"
    return f"{counts}. {captions.detectable(board)}".rstrip()


def _significant(board: Board) -> tuple[int, int]:
    """Return how many pairs differ significantly, and how many there are."""
    decided = board.tests.ranks.decided
    return int(decided.sum()), len(decided)


def _pairs(entry: Entry, below: Sequence[Entry], headline: Numbers, tasks: Sequence[Numbers]) -> dict[str, Any]:
    """Return a row's settings, and its pairs with the rows below it.

    Args:
        entry: the row.
        below: the rows below it, in the order of the board.
        headline: numbers of every pair on the headline, as `_numbers` returns them.
        tasks: the same for each task, in the order of the columns.

    Returns:
        What the script reads: `settings` by key as text; `pairs` by the other row's id, with the headline's numbers
        (`whole`) and of each `tasks` in millionths, and `doubts` about the fairness of the comparison as sentences.
    """
    doubted = len(entry.board.tests.ranks.decided) <= DOUBTED
    system = entry.row.system.model_dump()
    choices = {key: str(system[key]) for key in _CHOICES if system.get(key)}
    choices |= {"corpus": system["corpus"]["name"]} if system.get("corpus") else {}
    return {
        "settings": choices | {key: value for key, value, _ in entry.settings()},
        "pairs": {
            lower.id: {
                "whole": headline[entry.row.name, lower.row.name],
                "tasks": [_task(task, entry.row.name, lower.row.name) for task in tasks],
                "doubts": [*pair_warnings(entry.system.side, lower.system.side)] if doubted else [],
            }
            for lower in below
        },
    }


def _numbers(tests: Family, estimand: str) -> Numbers:
    """Return what pages show of every pair of systems, in millionths of the measure.

    A pair has difference, low and high end, p in words, 1 if significant, detectable difference; on the headline also
    the counts of `_COUNTS`.
    """
    difference, low, high, detectable = (
        micros(tests.column(name, estimand)) for name in ("difference", "low", "high", "detectable")
    )
    adjusted = tests.column("adjusted", estimand)
    chances = map(chance_text, np.nan_to_num(adjusted).tolist(), tests.column("chance", estimand).tolist())
    clear = tests.column_decided(estimand).astype(int).tolist()
    counts = [_cells(tests, name, estimand) for name in _COUNTS] if estimand == HEADLINE else []
    columns = (difference, low, high, chances, clear, detectable, *counts)
    return {pair: list(values) for pair, *values in zip(tests.pairs(estimand), *columns, strict=True)}


def _task(numbers: Numbers, first: str, second: str) -> list[int | str | None] | None:
    """The numbers of a task, whose tests have the systems in another order, by name; None where it was not tested."""
    if (first, second) in numbers:
        return numbers[first, second][:_TASK_NUMBERS]
    if (second, first) not in numbers:
        return None
    difference, low, high, *further = numbers[second, first][:_TASK_NUMBERS]
    return [*(None if value is None else -int(value) for value in (difference, high, low)), *further]


def _csv(board: Board) -> bytes:
    """Write all pairs of a board as CSV, fractions; of a board with very many those of the headline alone."""
    numbers = ("difference", "low", "high", "p_uncorrected", "adjusted", "detectable", *_COUNTS)
    heads = plain_columns("data", "suite", "regime", "measure", "task", "system", "other", *numbers)
    identity = (board.data, board.suite, board.regime, board.measure)
    families = [board.tests.ranks, *([board.tests.cells] if len(board.tests.cells.decided) <= _LISTED else [])]
    rows = []
    for tests in families:
        for estimand in tests.members:
            columns = [_cells(tests, name, estimand) for name in numbers]
            rows += [
                (*identity, estimand, *pair, *values)
                for pair, *values in zip(tests.pairs(estimand), *columns, strict=True)
            ]
    notes = captions.notes(board.data, board.proxy_for)
    return encoded(Table("pairs", heads, tuple(rows), notes, digits=DIGITS), "csv")


def _cells(tests: Family, name: str, estimand: str) -> list[Any]:
    """The values of a column, counts as whole numbers; None for NaN."""
    if name == "ties":
        count, won, lost = (tests.column(column_name, estimand) for column_name in ("n", "wins", "losses"))
        column = count - won - lost
    else:
        column = tests.column(name, estimand)
    if name in _COUNTS:
        return list(column.astype(int).tolist())
    return [None if math.isnan(value) else value for value in column.tolist()]
