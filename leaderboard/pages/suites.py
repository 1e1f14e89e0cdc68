"""The page of every board: the ranked table, the map by task, and the same numbers as files."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from markupsafe import Markup

from bench.core.messages import visible
from bench.evaluation.significance.allocation import common_luck, needs
from bench.evaluation.significance.families import LEVEL
from bench.evaluation.svg import Axis, axis, interval_bar
from bench.evaluation.tables import MISSING, encoded
from bench.types import REGIMES
from leaderboard.site import captions, conclusions, gain_figure, heat, languages, text
from leaderboard.site.boards import Board, Row
from leaderboard.site.captions import banner
from leaderboard.site.columns import METADATA, TableRow, board_json, file_table, people_columns, print_table
from leaderboard.site.gains import board_gains, gains_of
from leaderboard.site.render import Files, Page, Renderer
from leaderboard.site.reported import matched
from leaderboard.site.site import Site
from leaderboard.site.text import micro, micros

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
    """The rows of one page of a board.

    Args:
        number: of the page, from 1.
        count: number of pages.
        first: place of its first row in the whole table, from 1.
        rows: ranked ones.
        unranked: the others.
    """

    number: int
    count: int
    first: int
    rows: tuple[Row, ...]
    unranked: tuple[Row, ...]

    @property
    def all_rows(self) -> tuple[Row, ...]:
        """All rows of the page."""
        return self.rows + self.unranked

    @property
    def suffix(self) -> str:
        """The end of its file name; empty for the first."""
        return "" if self.number == 1 else f"-{self.number}"


def files(site: Site, renderer: Renderer) -> Files:
    """Yield a page (or several) for every board, and the table as CSV, JSON, LaTeX and Markdown."""
    for board in site.boards:
        regimes = [sibling for sibling in site.boards if (sibling.suite, sibling.tree) == (board.suite, board.tree)]
        colours = heat.scale(regimes)
        for part in parts(board):
            yield _page(site, renderer, board, part, regimes, colours)
        yield f"{board.stem}.csv", encoded(file_table(board), "csv")
        yield f"{board.stem}.json", board_json(board)
        printed = print_table(board)
        yield f"{board.stem}.tex", encoded(printed, "latex")
        yield f"{board.stem}.md", encoded(printed, "markdown")


def parts(board: Board) -> list[TablePart]:
    """Cut a board into pages that open quickly; ranks and tests are those of the whole."""
    rows, ranked = board.all_rows, len(board.rows)
    most = max(FEWEST, CELLS // (len(board.columns) + AS_CELLS))
    starts = range(0, max(1, len(rows)), most)
    return [
        TablePart(
            number=number,
            count=len(starts),
            first=start + 1,
            rows=tuple(rows[start : min(start + most, ranked)]),
            unranked=tuple(rows[max(start, ranked) : start + most]),
        )
        for number, start in enumerate(starts, 1)
    ]


def _page(
    site: Site, renderer: Renderer, board: Board, part: TablePart, regimes: Sequence[Board], colours: heat.Scale
) -> Page:
    """Render a page of a board.

    Args:
        site: names days, methods and what papers printed.
        renderer: fills the template.
        board: the board.
        part: its rows on this page.
        regimes: boards of the same suite and kind of data, one a regime; the page links to them.
        colours: of the map, those of the suite.

    Returns:
        The page. Its data for the script are in millionths: values, the limits of the map's colours, and of every two
        ranked rows the difference, its interval, its corrected p and the detectable difference.
    """
    gains = gains_of([board])
    # The script knows the rows of its page alone.
    base = next((row for row in (heat.baseline(board), *part.rows) if row in part.rows), None)
    values = (value for row in board.rows for value in (row.low, row.score, row.high, *row.seed_scores))
    drawn_on = axis((value for value in values if value is not None), width=WIDTH)
    lines = _lines(site, board, part, base, colours, drawn_on)
    complete = len(board.all_rows) <= SWITCHED and part.count == 1
    measures = {name for row in part.all_rows for name in row.by_measure} - {board.measure} if complete else set()
    switches = [board.measure, *sorted(measures)]
    bases = list(part.rows if complete else part.rows[:BASES]) if base else []
    bases += [base] if base and base not in bases else []
    # Of every two ranked rows the difference of the headline, both its ends, the corrected p, and what is detectable.
    ranks = board.tests.ranks
    # A p that draws do not settle is no more significant than one above the level.
    adjusted = np.where(ranks.decided, ranks.table["adjusted"], np.maximum(ranks.table["adjusted"], LEVEL + 1e-6))
    numbers = {**ranks.table, "adjusted": adjusted}
    columns = [micros(numbers[name]) for name in ("difference", "low", "high", "adjusted", "detectable")]
    pairs = [list(values) for values in zip(*columns, strict=True)]
    return renderer.page(
        "suite.html",
        f"{board.stem}{part.suffix}",
        title=captions.heading(board),
        of=board.tree,
        board=board,
        name_of_files=board.stem.rpartition("/")[2],
        part=part,
        regimes=sorted(regimes, key=lambda sibling: REGIMES.index(sibling.regime)),
        verdict=captions.verdict(board),
        caption=captions.caption(board),
        scope=captions.scope(board),
        methodology=captions.methodology(board),
        gains=[(gain, _buys(board, gain.row.name, gain.start)) for gain in gains.boards[0].gains] if gains else [],
        finding=conclusions.finding(gains.boards[0]) if gains else "",
        drawing=gain_figure.panel(gains, gains.boards[0]) if gains else "",
        keys=[(gain_figure.key(number), arm) for number, arm in enumerate(gains.arms)] if gains else [],
        measures=sorted({name for row in board.rows for name in row.measures}),
        lines=lines[: len(part.rows)],
        unranked=lines[len(part.rows) :],
        axis=drawn_on,
        columns=people_columns(lines, board),
        base=base,
        colours=colours,
        inside=board.tree.folder,
        compare=f"{board.compare_stem}.html",
        complete=complete,
        switches=switches,
        bases=bases,
        page_data=text.json_for_page(
            {
                **_table_data(site, board, part, lines, switches),
                "limit": micro(colours.limit),
                "low": micro(colours.low),
                "high": micro(colours.high),
                "base": text.slug(base.name) if base else None,
                "clear": {text.slug(row.name): heat.bits(board, row, part.all_rows) for row in bases},
                "pairs": pairs if complete else None,
            }
        ),
        **languages.by_group(board, part.all_rows),
    )


def _lines(
    site: Site, board: Board, part: TablePart, base: Row | None, colours: heat.Scale, drawn_on: Axis | None
) -> list[TableRow]:
    """Return the rows of a page as it shows them.

    Args:
        site: names days, methods and what papers printed.
        board: the board.
        part: its rows on this page.
        base: the row that the map subtracts; None for a map of values.
        colours: of the map.
        drawn_on: the axis of the intervals, fractions; None where no row has one.

    Returns:
        The rows in their order. Intervals lie over a band of the differences from the best row that are detected with
        less than 80 % power.
    """
    significant = heat.significant(board, base) if base else frozenset()
    gains = {gain.row.name: gain for gain in board_gains(board)}
    best = board.rows[0].score if board.rows else None
    lines = []
    for row in part.all_rows:
        bar, against = Markup(), board.best_against.get(row.name)
        reach = None if against is None else against.detectable
        band = None if reach is None or best is None else (best - reach, best + reach)
        if drawn_on is not None and row.low is not None and row.high is not None and row.score is not None:
            bar = Markup(interval_bar(drawn_on, row.low, row.score, row.high, row.seed_scores, band))  # noqa: S704 (numbers of ours)
        reported = matched(site, board, row)
        line = TableRow(
            board,
            row,
            bar=bar,
            paper=reported.printed if reported else "",
            cells=heat.cells(board, row, base, significant, colours),
            gain=gains.get(row.name),
            day=site.first_day(board, row),
            method=site.catalogue.methods.get(row.system.method),
        )
        lines.append(line)
    return lines


def _table_data(
    site: Site, board: Board, part: TablePart, lines: Sequence[TableRow], switches: Sequence[str]
) -> dict[str, Any]:
    """Return what the script needs of the rows, in the order of the page; values are millionths.

    `about` is what the filter searches: a row's name, its method and its metadata, in lower case. `values` has a list a
    row for each measure of `switches`: the headline, then the tasks in the order of their columns; None for a gap.
    """
    metadata = [column for column in people_columns(lines, board) if column.place == METADATA]
    searched = []
    for line in lines:
        words = [str(column.take(line) or "") for column in metadata]
        searched.append(visible(" ".join([line.row.name, line.row.system.method, *filter(None, words)])).lower())
    values: dict[str, list[list[int | None]]] = {name: [] for name in switches}
    for row, (name, by_row) in product(part.all_rows, values.items()):
        headline = row.measures.get(name) if row.score is not None else None
        tasks = row.by_measure.get(name, {})
        row_values = [headline, *(tasks.get(column.task) for column in board.columns)]
        by_row.append([None if value is None else micro(value) for value in row_values])
    return {
        "title": captions.heading(board),
        "caption": captions.caption(board),
        "note": banner(board.data, board.proxy_for),
        "built": site.built,
        "measure": board.measure,
        "headline": board.headline,
        "tasks": [column.name for column in board.columns],
        "ids": [text.slug(row.name) for row in part.all_rows],
        "names": [visible(row.name) for row in part.all_rows],
        "about": searched,
        "ranked": len(part.rows),
        "whole": len(board.all_rows),
        "values": values,
    }


def _buys(board: Board, name: str, start: str) -> str:
    """Say with how many seeds, or tasks like these, an open gain would be decided; a dash where nobody can say."""
    gain, cells = board.tests.gains.comparison(name, start), board.tests.cells
    tasks = [column.task for column in board.columns if cells.has(name, start, column.task)]
    single = [cells.comparison(name, start, task) for task in tasks]
    needed = None if gain.decided else needs(gain, len(board.columns), common_luck(gain, single))
    if needed is None:
        return MISSING
    amounts = ((needed.seeds, "seeds"), (needed.tasks, "tasks"))
    return " or ".join(f"{count} {thing}" for count, thing in amounts if count is not None) or MISSING
