"""The papers' tables in their own shape: rows are models, columns are data sets under their measure.

Numbers stay as they were printed. An average is recomputed from the printed cells of its row; where the two are further
apart than rounding of the average allows, both are shown.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from bench.core.publications import Reported
from leaderboard.site import text
from leaderboard.site.text import slug

_AVERAGES = ("oths", "overall_unclear")
_COUNTS = "best_on"
_WITH, _WITHOUT = re.compile(r"\bwith (.+)$"), re.compile(r"\bw/o (.+)$")
Key = TypeVar("Key", str, tuple[str, str])
_MEMBERS = re.compile(r"\((\d+)\)")


@dataclass(frozen=True)
class PrintedColumn:
    """A column of a table.

    Args:
        suite: canonical name, empty where the harness has none.
        group: the measure above it.
        dataset: its head.
        measure: where it is not the group's, as with a capped recall.
    """

    suite: str
    group: str
    dataset: str
    measure: str = ""


@dataclass(frozen=True)
class PrintedCell:
    """A cell.

    Args:
        row: the number.
        mean: the average recomputed from the row, in the printed decimals and one more; empty where it is as printed.
    """

    row: Reported
    mean: str = ""


@dataclass(frozen=True)
class PrintedLine:
    """A row: a model, with a cell or None for every column."""

    model: str
    cells: tuple[PrintedCell | None, ...]


@dataclass(frozen=True)
class Block:
    """A part of a table whose rows have the same columns.

    Args:
        columns: its columns.
        groups: measures over them: suite, measure, number of columns.
        parts: the paper's settings and the rows in each.
    """

    columns: tuple[PrintedColumn, ...]
    groups: tuple[tuple[str, str, int], ...]
    parts: tuple[tuple[str, tuple[PrintedLine, ...]], ...]


@dataclass(frozen=True)
class PaperTable:
    """A table of a paper.

    Args:
        paper: its name.
        table: e.g. `Table 3`.
        units: of its numbers, each once.
        blocks: settings with other columns have blocks of their own.
        errors: known errors of its cells, with what is wrong.
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


def paper_tables(reported: Iterable[Reported]) -> list[PaperTable]:
    """Lay out numbers as tables, in the order of their first cells; settings with the same columns share a block."""
    numbers = list(reported)
    added = added_datasets(numbers)
    sheets = []
    for (paper, table), rows in _grouped(numbers, lambda row: (row.paper, row.table)).items():
        by_setting = _grouped(rows, lambda row: row.setting)
        by_columns: dict[tuple[PrintedColumn, ...], list[str]] = {}
        for (
            setting,
            setting_rows,
        ) in by_setting.items():  # columns are grouped by measure, each in the order of its first cell
            columns = list(dict.fromkeys(map(_column, setting_rows)))
            heads = list(dict.fromkeys((column.suite, column.group) for column in columns))
            ordered = tuple(sorted(columns, key=lambda column: heads.index((column.suite, column.group))))
            by_columns.setdefault(ordered, []).append(setting)
        blocks = []
        for block_columns, settings in by_columns.items():
            heads = [(column.suite, column.group) for column in block_columns]
            groups = tuple((suite, name, heads.count((suite, name))) for suite, name in dict.fromkeys(heads))
            parts = []
            for setting in settings:
                lines = []
                for model, cells in _grouped(by_setting[setting], lambda row: row.model).items():
                    by_head = _grouped(cells, lambda cell: f"{cell.suite} {group(cell)}")
                    by_column = {
                        _column(cell): PrintedCell(
                            cell, shown_mean(cell, by_head[f"{cell.suite} {group(cell)}"], added)
                        )
                        for cell in cells
                    }
                    lines.append(PrintedLine(model, tuple(by_column.get(column) for column in block_columns)))
                parts.append((setting, tuple(lines)))
            blocks.append(Block(block_columns, groups, tuple(parts)))
        sheets.append(
            PaperTable(
                paper,
                table,
                tuple(dict.fromkeys(row.unit for row in rows)),
                tuple(blocks),
                {row.error: row.wrong for row in rows if row.error},
                tuple(dict.fromkeys(row.note for row in rows if row.note)),
            )
        )
    return sheets


def _grouped(rows: Iterable[Reported], key: Callable[[Reported], Key]) -> dict[Key, list[Reported]]:
    groups: dict[Key, list[Reported]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


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


def added_datasets(reported: Iterable[Reported]) -> frozenset[tuple[str, str]]:
    """Suites and data sets that the name of one of the suite's averages adds (`with MS MARCO`): no other has them."""
    averages = {(row.suite, row.average) for row in reported}
    return frozenset((suite, dataset) for suite, name in averages if (dataset := _dataset(_WITH, name)))


def recomputed(average: Reported, row: Sequence[Reported], added: Collection[tuple[str, str]]) -> Decimal | None:
    """Recompute an average from the cells of its row under its measure.

    A data set that the name takes away (`w/o CQADupStack`) is left out, and one of `added`, which `added_datasets`
    returned. Where the name says how many members there are, as many are needed; an average without a name is one over
    all cells that hold a number.

    Args:
        average: the printed average.
        row: the cells of its row under its measure.
        added: suites and data sets that only averages with such a name have.

    Returns:
        The mean in the paper's unit; None where the table lacks members.
    """
    name = average.average
    excluded = {_dataset(_WITHOUT, name)} | {dataset for suite, dataset in added if suite == average.suite and name}
    excluded.discard(_dataset(_WITH, name))
    members = [
        cell
        for cell in row
        if not is_average(cell)
        and cell.key != _COUNTS
        and cell.unit == average.unit
        and not (average.key == "oths" and cell.key == "en")
        and _plain(cell.dataset) not in excluded
        and (name or cell.printed != "-")
    ]
    count = _MEMBERS.search(name)
    complete = len(members) == int(count[1]) if count else len(members) > 1
    if not complete or any(cell.value is None for cell in members):
        return None
    return sum((Decimal(cell.printed) for cell in members), Decimal(0)) / len(members)


def _dataset(pattern: re.Pattern[str], average: str) -> str:
    """The data set that the name of an average adds or takes away, as `_plain`; empty where it does neither."""
    match = pattern.search(average)
    return _plain(match[1]) if match else ""


def _plain(name: str) -> str:
    """A name without blanks and signs, in lower case."""
    return re.sub(r"[^a-z0-9]+", "", name.lower())


def shown_mean(average: Reported, row: Sequence[Reported], added: Collection[tuple[str, str]]) -> str:
    """Return the recomputed average where it differs from the printed one by more than half a printed unit."""
    if not is_average(average) or average.value is None:
        return ""
    mean = recomputed(average, row, added)
    if mean is None:
        return ""
    printed = Decimal(average.printed)
    unit = Decimal(1).scaleb(int(printed.as_tuple().exponent))
    return str(mean.quantize(unit / 10)) if abs(mean - printed) > unit / 2 else ""


def group(row: Reported) -> str:
    """Return the measure above a cell: the capped recall of one column, and of its average, is recall there."""
    return row.measure.partition(" (")[0].replace("Rcap@", "R@") if row.suite else row.measure


def _column(row: Reported) -> PrintedColumn:
    head = group(row)
    return PrintedColumn(row.suite, head, row.dataset, row.measure if row.measure != head else "")
