"""Ablations: the cells of a grid as they came out here and what the paper prints, and whether the order is the same.

The mini world is not the paper's data: what is compared is the direction, and it is reported whatever it says.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.config.grids import grid_of, reported
from bench.core.messages import bare
from bench.evaluation.compare.paired_tests import SeedResults, paired_tests
from bench.evaluation.grid import CellResult, Direction, describe, direction
from bench.evaluation.results import Published, Result, headline, task_value
from bench.evaluation.tables import Column, Table, percent
from bench.pipeline.run import Outcome
from bench.pipeline.selection import Cell
from bench.studies.grid import collect, finished
from bench.types import Preset


@dataclass(frozen=True)
class Ablation:
    """A grid as it came out."""

    preset: str  # with its method, e.g. `ccp/table5`
    source: str  # of the paper's numbers
    summary: str  # of the grid
    about: Mapping[str, str]  # `suite`, `setting`, `data`
    where: str  # what ours is: a task, an average, or the mean of some tasks
    measure: str
    paper: str  # the label of the paper's numbers; empty where it has none
    lines: tuple[CellResult, ...]  # one a cell, in the grid's order
    direction: Direction  # of the lines that both sides have

    def as_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return {**self.about, **{name: one for name, one in asdict(self).items() if name != "about"}}

    def table(self) -> Table:
        """One row a cell, ours next to the paper's; the note says how far the order agrees."""
        where = f"{self.where}, {self.about['setting']}, {self.about['data']} data" if self.where else "nothing ran"
        seeds = max(line.seeds for line in self.lines)
        means = f" · means of {seeds} seeds" if seeds > 1 else ""
        columns = (
            Column("cell", value=lambda line: line.cell),
            Column(
                "ours",
                f"ours: {self.measure}, percent",
                True,
                value=lambda line: "failed" if line.ours is None else percent(line.ours),
            ),
            Column(
                "paper",
                f"paper: {self.paper or 'no number'}",
                True,
                value=lambda line: "fails" if line.paper_fails else None if line.paper is None else f"{line.paper:g}",
            ),
        )
        caption = f"{self.preset} · {where}{means} · {self.source}"
        return Table.of(caption, columns, self.lines, [f"{self.preset} {describe(self.direction)}"])


Finished = tuple[Cell, Published | None, str]


def ablations(outcome: Outcome) -> list[Ablation]:
    """Lay out every grid of a finished run, one for each suite, setting and kind of data."""
    groups: dict[tuple[str, str, str, str], list[Finished]] = defaultdict(list)
    for one in finished(outcome):
        cell = one[0]
        if cell.system.grid:
            groups[cell.system.grid.preset, cell.suite.name, cell.setting, cell.data].append(one)
    return [_ablation(group) for group in groups.values()]


def _ablation(group: Sequence[Finished]) -> Ablation:
    first = group[0][0]
    name = first.system.grid.preset if first.system.grid else ""
    kept = grid_of(first.system.method, name.partition("/")[2])
    preset = kept[1] if kept else Preset({}, "", "")
    measure = (preset.measure if first.suite.name == preset.suite else "") or first.suite.primary
    grid = collect(group, _name, lambda cell, done: value(done.content, cell, preset, measure))
    lines = grid.against(reported(preset), {cell: grid.of(cell)[0].system for cell in grid.cells})
    about = {"suite": first.suite.name, "setting": first.setting, "data": first.data}
    tasks = {task.id for task in first.tasks}
    tested = {grid.where} & tasks or tasks
    own: dict[str, dict[int, Result]] = defaultdict(dict)
    for cell, done, _ in group:
        if done is not None and grid.mean(_name(cell)) is not None:
            own[cell.system.label][cell.seed] = done.result
    tests = paired_tests([SeedResults(label, results) for label, results in own.items()], measure, tested)
    sure = {frozenset({one.first, one.second}): one.comparison.decided for one in tests}
    return Ablation(
        name, preset.source, preset.summary, about, grid.where, measure, preset.label, lines, direction(lines, sure)
    )


def value(content: Mapping[str, Any], cell: Cell, preset: Preset, measure: str) -> tuple[str, float]:
    """Return what a cell's result is read from in this run, and the value: preset's task, headline, or mean."""
    tasks = {task.id: content["tasks"][task.id] for task in cell.tasks}
    for task, legs in tasks.items():
        if preset.task and bare(task) == f"{preset.suite}/{preset.task}":
            return task, task_value(legs, measure)
    return headline(tasks, cell.suite.macros, measure)


def _name(cell: Cell) -> str:
    return cell.system.grid.cell if cell.system.grid else ""
