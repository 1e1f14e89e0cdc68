"""Ablations: the cells of a grid as they came out here beside what the paper prints, and whether the order is the same.

The mini world is not the paper's data: what is compared is the direction, and it is told whatever it says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from bench.contrasts import Row, pairs_of
from bench.directions import Direction, Line, direction
from bench.grids import grid_of, reported
from bench.pipeline import Outcome
from bench.results import headline, task_value
from bench.selection import Cell
from bench.types import Preset
from bench.wording import bare

SURE = 0.05
"""Pairs whose corrected p is below are told apart here."""


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
