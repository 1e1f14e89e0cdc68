"""The first page of every tree: suites and systems in a grid for each setting, what is new, and how to cite; a feed."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.evaluation.measures.aggregate import mean
from leaderboard.site import text
from leaderboard.site.boards import Board, Row
from leaderboard.site.feed import NewRow, feed, new_rows
from leaderboard.site.render import Files, Renderer
from leaderboard.site.site import FIRST, SETTINGS, Page, Site, folder, pages, trees

GRID = 40
"""Rows of a grid, those in most best groups first; the suites' own pages show all."""
NEWEST = 10
"""New rows that the page names; the feed names more."""


@dataclass(frozen=True)
class SystemLine:
    """A system in a setting."""

    name: str
    method: str
    rows: Mapping[str, Row]  # by page; suites where it has no row are not there
    best: int  # suites in whose best group it is
    complete: int  # suites where it has a rank
    place: float  # mean of the middle of its rank interval over suites, which decides the order only
    seconds: float | None  # of training, of the costliest of its rows; None if none reports it


@dataclass(frozen=True)
class SettingGrid:
    """A setting: pages as columns, systems as rows."""

    setting: str
    pages: tuple[Page, ...]
    lines: tuple[SystemLine, ...]  # of systems, those in most best groups first
    left: int  # how many systems more there are
    sentence: str  # who is in most best groups


def files(site: Site, renderer: Renderer) -> Files:
    """The first page of every tree, its feed of new rows where days are known, and the glossary.

    Without official data, the root's first page shows what the next tree's shows, if that is none of substitutes.
    """
    yield renderer.file("glossary.html", "glossary", title="Glossary")
    made, every = pages(site.boards), trees(site.boards)
    lent = next((tree for tree in every[1:] if not tree[1]), None)
    lent = None if any((page.board.data, page.board.stands_for) == (FIRST, "") for page in made) else lent
    for data, standing_in in every:
        here = [page for page in made if (page.board.data, bool(page.board.stands_for)) == (data, standing_in)]
        if not here and lent:
            continue
        inside, news = _inside(data, standing_in), new_rows(site, here)
        if news:
            yield f"{inside}feed.xml", feed(inside, news, site.built)
        for stem in (f"{inside}index", *(["index"] if (data, standing_in) == lent else [])):
            yield f"{stem}.html", _index(renderer, data, standing_in, here, news, stem)


def _inside(data: str, standing_in: bool) -> str:
    """The folder of a tree."""
    return folder(data, "x" if standing_in else "")


def _index(
    renderer: Renderer, data: str, standing_in: bool, here: Sequence[Page], news: Sequence[NewRow], stem: str
) -> bytes:
    site = renderer.site
    kind = f"{data} data, substitutes" if standing_in else f"{data} data"
    shown = [
        site.shown.suites[name]
        for name in dict.fromkeys(page.board.suite for page in here)
        if name in site.shown.suites
    ]
    settings = [setting for setting in SETTINGS if any(page.board.setting == setting for page in here)]
    inside = _inside(data, standing_in)
    others = [
        (f"{other}{' data, substitutes' if more else ' data'}", f"{_inside(other, more)}index.html")
        for other, more in trees(site.boards)
    ]
    return renderer.page(
        "index.html",
        stem,
        data=data,
        stands_for="other benchmarks" if standing_in else "",
        title="retrieval-bench" if stem == "index" else f"retrieval-bench · {kind}",
        kind=kind,
        inside=inside,
        grids=[_grid(setting, [page for page in here if page.board.setting == setting]) for setting in settings],
        settings=settings,
        suites=_coverage(here, settings),
        news=news[:NEWEST],
        feed=f"{inside}feed.xml" if news else "",
        trees=[(name, path) for name, path in others if path not in {f"{stem}.html", f"{inside}index.html"}],
        citations=[(suite.title, suite.citation) for suite in shown if suite.citation],
    )


def _grid(setting: str, here: Sequence[Page]) -> SettingGrid:
    rows: dict[str, dict[str, Row]] = defaultdict(dict)
    for page in here:
        for row in page.board.every:
            rows[row.name][page.stem] = row
    lines = [_line(name, found) for name, found in rows.items()]
    lines.sort(key=lambda line: (-line.best, -line.complete, line.place, line.name))
    return SettingGrid(setting, tuple(here), tuple(lines[:GRID]), max(0, len(lines) - GRID), winners(here))


def _line(name: str, rows: Mapping[str, Row]) -> SystemLine:
    """A system's rows in all suites of a setting."""
    known = [row.cost.seconds for row in rows.values() if row.cost.seconds is not None]
    ranks = [sum(row.ranks) / 2 for row in rows.values() if row.ranks is not None]
    return SystemLine(
        name=name,
        method=next(iter(rows.values())).system.method,
        rows=rows,
        best=sum(row.tied for row in rows.values()),
        complete=len(ranks),
        place=mean(ranks) if ranks else 0.0,
        seconds=max(known, default=None),
    )


def winners(here: Sequence[Page]) -> str:
    """Return who is in the best group of how many suites, of those whose rows were tested."""
    tested = [page.board for page in here if page.board.best]
    if not tested:
        return "Nothing has been tested yet: a suite needs two systems with results on all of its tasks."
    counts = Counter(name for board in tested for name in board.best)
    if len(tested) == 1:
        best = text.listed(tested[0].best, 6)
        return f"{best} {'is best' if len(counts) == 1 else 'share first place'} on {tested[0].title}."
    (first, most), *others = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    if most == len(tested) and all(board.best == [first] for board in tested):
        return f"{first} is significantly better than every other system on all {most} suites."
    second = f", {others[0][0]} on {others[0][1]}" if others else ""
    return f"No single winner: {first} is in the best group on {most} of {len(tested)} suites{second}."


def _coverage(here: Sequence[Page], settings: Sequence[str]) -> list[tuple[Board, list[Page | None]]]:
    """Every suite with its page in each setting."""
    found: dict[str, dict[str, Page]] = defaultdict(dict)
    for page in here:
        found[page.board.suite][page.board.setting] = page
    return [(next(iter(by.values())).board, [by.get(setting) for setting in settings]) for by in found.values()]
