"""The first page of every kind of data: the gains over the start, all scores in a grid a regime, and how to cite.

Substitutes are on it next to benchmarks, with their mark; their own pages are in a tree of their own.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.core.messages import visible
from bench.evaluation.measures.evaluate import mean
from bench.types import REGIMES
from leaderboard.site import captions, gain_figure, text
from leaderboard.site.boards import FIRST, Board, Row, Tree
from leaderboard.site.conclusions import conclusions
from leaderboard.site.gains import gains_of
from leaderboard.site.render import Files, Page, Renderer
from leaderboard.site.site import Site

GRID = 40
"""Rows of a grid, those in most best groups first; the suites' own pages show all."""
PANELS = 8
"""Panels of the figure; the table under it has the gains of all boards."""
NEWEST = 10
"""New rows that the page names."""


@dataclass(frozen=True)
class SystemLine:
    """A system in a regime.

    Args:
        name: its label.
        method: path of its method's page.
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
    """Yield the first page of every kind of data, and the glossary.

    Without official data, the root's first page shows what the next kind's shows.
    """
    yield renderer.page("glossary.html", "glossary", title="Glossary")
    by_kind: dict[str, list[Board]] = {FIRST: []}
    for board in site.boards:
        by_kind.setdefault(board.data, []).append(board)
    root = None if by_kind[FIRST] else next((data for data in by_kind if data != FIRST), None)
    for data, kind_boards in by_kind.items():
        if kind_boards or not root:
            for stem in (f"{Tree(data).folder}index", *(["index"] if data == root else [])):
                yield _index(renderer, Tree(data), kind_boards, list(by_kind), stem)


def _index(renderer: Renderer, tree: Tree, kind_boards: Sequence[Board], kinds: Sequence[str], stem: str) -> Page:
    """Render the first page of a kind of data.

    Args:
        renderer: fills the template.
        tree: of the benchmarks; the page names it unless it is that of official data.
        kind_boards: boards of the kind, those of substitutes as well, in the order of the site.
        kinds: all kinds of data of the site, which the page links to.
        stem: path of the page, without the ending; `index` may show another kind's boards.
    """
    catalogue = renderer.site.catalogue.suites
    regimes = [regime for regime in REGIMES if any(board.regime == regime for board in kind_boards)]
    by_suite: dict[str, dict[str, Board]] = defaultdict(dict)
    for board in kind_boards:
        by_suite[board.suite][board.regime] = board
    links = [(f"{kind} data", f"{Tree(kind).folder}index.html") for kind in kinds]
    gains = gains_of(kind_boards)
    return renderer.page(
        "index.html",
        stem,
        of=tree,
        title="retrieval-bench" if stem == "index" else f"retrieval-bench · {tree.data} data",
        kind=f"{tree.data} data",
        gains=gains,
        panels=[(board, gain_figure.panel(gains, board)) for board in gains.boards[:PANELS]] if gains else [],
        keys=[gain_figure.key(number) for number in range(len(gains.arms))] if gains else [],
        sentences=conclusions(gains) if gains else [],
        dashed=gains is not None and any(gain.test.checkpoints for board in gains.boards for gain in board.gains),
        several=len(regimes) > 1,
        named=captions.short_name,
        substitutes=next((board.tree.folder for board in kind_boards if board.proxy_for), ""),
        grids=[_grid(regime, [board for board in kind_boards if board.regime == regime]) for regime in regimes],
        regimes=regimes,
        suites=[
            (next(iter(by_regime.values())), [by_regime.get(regime) for regime in regimes])
            for by_regime in by_suite.values()
        ],
        news=new_rows(renderer.site, kind_boards)[:NEWEST],
        trees=[(kind, path) for kind, path in links if path not in {f"{stem}.html", f"{tree.folder}index.html"}],
        citations=[
            (catalogue[name].title, catalogue[name].citation)
            for name in by_suite
            if name in catalogue and catalogue[name].citation
        ],
    )


def new_rows(site: Site, kind_boards: Sequence[Board]) -> list[dict[str, str]]:
    """Return day, title and page of the rows of some boards whose first day is known, the newest first."""
    news = []
    for board in kind_boards:
        for row in board.all_rows:
            if day := site.first_day(board, row):
                score = f": {text.number(row.score)} {board.measure}" if row.score is not None else ""
                title = f"{row.name} on {captions.short_name(board)}, {board.regime}{score}"
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
    methods: dict[str, str] = {}
    for board in regime_boards:
        for row in board.all_rows:
            by_system[row.name][board.stem] = row
            methods.setdefault(row.name, f"{board.tree.folder}methods/{text.slug(row.system.method)}.html")
    lines = []
    for name, rows in by_system.items():
        ranks = [sum(row.ranks) / 2 for row in rows.values() if row.ranks is not None]
        line = SystemLine(
            name=name,
            method=methods[name],
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
        return f"{best} {'is best' if len(counts) == 1 else 'share first place'} on {captions.short_name(tested[0])}."
    (first, most), *runners_up = sorted(counts.items(), key=lambda count: (-count[1], count[0]))
    if most == len(tested) and all(board.best == [first] for board in tested):
        return f"{first} is significantly better than every other system on all {most} suites."
    second = f", {runners_up[0][0]} on {runners_up[0][1]}" if runners_up else ""
    return f"No single winner: {first} is in the best group on {most} of {len(tested)} suites{second}."
