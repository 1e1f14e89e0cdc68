"""Values query by query as files of their own: scripts that a page loads on request, and the same as CSV.

Numbers are means over seeds in ten-thousandths; query ids are stored once a task, whatever the number of rows.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property

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
    """The values of a subset of a row, and the paths of their files, from the root of the site.

    Args:
        entry: the row.
        task: its id.
        subset: the name of the subset, empty where there is only one.
        queries: ids in their byte order.
        columns: by measure, values `[queries, seeds]`.
    """

    entry: Entry
    task: str
    subset: str
    queries: tuple[str, ...]
    columns: dict[str, FloatArray]

    @property
    def title(self) -> str:
        """Its title on pages."""
        return f"{bare(self.task)} {self.subset}".strip()

    @property
    def name(self) -> str:
        """Its name in addresses."""
        return subset_name(self.task, self.subset)

    @cached_property
    def ids(self) -> str:
        """The name of its queries; other queries of the same task have another."""
        return f"{self.name}-{digest(list(self.queries))[:8]}"

    @property
    def ids_path(self) -> str:
        """Path of the script with the query ids, which the rows of a task share."""
        return f"{self.entry.inside}data/ids/{self.ids}.js"

    @property
    def csv_path(self) -> str:
        """Path of the CSV file."""
        return f"{self.entry.inside}data/q/{self.entry.id}-{self.name}.csv"

    @property
    def script_path(self) -> str | None:
        """Path of the script; None where it would be too large."""
        small = len(self.queries) * len(self.columns) * len(f"{_SCALE},") < LARGEST
        return f"{self.entry.inside}data/q/{self.entry.id}-{self.name}.js" if small else None

    def script(self) -> bytes:
        """Return `RB.put("ID-TASK", …)`: by measure a whole number a query, in the order of the ids."""
        measures = {
            name: np.rint(_SCALE * values.mean(axis=1)).astype(int).tolist() for name, values in self.columns.items()
        }
        return as_script(f"{self.entry.id}-{self.name}", {"ids": self.ids, "measures": measures})

    def csv(self) -> bytes:
        """Write the values as CSV: fractions, means over seeds, after notes on comparability."""
        board = self.entry.board
        means = [values.mean(axis=1).tolist() for values in self.columns.values()]
        rows = tuple((board.data, self.task, self.subset, *values) for values in zip(self.queries, *means, strict=True))
        heads = plain_columns("data", "task", "subset", "query", *self.columns)
        unverified = f"{UNVERIFIED}: not all numbers of this row could be recomputed"
        remarks = (*notes(board.data, board.proxy_for), *(() if self.entry.row.verified else (unverified,)))
        return encoded(Table(self.title, heads, rows, remarks, digits=DIGITS), "csv")


@cache
def subset_name(task: str, subset: str) -> str:
    """The name of a task's subset in addresses."""
    plain = re.sub(r"[^a-z0-9]+", "-", f"{bare(task)} {subset}".lower()).strip("-")[:_LONGEST]
    return f"{plain}-{digest([task, subset])[:6]}"


def tables(entry: Entry) -> Iterator[QueryTable]:
    """Read a row's values, subset by subset. Raises `StoreError` for a damaged bundle, or seeds of unlike queries."""
    for task, subsets in entry.system.first.content.tasks.items():
        for name, subset in subsets.items():
            shared = [
                measure
                for measure in subset.measures
                if all(measure in result.content.tasks[task][name].measures for result in entry.results)
            ]
            seeds = [result.columns(task, name, shared) for result in entry.results]
            queries = seeds[0][0]
            columns = {
                measure: np.stack([values[measure] for ids, values in seeds if ids == queries], axis=1)
                for measure in shared
            }
            yield QueryTable(entry, task, name, queries, columns)


def as_script(key: str, value: object) -> bytes:
    """Return a script that gives a value to the page under a key."""
    return f"RB.put({json_for_page(key)},{json_for_page(value)});\n".encode()
