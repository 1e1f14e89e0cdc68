"""Tables of the site for other programs: a board, a paper's tables, or every number in long form.

Rows of other data than official, and of substitutes, carry the columns `data` and `stands_for` and a note, and never
stand in one table with official rows: each kind is a table of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bench.publications import Reported
from bench.substitutes import mark
from leaderboard import text
from leaderboard.kit import banner
from leaderboard.places import FIRST
from leaderboard.printed import Block, Printed, sheets
from leaderboard.read import Result
from leaderboard.sheets import Sheet, Value, as_csv
from leaderboard.tables import Board, Row
from leaderboard.telling import caption

READ = ("latex", "markdown")
"""Formats that people read."""
_PAPER = (
    "paper",
    "table",
    "setting",
    "model",
    "suite",
    "dataset",
    "key",
    "measure",
    "printed",
    "unit",
    "note",
    "task",
    "average",
    "error",
    "wrong",
    "corrected",
)
_LONG = (
    "data",
    "suite",
    "stands_for",
    "setting",
    "system",
    "hash",
    "seeds",
    "kind",
    "name",
    "measure",
    "value",
    "queries",
)


def notes(data: str, stands_for: str) -> tuple[str, ...]:
    """What must stand with rows of a kind of data; nothing for official data of a benchmark itself."""
    said = [] if data == FIRST else [f"{data} data: not comparable with official numbers"]
    return (*said, *([mark(stands_for)] if stands_for else []))


def board_sheet(board: Board) -> Sheet:
    """A board for programs: the columns of the CSV beside its page."""
    about: dict[str, Value] = {
        "data": board.data,
        "suite": board.suite,
        "stands_for": board.stands_for,
        "setting": board.setting,
        "measure": board.measure,
    }
    tasks = [column.task for column in board.columns]
    head = ("system", "hash", *about, "seeds", "score", "low", "high", "ranks", "tied", *board.averages, *tasks)
    rows = tuple(
        (
            row.name,
            row.system.hash,
            *about.values(),
            " ".join(map(str, row.seeds)),
            row.score,
            row.low,
            row.high,
            text.place(row.ranks) if row.ranks else "",
            row.tied,
            *(row.averages.get(name) for name in board.averages),
            *(row.tasks.get(task) for task in tasks),
        )
        for row in _every(board)
    )
    return Sheet(_name(board), head, rows, notes(board.data, board.stands_for))


def board_print(board: Board) -> Sheet:
    """A board for people: rank, score with its interval, seeds, averages and tasks; the best group is bold."""
    others = list(board.averages[1:])
    columns = board.columns if board.whole or len(board.columns) > 1 else ()  # the only task is the headline
    kind = [] if board.data == FIRST and not board.stands_for else ["data"]
    head = ["system", *kind, "rank", board.headline, "95 % interval", "seeds"]
    heads = _distinct([*head, *others, *(column.name for column in columns)])
    said = f"{board.data}, {mark(board.stands_for)}" if board.stands_for else board.data
    rows = tuple(
        (
            row.name,
            *([said] if kind else []),
            text.place(row.ranks),
            row.score,
            text.bounds(row.low, row.high),
            len(row.seeds),
            *(row.averages.get(name) for name in others),
            *(row.tasks.get(column.task) for column in columns),
        )
        for row in _every(board)
    )
    percent = frozenset((heads[len(head) - 3], *heads[len(head) :]))
    strong = frozenset(number for number, row in enumerate(_every(board)) if row.tied)
    return Sheet(caption(board), heads, rows, notes(board.data, board.stands_for), percent, strong)


def paper_sheet(told: Sequence[Reported]) -> Sheet:
    """Numbers of papers, one a line, as printed; with known errors and right values."""
    rows = tuple(tuple(getattr(row, name) for name in _PAPER) for row in told)
    return Sheet(", ".join(dict.fromkeys(row.paper for row in told)), _PAPER, rows)


def paper_csv(told: Sequence[Reported]) -> bytes:
    """The same as CSV."""
    return as_csv(paper_sheet(told))


def paper_print(told: Sequence[Reported]) -> Iterator[Sheet]:
    """Yield a paper's tables in their own shape; known errors are marked ‡ and told in notes."""
    for sheet in sheets(told):
        errors = tuple(f"‡ {error}: {wrong}" for error, wrong in sheet.errors.items())
        for block in sheet.blocks:
            name = f"{sheet.paper}, {sheet.table}, {', '.join(sheet.units)}, as printed"
            yield Sheet(name, _heads(block), tuple(_lines(block)), errors)


def everything(results: Iterable[Result], data: str = FIRST, *, substitutes: bool = False) -> Sheet:
    """Every number of one kind of data in long form: one line a system, task or average, and measure.

    Args:
        results: of any kind; dev tasks are left out.
        data: kind of data.
        substitutes: those of substitutes, else those of benchmarks themselves.
    """
    groups: dict[tuple[str, str, str, str, str], list[Result]] = {}
    for result in results:
        content = result.content
        if content.data == data and bool(content.suite.stands_for) == substitutes:
            key = (content.suite.name, content.suite.stands_for, content.setting, content.system.label)
            groups.setdefault((*key, content.system.hash), []).append(result)
    rows = [row for key in sorted(groups) for row in _long(data, key, groups[key])]
    said = dict.fromkeys(note for key in sorted(groups) for note in notes(data, key[1]))
    return Sheet(f"every number, {data} data{', substitutes' if substitutes else ''}", _LONG, tuple(rows), tuple(said))


def _long(data: str, key: tuple[str, str, str, str, str], group: Sequence[Result]) -> Iterator[tuple[Value, ...]]:
    """Yield the lines of one system on one suite, means over the seeds that have a number."""
    suite, stands_for, setting, label, digest = key
    found: dict[tuple[str, str, str], dict[int, float]] = {}
    queries: dict[str, int] = {}
    for result in sorted(group, key=lambda one: one.content.seed):
        content = result.content.tested()
        for task, legs in content.tasks.items():
            queries[task] = sum(leg.queries for leg in legs.values())
            shared = set.intersection(*(set(leg.measures) for leg in legs.values()))
            for measure in shared:
                values = [leg.measures[measure] for leg in legs.values()]
                found.setdefault(("task", task, measure), {})[content.seed] = sum(values) / len(values)
        for average in content.averages:
            for measure, value in average.measures.items():
                found.setdefault(("average", average.name, measure), {})[content.seed] = value
    for (kind, name, measure), by_seed in sorted(found.items(), key=lambda item: (item[0][0] != "task", item[0])):
        about = (data, suite, stands_for, setting, label, digest, " ".join(map(str, by_seed)), kind, name, measure)
        yield (*about, sum(by_seed.values()) / len(by_seed), queries.get(name) if kind == "task" else None)


def _every(board: Board) -> tuple[Row, ...]:
    """Ranked rows, then the others."""
    return (*board.rows, *board.incomplete)


def _name(board: Board) -> str:
    """What a board's table is called; the banner of other data is part of it."""
    said = banner(board.data, board.stands_for)
    return f"{board.suite} · {board.setting} · {board.data} data" + (f". {said}" if said else "")


def _distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Heads that are all different: the second of one name bears a number."""
    return tuple(
        name if names[:at].count(name) == 0 else f"{name} ({names[:at].count(name) + 1})"
        for at, name in enumerate(names)
    )


def _heads(block: Block) -> tuple[str, ...]:
    """Heads of a printed table: the data set under its measure, in one line."""
    several = len(block.groups) > 1
    names = [
        f"{column.suite} {column.group} {column.dataset}".strip() if several else column.dataset
        for column in block.columns
    ]
    return _distinct(["setting", "model", *names])


def _lines(block: Block) -> Iterator[tuple[Value, ...]]:
    """Rows of a printed table."""
    for setting, lines in block.parts:
        for line in lines:
            yield (setting, line.model, *(_printed(cell) for cell in line.cells))


def _printed(cell: Printed | None) -> str:
    """A printed cell, its known error marked."""
    if cell is None:
        return ""
    return f"{cell.row.printed} ‡" if cell.row.error else cell.row.printed
