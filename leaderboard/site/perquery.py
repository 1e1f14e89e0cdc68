"""Values query by query as files of their own: scripts that a page loads on request, and the same as CSV.

Numbers are means over seeds in ten-thousandths; query ids are stored once a task, whatever the number of rows.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np

from bench.core.files import digest
from bench.core.messages import bare
from bench.evaluation.results.read import FloatArray
from bench.evaluation.tables import DIGITS, Table, encoded, plain_columns
from leaderboard.records import UNVERIFIED
from leaderboard.site.captions import notes
from leaderboard.site.rows import Entry
from leaderboard.site.text import json_for_page

LARGEST = 300_000
"""Bytes of a script; of a task that would need more, the CSV alone is there."""
_SCALE = 10_000
_LONGEST = 50


@dataclass(frozen=True)
class QueryTable:
    """The values of a leg of a row.

    Args:
        task: its id.
        leg: the name of the leg, empty where there is only one.
        queries: ids in their byte order.
        columns: by measure, values `[queries, seeds]`.
    """

    task: str
    leg: str
    queries: tuple[str, ...]
    columns: dict[str, FloatArray]

    @property
    def title(self) -> str:
        """Its title on pages."""
        return f"{bare(self.task)} {self.leg}".strip()

    @property
    def name(self) -> str:
        """Its name in addresses."""
        return leg_name(self.task, self.leg)

    @property
    def ids(self) -> str:
        """The name of its queries; other queries of the same task have another."""
        return f"{self.name}-{digest(list(self.queries))[:8]}"


@dataclass(frozen=True)
class QueryFiles:
    """Paths of the values of a leg, from the root of the site.

    Args:
        table: the values.
        script: the path of the script; None where it would be too large.
        csv: the path of the CSV file.
        ids: the path of the script with the query ids.
    """

    table: QueryTable
    script: str | None
    csv: str
    ids: str


@cache
def leg_name(task: str, leg: str) -> str:
    """The name of a task's leg in addresses."""
    plain = re.sub(r"[^a-z0-9]+", "-", f"{bare(task)} {leg}".lower()).strip("-")[:_LONGEST]
    return f"{plain}-{digest([task, leg])[:6]}"


def tables(entry: Entry) -> Iterator[QueryTable]:
    """Read a row's values, leg by leg. Raises `StoreError` for a damaged bundle, or seeds with different queries."""
    for task, legs in entry.system.first.content.tasks.items():
        for name, leg in legs.items():
            shared = [
                measure
                for measure in leg.measures
                if all(measure in result.content.tasks[task][name].measures for result in entry.results)
            ]
            seeds = [result.columns(task, name, shared) for result in entry.results]
            queries = seeds[0][0]
            columns = {
                measure: np.stack([values[measure] for ids, values in seeds if ids == queries], axis=1)
                for measure in shared
            }
            yield QueryTable(task, name, queries, columns)


def query_files(entry: Entry, table: QueryTable) -> QueryFiles:
    """Return where the values of a leg are stored."""
    stem = f"{entry.inside}data/q/{entry.id}-{table.name}"
    small = len(table.queries) * len(table.columns) * len(f"{_SCALE},") < LARGEST
    return QueryFiles(table, f"{stem}.js" if small else None, f"{stem}.csv", f"{entry.inside}data/ids/{table.ids}.js")


def script(entry: Entry, table: QueryTable) -> bytes:
    """`RB.put("ID-TASK", …)`: measures with a whole number a query, in the order of the ids."""
    measures = {
        name: np.rint(_SCALE * values.mean(axis=1)).astype(int).tolist() for name, values in table.columns.items()
    }
    return as_script(f"{entry.id}-{table.name}", {"ids": table.ids, "measures": measures})


def as_script(key: str, value: object) -> bytes:
    """Return a script that gives a value to the page under a key."""
    return f"RB.put({json_for_page(key)},{json_for_page(value)});\n".encode()


def as_csv(entry: Entry, table: QueryTable) -> bytes:
    """Write the values of a leg as CSV, fractions, means over seeds, after notes on comparability."""
    board = entry.board
    means = [values.mean(axis=1).tolist() for values in table.columns.values()]
    rows = tuple((board.data, table.task, table.leg, *values) for values in zip(table.queries, *means, strict=True))
    heads = plain_columns("data", "task", "leg", "query", *table.columns)
    mark = () if entry.row.verified else (f"{UNVERIFIED}: not all numbers of this row could be recomputed",)
    remarks = (*notes(board.data, board.proxy_for), *mark)
    return encoded(Table(table.title, heads, rows, remarks, digits=DIGITS), "csv")
