"""Boards → files of the site: pages, and the same numbers as CSV and JSON beside them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from bench.scoring.significance import COVERAGE, FLIPS, RESAMPLES, chance_text
from bench.substitutes import mark
from leaderboard import text
from leaderboard.kit import FIRST, STYLE, Family, Files, Renderer, Site, banner, root
from leaderboard.tables import LEVEL, Board, Row

_WIDTH, _INSET = 160, 4


@dataclass(frozen=True)
class Page:
    """A board and where its files lie.

    Args:
        board: the table.
        stem: path of its files in the site, without the ending.
    """

    board: Board
    stem: str

    @property
    def root(self) -> str:
        """The tree that it belongs to: empty, `mini/` (`mini-few-names/` and the like) or `local/`."""
        return root(self.board.data)

    @property
    def name(self) -> str:
        """File name without folder and ending."""
        return self.stem.rpartition("/")[2]

    def about(self) -> dict[str, Any]:
        """What a list of pages says of it."""
        board = self.board
        return {
            "page": f"{self.stem}.html",
            "suite": board.suite,
            "stands_for": board.stands_for or None,
            "setting": board.setting,
            "data": board.data,
            "measure": board.measure,
            "systems": len(board.rows) + len(board.incomplete),
            "best": board.best,
        }


def pages(boards: Sequence[Board]) -> list[Page]:
    """Say where each board lies; other data than official has a tree of its own."""
    return [Page(board, f"{root(board.data)}suites/{text.slug(f'{board.suite}-{board.setting}')}") for board in boards]


def files(site: Site) -> dict[str, bytes]:
    """Every file of the site by its path; the same site always gives the same bytes."""
    renderer = Renderer(site)
    found = {STYLE: resources.files("leaderboard").joinpath("static/style.css").read_bytes()}
    for family in FAMILIES:
        for name, content in family(site, renderer):
            if name in found:
                raise ValueError(f"{name}: two pages of one name")
            found[name] = content
    return found


def suite_files(site: Site, renderer: Renderer) -> Files:
    """A page, a CSV and a JSON file for every board."""
    for page in pages(site.boards):
        yield f"{page.stem}.html", _suite(renderer, page)
        yield f"{page.stem}.csv", _csv(page.board)
        yield f"{page.stem}.json", _json(page.board)


def index_files(site: Site, renderer: Renderer) -> Files:
    """The list of pages of every tree."""
    made = pages(site.boards)
    for data in _trees(made):
        here = [page for page in made if page.board.data == data]
        yield f"{root(data)}index.html", _index(renderer, data, here, made)


FAMILIES: tuple[Family, ...] = (suite_files, index_files)
"""All families of pages."""


def _suite(renderer: Renderer, page: Page) -> bytes:
    """The page of a board."""
    board = page.board
    measures = sorted({name for row in board.rows for name in row.measures})
    return renderer.page(
        "suite.html",
        page.stem,
        data=board.data,
        title=f"{_title(board)} · {board.setting}",
        board=board,
        page=page,
        sentence=sentence(board),
        caption=caption(board),
        method=_method(board),
        measures=measures,
        bars=_bars(board.rows),
        stands_for=board.stands_for,
    )


def _index(renderer: Renderer, data: str, here: Sequence[Page], every: Sequence[Page]) -> bytes:
    """The list of a tree's pages, and links to the other trees."""
    base = root(data)
    return renderer.page(
        "index.html",
        f"{base}index",
        data=data,
        title="retrieval-bench" if data == "official" else f"retrieval-bench · {data} data",
        pages=[(page, page.stem.removeprefix(base)) for page in here],
        trees=[(other, root(other)) for other in _trees(every) if other != data],
    )


def _trees(every: Sequence[Page]) -> list[str]:
    """The kinds of data that have pages, official data first and always."""
    return list(dict.fromkeys([FIRST, *(page.board.data for page in every)]))


def _title(board: Board) -> str:
    """How the page is called: mini data carry their name into every title."""
    return board.title if board.data == "official" else f"{board.data}/{board.suite}"


def sentence(board: Board) -> str:
    """What the table says, from tested facts only."""
    if not board.rows:
        return f"No system has run all {len(board.columns)} tasks of this table yet, so none is ranked."
    first = board.rows[0].name
    if board.untested:
        return f"{first} has the highest {board.headline}; nothing was tested, for {board.untested}."
    if len(board.rows) == 1:
        return f"{first} is the only system here: there is nothing to compare it with."
    if len(board.best) > 1:
        return f"{text.listed(board.best)} are tied for best: none is significantly worse than {first}."
    second = board.rows[1].name
    lead, chance = board.best_against[second]
    return (
        f"{first} is best, significantly so against each of the others; it leads {second} by "
        f"{text.number(lead.difference)} points, 95 % {text.bounds(lead.low, lead.high)}, {chance_text(chance)}."
    )


def caption(board: Board) -> str:
    """Measure, unit, data, setting, numbers of queries, tasks and systems; of a substitute that it is one."""
    what = f"{_title(board)} ({mark(board.stands_for)})" if board.stands_for else _title(board)
    return (
        f"{board.measure}, percent; {what}, {board.data} data, {board.setting}; "
        f"{text.plural(board.queries, 'query', 'queries')} in {text.plural(len(board.columns), 'task')}, "
        f"{text.plural(len(board.rows) + len(board.incomplete), 'system')}."
    )


def _method(board: Board) -> list[str]:
    """How the numbers were made, a sentence each."""
    found = [f"Score: {board.headline}."]
    if not board.whole and len(board.columns) > 1:
        found = [f"Score: the unweighted mean of these {len(board.columns)} tasks, which is no average of the suite's."]
    if not board.untested:
        found.append(
            f"Intervals: {100 * COVERAGE:.0f} %, queries resampled {RESAMPLES:,} times within each task; seeds are "
            "averaged first, so the variation of training is not in them. Do not judge two systems by whether their "
            "intervals overlap: the tests are paired."
        )
    if board.pairs:
        found.append(
            f"Rank and ●: paired randomisation tests over queries ({FLIPS:,} sign patterns, flipped within each task), "
            f"two-sided, corrected by Holm over {text.plural(board.pairs, 'pair')}, level {LEVEL}. "
            "● marks who is not significantly worse than the best."
        )
    return [*found, *board.notes]


def _bars(rows: Sequence[Row]) -> dict[str, tuple[str, str, str]]:
    """Ends and middle of every row's interval on one axis, in pixels from the left."""
    shown = [(row.name, row.low, row.score, row.high) for row in rows]
    inside = [(name, low, score, high) for name, low, score, high in shown if None not in (low, score, high)]
    ends = [value for _, *three in inside for value in three if value is not None]
    if not ends:
        return {}
    start, span = min(ends), (max(ends) - min(ends)) or 1.0

    def pixel(value: float | None) -> str:
        return f"{_INSET + (_WIDTH - 2 * _INSET) * ((value or 0.0) - start) / span:.1f}"

    return {name: (pixel(low), pixel(score), pixel(high)) for name, low, score, high in inside}


def _csv(board: Board) -> bytes:
    """The table as CSV, fractions; other data than official and substitutes say so in a first line and in a column."""
    stream = io.StringIO()
    if board.data != "official":
        stream.write(f"# {board.data} data: not comparable with official numbers\n")
    if board.stands_for:
        stream.write(f"# {mark(board.stands_for)}\n")
    writer = csv.writer(stream, lineterminator="\n")
    tasks = [column.task for column in board.columns]
    about_board = {
        "data": board.data,
        "suite": board.suite,
        "stands_for": board.stands_for,
        "setting": board.setting,
        "measure": board.measure,
    }
    head = ("system", "hash", *about_board, "seeds", "score", "low", "high", "ranks", "tied")
    writer.writerow([*head, *map(text.cell, board.averages), *map(text.cell, tasks)])
    for row in _every(board):
        about = (*about_board.values(), " ".join(map(str, row.seeds)))
        numbers = (row.score, row.low, row.high)
        writer.writerow(
            [
                text.cell(row.name),
                row.system.hash,
                *map(text.cell, about),
                *map(_blank, numbers),
                text.place(row.ranks) if row.ranks else "",
                str(row.tied).lower(),
                *(_blank(row.averages.get(name)) for name in board.averages),
                *(_blank(row.tasks.get(task)) for task in tasks),
            ]
        )
    return stream.getvalue().encode()


def _blank(value: float | None) -> str:
    """A fraction in a cell, nothing for what is not there."""
    return "" if value is None else str(text.fraction(value))


def _every(board: Board) -> Iterator[Row]:
    """Ranked rows, then the others."""
    yield from board.rows
    yield from board.incomplete


def _json(board: Board) -> bytes:
    """The board for machines: fractions, every measure, comparisons of the best row, commands."""
    content = {
        "schema": "retrieval-bench/board/1",
        "note": banner(board.data, board.stands_for),
        "suite": {
            "name": board.suite,
            "title": board.title,
            "version": board.version,
            "stands_for": board.stands_for or None,
        },
        "setting": board.setting,
        "data": board.data,
        "measure": board.measure,
        "headline": board.headline,
        "whole_suite": board.whole,
        "tasks": [{"task": column.task, "queries": column.queries} for column in board.columns],
        "sentence": sentence(board),
        "pairs_tested": board.pairs,
        "rows": [_row_json(row) for row in _every(board)],
        "best_against": [
            {
                "system": name,
                **{key: text.fraction(getattr(one, key)) for key in ("difference", "low", "high", "p_randomisation")},
                "p_holm": text.fraction(chance),
                **{key: getattr(one, key) for key in ("n", "wins", "ties", "losses")},
            }
            for name, (one, chance) in board.best_against.items()
        ],
    }
    return (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _row_json(row: Row) -> dict[str, Any]:
    """A row for machines."""
    return {
        "system": row.name,
        "method": row.system.method,
        "hash": row.system.hash,
        "seeds": list(row.seeds),
        **_rounded({"score": row.score, "low": row.low, "high": row.high}),
        "ranks": list(row.ranks) if row.ranks else None,
        "tied_with_best": row.tied,
        "averages": _rounded(row.averages),
        "tasks": _rounded(row.tasks),
        "measures": _rounded(row.measures),
        "command": row.command,
        "libraries": dict(row.libraries),
    }


def _rounded(values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Fractions as files hold them."""
    return {name: None if value is None else text.fraction(value) for name, value in values.items()}
