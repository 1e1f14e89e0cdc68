"""What papers printed for the suites, as data: every number with its table, known errors flagged and corrected.

`README.md` explains the CSV files, which hold what was printed; `cells.csv` says which numbers an error of `errors.csv`
concerns.
"""

import csv
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache
from importlib.resources import files
from io import StringIO
from types import MappingProxyType
from typing import NamedTuple, cast

from bench import DataError
from bench.suites import Reported, Unit, parse

FILES = ("ccp.csv", "msm.csv", "auto_mlm.csv", "contriever.csv", "contriever_readme.csv", "pyserini.csv")
"""The tables, in this order in `rows`."""
AVERAGES = frozenset({"avg", "avg_all112", "avg_13", "avg_14", "avg_15", "oths", "overall_unclear"})
"""Keys of columns that average others; `oths` is all but English, `overall_unclear` of members that are not named."""
BEST_ON = "best_on"
"""Key of the columns that count on how many data sets a model is the best."""
WITHOUT_NUMBER = frozenset({"-", "fail", ""})
"""Cells that hold no number: a dash, a training that failed, and what is illegible in our copy."""

_NAMES = json.loads(files("suites.reported").joinpath("ours.json").read_bytes())
_CAPPED: str = _NAMES["capped"]
"""Of BEIR, a measure that is the mean of two."""
_SUITES: dict[str, str] = _NAMES["suites"]
_OPEN_QA = {"naturalquestions": "nq", "triviaqa": "triviaqa"}
"""Column of Contriever's Table 1 → suite."""
_BY_ANSWERS = frozenset({"mkqa", "nq", "triviaqa"})
"""Suites whose recall is that of accepted answers."""
_ACCURACY = "accuracy@1"
_UNITS = {"K": 3, "M": 6}
_TATOEBA: dict[str, str] = _NAMES["tatoeba"]
"""Column → language in the task's name; CCP's ablations (`en-fr`) do not say which direction they score."""
_FORUMS = "cqadupstack"
_TOUCHE = {"webis-touche2020-v1": "webis-touche2020"}
_OURS = {(suite, column): name for suite, column, name in _NAMES["averages"]}
"""Suite and column → the suite's average of the same members."""
_OTHER_MEMBERS = (("Contriever", "Table 6", ""), ("MSM", "Table 2", "DistilmBERT"))
"""Paper, table, model (empty: all) whose average has other members: 8 data sets, 9 languages."""


class _Cell(NamedTuple):
    """One line of a table's file; the names are its columns."""

    paper: str
    table: str
    setting: str
    model: str
    suite: str
    dataset_or_language: str
    metric: str
    value: str
    unit: str
    note: str
    key: str

    @property
    def row(self) -> tuple[str, ...]:
        """Return what the cells of one row of a table have in common."""
        return (*self[:5], self.metric)


class _Mark(NamedTuple):
    """One line of `cells.csv`: an error and the cells that belong to it; an empty field matches every value.

    `key` names columns; `corrected` is a number, or `=` and the column of the same row that has the right value.
    """

    error: str
    paper: str
    table: str
    setting: str
    model: str
    suite: str
    metric: str
    key: str
    corrected: str

    def covers(self, cell: _Cell) -> bool:
        """Return whether a cell belongs to it."""
        fields = ("paper", "table", "setting", "model", "suite", "metric")
        equal = all(getattr(self, name) in ("", getattr(cell, name)) for name in fields)
        return equal and (not self.key or cell.key in self.key.split())


@cache
def rows() -> tuple[Reported, ...]:
    """Return every number in order. Raises `DataError` if a line of `cells.csv` fits no cell, or two fit one."""
    cells = [_Cell(**line) for name in FILES for line in _lines(name)]
    corrections = _corrections(cells)
    return tuple(_reported(cell, *corrections.get(number, ("", None))) for number, cell in enumerate(cells))


def numbers(suite: str) -> tuple[Reported, ...]:
    """Return the numbers of a suite, by its canonical name; none where the papers have none."""
    return tuple(row for row in rows() if row.suite == suite) if suite else ()


def numbers_without_suite(paper: str) -> tuple[Reported, ...]:
    """Return a paper's numbers that belong to no suite, which a suite of that paper hands over with its own."""
    return tuple(row for row in rows() if row.paper == paper and not row.suite)


@cache
def errors() -> Mapping[str, str]:
    """Return the known errors that cells are flagged with: id → what is wrong, in sentences."""
    return MappingProxyType({line["error"]: line["what"] for line in _lines("errors.csv")})


def _task(suite: str, key: str) -> str:
    """Return the task whose score is compared with a number; none for averages and for what is no task of ours."""
    if not suite or key in AVERAGES or key == BEST_ON:
        return ""
    if suite == "tatoeba":
        return f"{suite}/{_TATOEBA[key]}-eng"
    if suite == "tatoeba-pairs":
        left, right = (_TATOEBA[code] for code in key.split("-"))
        return f"{suite}/{left}-{right}"
    if suite == "beir":
        return "" if key == _FORUMS else f"{suite}/{_TOUCHE.get(key, key)}"
    return f"{suite}/test" if suite in ("nq", "triviaqa", "askubuntu") else f"{suite}/{key}"


def _lines(name: str) -> Iterator[dict[str, str]]:
    """Stream the lines of a file next to this module, by column."""
    yield from csv.DictReader(StringIO(files(__name__).joinpath(name).read_text(encoding="utf-8"), newline=""))


def _corrections(cells: Sequence[_Cell]) -> dict[int, tuple[str, float | None]]:
    """Return position → id of the error and right value of cells with a known error. Raises as `rows` does."""
    corrections: dict[int, tuple[str, float | None]] = {}
    by_table = defaultdict(list)
    for position, cell in enumerate(cells):
        by_table[cell.paper, cell.table].append(position)
    for number, line in enumerate(_lines("cells.csv"), start=2):
        mark = _Mark(**line)
        covered = [position for position in by_table[mark.paper, mark.table] if mark.covers(cells[position])]
        if not covered:
            raise DataError("cells.csv", number, "no cell that fits it", "at least one")
        for position in covered:
            if position in corrections:
                error = corrections[position][0]
                raise DataError("cells.csv", number, f"a cell that belongs to {error} too", "one error a cell")
            corrected, row = mark.corrected, cells[position].row
            if corrected.startswith("="):  # what is printed under another column of the row
                (corrected,) = (cell.value for cell in cells if cell.key == corrected[1:] and cell.row == row)
            corrections[position] = mark.error, float(corrected) if corrected else None
    return corrections


def _reported(cell: _Cell, error: str, corrected: float | None) -> Reported:
    """Return a cell as a number of a suite, task and measure of ours."""
    suite = _OPEN_QA[cell.key] if cell.key in _OPEN_QA else _SUITES.get(cell.suite, "")
    other_members = cell.key in AVERAGES and any(
        (cell.paper, cell.table) == (paper, table) and model in ("", cell.model)
        for paper, table, model in _OTHER_MEMBERS
    )
    digits, unit = (cell.value[:-1], cell.value[-1]) if cell.value[-1:] in _UNITS else (cell.value, "")
    value = None if cell.value in WITHOUT_NUMBER else float(Decimal(digits).scaleb(_UNITS.get(unit, 0)))  # `1.72M`
    return Reported(
        paper=cell.paper,
        table=cell.table,
        setting=cell.setting,
        model=cell.model,
        suite=suite,
        dataset=cell.dataset_or_language,
        key=cell.key,
        measure=_measure(suite, cell),
        printed=cell.value,
        value=value,
        unit=cast(Unit, cell.unit),
        note=cell.note,
        task=_task(suite, cell.key),
        average="" if other_members else _OURS.get((suite, cell.key), ""),
        error=error,
        wrong=errors().get(error, ""),
        corrected=corrected,
    )


def _measure(suite: str, cell: _Cell) -> str:
    """Return the canonical measure; the paper's words where we have no such measure or suite."""
    word = cell.metric
    if not suite:
        return word
    if word.startswith(_ACCURACY):
        return "accuracy"
    if suite == "beir" and word in ("R@100", _CAPPED):
        if cell.key in AVERAGES or cell.key == BEST_ON:
            return _CAPPED
        return "Rcap@100" if cell.key == "trec-covid" else "R@100"
    canonical = str(parse(word))
    return f"answer-{canonical}" if suite in _BY_ANSWERS else canonical
