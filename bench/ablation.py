"""Ablations: the cells of a grid as they came out here beside what the paper prints, and whether the order is the same.

The mini world is not the paper's data: what is compared is the direction, and it is told whatever it says.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from statistics import fmean
from typing import Any

from bench.contrasts import Row, pairs_of
from bench.grids import grid_of, reported
from bench.pipeline import Outcome
from bench.results import headline, task_value
from bench.selection import Cell
from bench.types import Preset
from bench.wording import bare

SURE = 0.05
"""Pairs whose corrected p is below are told apart here."""


@dataclass(frozen=True)
class Line:
    """A cell of a grid.

    Args:
        cell: its name.
        system: its label.
        ours: the measure, a fraction, the mean over seeds; None where the training failed.
        failed: why it did, in a sentence; empty where it did not.
        paper: what the paper prints; None where it prints nothing or that it fails.
        paper_fails: the paper prints that it fails.
        seeds: that `ours` is the mean of.
    """

    cell: str
    system: str
    ours: float | None
    failed: str
    paper: float | None
    paper_fails: bool
    seeds: int


@dataclass(frozen=True)
class Direction:
    """How far two orders of the same cells agree.

    Args:
        pairs: of cells that the paper tells apart and that were run.
        alike: of these, ordered here as in the paper.
        tau: Kendall's tau-b, 1 the same order, −1 the reverse; None where one side does not tell any pair apart.
        sure: of the pairs, those that the queries tell apart here (p < 0.05, Holm); None where nothing was tested.
        sure_alike: of these, ordered as in the paper.
    """

    pairs: int
    alike: int
    tau: float | None
    sure: int | None = None
    sure_alike: int | None = None


@dataclass(frozen=True)
class Ablation:
    """A grid as it came out.

    Args:
        preset: with its method, e.g. `ccp/table5`.
        source: of the paper's numbers.
        summary: of the grid.
        about: `suite`, `setting`, `data`.
        where: what ours is: a task, an average, or the mean of some tasks.
        measure: ours.
        paper: the label of the paper's numbers; empty where it has none.
        lines: one a cell, in the grid's order.
        direction: of the lines that both sides have.
    """

    preset: str
    source: str
    summary: str
    about: Mapping[str, str]
    where: str
    measure: str
    paper: str
    lines: tuple[Line, ...]
    direction: Direction

    def as_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {**self.about, **{name: one for name, one in asdict(self).items() if name != "about"}}


def ablations(outcome: Outcome) -> list[Ablation]:
    """Lay out every grid of a finished run, one for each suite, setting and kind of data."""
    groups: dict[tuple[str, str, str, str], list[Cell]] = defaultdict(list)
    for cell in outcome.plan.cells:
        if cell.system.grid:
            groups[cell.system.grid.preset, cell.suite.name, cell.setting, cell.data].append(cell)
    return [_ablation(cells, outcome) for cells in groups.values()]


def _ablation(cells: Sequence[Cell], outcome: Outcome) -> Ablation:
    """Lay out one grid."""
    first = cells[0]
    name, preset = _preset(first)
    measure = (preset.measure if first.suite.name == preset.suite else "") or first.suite.primary
    reasons = {id(failure.cell): failure.reason for failure in outcome.failed}
    published = iter(outcome.published)
    results = {id(cell): next(published) for cell in outcome.plan.cells if id(cell) not in reasons}
    own: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        own[_name(cell)].append(cell)
    where, values = "", dict[str, float]()
    for key, ones in own.items():
        if any(id(one) in reasons for one in ones):
            continue
        found = [value(results[id(one)].content, one, preset, measure) for one in ones]
        where, values[key] = found[0][0], fmean(number for _, number in found)
    theirs = reported(preset)
    lines = tuple(
        Line(
            key,
            ones[0].system.label,
            values.get(key),
            next((reasons[id(one)] for one in ones if id(one) in reasons), ""),
            theirs.get(key),
            key in theirs and theirs[key] is None,
            len(ones),
        )
        for key, ones in own.items()
    )
    about = {"suite": first.suite.name, "setting": first.setting, "data": first.data}
    tasks = {where} if where in {task.id for task in first.tasks} else {task.id for task in first.tasks}
    rows = [
        Row(ones[0].system.label, {one.seed: (results[id(one)].path, results[id(one)].content) for one in ones})
        for key, ones in own.items()
        if key in values
    ]
    sure = _sure(rows, measure, tasks)
    return Ablation(
        name, preset.source, preset.summary, about, where, measure, preset.label, lines, direction(lines, sure)
    )


def value(content: Mapping[str, Any], cell: Cell, preset: Preset, measure: str) -> tuple[str, float]:
    """Return what a cell's result is read from, and the value: the preset's task, the headline average, or the mean.

    Only the tasks of this run count, whatever else the result file holds from runs before.
    """
    tasks = {task.id: content["tasks"][task.id] for task in cell.tasks}
    for task, legs in tasks.items():
        if preset.task and bare(task) == f"{preset.suite}/{preset.task}":
            return task, task_value(legs, measure)
    return headline(tasks, cell.suite.macros, measure)


def direction(lines: Sequence[Line], sure: Mapping[frozenset[str], bool] | None = None) -> Direction:
    """Hold two orders of cells against each other; a cell that fails stands below every number.

    Args:
        lines: cells; those without a number on either side, and without a failure there, are left out.
        sure: by pair of labels, whether the queries tell the two apart.
    """
    from scipy.stats import kendalltau

    held = [line for line in lines if line.paper is not None or line.paper_fails]
    ours = [-math.inf if line.ours is None else line.ours for line in held]
    theirs = [-math.inf if line.paper is None else line.paper for line in held]
    pairs = [(a, b) for a, b in combinations(range(len(held)), 2) if theirs[a] != theirs[b]]
    alike = [(a, b) for a, b in pairs if ours[a] != ours[b] and (ours[a] > ours[b]) == (theirs[a] > theirs[b])]
    ranks = [[sorted(set(side)).index(number) for number in side] for side in (ours, theirs)]
    told_apart = all(len(set(side)) > 1 for side in ranks)
    tau = float(kendalltau(*ranks, variant="b").statistic) if told_apart else None
    if sure is None:
        return Direction(len(pairs), len(alike), tau)
    certain = [pair for pair in pairs if sure.get(frozenset(held[place].system for place in pair))]
    return Direction(len(pairs), len(alike), tau, len(certain), len(set(certain) & set(alike)))


def _sure(rows: Sequence[Row], measure: str, tasks: set[str]) -> dict[frozenset[str], bool]:
    """Test every pair of cells."""
    tests = pairs_of(rows, measure, tasks)
    return {frozenset({one.first, one.second}): one.corrected is not None and one.corrected < SURE for one in tests}


def _name(cell: Cell) -> str:
    """The grid's name of a cell."""
    return cell.system.grid.cell if cell.system.grid else ""


def _preset(cell: Cell) -> tuple[str, Preset]:
    """The grid that a cell is of."""
    grid, method = cell.system.grid, cell.system.method
    whole = grid.preset if grid else ""
    found = grid_of(method, whole.partition("/")[2])
    return whole, found[1] if found else Preset({}, "", "")


def describe(found: Direction) -> str:
    """Say a direction in a sentence."""
    if not found.pairs:
        return "direction: no two cells that the paper tells apart"
    tau = "not defined (all alike)" if found.tau is None else f"{found.tau:+.2f}".replace("-", "−")
    sentence = (
        f"direction: {found.alike} of {found.pairs} pairs of cells ordered as in the paper "
        f"({found.alike / found.pairs:.0%}), Kendall's tau-b {tau}"
    )
    if found.sure is None:
        return sentence
    return f"{sentence}; of the {found.sure} pairs that the queries tell apart here, {found.sure_alike}"
