"""The first page of every tree: suites and systems in a grid for each regime, the newest rows, and how to cite."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.core.messages import visible
from bench.evaluation.measures.aggregate import mean
from bench.types import REGIMES
from leaderboard.site import captions, text
from leaderboard.site.boards import FIRST, OFFICIAL, Board, Row, Tree
from leaderboard.site.render import Files, Page, Renderer
from leaderboard.site.site import Site

GRID = 40
"""Rows of a grid, those in most best groups first; the suites' own pages show all."""
NEWEST = 10
"""New rows that the page names."""
_PROXIES = "other benchmarks"
"""What the suites of a tree of proxies are proxies for, in its banner."""


@dataclass(frozen=True)
class SystemLine:
    """A system in a regime.

    Args:
        name: its label.
        method: its method.
        rows: by the stem of a board; suites where it has no row are not there.
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


def files(site: Site, renderer: Renderer) -> Files:
    """Yield the first page of every tree, and the glossary.

    Without official data, the root's first page shows what the next tree's shows, if that is not one of proxies.
    """
    yield renderer.page("glossary.html", "glossary", title="Glossary")
    by_tree: dict[Tree, list[Board]] = {OFFICIAL: []}
    for board in site.boards:
        by_tree.setdefault(Tree(board.data, _PROXIES if board.proxy_for else ""), []).append(board)
    root = (
        None
        if by_tree[OFFICIAL]
        else next((tree for tree in by_tree if tree.data != FIRST and not tree.proxy_for), None)
    )
    for tree, tree_boards in by_tree.items():
        if tree_boards or not root:
            for stem in (f"{tree.folder}index", *(["index"] if tree == root else [])):
                yield _index(renderer, tree, tree_boards, list(by_tree), stem)


def _index(renderer: Renderer, tree: Tree, tree_boards: Sequence[Board], trees: Sequence[Tree], stem: str) -> Page:
    """Render the first page of a tree.

    Args:
        renderer: fills the template.
        tree: the tree; the page names it unless it is that of official data.
        tree_boards: its boards, in the order of the site.
        trees: all trees of the site, which the page links to.
        stem: path of the page, without the ending; `index` may show another tree's boards.
    """
    catalogue = renderer.site.catalogue.suites
    kinds = {tree: f"{tree.data} data{', substitutes' if tree.proxy_for else ''}" for tree in trees}
    regimes = [regime for regime in REGIMES if any(board.regime == regime for board in tree_boards)]
    by_suite: dict[str, dict[str, Board]] = defaultdict(dict)
    for board in tree_boards:
        by_suite[board.suite][board.regime] = board
    links = [(kind, f"{sibling.folder}index.html") for sibling, kind in kinds.items()]
    return renderer.page(
        "index.html",
        stem,
        of=tree,
        title="retrieval-bench" if stem == "index" else f"retrieval-bench · {kinds[tree]}",
        kind=kinds[tree],
        inside=tree.folder,
        grids=[_grid(regime, [board for board in tree_boards if board.regime == regime]) for regime in regimes],
        regimes=regimes,
        suites=[
            (next(iter(by_regime.values())), [by_regime.get(regime) for regime in regimes])
            for by_regime in by_suite.values()
        ],
        news=new_rows(renderer.site, tree_boards)[:NEWEST],
        trees=[(kind, path) for kind, path in links if path not in {f"{stem}.html", f"{tree.folder}index.html"}],
        citations=[
            (catalogue[name].title, catalogue[name].citation)
            for name in by_suite
            if name in catalogue and catalogue[name].citation
        ],
    )


def new_rows(site: Site, tree_boards: Sequence[Board]) -> list[dict[str, str]]:
    """Return day, title and page of the rows of some boards whose first day is known, the newest first."""
    news = []
    for board in tree_boards:
        for row in board.all_rows:
            if day := site.first_day(board, row):
                score = f": {text.number(row.score)} {board.measure}" if row.score is not None else ""
                title = f"{row.name} on {captions.title(board)}, {board.regime}{score}"
                news.append({"day": day, "title": visible(title), "page": f"{board.stem}.html"})
    return sorted(news, key=lambda row: (row["day"], row["title"]), reverse=True)


def _grid(regime: str, regime_boards: Sequence[Board]) -> dict[str, Any]:
    """Return the systems of a regime with their rows on every suite.

    Systems are ordered by the number of suites in whose best group they are, then by the number of suites that rank
    them, then by the mean of the middle of their rank intervals. Scores of different suites are never averaged.

    Returns:
        What the template shows: the setting, its boards as columns, the lines of systems, how many more there are, and
        which systems are in most best groups (`sentence`).
    """
    by_system: dict[str, dict[str, Row]] = defaultdict(dict)
    for board in regime_boards:
        for row in board.all_rows:
            by_system[row.name][board.stem] = row
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
    shown = {"regime": regime, "boards": regime_boards, "lines": lines[:GRID], "more": more}
    return {**shown, "sentence": winners(regime_boards)}


def winners(regime_boards: Sequence[Board]) -> str:
    """Return which systems are in the best group of how many suites, of those whose rows were tested."""
    tested = [board for board in regime_boards if board.best]
    if not tested:
        return "Nothing has been tested yet: a suite needs two systems with results on all of its tasks."
    counts = Counter(name for board in tested for name in board.best)
    if len(tested) == 1:
        best = text.listed(tested[0].best, 6)
        return f"{best} {'is best' if len(counts) == 1 else 'share first place'} on {tested[0].title}."
    (first, most), *runners_up = sorted(counts.items(), key=lambda count: (-count[1], count[0]))
    if most == len(tested) and all(board.best == [first] for board in tested):
        return f"{first} is significantly better than every other system on all {most} suites."
    second = f", {runners_up[0][0]} on {runners_up[0][1]}" if runners_up else ""
    return f"No single winner: {first} is in the best group on {most} of {len(tested)} suites{second}."
