"""Exports: the name of a table → its files in a format, as `bench leaderboard export` writes them.

A table is a board, a paper's numbers, or every number of one kind of data in long form. Rows of unofficial data and of
substitutes have the columns `data` and `stands_for` and a note, and are never in one table with official rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from bench.core.errors import UsageError
from bench.core.messages import canonical, unknown
from bench.core.publications import Reported
from bench.evaluation.results import results as read_results
from bench.evaluation.results.read import Result
from bench.evaluation.tables import DIGITS, FOR_PEOPLE, FORMATS, Table, Value, encoded, plain_columns
from leaderboard.site import text
from leaderboard.site.boards import boards
from leaderboard.site.captions import notes
from leaderboard.site.columns import board_json, file_table, print_table
from leaderboard.site.hub import Group, grouped, model_index, mteb_files
from leaderboard.site.printed import Block, anchor, paper_tables, stems
from leaderboard.site.site import FIRST

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


Files = Mapping[str, bytes]
"""Content by name; a format of one file has one, whose name says nothing."""
REPORTED, ALL, SUBSTITUTES = "reported", "all", "substitutes"
_SYSTEMS = ("mteb", "model-index")


def export(
    table: str, kind: str, folder: Path, reported: Sequence[Reported] = (), *, system: str | None = None
) -> Files:
    """Return the files of a table.

    Args:
        table: `[DATA/]SUITE/SETTING`, `[DATA/][substitutes/]all`, or `reported/PAPER[/TABLE]`.
        kind: one of `bench.evaluation.tables.FORMATS`, `mteb`, or `model-index`.
        folder: of results.
        reported: numbers of papers.
        system: label of the only system to write, where the format is one of systems.

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
    if kind in _SYSTEMS:
        groups = _of_system(grouped(meant), system)
        return dict(mteb_files(groups)) if kind == "mteb" else {"table": model_index(groups)}
    first = meant[0].content
    if table.rpartition("/")[2] == ALL:
        return {"table": encoded(everything(meant, first.data, substitutes=bool(first.suite.stands_for)), kind)}
    (board,) = boards(meant)
    if kind == "json":
        return {"table": board_json(board)}
    return {"table": encoded(print_table(board) if kind in FOR_PEOPLE else file_table(board), kind)}


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


def _of_system(groups: Sequence[Group], system: str | None) -> list[Group]:
    """The groups of a system, or all."""
    if system is None:
        return list(groups)
    found = [group for group in groups if group[0].content.system.label == system]
    if not found:
        raise UsageError(unknown("system", system, sorted({group[0].content.system.label for group in groups})))
    return found


def _reported(table: str, kind: str, reported: Sequence[Reported]) -> bytes:
    """A paper's numbers, or those of one of its tables."""
    if kind not in FORMATS:
        raise UsageError(where="--format", found=kind, expected=f"one of {', '.join(FORMATS)} for tables of papers")
    _, paper, *rest = [*table.split("/", 2), ""]
    names = {stem: name for name, stem in stems(row.paper for row in reported).items()}
    if canonical(paper) not in names:
        raise UsageError(unknown("paper", paper, sorted(names)))
    rows = [row for row in reported if row.paper == names[canonical(paper)]]
    wanted = rest[0]
    if wanted:
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
            rows = tuple(
                (
                    setting,
                    line.model,
                    *(cell.row.printed + " ‡" * bool(cell.row.error) if cell else "" for cell in line.cells),
                )
                for setting, lines in block.parts
                for line in lines
            )
            yield Table(name, plain_columns(*_heads(block)), rows, errors)


def everything(results: Iterable[Result], data: str = FIRST, *, substitutes: bool = False) -> Table:
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
    name = f"every number, {data} data{', substitutes' if substitutes else ''}"
    return Table(name, plain_columns(*_LONG), tuple(rows), tuple(said), digits=DIGITS)


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


def _heads(block: Block) -> tuple[str, ...]:
    """Heads of a printed table: the data set under its measure, in one line."""
    several = len(block.groups) > 1
    names = [
        f"{column.suite} {column.group} {column.dataset}".strip() if several else column.dataset
        for column in block.columns
    ]
    return text.distinct(["setting", "model", *names])
