"""Ablations: the cells of a grid as they came out here and what the paper prints, and whether the order is the same.

The mini world is not the paper's data: what is compared is the direction, and it is reported whatever it says.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bench.config.grids import grid_of, reported
from bench.core.messages import bare
from bench.evaluation.compare.paired_tests import SeedResults, all_tests
from bench.evaluation.grid import CellResult, Direction, Grid, GridRun, describe, direction
from bench.evaluation.results import Published, Result, headline, task_value
from bench.evaluation.tables import Column, Table, percent
from bench.pipeline.cells import ExperimentCell
from bench.pipeline.run import Outcome
from bench.studies.grid import finished
from bench.types import Preset


@dataclass(frozen=True)
class Ablation:
    """A grid as it came out on one suite, in one regime, on one kind of data.

    Attributes:
        preset: the grid with its method, e.g. `ccp/table5`.
        source: where the paper's numbers are printed.
        summary: what the grid varies, in a line.
        about: `suite`, `regime` and `data`.
        where: what our numbers are of: a task, an average, or the mean of some tasks; empty if nothing ran.
        measure: ours.
        paper: the label of the paper's numbers; empty where it prints none.
        lines: the cells in the grid's order, ours next to the paper's.
        direction: how far the two orders of the cells agree.
    """

    preset: str
    source: str
    summary: str
    about: Mapping[str, str]
    where: str
    measure: str
    paper: str
    lines: tuple[CellResult, ...]
    direction: Direction

    def as_json(self) -> dict[str, Any]:
        """Return the object of `bench ablate --json`."""
        fields = asdict(self)
        return {**fields.pop("about"), **fields}

    def table(self) -> Table:
        """Lay out one row a cell, ours next to the paper's; the note says how far the order agrees."""

        def paper_number(line: CellResult) -> str | None:
            return "fails" if line.paper_fails else None if line.paper is None else f"{line.paper:g}"

        setup = f"{self.where}, {self.about['regime']}, {self.about['data']} data" if self.where else "nothing ran"
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
            Column("paper", f"paper: {self.paper or 'no number'}", True, value=paper_number),
        )
        caption = f"{self.preset} · {setup}{means} · {self.source}"
        return Table.from_items(caption, columns, self.lines, [f"{self.preset} {describe(self.direction)}"])


CellRun = tuple[ExperimentCell, Published | None, str]
"""A cell with one seed, its result, and why it has none."""


def ablations(outcome: Outcome) -> list[Ablation]:
    """Read the grids out of a finished run: an `Ablation` for each, by suite, regime and kind of data."""
    groups: dict[tuple[str, str, str, str], list[CellRun]] = defaultdict(list)
    for run in finished(outcome):
        cell = run[0]
        if cell.system.grid:
            groups[cell.system.grid.preset, cell.suite.name, cell.regime, cell.data].append(run)
    return [_ablation(name, runs) for (name, *_), runs in groups.items()]


def _ablation(name: str, runs: Sequence[CellRun]) -> Ablation:
    first = runs[0][0]
    named_grid = grid_of(first.system.method, name.partition("/")[2])
    preset = named_grid[1] if named_grid else Preset({}, "", "")
    measure = (preset.measure if first.suite.name == preset.suite else "") or first.suite.primary
    values = []
    for cell, published, reason in runs:
        run_place, value = cell_value(published.content, cell, preset, measure) if published else ("", None)
        values.append(GridRun(cell.system.label, cell_name(cell), cell.seed, value, reason, run_place))
    grid = Grid(tuple(values))
    lines = grid.against(reported(preset), {cell: grid.runs_of(cell)[0].system for cell in grid.cells})
    results: dict[str, dict[int, Result]] = defaultdict(dict)
    for cell, published, _ in runs:
        if published is not None and grid.mean(cell_name(cell)) is not None:
            results[cell.system.label][cell.seed] = published.result
    tasks = {task.id for task in first.tasks}
    seed_results = [SeedResults(label, by_seed) for label, by_seed in results.items()]
    tests = all_tests(seed_results, measure, {grid.where} & tasks or tasks).pairs
    decided = {frozenset({test.first, test.second}): test.comparison.decided for test in tests}
    address = {"suite": first.suite.name, "regime": first.regime, "data": first.data}
    order = direction(lines, decided)
    return Ablation(name, preset.source, preset.summary, address, grid.where, measure, preset.label, lines, order)


def cell_value(content: Mapping[str, Any], cell: ExperimentCell, preset: Preset, measure: str) -> tuple[str, float]:
    """Return what a cell's number is of in this run, and the number.

    Args:
        content: of the cell's result file.
        cell: with the tasks of this run.
        preset: the grid; its task, if that was run, is what is read.
        measure: canonical name, e.g. `RR@100`.

    Returns:
        The preset's task, else the suite's headline average, else the mean over the tasks; a fraction.
    """
    tasks = {task.id: content["tasks"][task.id] for task in cell.tasks}
    for task, subsets in tasks.items():
        if preset.task and bare(task) == f"{preset.suite}/{preset.task}":
            return task, task_value(subsets, measure)
    return headline(tasks, cell.suite.macros, measure)


def cell_name(cell: ExperimentCell) -> str:
    """Return the name of the grid's cell that a system is; empty for a system outside grids."""
    return cell.system.grid.cell if cell.system.grid else ""
