"""The columns of a board, each declared once: for its page, the CSV and JSON files, LaTeX and Markdown.

A new column is one entry of `COLUMNS`: unless it says otherwise, it appears on the page, in both files and in print.
Files have the columns in the order of their declaration, and people read them by `place`. What a page shows is checked
against the CSV when a site is built (`leaderboard.site.verify`), by the same declarations.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from enum import Flag, auto
from typing import Any

from markupsafe import Markup

from bench.core.publications import mark
from bench.evaluation.significance.tasks import OverTasks
from bench.evaluation.tables import DIGITS, MISSING, Column, Table, Value, duration, plain
from bench.types import Method
from leaderboard.records import Basis
from leaderboard.site import text
from leaderboard.site.boards import FIRST, Board, Row
from leaderboard.site.captions import banner, caption, notes, verdict
from leaderboard.site.gains import Gain, board_gains
from leaderboard.site.heat import HeatCell
from leaderboard.site.render import link

METADATA = 92
"""Position of the columns that describe a row; the filter of a page searches their cells."""
_ARXIV = re.compile(r"\barXiv[ :](\d{4}\.\d{4,5})\b")


class View(Flag):
    """Where a column appears."""

    CSV = auto()
    JSON = auto()
    PAGE = auto()
    PRINT = auto()
    FILES = CSV | JSON
    PEOPLE = PAGE | PRINT
    ALL = FILES | PEOPLE


@dataclass(frozen=True)
class TableRow:
    """A row of a board as columns read it.

    Args:
        board: the board.
        row: its row.
        bar: the row's interval, drawn; empty without one.
        paper: what its paper printed under the same conditions, empty if nothing is known.
        cells: of the map by task; None for a task that it lacks.
        gain: over its own start, where it is a contestant.
        day: the day on which the site first showed it, ISO 8601.
        method: what its plugin says of it.
    """

    board: Board
    row: Row
    bar: Markup = field(default_factory=Markup)
    paper: str = ""
    cells: tuple[HeatCell | None, ...] = ()
    gain: Gain | None = None
    day: str = ""
    method: Method | None = None

    @property
    def over_tasks(self) -> dict[str, Any]:
        """The best row minus this one over tasks, as files hold it; empty for the best, and for very few tasks."""
        compared = self.board.over_tasks.get(self.row.name)
        return {name: _rounded(value) for name, value in vars(compared).items()} if compared else {}

    @property
    def reference(self) -> str:
        """Address of its method's paper, where the citation has one."""
        identifier = _ARXIV.search(self.method.citation) if self.method else None
        return f"https://arxiv.org/abs/{identifier[1]}" if identifier else ""

    @property
    def kind(self) -> str | None:
        """The kind of data in print; None for official data of a benchmark itself."""
        if self.board.proxy_for:
            return f"{self.board.data}, {mark(self.board.proxy_for)}"
        return None if self.board.data == FIRST else self.board.data

    @property
    def id(self) -> str:
        """Its name in fragments of addresses."""
        return text.slug(self.row.name)


@dataclass(frozen=True)
class BoardColumn(Column):
    """A column of a board; `head` may name the board's `{headline}`.

    Args:
        value: takes a `TableRow` and returns the value; None where it has none.
        views: where the column appears.
        place: its position for people, ascending.
        percent: whether it is a fraction that people read in percent.
        abbr: the head in full, for screen readers.
        missing: why a cell is empty, for screen readers.
        optional: whether it is left out of a page where no row has a value.
        sort: returns the number that a page sorts by, where the text does not say it.
        expected: returns what a page must show by its line of the CSV; by default the CSV's own value is printed.
        css: class of its cells.
        group: the JSON object that holds it, for columns named by the data.
        on_demand: whether a page hides it until all columns are asked for.

    Example:
        >>> BoardColumn("count", "Tasks", value=lambda line: len(line.row.tasks)).shown(12)
        '12'
    """

    value: Callable[[Any], Any] | None = None
    views: View = View.ALL
    place: int = 90
    percent: bool = False
    abbr: str = ""
    missing: str = ""
    optional: bool = False
    sort: Callable[[TableRow], float | None] | None = None
    expected: Callable[[Mapping[str, str]], str | None] | None = None
    css: str = ""
    group: str = ""
    on_demand: bool = False

    def take(self, line: TableRow) -> Any:
        """Return the value of a row."""
        return self.value(line) if self.value else None

    def shown(self, value: Any) -> str:
        """Print a value for people."""
        if value is None or value == "":
            return MISSING
        if self.show:
            return self.show(value)
        return text.number(value) if self.percent else f"{value:,}" if type(value) is int else plain(value)

    def cell(self, line: TableRow) -> str | None:
        """Return what the page shows; None where there is nothing."""
        value = self.take(line)
        return None if value is None or value == "" else self.shown(value)

    def sorted_by(self, line: TableRow) -> float | None:
        """Return the number that the page sorts a row by; None to sort by the text."""
        value = self.sort(line) if self.sort else self.take(line) if self.percent and not self.group else None
        return text.fraction(value) if isinstance(value, float) else value

    @property
    def classes(self) -> str:
        """Classes of its head; columns that a page shows on demand have one of their own."""
        return " ".join(filter(None, ("" if self.number is False else "n", "extra" if self.on_demand else "")))

    def by_csv(self, line: Mapping[str, str]) -> str | None:
        """Return what the page must show by a line of the CSV; None for a column that the CSV lacks."""
        if self.expected:
            return self.expected(line)
        if self.key not in line:
            return None
        cell: Value = line[self.key] or None
        if isinstance(cell, str) and self.number is not False:
            for kind in (int, float):
                with suppress(ValueError):
                    return self.shown(kind(cell))
        return self.shown(cell)


def _of(read: Callable[[Row], Any]) -> Callable[[TableRow], Any]:
    """Read a value from the row alone."""
    return lambda line: read(line.row)


COLUMNS: tuple[BoardColumn, ...] = (
    BoardColumn("system", value=_of(lambda row: row.name), views=View.FILES | View.PRINT, place=0, number=False),
    BoardColumn("method", value=_of(lambda row: row.system.method), views=View.JSON),
    BoardColumn("hash", value=_of(lambda row: row.system.hash), views=View.FILES),
    BoardColumn("state", value=_of(lambda row: row.verification.state), views=View.FILES),
    BoardColumn("checked", value=_of(lambda row: row.verification.title), views=View.FILES),
    BoardColumn("marks", value=_of(lambda row: "; ".join(row.marks)), views=View.CSV),
    BoardColumn("marks", value=_of(lambda row: list(row.marks)), views=View.JSON),
    BoardColumn(
        "marks",
        "Marks",
        value=_of(lambda row: "; ".join(row.marks) or None),
        views=View.PEOPLE,
        place=80,
        number=False,
        missing="none",
        optional=True,
        expected=lambda csv: csv["marks"] or MISSING,
    ),
    BoardColumn(
        "checked",
        "Checked",
        value=_of(lambda row: None if row.verification.basis is Basis.RUN_HERE else row.verification.title),
        views=View.PEOPLE,
        place=90,
        number=False,
        optional=True,
        expected=lambda csv: MISSING if csv["checked"] == Basis.RUN_HERE else csv["checked"],
    ),
    *(
        BoardColumn(key, value=lambda line, name=name: getattr(line.board, name), views=View.CSV)  # type: ignore[misc]
        for key, name in (
            ("data", "data"),
            ("suite", "suite"),
            ("proxy_for", "proxy_for"),
            ("regime", "regime"),
            ("measure", "measure"),
        )
    ),
    BoardColumn("data", value=lambda line: line.kind, views=View.PRINT, place=5, number=False, optional=True),
    BoardColumn("seeds", value=_of(lambda row: " ".join(map(str, row.seeds))), views=View.CSV),
    BoardColumn("seeds", value=_of(lambda row: list(row.seeds)), views=View.JSON),
    BoardColumn(
        "seeds",
        "Seeds",
        value=_of(lambda row: len(row.seeds)),
        views=View.PEOPLE,
        place=55,
        expected=lambda csv: str(len(csv["seeds"].split())),
    ),
    BoardColumn(
        "score",
        "{headline}",
        value=_of(lambda row: row.score),
        place=20,
        percent=True,
        best=True,
        css="score",
    ),
    BoardColumn("low", value=_of(lambda row: row.low), views=View.FILES),
    BoardColumn("high", value=_of(lambda row: row.high), views=View.FILES),
    BoardColumn(
        "interval",
        "95 % interval",
        value=_of(lambda row: None if row.low is None else text.bounds(row.low, row.high)),
        views=View.PEOPLE,
        place=30,
        expected=lambda csv: text.bounds(*(float(csv[end]) if csv[end] else None for end in ("low", "high"))),
    ),
    BoardColumn(
        "bar",
        value=lambda line: line.bar,
        views=View.PAGE,
        place=25,
        number=False,
        show=Markup,
        optional=True,
    ),
    BoardColumn(
        "gain",
        "Gain over start",
        value=lambda line: line.gain,
        views=View.PAGE,
        place=40,
        abbr="Gain over the own start, points",
        missing="no contestant with its start",
        optional=True,
        sort=lambda line: line.gain.test.difference if line.gain else None,
        show=lambda gain: gain.points,
        expected=lambda _: None,  # the JSON file has gains by themselves
    ),
    BoardColumn("ranks", value=_of(lambda row: text.place(row.ranks) if row.ranks else ""), views=View.CSV),
    BoardColumn("ranks", value=_of(lambda row: list(row.ranks) if row.ranks else None), views=View.JSON),
    BoardColumn(
        "rank",
        "Rank",
        value=_of(lambda row: row.ranks and text.place(row.ranks)),
        views=View.PEOPLE,
        place=10,
        missing="no rank",
        expected=lambda csv: csv["ranks"] or MISSING,
    ),
    *(
        BoardColumn(
            f"over_tasks_{name}",
            value=lambda line, name=name: line.over_tasks.get(name),  # type: ignore[misc]
            views=View.CSV,
        )
        for name in (column.name for column in fields(OverTasks))
    ),
    BoardColumn("over_tasks", value=lambda line: line.over_tasks or None, views=View.JSON),
    BoardColumn("tied", value=_of(lambda row: row.tied), views=View.CSV),
    BoardColumn("tied_with_best", value=_of(lambda row: row.tied), views=View.JSON),
    BoardColumn(
        "tied",
        "Tied",
        value=_of(lambda row: row.letters),
        views=View.PAGE,
        place=50,
        number=False,
        abbr="Tied: rows that share a letter do not differ significantly",
        missing="not tested",
        optional=True,
        on_demand=True,
        expected=lambda _: None,  # files have no letters
    ),
    BoardColumn(
        "cost",
        "Training",
        value=_of(lambda row: row.cost.seconds),
        views=View.PAGE,
        place=70,
        abbr="Training and tuning, time on the clock",
        missing="not reported",
        optional=True,
        on_demand=True,
        show=duration,
        sort=_of(lambda row: row.cost.seconds),
    ),
    BoardColumn(
        "paper",
        "Paper",
        value=lambda line: line.paper,
        views=View.PAGE,
        place=75,
        abbr="What the paper printed under the same conditions",
        missing="no matching number",
        optional=True,
        on_demand=True,
        show=lambda printed: link("reported.html", printed),
    ),
    *(
        BoardColumn(
            key,
            key.capitalize(),
            value=read,
            views=View.PAGE,
            place=METADATA,
            number=count or False,
            optional=True,
            on_demand=True,
            show=show,
        )
        for key, read, count, show in (
            ("backbone", _of(lambda row: row.system.backbone), None, None),
            ("parameters", _of(lambda row: row.cost.parameters), True, None),
            ("dimensions", _of(lambda row: row.cost.dimensions), True, None),
            ("corpus", _of(lambda row: row.system.corpus and row.system.corpus.name), None, None),
            ("budget", _of(lambda row: row.system.budget or None), True, None),
            ("date", lambda line: line.day, None, None),
            ("licence", lambda line: line.method and line.method.licence, None, None),
            ("reference", lambda line: line.reference, None, text.away),
            ("code", lambda line: line.method and line.method.code, None, text.away),
        )
    ),
    BoardColumn(
        "measures",
        value=_of(lambda row: dict(zip(row.measures, map(text.fraction, row.measures.values()), strict=True))),
        views=View.JSON,
    ),
    BoardColumn("command", value=_of(lambda row: row.command), views=View.JSON),
    BoardColumn("libraries", value=_of(lambda row: dict(row.libraries)), views=View.JSON),
)
"""All columns but those of averages and tasks, which `columns` adds."""


def columns(board: Board, view: View) -> list[BoardColumn]:
    """Return the columns of a board in a view, in its order."""
    board_columns = [replace(column, head=column.head.format(headline=board.headline)) for column in COLUMNS]
    shared: dict[str, Any] = {"percent": True, "best": True}
    for index, name in enumerate(board.averages):  # the first is the headline, which people read as the score
        value = _of(lambda row, name=name: row.averages.get(name))  # type: ignore[misc]
        views = View.ALL if index else View.FILES
        board_columns.append(
            BoardColumn(name, name, value=value, views=views, place=85, group="averages", on_demand=True, **shared)
        )
    # Pages show tasks in their map instead; the only task of a board without averages is its headline.
    views = View.FILES if not board.whole_suite and len(board.columns) == 1 else View.FILES | View.PRINT
    for task in board.columns:
        value = _of(lambda row, task=task.task: row.tasks.get(task))  # type: ignore[misc]
        board_columns.append(
            BoardColumn(task.task, task.name, value=value, views=views, place=99, group="tasks", **shared)
        )
    visible = [column for column in board_columns if view in column.views]
    return sorted(visible, key=lambda column: column.place) if view in View.PEOPLE else visible


def people_columns(lines: Sequence[TableRow], board: Board, view: View = View.PAGE) -> list[BoardColumn]:
    """Return the columns of a board's page or printed table; optional ones only where a row has a value."""
    return [
        column
        for column in columns(board, view)
        if not column.optional or any(column.cell(line) is not None for line in lines)
    ]


def page_column(key: str) -> BoardColumn | None:
    """Return the column of a page by the key of its header; None for another header."""
    return next((column for column in COLUMNS if column.key == key and View.PAGE in column.views), None)


def file_table(board: Board) -> Table:
    """Return a board for programs: the CSV file of its page, and parquet; fractions."""
    csv_columns = columns(board, View.CSV)
    rows = tuple(tuple(column.take(line) for column in csv_columns) for line in _lines(board))
    warning = banner(board.data, board.proxy_for)
    name = f"{board.title} · {board.regime} · {board.data} data" + (f". {warning}" if warning else "")
    return Table(name, tuple(csv_columns), rows, notes(board.data, board.proxy_for), digits=DIGITS)


def print_table(board: Board) -> Table:
    """Return a board for print, in percent; the best of each column is bold."""
    lines = _lines(board)
    print_columns = people_columns(lines, board, View.PRINT)
    heads = text.distinct(
        [column.head if column.percent else column.head.lower() or column.key for column in print_columns]
    )
    shown = tuple(
        replace(column, head=head, number=True if column.percent else column.number, show=column.shown)
        for column, head in zip(print_columns, heads, strict=True)
    )
    rows = tuple(tuple(column.take(line) for column in print_columns) for line in lines)
    return Table(caption(board), shown, rows, notes(board.data, board.proxy_for), frozenset(range(len(board.rows))))


def board_json(board: Board) -> bytes:
    """Write a board as JSON: fractions, every measure, comparisons of the best row, commands."""
    rows = []
    for line in _lines(board):  # averages and tasks that a row lacks are left out of their objects
        row: dict[str, Any] = {"averages": {}, "tasks": {}}
        for column in columns(board, View.JSON):
            value = _rounded(column.take(line))
            if not column.group:
                row[column.key] = value
            elif value is not None:
                row[column.group][column.key] = value
        rows.append(row)
    content = {
        "schema": "retrieval-bench/board/1",
        "note": banner(board.data, board.proxy_for),
        "suite": {
            "name": board.suite,
            "title": board.title,
            "version": board.version,
            "proxy_for": board.proxy_for or None,
        },
        "regime": board.regime,
        "data": board.data,
        "measure": board.measure,
        "headline": board.headline,
        "whole_suite": board.whole_suite,
        "tasks": [{"task": column.task, "queries": column.queries} for column in board.columns],
        "sentence": " ".join(verdict(board)),
        "pairs_tested": board.pairs,
        "reliability": board.reliability and {name: _rounded(value) for name, value in vars(board.reliability).items()},
        "rows": rows,
        "gains": [
            {
                "system": gain.row.name,
                "start": gain.start,
                **{key: _rounded(getattr(gain.test, key)) for key in ("difference", "low", "high")},
                # of one training or two there is no p, nor where a task has one question
                "adjusted": None if gain.test.checkpoints or gain.test.low is None else _rounded(gain.test.adjusted),
                "decided": gain.test.decided,
                "seeds": len(gain.row.seeds),
                "checkpoints": gain.test.checkpoints,
            }
            for gain in board_gains(board)
        ],
        "best_against": [
            {
                "system": name,
                **{
                    key: _rounded(getattr(test, key))
                    for key in ("difference", "low", "high", "p_uncorrected", "adjusted")
                },
                **{key: getattr(test, key) for key in ("n", "wins", "ties", "losses")},
            }
            for name, test in board.best_against.items()
        ],
    }
    return (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _rounded(value: Any) -> Any:
    """Return a fraction as files hold it, and any other value as it is."""
    return text.fraction(value) if isinstance(value, float) else value


def _lines(board: Board) -> list[TableRow]:
    return [TableRow(board, row) for row in board.all_rows]
