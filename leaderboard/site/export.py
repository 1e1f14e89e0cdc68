"""Exports: the name of a table → its files in a format, as `bench leaderboard export` writes them.

A table is a board, a paper's numbers, or every number of one kind of data in long form. Rows of unofficial data and of
substitutes have the columns `data` and `stands_for` and a note, and are never in one table with official rows.
"""

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path

from bench.core.errors import UsageError
from bench.core.messages import canonical, unknown
from bench.core.publications import Reported
from bench.evaluation.results import results as read_results
from bench.evaluation.results.read import Result
from bench.evaluation.tables import DIGITS, FOR_PEOPLE, FORMATS, Table, Value, encoded, plain_columns
from leaderboard.records import NEAR, UNVERIFIED, Records
from leaderboard.site import text
from leaderboard.site.boards import boards
from leaderboard.site.captions import notes
from leaderboard.site.columns import board_json, file_table, print_table
from leaderboard.site.hub import Group, every_eval_ever, grouped, model_index, mteb_files
from leaderboard.site.printed import anchor, paper_tables, stems
from leaderboard.site.site import FIRST

_PAPER = tuple(one.name for one in fields(Reported) if one.name != "value")
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
Files = Mapping[str, bytes]
"""Content by name; a format of one file has one, whose name says nothing."""
REPORTED, ALL, SUBSTITUTES = "reported", "all", "substitutes"
_SYSTEMS = ("mteb", "model-index")
EVERY_EVAL_EVER = "every-eval-ever"


def export(
    table: str,
    kind: str,
    folder: Path,
    reported: Sequence[Reported] = (),
    *,
    system: str | None = None,
    records: Records = NEAR,
) -> Files:
    """Return the files of a table: `[DATA/]SUITE/SETTING`, `[DATA/][substitutes/]all`, or `reported/PAPER[/TABLE]`.

    The format is one of `bench.evaluation.tables.FORMATS`, `mteb` or `model-index`, with which the label of the only
    system to write may be given, or of a board `every-eval-ever`.

    Raises:
        UsageError: no such table or system, or a format that the table does not have.
        StoreError: a result that cannot be trusted.
    """
    if system and kind not in _SYSTEMS:
        raise UsageError(where="--system", found=system, expected=f"it with --format {' or '.join(_SYSTEMS)} only")
    if table.partition("/")[0] == REPORTED:
        return {"table": _reported(table, kind, reported)}
    results = read_results(folder)
    found = tables(results)
    if table not in found:
        hint = "Tables of papers are called reported/PAPER."
        raise UsageError(f"{unknown('table', table, sorted(found))} {hint}", where="TABLE", found=table, hint=hint)
    meant = found[table]
    if kind not in _SYSTEMS and table.rpartition("/")[2] != ALL:
        (board,) = boards(meant, records=records)
        if kind == EVERY_EVAL_EVER:
            return dict(every_eval_ever(json.loads(board_json(board)), int(time.time())))
        if kind == "json":
            return {"table": board_json(board)}
        return {"table": encoded(print_table(board) if kind in FOR_PEOPLE else file_table(board), kind)}
    if kind == EVERY_EVAL_EVER:
        raise UsageError(where="TABLE", found=table, expected="one board, SUITE/SETTING, with --format every-eval-ever")
    meant = [one if records.state(one).verified else _marked(one) for one in meant]
    if kind in _SYSTEMS:
        groups = grouped(meant)
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
    return {"table": encoded(everything(meant), kind)}


def _marked(result: Result) -> Result:
    """Return a result whose label says that it was not verified."""
    system = result.content.system
    system = system.model_copy(update={"label": f"{system.label} ({UNVERIFIED})"})
    return replace(result, content=result.content.model_copy(update={"system": system}))


def tables(results: Sequence[Result]) -> dict[str, list[Result]]:
    """The tables that results give, by name: boards, and the long form of every kind of data."""
    found: dict[str, list[Result]] = {}
    for result in results:
        content = result.content
        if not content.tested().tasks:
            continue
        root = "" if content.data == FIRST else f"{content.data}/"
        inner = f"{SUBSTITUTES}/" if content.suite.stands_for else ""
        found.setdefault(f"{root}{content.suite.name}/{content.setting}", []).append(result)
        found.setdefault(f"{root}{inner}{ALL}", []).append(result)
    return found


def _reported(table: str, kind: str, reported: Sequence[Reported]) -> bytes:
    if kind not in FORMATS:
        raise UsageError(where="--format", found=kind, expected=f"one of {', '.join(FORMATS)} for tables of papers")
    _, paper, *rest = [*table.split("/", 2), ""]
    names = {stem: name for name, stem in stems(row.paper for row in reported).items()}
    if canonical(paper) not in names:
        raise UsageError(unknown("paper", paper, sorted(names)))
    rows = [row for row in reported if row.paper == names[canonical(paper)]]
    if wanted := rest[0]:
        kept = [row for row in rows if wanted in (anchor(row.table), row.table)]
        if not kept:
            raise UsageError(unknown("table", wanted, list(dict.fromkeys(anchor(row.table) for row in rows))))
        rows = kept
    if kind not in FOR_PEOPLE:
        return encoded(paper_sheet(rows), kind)
    return b"\n".join(encoded(table, kind) for table in paper_print(rows))


def paper_sheet(reported: Sequence[Reported]) -> Table:
    """Numbers of papers, one a line, as printed; with known errors and right values."""
    rows = tuple(tuple(getattr(row, name) for name in _PAPER) for row in reported)
    return Table(", ".join(dict.fromkeys(row.paper for row in reported)), plain_columns(*_PAPER), rows, digits=DIGITS)


def paper_print(reported: Sequence[Reported]) -> Iterator[Table]:
    """Yield a paper's tables in their own shape; known errors are marked ‡ and explained in notes."""
    for sheet in paper_tables(reported):
        errors = tuple(f"‡ {error}: {wrong}" for error, wrong in sheet.errors.items())
        for block in sheet.blocks:
            name = f"{sheet.paper}, {sheet.table}, {', '.join(sheet.units)}, as printed"
            heads = [one.dataset for one in block.columns]
            if len(block.groups) > 1:  # the data set under its measure, in one line
                heads = [f"{one.suite} {one.group} {one.dataset}".strip() for one in block.columns]
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


def everything(results: Iterable[Result]) -> Table:
    """Return every number of results of one name, without dev tasks: a line a system, task or average, and measure."""
    groups = grouped(results)
    first = groups[0][0].content
    said = dict.fromkeys(note for group in groups for note in notes(first.data, group[0].content.suite.stands_for))
    name = f"every number, {first.data} data{', substitutes' if first.suite.stands_for else ''}"
    rows = tuple(row for group in groups for row in _long(group))
    return Table(name, plain_columns(*_LONG), rows, tuple(said), digits=DIGITS)


def _long(group: Group) -> Iterator[tuple[Value, ...]]:
    """Yield the lines of one system on one suite, means over the seeds that have a number."""
    first = group[0].content
    found: dict[tuple[str, str, str], dict[int, float]] = {}
    queries: dict[str, int] = {}
    for result in group:
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
        about = (first.data, first.suite.name, first.suite.stands_for, first.setting)
        system = (first.system.label, first.system.hash, " ".join(map(str, by_seed)))
        count = queries.get(name) if kind == "task" else None
        yield (*about, *system, kind, name, measure, sum(by_seed.values()) / len(by_seed), count)
