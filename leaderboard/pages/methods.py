"""A page a method: how it does on every suite, how its trainings went, what they cost, and its settings."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from bench.evaluation.svg import Axis, interval_bar
from leaderboard.site import curves, text
from leaderboard.site.boards import Tree
from leaderboard.site.render import Files, Page, Renderer
from leaderboard.site.rows import Entry, by_board, by_tree
from leaderboard.site.site import Site

STAGES = {"train": "Pretraining", "tune": "Fine-tuning", "train_cross": "Training of the cross-encoder"}
"""Stages that have curves, in the order of the page."""
_AXIS = Axis(0.0, 1.0, 0.25)  # intervals of different suites share an axis; their measures differ
_ROWS = 250


def files(site: Site, renderer: Renderer) -> Files:
    """Yield a page for every method of every tree, and the list of them."""
    for tree, entries in by_tree(site).items():
        groups: dict[str, list[Entry]] = defaultdict(list)
        for entry in entries:
            groups[entry.row.system.method].append(entry)
        by_method = dict(sorted(groups.items()))
        for name, rows in by_method.items():
            yield _page(site, renderer, tree, name, rows)
        # Pretraining of the first trained system of every method, in the two measures that most of them share.
        first_trainings = [
            next(filter(None, (_trainings(entry, "train") for entry in rows)), None) for rows in by_method.values()
        ]
        trainings = [training for training in first_trainings if training]
        panels = [panel for panel in curves.panels(trainings, "train", curves.MARKED) if panel.name != "loss"]
        panels.sort(key=lambda panel: (-len(panel.lines), not panel.name.startswith("probe ")))
        learning = None
        if len(trainings) > 1 and panels:
            learning = _stage("Learning of all methods", panels[:2], trainings, curves.MARKED)
        yield renderer.page(
            "methods.html",
            f"{tree.folder}methods/index",
            title=tree.titled("Methods"),
            of=tree,
            methods=[(name, site.catalogue.methods.get(name), rows) for name, rows in by_method.items()],
            best=_best,
            learning=learning,
        )


def _page(site: Site, renderer: Renderer, tree: Tree, name: str, rows: Sequence[Entry]) -> Page:
    """Return path and content of a method's page.

    Args:
        site: names the methods of plugins.
        renderer: fills the template.
        tree: of the page.
        name: of the method.
        rows: its rows on all boards of the tree; the curves and costs are of one row a system, by hash.
    """
    lines = []
    for entry in rows[:_ROWS]:
        row, bar = entry.row, Markup()
        if row.low is not None and row.high is not None and row.score is not None:
            bar = Markup(interval_bar(_AXIS, row.low, row.score, row.high, row.seed_scores))  # noqa: S704 (numbers of ours)
        lines.append((entry, f"{entry.board.stem}.html", entry.board.title, bar))
    # One row of every system, by hash: its training is the same on all suites.
    trained = list({entry.row.system.hash: entry for entry in reversed(rows)}.values())[::-1]
    stages = []
    for kind, title in STAGES.items():
        trainings = list(filter(None, (_trainings(entry, kind) for entry in trained)))
        if panels := curves.panels(trainings, kind):
            stages.append(_stage(title, panels, trainings, curves.COLOURS))
    return renderer.page(
        "method.html",
        rows[0].method,
        title=tree.titled(name),
        of=tree,
        name=name,
        about=site.catalogue.methods.get(name),
        sentence=sentence(name, rows),
        lines=lines,
        more=len(rows) - len(lines),
        stages=stages,
        costs=[entry for entry in trained if entry.row.cost.seconds is not None],
        settings=rows[0].settings(),
        example=rows[0],
    )


def sentence(name: str, rows: Sequence[Entry]) -> str:
    """Say in how many tables a method is in the best group, of those where anything was tested."""
    boards = by_board(rows)
    tested = [entries for entries in boards.values() if entries[0].board.pairs]
    counts = f"{text.plural(len(rows), 'row')} in {text.plural(len(boards), 'table')}"
    if not tested:
        return f"{name} has {counts}; none of them has been tested against another system."
    best = f"in {sum(map(_best, tested))} of the {len(tested)} with tests"
    return f"{name} has {counts}; it is best or not significantly worse than the best {best}."


def _best(entries: Sequence[Entry]) -> int:
    """Return the number of tables in whose best group one of the rows is."""
    return len(by_board([entry for entry in entries if entry.row.tied]))


def _trainings(entry: Entry, kind: str) -> tuple[str, list[curves.Training]] | None:
    """Return a row's name with its first training of a stage, one a seed; None where it has none."""
    seeds = []
    for result in entry.results:
        stages = curves.trainings(result).values()
        seeds += [training for training in stages if training.stage.partition("-")[0] == kind][:1]
    return (entry.row.name, seeds) if seeds else None


def _stage(
    title: str, panels: Sequence[curves.Panel], trainings: Sequence[tuple[str, object]], most: int
) -> dict[str, Any]:
    """Draw the panels of a stage, which show at most so many of the systems.

    Returns:
        What the template shows: title; what x counts (`across`); of each panel the measure, the drawing, and where each
        line ends; the names of the systems by the number of their colour; and how many more are not drawn.
    """
    drawings = [(panel.label, curves.draw(panel), panel.last) for panel in panels]
    names = [name for name, _ in trainings[:most]]
    more = max(0, len(trainings) - most)
    return {"title": title, "across": panels[0].across, "panels": drawings, "names": names, "more": more}
