"""Exports: the name of a table → its files in a format, as `bench leaderboard export` writes them.

A table is a board, a paper's numbers, or every number of one kind of data in long form. Rows of unofficial data and of
proxies have the columns `data` and `proxy_for` and a note, and are never in one table with official rows.
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import MappingProxyType

from bench.core.errors import UsageError
from bench.core.messages import canonical, unknown
from bench.core.publications import Reported
from bench.evaluation.results import results as read_results
from bench.evaluation.results.format import Content
from bench.evaluation.results.marks import COLLAPSED, collapsed, marked
from bench.evaluation.results.read import Result
from bench.evaluation.tables import DIGITS, FOR_PEOPLE, FORMATS, Table, Value, encoded, plain_columns
from bench.types import Suite
from leaderboard.records import NEAR, UNVERIFIED, Records
from leaderboard.site import text
from leaderboard.site.boards import FIRST, PROXIES, boards
from leaderboard.site.captions import notes
from leaderboard.site.columns import board_json, file_table, print_table
from leaderboard.site.hub import every_eval_ever, group_seeds, model_index, mteb_files
from leaderboard.site.printed import anchor, paper_tables, stems
from leaderboard.site.systems import point_mark

_PAPER = tuple(column.name for column in fields(Reported) if column.name != "value")
_LONG = "data suite proxy_for regime system hash seeds kind name measure value queries".split()  # noqa: SIM905 (reads better)
Files = Mapping[str, bytes]
"""Content by path; the path of a format's only file means nothing."""
REPORTED, ALL = "reported", "all"
_SYSTEM_FORMATS = ("mteb", "model-index")
EVERY_EVAL_EVER = "every-eval-ever"


def export(
    table: str,
    kind: str,
    folder: Path,
    reported: Sequence[Reported] = (),
    *,
    system: str | None = None,
    records: Records = NEAR,
    suites: Mapping[str, Suite] = MappingProxyType({}),
) -> Files:
    """Return the files of a table.

    Args:
        table: `[DATA/]SUITE/REGIME`, `[DATA/][substitutes/]all`, or `reported/PAPER[/TABLE]`.
        kind: one of `bench.evaluation.tables.FORMATS`, `mteb`, `model-index`, or of a board `every-eval-ever`.
        folder: the results folder.
        reported: numbers of papers.
        system: label of the only system to write, with `mteb` and `model-index`.
        records: which results are verified.
        suites: of plugins, by name; they know how many tasks a suite has.

    Raises:
        UsageError: no such table or system, or a format that the table does not have.
        StoreError: a result cannot be trusted.
    """
    if system and kind not in _SYSTEM_FORMATS:
        raise UsageError(
            where="--system", found=system, expected=f"it with --format {' or '.join(_SYSTEM_FORMATS)} only"
        )
    if table.partition("/")[0] == REPORTED:
        return {"table": _paper(table, kind, reported)}
    by_table = tables(read_results(folder))
    if table not in by_table:
        hint = "Tables of papers are called reported/PAPER."
        raise UsageError(f"{unknown('table', table, sorted(by_table))} {hint}", where="TABLE", found=table, hint=hint)
    results = by_table[table]
    if kind in _SYSTEM_FORMATS or table.rpartition("/")[2] == ALL:
        labelled = []
        for result in results:
            content = result.content
            if not records.verification(result).verified:
                content = _relabelled(content, UNVERIFIED)
            if collapsed(result.whole):
                content = _relabelled(content, COLLAPSED)
            if point := point_mark(content.system):
                content = _relabelled(content, point)
            labelled.append(replace(result, content=content))
        if kind == EVERY_EVAL_EVER:
            expected = "one board, SUITE/REGIME, with --format every-eval-ever"
            raise UsageError(where="TABLE", found=table, expected=expected)
        if kind in _SYSTEM_FORMATS:
            return _systems(labelled, kind, system)
        return {"table": encoded(long_table(labelled), kind)}
    (board,) = boards(results, records=records, suites=suites)
    if kind == EVERY_EVAL_EVER:
        return dict(every_eval_ever(json.loads(board_json(board)), int(time.time())))
    if kind == "json":
        return {"table": board_json(board)}
    return {"table": encoded(print_table(board) if kind in FOR_PEOPLE else file_table(board), kind)}


def _relabelled(content: Content, mark: str) -> Content:
    system = content.system.model_copy(update={"label": marked(content.system.label, mark)})
    return content.model_copy(update={"system": system})


def _systems(results: Iterable[Result], kind: str, system: str | None) -> Files:
    """Return results in a format of systems, of all or of the one with a label."""
    groups = group_seeds(results)
    if system is not None:
        labels = {group[0].content.system.label for group in groups}
        if system not in labels:
            raise UsageError(unknown("system", system, sorted(labels)))
        groups = [group for group in groups if group[0].content.system.label == system]
    if kind == "mteb":
        return dict(mteb_files(groups))
    hashes = {group[0].content.system.hash for group in groups}
    if len(hashes) > 1:  # the Hub takes all results of a card for those of one model
        hint = "name one by --system LABEL"
        raise UsageError(where="--format model-index", found=f"{len(hashes)} systems", expected="one", hint=hint)
    return {"table": model_index(groups)}


def tables(results: Sequence[Result]) -> dict[str, list[Result]]:
    """Return the results of every table, by name: boards, and the long form of every kind of data."""
    by_table: dict[str, list[Result]] = {}
    for result in results:
        content = result.content
        if content.tested().tasks:
            root = "" if content.data == FIRST else f"{content.data}/"
            proxies = PROXIES if content.suite.proxy_for else ""
            by_table.setdefault(f"{root}{content.suite.name}/{content.regime}", []).append(result)
            by_table.setdefault(f"{root}{proxies}{ALL}", []).append(result)
    return by_table


def _paper(table: str, kind: str, reported: Sequence[Reported]) -> bytes:
    """Return `reported/PAPER[/TABLE]` in a format."""
    if kind not in FORMATS:
        raise UsageError(where="--format", found=kind, expected=f"one of {', '.join(FORMATS)} for tables of papers")
    _, paper, name, *_ = [*table.split("/", 2), "", ""]
    papers = {stem: title for title, stem in stems(row.paper for row in reported).items()}
    if canonical(paper) not in papers:
        raise UsageError(unknown("paper", paper, sorted(papers)))
    paper_rows = [row for row in reported if row.paper == papers[canonical(paper)]]
    rows = [row for row in paper_rows if name in ("", anchor(row.table), row.table)]
    if not rows:
        raise UsageError(unknown("table", name, list(dict.fromkeys(anchor(row.table) for row in paper_rows))))
    if kind not in FOR_PEOPLE:
        return encoded(paper_sheet(rows), kind)
    return b"\n".join(encoded(printed, kind) for printed in paper_print(rows))


def paper_sheet(reported: Sequence[Reported]) -> Table:
    """Return numbers of papers, one a line, as printed; with known errors and right values."""
    rows = tuple(tuple(getattr(row, name) for name in _PAPER) for row in reported)
    return Table(", ".join(dict.fromkeys(row.paper for row in reported)), plain_columns(*_PAPER), rows, digits=DIGITS)


def paper_print(reported: Sequence[Reported]) -> Iterator[Table]:
    """Yield a paper's tables in their own shape; known errors are marked ‡ and explained in notes."""
    for sheet in paper_tables(reported):
        errors = tuple(f"‡ {error}: {wrong}" for error, wrong in sheet.errors.items())
        for block in sheet.blocks:
            name = f"{sheet.paper}, {sheet.table}, {', '.join(sheet.units)}, as printed"
            heads = [column.dataset for column in block.columns]
            if len(block.groups) > 1:  # the data set under its measure, in one line
                heads = [f"{column.suite} {column.group} {column.dataset}".strip() for column in block.columns]
            rows = tuple(
                (
                    setting,
                    line.model,
                    *(cell.row.printed + " ‡" * bool(cell.row.error) if cell else "" for cell in line.cells),
                )
                for setting, lines in block.parts
                for line in lines
            )
            yield Table(name, plain_columns(*text.distinct(["setting", "model", *heads])), rows, errors)


def long_table(results: Iterable[Result]) -> Table:
    """Return every number of results, without dev tasks: a line a system, task or average, and measure.

    Values are means over the seeds that have a number. Tasks of a system precede its averages.
    """
    groups = group_seeds(results)
    rows: list[tuple[Value, ...]] = []
    remarks: dict[str, None] = {}
    for group in groups:
        first = group[0].content
        remarks |= dict.fromkeys(notes(first.data, first.suite.proxy_for))
        values: dict[tuple[str, str, str], dict[int, float]] = {}
        queries: dict[str, int] = {}
        for result in group:
            content = result.content.tested()
            for task, subsets in content.tasks.items():
                queries[task] = sum(subset.queries for subset in subsets.values())
                for measure in set.intersection(*(set(subset.measures) for subset in subsets.values())):
                    value = sum(subset.measures[measure] for subset in subsets.values()) / len(subsets)
                    values.setdefault(("task", task, measure), {})[content.seed] = value
            for average in content.averages:
                for measure, value in average.measures.items():
                    values.setdefault(("average", average.name, measure), {})[content.seed] = value
        suite = (first.data, first.suite.name, first.suite.proxy_for, first.regime)
        for (kind, name, measure), by_seed in sorted(values.items(), key=lambda item: (item[0][0] != "task", item[0])):
            system = (first.system.label, first.system.hash, " ".join(map(str, by_seed)))
            count = queries.get(name) if kind == "task" else None
            rows.append((*suite, *system, kind, name, measure, sum(by_seed.values()) / len(by_seed), count))
    first = groups[0][0].content
    name = f"every number, {first.data} data{', substitutes' if first.suite.proxy_for else ''}"
    return Table(name, plain_columns(*_LONG), tuple(rows), tuple(remarks), digits=DIGITS)
