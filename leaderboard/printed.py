"""The papers' tables in their own shape: rows are models, columns are data sets under their measure.

Numbers stay as they were printed. An average is worked out again from the printed cells of its row; where the two are
further apart than rounding of the average allows, both are shown.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from bench.publications import Reported
from leaderboard.text import slug

_AVERAGES = ("oths", "overall_unclear")
_COUNTS = "best_on"
_WITH, _WITHOUT = re.compile(r"\bwith (.+)$"), re.compile(r"\bw/o (.+)$")
_MEMBERS = re.compile(r"\((\d+)\)")


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Args:
        suite: canonical name, empty where the harness has none.
        group: the measure that it stands under.
        dataset: in the paper's words.
        measure: where it is not the group's, as with a capped recall.
    """

    suite: str
    group: str
    dataset: str
    measure: str = ""


@dataclass(frozen=True)
class Printed:
    """A cell.

    Args:
        row: the number.
        mean: the average worked out again, in the printed decimals and one more; empty where it is as printed.
    """

    row: Reported
    mean: str = ""


@dataclass(frozen=True)
class Line:
    """A row: a model, with a cell or None for every column."""

    model: str
    cells: tuple[Printed | None, ...]


@dataclass(frozen=True)
class Block:
    """A part of a table whose rows have the same columns.

    Args:
        columns: from left to right.
        groups: measures over them: suite, measure, how many columns.
        parts: the paper's settings and the rows in each.
    """

    columns: tuple[Column, ...]
    groups: tuple[tuple[str, str, int], ...]
    parts: tuple[tuple[str, tuple[Line, ...]], ...]


@dataclass(frozen=True)
class Sheet:
    """A table of a paper.

    Args:
        paper: its name.
        table: e.g. `Table 3`.
        units: of its numbers, each once.
        blocks: settings with other columns stand in blocks of their own.
        errors: known errors that its cells belong to, with what is wrong.
        notes: what was noted when it was copied, each once.
    """

    paper: str
    table: str
    units: tuple[str, ...]
    blocks: tuple[Block, ...]
    errors: Mapping[str, str]
    notes: tuple[str, ...]

    @property
    def anchor(self) -> str:
        """Its id on the page."""
        return anchor(self.table)


def sheets(told: Iterable[Reported]) -> list[Sheet]:
    """Lay out numbers as tables, in the order of their first cells."""
    every = list(told)
    more, tables = added(every), dict[tuple[str, str], list[Reported]]()
    for row in every:
        tables.setdefault((row.paper, row.table), []).append(row)
    return [_sheet(*name, rows, more) for name, rows in tables.items()]


def anchor(table: str) -> str:
    """`Table 3` as an id and as one types it: `table-3`."""
    return slug(table.lower().replace(" ", "-"))


def is_average(row: Reported) -> bool:
    """Whether a cell averages others of its row, by the name of its column."""
    return row.key in _AVERAGES or row.key == "avg" or row.key.startswith("avg_")


def added(told: Iterable[Reported]) -> frozenset[tuple[str, str]]:
    """Suites and data sets that the name of one of the suite's averages adds (`with MS MARCO`): no other has them."""
    named = {(row.suite, row.average) for row in told}
    return frozenset((suite, more) for suite, name in named if (more := _named(_WITH, name)))


def recomputed(average: Reported, row: Sequence[Reported], more: Collection[tuple[str, str]]) -> Decimal | None:
    """Work an average out from the printed cells of its row; None where the table does not hold all members.

    A data set that the name takes away (`w/o CQADupStack`) is left out. Where the name says how many members there
    are, as many are needed; an average without a name is one over all cells that hold a number.

    Args:
        average: the cell.
        row: all cells of its row that stand under its measure.
        more: what `added` found.
    """
    named = average.average
    left = {_named(_WITHOUT, named)} | {name for suite, name in more if suite == average.suite and named}
    left.discard(_named(_WITH, named))
    kept = [
        cell
        for cell in row
        if not is_average(cell)
        and cell.key != _COUNTS
        and cell.unit == average.unit
        and not (average.key == "oths" and cell.key == "en")
        and _plain(cell.dataset) not in left
    ]
    if not named:
        kept = [cell for cell in kept if cell.printed != "-"]
    told = _MEMBERS.search(named)
    whole = len(kept) == int(told[1]) if told else len(kept) > 1
    if not whole or any(cell.value is None for cell in kept):
        return None
    return sum((Decimal(cell.printed) for cell in kept), Decimal(0)) / len(kept)


def _named(pattern: re.Pattern[str], average: str) -> str:
    """The data set that the name of an average adds or takes away, as `_plain`; empty where it does neither."""
    found = pattern.search(average)
    return _plain(found[1]) if found else ""


def _plain(name: str) -> str:
    """A name without blanks and signs, in lower case."""
    return re.sub(r"[^a-z0-9]+", "", name.lower())


def shown_mean(average: Reported, row: Sequence[Reported], more: Collection[tuple[str, str]]) -> str:
    """The average worked out again, where it differs from the printed one by more than half a printed unit."""
    if not is_average(average) or average.value is None:
        return ""
    mean = recomputed(average, row, more)
    if mean is None:
        return ""
    printed = Decimal(average.printed)
    unit = Decimal(1).scaleb(int(printed.as_tuple().exponent))
    return str(mean.quantize(unit / 10)) if abs(mean - printed) > unit / 2 else ""


def _sheet(paper: str, table: str, told: Sequence[Reported], more: Collection[tuple[str, str]]) -> Sheet:
    """Lay out a table."""
    by_setting: dict[str, list[Reported]] = {}
    for row in told:
        by_setting.setdefault(row.setting, []).append(row)
    alike: dict[tuple[Column, ...], list[str]] = {}
    for setting, rows in by_setting.items():
        alike.setdefault(_columns(rows), []).append(setting)
    blocks = tuple(
        Block(
            columns,
            _groups(columns),
            tuple((setting, _lines(columns, by_setting[setting], more)) for setting in settings),
        )
        for columns, settings in alike.items()
    )
    return Sheet(
        paper,
        table,
        tuple(dict.fromkeys(row.unit for row in told)),
        blocks,
        {row.error: row.wrong for row in told if row.error},
        tuple(dict.fromkeys(row.note for row in told if row.note)),
    )


def group(row: Reported) -> str:
    """The measure under which a cell stands: the capped recall of one column, and of its average, is recall there."""
    return row.measure.partition(" (")[0].replace("Rcap@", "R@") if row.suite else row.measure


def _column(row: Reported) -> Column:
    """The column of a cell."""
    head = group(row)
    return Column(row.suite, head, row.dataset, row.measure if row.measure != head else "")


def _columns(rows: Sequence[Reported]) -> tuple[Column, ...]:
    """Columns of some cells, those of a measure beside each other, each in the order of its first cell."""
    found = list(dict.fromkeys(map(_column, rows)))
    heads = list(dict.fromkeys((column.suite, column.group) for column in found))
    return tuple(sorted(found, key=lambda column: heads.index((column.suite, column.group))))


def _groups(columns: Sequence[Column]) -> tuple[tuple[str, str, int], ...]:
    """Measures over the columns."""
    heads = [(column.suite, column.group) for column in columns]
    return tuple((suite, name, heads.count((suite, name))) for suite, name in dict.fromkeys(heads))


def _lines(columns: Sequence[Column], rows: Sequence[Reported], more: Collection[tuple[str, str]]) -> tuple[Line, ...]:
    """The rows of a setting, in the order of their first cells."""
    by_model: dict[str, list[Reported]] = {}
    for row in rows:
        by_model.setdefault(row.model, []).append(row)
    return tuple(Line(model, _cells(columns, cells, more)) for model, cells in by_model.items())


def _cells(
    columns: Sequence[Column], cells: Sequence[Reported], more: Collection[tuple[str, str]]
) -> tuple[Printed | None, ...]:
    """The cells of a row, by column."""
    by_head: dict[tuple[str, str], list[Reported]] = {}
    for cell in cells:
        by_head.setdefault((cell.suite, group(cell)), []).append(cell)
    placed = {_column(cell): Printed(cell, shown_mean(cell, by_head[cell.suite, group(cell)], more)) for cell in cells}
    return tuple(placed.get(column) for column in columns)
