"""The name of a table → its files in a format: what `bench leaderboard export` writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench.errors import UsageError
from bench.publications import Reported
from bench.wording import canonical, unknown
from leaderboard.exports import READ, board_print, board_sheet, everything, paper_print, paper_sheet
from leaderboard.formats import board_csv, board_json
from leaderboard.hub import Group, grouped, model_index, mteb_files
from leaderboard.pages.reported import stems
from leaderboard.places import FIRST
from leaderboard.printed import anchor
from leaderboard.read import Result
from leaderboard.read import results as read_results
from leaderboard.sheets import FORMATS
from leaderboard.tables import boards

Files = Mapping[str, bytes]
"""Content by name; a format of one file has one, whose name says nothing."""
REPORTED, ALL, SUBSTITUTES = "reported", "all", "substitutes"
_SYSTEMS = ("mteb", "model-index")
_BESIDE = {"csv": board_csv, "json": board_json}
"""What the site writes beside the page of a board."""


def export(table: str, kind: str, folder: Path, told: Sequence[Reported] = (), *, system: str | None = None) -> Files:
    """Make the files of a table.

    Args:
        table: `[DATA/]SUITE/SETTING`, `[DATA/][substitutes/]all`, or `reported/PAPER[/TABLE]`.
        kind: one of `leaderboard.sheets.FORMATS`, `mteb`, or `model-index`.
        folder: of results.
        told: what papers printed.
        system: label of the only system to write, where the format is one of systems.

    Raises:
        UsageError: no such table or system, or a format that the table has not.
        StoreError: a result that cannot be trusted.
    """
    if system and kind not in _SYSTEMS:
        raise UsageError(f"found --system {system}, expected it with --format {' or '.join(_SYSTEMS)} only")
    if table.partition("/")[0] == REPORTED:
        return {"table": _reported(table, kind, told)}
    results = read_results(folder)
    meant = _meant(results, table)
    if kind in _SYSTEMS:
        groups = _of_system(grouped(meant), system)
        return dict(mteb_files(groups)) if kind == "mteb" else {"table": model_index(groups)}
    first = meant[0].content
    if table.rpartition("/")[2] == ALL:
        return {"table": FORMATS[kind](everything(meant, first.data, substitutes=bool(first.suite.stands_for)))}
    (board,) = boards(meant)
    if kind in _BESIDE:
        return {"table": _BESIDE[kind](board)}
    return {"table": FORMATS[kind](board_print(board) if kind in READ else board_sheet(board))}


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


def _meant(results: Sequence[Result], table: str) -> list[Result]:
    """The results of a table."""
    found = tables(results)
    if table not in found:
        raise UsageError(f"{unknown('table', table, sorted(found))} What papers printed is called reported/PAPER.")
    return found[table]


def _of_system(groups: Sequence[Group], system: str | None) -> list[Group]:
    """The groups of a system, or all."""
    if system is None:
        return list(groups)
    found = [group for group in groups if group[0].content.system.label == system]
    if not found:
        raise UsageError(unknown("system", system, sorted({group[0].content.system.label for group in groups})))
    return found


def _reported(table: str, kind: str, told: Sequence[Reported]) -> bytes:
    """A paper's numbers, or those of one of its tables."""
    if kind not in FORMATS:
        raise UsageError(f"found --format {kind}, expected one of {', '.join(FORMATS)} for what papers printed")
    _, paper, *rest = [*table.split("/", 2), ""]
    names = {stem: name for name, stem in stems(row.paper for row in told).items()}
    if canonical(paper) not in names:
        raise UsageError(unknown("paper", paper, sorted(names)))
    rows = [row for row in told if row.paper == names[canonical(paper)]]
    wanted = rest[0]
    if wanted:
        kept = [row for row in rows if wanted in (anchor(row.table), row.table)]
        if not kept:
            raise UsageError(unknown("table", wanted, list(dict.fromkeys(anchor(row.table) for row in rows))))
        rows = kept
    write: Callable[..., bytes] = FORMATS[kind]
    return b"\n".join(map(write, paper_print(rows))) if kind in READ else write(paper_sheet(rows))
