"""The papers' tables in their own shape: rows are models, columns are data sets under their measure.

Numbers stay as they were printed. An average is worked out again from the printed cells of its row; where the two are
further apart than rounding of the average allows, both are shown.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from bench.core.publications import Reported
from leaderboard.site import text
from leaderboard.site.text import slug

_AVERAGES = ("oths", "overall_unclear")
_COUNTS = "best_on"
_WITH, _WITHOUT = re.compile(r"\bwith (.+)$"), re.compile(r"\bw/o (.+)$")
_MEMBERS = re.compile(r"\((\d+)\)")


@dataclass(frozen=True)
class PrintedColumn:
    """A column of a table."""

    suite: str  # canonical name, empty where the harness has none
    group: str  # the measure above it
    dataset: str
    measure: str = ""  # where it is not the group's, as with a capped recall


@dataclass(frozen=True)
class Printed:
    """A cell."""

    row: Reported
    mean: str = ""  # the average worked out again, in the printed decimals and one more; empty where it is as printed


@dataclass(frozen=True)
class PrintedLine:
    """A row: a model, with a cell or None for every column."""

    model: str
    cells: tuple[Printed | None, ...]


@dataclass(frozen=True)
class Block:
    """A part of a table whose rows have the same columns."""

    columns: tuple[PrintedColumn, ...]
    groups: tuple[tuple[str, str, int], ...]  # measures over them: suite, measure, how many columns
    parts: tuple[tuple[str, tuple[PrintedLine, ...]], ...]  # the paper's settings and the rows in each


@dataclass(frozen=True)
class PaperTable:
    """A table of a paper."""

    paper: str
    table: str  # e.g. `Table 3`
    units: tuple[str, ...]  # of its numbers, each once
    blocks: tuple[Block, ...]  # settings with other columns have blocks of their own
    errors: Mapping[str, str]  # known errors that its cells belong to, with what is wrong
    notes: tuple[str, ...]  # what was noted when it was copied, each once

    @property
    def anchor(self) -> str:
        """Its id on the page."""
        return anchor(self.table)


def paper_tables(reported: Iterable[Reported]) -> list[PaperTable]:
    """Lay out numbers as tables, in the order of their first cells."""
    every = list(reported)
    more, tables = added(every), dict[tuple[str, str], list[Reported]]()
    for row in every:
        tables.setdefault((row.paper, row.table), []).append(row)
    return [_table(*name, rows, more) for name, rows in tables.items()]


def anchor(table: str) -> str:
    """`Table 3` as an id and as one types it: `table-3`."""
    return slug(table.lower().replace(" ", "-"))


def stems(names: Iterable[str]) -> dict[str, str]:
    """File names of papers: letters, digits and hyphens, with a hash only where two would bear one name."""
    plain = {name: re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:80] for name in dict.fromkeys(names)}
    return {
        name: place if place and list(plain.values()).count(place) == 1 else text.slug(name)
        for name, place in plain.items()
    }


def is_average(row: Reported) -> bool:
    """Return whether a cell averages others of its row, by the name of its column."""
    return row.key in _AVERAGES or row.key == "avg" or row.key.startswith("avg_")


def added(reported: Iterable[Reported]) -> frozenset[tuple[str, str]]:
    """Suites and data sets that the name of one of the suite's averages adds (`with MS MARCO`): no other has them."""
    named = {(row.suite, row.average) for row in reported}
    return frozenset((suite, more) for suite, name in named if (more := _named(_WITH, name)))


def recomputed(average: Reported, row: Sequence[Reported], more: Collection[tuple[str, str]]) -> Decimal | None:
    """Work an average out from the cells of its row under its measure; None where the table lacks members.

    A data set that the name takes away (`w/o CQADupStack`) is left out, and one of `more`, which `added` found. Where
    the name says how many members there are, as many are needed; an average without a name is one over all cells that
    hold a number.
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
    count = _MEMBERS.search(named)
    whole = len(kept) == int(count[1]) if count else len(kept) > 1
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


def _table(paper: str, table: str, reported: Sequence[Reported], more: Collection[tuple[str, str]]) -> PaperTable:
    by_setting: dict[str, list[Reported]] = {}
    for row in reported:
        by_setting.setdefault(row.setting, []).append(row)
    alike: dict[tuple[PrintedColumn, ...], list[str]] = {}
    for setting, rows in by_setting.items():
        alike.setdefault(_columns(rows), []).append(setting)
    blocks = []
    for columns, settings in alike.items():
        heads = [(column.suite, column.group) for column in columns]
        groups = tuple((suite, name, heads.count((suite, name))) for suite, name in dict.fromkeys(heads))
        parts = []
        for setting in settings:
            by_model: dict[str, list[Reported]] = {}
            for row in by_setting[setting]:
                by_model.setdefault(row.model, []).append(row)
            lines = tuple(PrintedLine(model, _cells(columns, cells, more)) for model, cells in by_model.items())
            parts.append((setting, lines))
        blocks.append(Block(columns, groups, tuple(parts)))
    return PaperTable(
        paper,
        table,
        tuple(dict.fromkeys(row.unit for row in reported)),
        tuple(blocks),
        {row.error: row.wrong for row in reported if row.error},
        tuple(dict.fromkeys(row.note for row in reported if row.note)),
    )


def group(row: Reported) -> str:
    """Return the measure above a cell: the capped recall of one column, and of its average, is recall there."""
    return row.measure.partition(" (")[0].replace("Rcap@", "R@") if row.suite else row.measure


def _column(row: Reported) -> PrintedColumn:
    head = group(row)
    return PrintedColumn(row.suite, head, row.dataset, row.measure if row.measure != head else "")


def _columns(rows: Sequence[Reported]) -> tuple[PrintedColumn, ...]:
    """Columns of some cells, grouped by measure, each in the order of its first cell."""
    found = list(dict.fromkeys(map(_column, rows)))
    heads = list(dict.fromkeys((column.suite, column.group) for column in found))
    return tuple(sorted(found, key=lambda column: heads.index((column.suite, column.group))))


def _cells(
    columns: Sequence[PrintedColumn], cells: Sequence[Reported], more: Collection[tuple[str, str]]
) -> tuple[Printed | None, ...]:
    """The cells of a row, by column."""
    by_head: dict[tuple[str, str], list[Reported]] = {}
    for cell in cells:
        by_head.setdefault((cell.suite, group(cell)), []).append(cell)
    placed = {_column(cell): Printed(cell, shown_mean(cell, by_head[cell.suite, group(cell)], more)) for cell in cells}
    return tuple(placed.get(column) for column in columns)
