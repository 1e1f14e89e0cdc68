"""The first page of every tree: suites and systems in a grid for each setting, the newest rows, and how to cite."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.evaluation.measures.aggregate import mean
from bench.evaluation.tables import visible
from leaderboard.site import captions, text
from leaderboard.site.boards import Row
from leaderboard.site.render import Files, Renderer
from leaderboard.site.site import FIRST, SETTINGS, Page, Site, folder, pages

GRID = 40
"""Rows of a grid, those in most best groups first; the suites' own pages show all."""
NEWEST = 10
"""New rows that the page names."""


@dataclass(frozen=True)
class SystemLine:
    """A system in a setting.

    Args:
        name: its label.
        method: its method.
        rows: by page; suites where it has no row are not there.
        best: number of suites in whose best group it is.
        complete: number of suites where it has a rank.
        place: mean of the middle of its rank interval over suites, which decides the order only.
        seconds: of training, of the costliest of its rows; None if none reports it.
    """

    name: str
    method: str
    rows: Mapping[str, Row]
    best: int
    complete: int
    place: float
    seconds: float | None


@dataclass(frozen=True)
class SettingGrid:
    """A setting: pages as columns, systems as rows.

    Args:
        setting: its name.
        pages: of its boards.
        lines: of systems, those in most best groups first.
        more: number of further systems.
        sentence: which systems are in most best groups.
    """

    setting: str
    pages: tuple[Page, ...]
    lines: tuple[SystemLine, ...]
    more: int
    sentence: str


@dataclass(frozen=True)
class NewRow:
    """A row that the site first showed on a day."""

    day: str
    title: str
    page: str


def files(site: Site, renderer: Renderer) -> Files:
    """Yield the first page of every tree, and the glossary.

    Without official data, the root's first page shows what the next tree's shows, if that is not one of proxies.
    """
    yield renderer.file("glossary.html", "glossary", title="Glossary")
    site_pages = pages(site.boards)
    trees = list(dict.fromkeys([(FIRST, False), *((board.data, bool(board.proxy_for)) for board in site.boards)]))
    official = any((page.board.data, page.board.proxy_for) == (FIRST, "") for page in site_pages)
    root = None if official else next((tree for tree in trees[1:] if not tree[1]), None)
    for data, proxy in trees:
        tree_pages = [page for page in site_pages if (page.board.data, bool(page.board.proxy_for)) == (data, proxy)]
        if tree_pages or not root:
            for stem in (f"{folder(data, proxy * 'x')}index", *(["index"] if (data, proxy) == root else [])):
                yield f"{stem}.html", _index(renderer, data, proxy, tree_pages, trees, stem)


def _index(
    renderer: Renderer,
    data: str,
    proxy: bool,
    tree_pages: Sequence[Page],
    trees: Sequence[tuple[str, bool]],
    stem: str,
) -> bytes:
    catalogue = renderer.site.catalogue.suites
    kind = f"{data} data, substitutes" if proxy else f"{data} data"
    names = dict.fromkeys(page.board.suite for page in tree_pages)
    settings = [setting for setting in SETTINGS if any(page.board.setting == setting for page in tree_pages)]
    inside = folder(data, proxy * "x")
    by_suite: dict[str, dict[str, Page]] = defaultdict(dict)
    for page in tree_pages:
        by_suite[page.board.suite][page.board.setting] = page
    others = [
        (f"{other}{' data, substitutes' if other_proxy else ' data'}", f"{folder(other, other_proxy * 'x')}index.html")
        for other, other_proxy in trees
    ]
    return renderer.page(
        "index.html",
        stem,
        data=data,
        proxy_for="other benchmarks" if proxy else "",
        title="retrieval-bench" if stem == "index" else f"retrieval-bench · {kind}",
        kind=kind,
        inside=inside,
        grids=[_grid(setting, [page for page in tree_pages if page.board.setting == setting]) for setting in settings],
        settings=settings,
        suites=[
            (next(iter(by_setting.values())).board, [by_setting.get(setting) for setting in settings])
            for by_setting in by_suite.values()
        ],
        news=new_rows(renderer.site, tree_pages)[:NEWEST],
        trees=[(name, path) for name, path in others if path not in {f"{stem}.html", f"{inside}index.html"}],
        citations=[
            (catalogue[name].title, catalogue[name].citation)
            for name in names
            if name in catalogue and catalogue[name].citation
        ],
    )


def new_rows(site: Site, tree_pages: Sequence[Page]) -> list[NewRow]:
    """Return the rows of some pages whose first day is known, the newest first."""
    news = []
    for page in tree_pages:
        board = page.board
        for row in board.all_rows:
            if day := site.first_day(board, row):
                score = f": {text.number(row.score)} {board.measure}" if row.score is not None else ""
                title = f"{row.name} on {captions.title(board)}, {board.setting}{score}"
                news.append(NewRow(day, visible(title), f"{page.stem}.html"))
    return sorted(news, key=lambda row: (row.day, row.title), reverse=True)


def _grid(setting: str, setting_pages: Sequence[Page]) -> SettingGrid:
    """Return the systems of a setting with their rows on every suite."""
    by_system: dict[str, dict[str, Row]] = defaultdict(dict)
    for page in setting_pages:
        for row in page.board.all_rows:
            by_system[row.name][page.stem] = row
    lines = []
    for name, rows in by_system.items():
        ranks = [sum(row.ranks) / 2 for row in rows.values() if row.ranks is not None]
        line = SystemLine(
            name=name,
            method=next(iter(rows.values())).system.method,
            rows=rows,
            best=sum(row.tied for row in rows.values()),
            complete=len(ranks),
            place=mean(ranks) if ranks else 0.0,
            seconds=max((row.cost.seconds for row in rows.values() if row.cost.seconds is not None), default=None),
        )
        lines.append(line)
    lines.sort(key=lambda line: (-line.best, -line.complete, line.place, line.name))
    more = max(0, len(lines) - GRID)
    return SettingGrid(setting, tuple(setting_pages), tuple(lines[:GRID]), more, winners(setting_pages))


def winners(setting_pages: Sequence[Page]) -> str:
    """Return which systems are in the best group of how many suites, of those whose rows were tested."""
    tested = [page.board for page in setting_pages if page.board.best]
    if not tested:
        return "Nothing has been tested yet: a suite needs two systems with results on all of its tasks."
    counts = Counter(name for board in tested for name in board.best)
    if len(tested) == 1:
        best = text.listed(tested[0].best, 6)
        return f"{best} {'is best' if len(counts) == 1 else 'share first place'} on {tested[0].title}."
    (first, most), *others = sorted(counts.items(), key=lambda count: (-count[1], count[0]))
    if most == len(tested) and all(board.best == [first] for board in tested):
        return f"{first} is significantly better than every other system on all {most} suites."
    second = f", {others[0][0]} on {others[0][1]}" if others else ""
    return f"No single winner: {first} is in the best group on {most} of {len(tested)} suites{second}."
