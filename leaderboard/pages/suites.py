"""The page of every board: the ranked table, the map by task, and the same numbers as files."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from bench.evaluation.svg import Axis, axis, interval_bar
from bench.evaluation.tables import encoded, visible
from leaderboard.site import captions, heat, languages, text
from leaderboard.site.boards import Board, Row
from leaderboard.site.captions import banner
from leaderboard.site.columns import METADATA, TableRow, board_json, file_table, page_columns, print_table
from leaderboard.site.feed import day
from leaderboard.site.render import Files, Renderer
from leaderboard.site.reported import matched
from leaderboard.site.site import SETTINGS, Page, Site, folder, pages
from leaderboard.site.text import micro

CELLS, AS_CELLS, FEWEST = 2_400, 17, 25
"""Cells of a page that keep it below its bytes, the cells that the rest of a row counts for, and the fewest rows."""
SWITCHED = 40
"""Rows up to which a page holds every measure by task, every pair and command; above, files and other pages do."""
WIDTH = 420
"""Pixels of the drawn intervals; narrow screens squeeze them."""
BASES = 12
"""Baselines that a larger page offers."""


@dataclass(frozen=True)
class TablePart:
    """The rows of one page of a board."""

    number: int  # from 1
    of: int  # how many pages there are
    first: int  # place of its first row in the whole table, from 1
    rows: tuple[Row, ...]  # ranked ones
    unranked: tuple[Row, ...]

    @property
    def every(self) -> tuple[Row, ...]:
        """All rows of the page."""
        return self.rows + self.unranked

    @property
    def suffix(self) -> str:
        """The end of its file name; empty for the first."""
        return "" if self.number == 1 else f"-{self.number}"


def files(site: Site, renderer: Renderer) -> Files:
    """A page (or several) for every board, and the table as CSV, JSON, LaTeX and Markdown."""
    made = pages(site.boards)
    for page in made:
        kin = [other for other in made if _kind(other) == _kind(page)]
        colours = heat.scale(other.board for other in kin)
        for part in parts(page.board):
            yield f"{page.stem}{part.suffix}.html", _page(site, renderer, page, part, kin, colours)
        yield f"{page.stem}.csv", encoded(file_table(page.board), "csv")
        yield f"{page.stem}.json", board_json(page.board)
        printed = print_table(page.board)
        yield f"{page.stem}.tex", encoded(printed, "latex")
        yield f"{page.stem}.md", encoded(printed, "markdown")


def parts(board: Board) -> list[TablePart]:
    """Cut a board into pages that open quickly; ranks and tests are those of the whole."""
    every = board.every
    most = max(FEWEST, CELLS // (len(board.columns) + AS_CELLS))
    starts = range(0, max(1, len(every)), most)
    ranked = len(board.rows)
    return [
        TablePart(
            number=number,
            of=len(starts),
            first=start + 1,
            rows=tuple(every[start : min(start + most, ranked)]),
            unranked=tuple(every[max(start, ranked) : start + most]),
        )
        for number, start in enumerate(starts, 1)
    ]


def _kind(page: Page) -> tuple[str, str, str]:
    """Return what the pages of one suite share."""
    return page.board.data, page.board.suite, page.board.stands_for


def _page(
    site: Site, renderer: Renderer, page: Page, part: TablePart, kin: Sequence[Page], colours: heat.Scale
) -> bytes:
    board = page.board
    # the script knows the rows of its page alone
    base = next((one for one in (heat.baseline(board), *part.rows) if one in part.rows), None)
    lines = _lines(site, board, part, base, colours)
    inside = folder(board.data, board.stands_for)
    return renderer.page(
        "suite.html",
        f"{page.stem}{part.suffix}",
        data=board.data,
        stands_for=board.stands_for,
        title=f"{captions.title(board)} · {board.setting}",
        board=board,
        page=page,
        part=part,
        settings=sorted(kin, key=lambda one: SETTINGS.index(one.board.setting)),
        verdict=captions.verdict(board),
        caption=captions.caption(board),
        where=captions.where(board),
        method=captions.method(board),
        measures=sorted({name for row in board.rows for name in row.measures}),
        lines=lines[: len(part.rows)],
        unranked=lines[len(part.rows) :],
        axis=_axis(board),
        columns=page_columns(lines, board),
        base=base,
        colours=colours,
        inside=inside,
        compare=f"{inside}compare/{text.slug(f'{board.suite}-{board.setting}')}.html",
        few=_few(board, part),
        switches=_switches(board, part),
        bases=_bases(part, base, few=_few(board, part)),
        held=_held(site, board, part, base, colours, lines),
        **_by_language(board, part),
    )


def _by_language(board: Board, part: TablePart) -> dict[str, Any]:
    """Return groups of the board's languages, and each row's averages over them and over what it was pretrained on."""
    tasks = {column.task: column.name for column in board.columns}
    groups = languages.groups(tasks)
    rows = []
    for row in part.every if groups else ():
        sides = [
            (languages.average(row.tasks, side), len(side)) for side in languages.seen(board.systems[row.name], tasks)
        ]
        rows.append((row.name, [languages.average(row.tasks, group.tasks) for group in groups], sides))
    divided = any(all(count for _, count in sides) for _, _, sides in rows)
    return {"groups": groups, "by_group": rows, "divided": divided}


def _axis(board: Board) -> Axis | None:
    held = (value for row in board.rows for value in (row.low, row.score, row.high, *row.of_seeds))
    return axis((value for value in held if value is not None), width=WIDTH)


def _lines(site: Site, board: Board, part: TablePart, base: Row | None, colours: heat.Scale) -> list[TableRow]:
    """Return the rows of a page as it shows them."""
    on = _axis(board)
    significant = heat.significant(board, base) if base else frozenset()
    least, best = board.tests.ranks.detectable, board.rows[0].score if board.rows else None
    band = None if least is None or best is None else (best - least, best + least)
    lines = []
    for row in part.every:
        bar = Markup()
        if on is not None and row.low is not None and row.high is not None and row.score is not None:
            bar = Markup(interval_bar(on, row.low, row.score, row.high, row.of_seeds, band))  # noqa: S704 (numbers of ours)
        reported = matched(site, board, row)
        cells = heat.cells(board, row, base, significant, colours)
        paper = reported.printed if reported else ""
        method = site.shown.methods.get(row.system.method)
        lines.append(TableRow(board, row, bar, paper, cells, day(site, board, row), method))
    return lines


def _held(
    site: Site, board: Board, part: TablePart, base: Row | None, colours: heat.Scale, lines: Sequence[TableRow]
) -> Markup:
    """Return the data of the script: values are millionths, rows in the order of the page."""
    few = _few(board, part)
    facts = [one for one in page_columns(lines, board) if one.place == METADATA]
    content = {
        "title": f"{captions.title(board)} · {board.setting}",
        "caption": captions.caption(board),
        "note": banner(board.data, board.stands_for),
        "built": site.built,
        "measure": board.measure,
        "headline": board.headline,
        "tasks": [column.name for column in board.columns],
        "ids": [text.slug(row.name) for row in part.every],
        "names": [visible(row.name) for row in part.every],
        "about": [
            visible(" ".join([line.row.name, line.row.system.method, *filter(None, values)])).lower()
            for line, values in ((line, [str(one.take(line) or "") for one in facts]) for line in lines)
        ],
        "ranked": len(part.rows),
        "whole": len(board.every),
        "values": {name: _values(board, part, name) for name in _switches(board, part)},
        "limit": micro(colours.limit),
        "low": micro(colours.low),
        "high": micro(colours.high),
        "base": text.slug(base.name) if base else None,
        "clear": {text.slug(one.name): heat.bits(board, one, part.every) for one in _bases(part, base, few=few)},
        "pairs": _pairs(board) if few else None,
        "least": None if board.tests.ranks.detectable is None else micro(board.tests.ranks.detectable),
    }
    return text.json_for_page(content)


def _few(board: Board, part: TablePart) -> bool:
    """Return whether the page holds every measure and every pair."""
    return len(board.every) <= SWITCHED and part.of == 1


def _switches(board: Board, part: TablePart) -> list[str]:
    """The measures that a page can show, the headline's first."""
    others = {name for row in part.every for name in row.by_measure} - {board.measure} if _few(board, part) else set()
    return [board.measure, *sorted(others)]


def _values(board: Board, part: TablePart, measure: str) -> list[list[int | None]]:
    """The headline and every task of a measure, a list a row."""
    found = []
    for row in part.every:
        tasks = row.by_measure.get(measure, {})
        head = row.measures.get(measure) if row.score is not None else None
        found.append([_micro(head), *(_micro(tasks.get(column.task)) for column in board.columns)])
    return found


def _micro(value: float | None) -> int | None:
    """Millionths, where there is a value."""
    return None if value is None else micro(value)


def _bases(part: TablePart, base: Row | None, *, few: bool) -> list[Row]:
    """The rows that a page offers as baseline: ranked ones of the page, of many the first and the usual one."""
    if base is None:
        return []
    offered = list(part.rows if few else part.rows[:BASES])
    return offered if base in offered else [*offered, base]


def _pairs(board: Board) -> list[list[int | None]]:
    """Differences of the headline, both ends, and corrected p, in the order of all pairs of ranked rows."""
    columns = [board.tests.ranks.table[name].tolist() for name in ("difference", "low", "high", "adjusted")]
    return [[None if value != value else micro(value) for value in row] for row in zip(*columns, strict=True)]  # noqa: PLR0124 (NaN)
