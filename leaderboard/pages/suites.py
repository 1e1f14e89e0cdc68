"""The page of every board: the ranked table, the map by task, and the same numbers as files beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from markupsafe import Markup

from leaderboard import heat, telling, text
from leaderboard.exports import board_print
from leaderboard.formats import board_csv, board_json
from leaderboard.kit import Files, Renderer, Site, banner
from leaderboard.places import SETTINGS, Page, folder, pages
from leaderboard.reported import matched
from leaderboard.sheets import as_latex, as_markdown
from leaderboard.svg import Axis, axis, interval_bar
from leaderboard.tables import Board, Row
from leaderboard.text import micro

ROWS, CELLS = 250, 2_400
"""Rows of a table, and cells of the map by task, that open quickly; what is more goes to a second page."""
SWITCHED = 40
"""Rows up to which a page holds every measure by task, every pair and command; above, files and other pages do."""
BASES = 12
"""Baselines that a larger page offers."""


@dataclass(frozen=True)
class Line:
    """A row as the table shows it.

    Args:
        row: the system.
        id: what fragments of addresses call it.
        bar: its interval, drawn; empty without one.
        paper: what its paper printed under the same conditions, empty where nothing is known.
        cells: the map's, one a task; None for a task that it lacks.
    """

    row: Row
    id: str
    bar: Markup
    paper: str
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True)
class Cell:
    """A cell of the map.

    Args:
        value: fraction.
        gap: difference to the baseline, None where there is none.
        classes: its colours: `d0`–`d6` of the difference, `a0`–`a6` of the value, `s` where the difference is clear,
            `u` where it is not.
    """

    value: float
    gap: float | None
    classes: str


@dataclass(frozen=True)
class Part:
    """The rows of one page of a board.

    Args:
        number: from 1.
        of: how many pages there are.
        first: place of its first row in the whole table, from 1.
        rows: ranked ones.
        incomplete: the others.
    """

    number: int
    of: int
    first: int
    rows: tuple[Row, ...]
    incomplete: tuple[Row, ...]

    @property
    def every(self) -> tuple[Row, ...]:
        """All rows of the page."""
        return self.rows + self.incomplete

    @property
    def suffix(self) -> str:
        """What its file name ends with: nothing for the first."""
        return "" if self.number == 1 else f"-{self.number}"


def files(site: Site, renderer: Renderer) -> Files:
    """A page (or several) for every board, and the table as CSV, JSON, LaTeX and Markdown."""
    made = pages(site.boards)
    for page in made:
        kin = [other for other in made if _kind(other) == _kind(page)]
        colours = heat.scale(other.board for other in kin)
        for part in parts(page.board):
            yield f"{page.stem}{part.suffix}.html", _page(site, renderer, page, part, kin, colours)
        yield f"{page.stem}.csv", board_csv(page.board)
        yield f"{page.stem}.json", board_json(page.board)
        printed = board_print(page.board)
        yield f"{page.stem}.tex", as_latex(printed)
        yield f"{page.stem}.md", as_markdown(printed)


def parts(board: Board) -> list[Part]:
    """Cut a board into pages that open quickly; ranks and tests are those of the whole."""
    every = heat.every(board)
    most = max(25, min(ROWS, CELLS // (len(board.columns) + 8)))
    starts = range(0, max(1, len(every)), most)
    ranked = len(board.rows)
    return [
        Part(
            number=number,
            of=len(starts),
            first=start + 1,
            rows=tuple(every[start : min(start + most, ranked)]),
            incomplete=tuple(every[max(start, ranked) : start + most]),
        )
        for number, start in enumerate(starts, 1)
    ]


def _kind(page: Page) -> tuple[str, str, str]:
    """What the pages of one suite share."""
    return page.board.data, page.board.suite, page.board.stands_for


def _page(site: Site, renderer: Renderer, page: Page, part: Part, kin: Sequence[Page], colours: heat.Scale) -> bytes:
    """A page of a board."""
    board = page.board
    base = heat.baseline(board)
    lines = _lines(site, board, part, base, colours)
    inside = folder(board.data, board.stands_for)
    on = _axis(board)
    return renderer.page(
        "suite.html",
        f"{page.stem}{part.suffix}",
        data=board.data,
        stands_for=board.stands_for,
        title=f"{telling.title(board)} · {board.setting}",
        board=board,
        page=page,
        part=part,
        settings=sorted(kin, key=lambda one: SETTINGS.index(one.board.setting)),
        sentence=telling.sentence(board),
        caption=telling.caption(board),
        about=telling.about(board),
        method=telling.method(board),
        measures=sorted({name for row in board.rows for name in row.measures}),
        lines=lines[: len(part.rows)],
        incomplete=lines[len(part.rows) :],
        axis=on,
        papers=any(line.paper for line in lines),
        costs=any(row.cost.seconds is not None for row in part.every),
        base=base,
        colours=colours,
        inside=inside,
        compare=f"{inside}compare/{text.slug(f'{board.suite}-{board.setting}')}.html",
        few=_few(board, part),
        switches=_switches(board, part),
        bases=_bases(part, base, few=_few(board, part)),
        held=_held(site, board, part, base, colours),
    )


def _axis(board: Board) -> Axis | None:
    """The axis that all intervals of a board share."""
    return axis(
        value for row in board.rows for value in (row.low, row.score, row.high, *row.of_seeds) if value is not None
    )


def _lines(site: Site, board: Board, part: Part, base: Row | None, colours: heat.Scale) -> list[Line]:
    """The rows of a page as it shows them."""
    on = _axis(board)
    found = heat.clear(board, base) if base else frozenset()
    lines = []
    for row in part.every:
        bar = Markup()
        if on is not None and row.low is not None and row.high is not None and row.score is not None:
            bar = interval_bar(on, row.low, row.score, row.high, row.of_seeds)
        told = matched(site, board, row)
        cells = tuple(_cell(row, column.task, base, found, colours) for column in board.columns)
        lines.append(Line(row, text.slug(row.name), bar, told.printed if told else "", cells))
    return lines


def _cell(row: Row, task: str, base: Row | None, found: frozenset[tuple[str, str]], colours: heat.Scale) -> Cell | None:
    """A cell of the map."""
    if task not in row.tasks:
        return None
    value = row.tasks[task]
    shade = f"a{colours.value(text.fraction(value))}"
    if base is None or task not in base.tasks:
        return Cell(value, None, shade)
    gap = text.gap(value, base.tasks[task])
    if row.name == base.name:
        return Cell(value, gap, shade)
    clear = "s" if (row.name, task) in found else "u"
    return Cell(value, gap, f"d{colours.difference(gap)} {clear} {shade}")


def _held(site: Site, board: Board, part: Part, base: Row | None, colours: heat.Scale) -> Markup:
    """What the script shows on request: values are millionths, rows in the order of the page."""
    few = _few(board, part)
    content = {
        "title": f"{telling.title(board)} · {board.setting}",
        "caption": telling.caption(board),
        "note": banner(board.data, board.stands_for),
        "built": site.built,
        "measure": board.measure,
        "headline": board.headline,
        "tasks": [column.name for column in board.columns],
        "ids": [text.slug(row.name) for row in part.every],
        "names": [text.visible(row.name) for row in part.every],
        "ranked": len(part.rows),
        "values": {name: _values(board, part, name) for name in _switches(board, part)},
        "limit": micro(colours.limit),
        "low": micro(colours.low),
        "high": micro(colours.high),
        "base": text.slug(base.name) if base else None,
        "clear": {text.slug(one.name): heat.bits(board, one, part.every) for one in _bases(part, base, few=few)},
        "pairs": _pairs(board) if few else None,
        "least": None if board.tests.detectable is None else micro(board.tests.detectable),
    }
    return text.json_for_page(content)


def _few(board: Board, part: Part) -> bool:
    """Whether the page holds every measure and every pair."""
    return len(heat.every(board)) <= SWITCHED and part.of == 1


def _switches(board: Board, part: Part) -> list[str]:
    """The measures that a page can show, the headline's first."""
    others = {name for row in part.every for name in row.by_measure} - {board.measure} if _few(board, part) else set()
    return [board.measure, *sorted(others)]


def _values(board: Board, part: Part, measure: str) -> list[list[int | None]]:
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


def _bases(part: Part, base: Row | None, *, few: bool) -> list[Row]:
    """The rows that a page offers as baseline: ranked ones of the page, of many the first and the usual one."""
    if base is None:
        return []
    offered = list(part.rows if few else part.rows[:BASES])
    return offered if base in offered or base not in part.rows else [*offered, base]


def _pairs(board: Board) -> list[list[int]]:
    """Differences of the headline, both ends, and Holm's p, in the order of all pairs of ranked rows."""
    whole = board.tests.whole
    found = []
    for pair in combinations(whole.names, 2):
        one = whole.comparison(*pair)
        found.append([*map(micro, (one.difference, one.low, one.high)), micro(whole.corrected[pair])])
    return found
