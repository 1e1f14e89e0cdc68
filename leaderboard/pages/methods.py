"""A page a method: how it does on every suite, how its trainings went, what they cost, and its settings."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from bench.evaluation.svg import Axis, interval_bar
from leaderboard.site import captions, curves, text
from leaderboard.site.render import Files, Renderer
from leaderboard.site.rows import Entry, of_trees
from leaderboard.site.site import Site, board_stem

STAGES = {"train": "Pretraining", "tune": "Fine-tuning", "train_cross": "Training of the cross-encoder"}
"""Stages that have curves, in the order of the page."""
_WHOLE = Axis(0.0, 1.0, 0.25)  # intervals of different suites share an axis; their measures differ
_ROWS = 250


@dataclass(frozen=True)
class MethodLine:
    """A row of the method."""

    entry: Entry
    suite: str  # path of its table
    title: str
    bar: Markup  # its interval, drawn; empty without one


@dataclass(frozen=True)
class Stage:
    """The curves of a stage."""

    title: str
    across: str  # what x counts
    # name of the measure, drawing, and where each line ends
    panels: Sequence[tuple[str, Markup, Sequence[tuple[str, float]]]]
    names: Sequence[str]  # of the systems by the number of their colour
    more: int  # systems that are not drawn


def files(site: Site, renderer: Renderer, every: Sequence[Entry]) -> Files:
    """A page for every method of every tree, and the list of them."""
    for (data, inside), held in of_trees(every).items():
        groups: dict[str, list[Entry]] = defaultdict(list)
        for entry in held:
            groups[entry.row.system.method].append(entry)
        for name, own in sorted(groups.items()):
            yield _page(site, renderer, name, own)
        about = [(name, site.shown.methods.get(name), own) for name, own in sorted(groups.items())]
        yield renderer.file(
            "methods.html",
            f"{inside}methods/index",
            title=captions.of_data("Methods", data),
            data=data,
            stands_for=held[0].board.stands_for,
            methods=about,
            best=_best,
            learning=_learning([groups[name] for name in sorted(groups)]),
        )


def _page(site: Site, renderer: Renderer, name: str, own: Sequence[Entry]) -> tuple[str, bytes]:
    board, shown = own[0].board, site.shown.methods.get(name)
    lines = [_line(entry) for entry in own]
    # One row of every system, by hash: its training is the same on all suites.
    trained = list({entry.row.system.hash: entry for entry in reversed(own)}.values())[::-1]
    return renderer.file(
        "method.html",
        own[0].method,
        title=captions.of_data(name, board.data),
        data=board.data,
        stands_for=board.stands_for,
        name=name,
        about=shown,
        sentence=sentence(name, own),
        lines=lines[:_ROWS],
        more=len(lines) - min(len(lines), _ROWS),
        stages=[stage for kind in STAGES if (stage := _stage(trained, kind))],
        costs=[entry for entry in trained if entry.row.cost.seconds is not None],
        settings=own[0].settings(),
        example=own[0],
    )


def sentence(name: str, own: Sequence[Entry]) -> str:
    """In how many tables the method is in the best group, of those where anything was tested."""
    boards = {(entry.board.suite, entry.board.setting): entry.board for entry in own}
    tested = {key for key, board in boards.items() if board.pairs}
    best = {key for key in tested if _best([entry for entry in own if (entry.board.suite, entry.board.setting) == key])}
    said = f"{text.plural(len(own), 'row')} in {text.plural(len(boards), 'table')}"
    if not tested:
        return f"{name} has {said}; none of them has been tested against another system."
    where = f"in {len(best)} of the {len(tested)} with tests"
    return f"{name} has {said}; it is best or not significantly worse than the best {where}."


def _best(own: Sequence[Entry]) -> int:
    return len({(entry.board.suite, entry.board.setting) for entry in own if entry.row.tied})


def _line(entry: Entry) -> MethodLine:
    board, row = entry.board, entry.row
    bar = Markup()
    if row.low is not None and row.high is not None and row.score is not None:
        bar = Markup(interval_bar(_WHOLE, row.low, row.score, row.high, row.of_seeds))  # noqa: S704 (numbers of ours)
    return MethodLine(entry, f"{board_stem(board)}.html", captions.title(board), bar)


def _learning(groups: Sequence[Sequence[Entry]]) -> Stage | None:
    """Pretraining of the first trained system of every method, in the measures that most of them share, two at most."""
    held = [found for own in groups if (found := next(filter(None, (_trained(entry, "train") for entry in own)), None))]
    made = [panel for panel in curves.panels(held, "train", curves.MARKED) if panel.name != "loss"]
    if len(held) < 2 or not made:
        return None
    made.sort(key=lambda panel: (-len(panel.lines), not panel.name.startswith("probe ")))
    drawn = [(panel.name, curves.draw(panel), panel.last) for panel in made[:2]]
    names = [name for name, _ in held[: curves.MARKED]]
    return Stage("Learning of all methods", made[0].across, drawn, names, max(0, len(held) - curves.MARKED))


def _trained(entry: Entry, kind: str) -> tuple[str, list[curves.Training]] | None:
    """A row's name with its trainings of a stage, one a seed; None where it has none."""
    found = [
        next((one for one in curves.trainings(result).values() if one.stage.partition("-")[0] == kind), None)
        for result in entry.results
    ]
    known = [one for one in found if one is not None]
    return (entry.row.name, known) if known else None


def _stage(own: Sequence[Entry], kind: str) -> Stage | None:
    """The curves of a stage over all systems; None where there are none."""
    held = [found for entry in own if (found := _trained(entry, kind))]
    made = curves.panels(held, kind)
    if not made:
        return None
    drawn = [(panel.name, curves.draw(panel), panel.last) for panel in made]
    names = [name for name, _ in held[: curves.COLOURS]]
    return Stage(STAGES[kind], made[0].across, drawn, names, max(0, len(held) - curves.COLOURS))
