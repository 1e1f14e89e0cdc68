"""Grids of methods as tables: what the paper prints for each cell, and ours where the grid was run.

A result is a cell's where it is of the grid's method and bears the cell's name (`ccp@table5=no-bn`). Numbers of one
kind of data, suite and setting stand together; what is compared with the paper is the order of the cells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.directions import Direction, Line, describe, direction
from bench.fields import flat
from bench.grids import GridCell, reported
from bench.types import Cell, Preset
from bench.wording import bare
from leaderboard.kit import Site
from leaderboard.read import Content, Result

Number = float | None


@dataclass(frozen=True)
class Run:
    """A grid as it came out on one suite, in one setting, on one kind of data.

    Args:
        data: kind of data.
        suite: canonical name.
        stands_for: the benchmark that the suite is a substitute for, empty for a benchmark itself.
        setting: how encoders were tuned.
        where: what ours is: a task, an average, or the mean of some tasks.
        measure: ours.
        lines: one a cell, in the grid's order.
        direction: of the lines that both sides have.
    """

    data: str
    suite: str
    stands_for: str
    setting: str
    where: str
    measure: str
    lines: tuple[Line, ...]
    direction: Direction

    @property
    def sentence(self) -> str:
        """How far the order is the paper's."""
        said = describe(self.direction)
        return said[0].upper() + said[1:]

    @property
    def ours(self) -> dict[str, Line]:
        """Lines by cell."""
        return {line.cell: line for line in self.lines}


@dataclass(frozen=True)
class Grid:
    """A preset with cells.

    Args:
        method: canonical name.
        name: of the preset.
        preset: itself.
        runs: as it came out here.
    """

    method: str
    name: str
    preset: Preset
    runs: tuple[Run, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """What the paper prints for the cells: a column each, the one that ours is held against first."""
        found = dict.fromkeys(name for cell in self.preset.cells for name in cell.reported)
        return tuple(sorted(found, key=lambda name: name != self.preset.label))

    @property
    def axes(self) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """Rows and columns of a table of two factors; None where the cells are no such table."""
        return axes([cell.name for cell in self.preset.cells])

    def printed(self, cell: Cell, label: str) -> str:
        """What the paper prints for a cell under a label; `fails`, or empty where it prints nothing."""
        if label in cell.reported:
            return f"{cell.reported[label]:g}" if cell.reported[label] % 1 else f"{cell.reported[label]:.1f}"
        return "fails" if cell.fails and label == (self.preset.label or label) else ""

    def settings(self, cell: Cell) -> str:
        """What a cell sets over the grid's own values."""
        return ", ".join(f"{key}={value}" for key, value in flat(cell.values))


def grids(site: Site) -> list[Grid]:
    """Every grid of every method, with what this site has of it; boards' systems alone count."""
    return [
        Grid(method.name, name, preset, tuple(_runs(site.results, method.name, name, preset)))
        for method in sorted(site.shown.methods.values(), key=lambda one: one.name)
        for name, preset in method.presets.items()
        if preset.cells
    ]


def axes(names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Read names as rows and columns: `window=2,batch=8` → `window=2` and `batch=8`.

    Returns:
        Rows and columns, each in the order of the names; None where a name has not two parts, or where they make a
        single row or column or leave more than half of the places empty.
    """
    parts = [name.split(",") for name in names]
    if any(len(part) != 2 for part in parts):
        return None
    rows, columns = (tuple(dict.fromkeys(part[side] for part in parts)) for side in (0, 1))
    sparse = 2 * len(names) < len(rows) * len(columns)
    return None if min(len(rows), len(columns)) == 1 or sparse else (rows, columns)


def _runs(results: Sequence[Result], method: str, name: str, preset: Preset) -> list[Run]:
    """Lay out what there is of a grid, one table a kind of data, suite and setting."""
    labels = {GridCell(f"{method}/{name}", cell.name).label: cell.name for cell in preset.cells}
    groups: dict[tuple[str, str, str, str], list[Result]] = {}
    for result in results:
        content = result.content.tested()
        if content.system.method == method and content.system.label in labels and content.tasks:
            key = (content.data, content.suite.name, content.suite.stands_for, content.setting)
            groups.setdefault(key, []).append(result)
    return [_run(key, group, labels, preset) for key, group in sorted(groups.items())]


def _run(key: tuple[str, str, str, str], group: Sequence[Result], labels: Mapping[str, str], preset: Preset) -> Run:
    """Lay out one table: cells that have nothing here are lines without ours."""
    data, suite, stands_for, setting = key
    first = group[0].content.tested()
    legs = next(iter(first.tasks.values()))
    usual = first.suite.primary or next(iter(next(iter(legs.values())).measures))
    measure = (preset.measure if suite == preset.suite else "") or usual
    found: dict[str, dict[int, tuple[str, float]]] = {}
    for result in group:
        told = _value(result.content.tested(), preset, measure)
        if told is not None:
            found.setdefault(labels[result.content.system.label], {})[result.content.seed] = told
    places = [where for by_seed in found.values() for where, _ in by_seed.values()]
    where = max(dict.fromkeys(places), key=places.count, default="")
    theirs = reported(preset)
    lines = []
    for label, cell in labels.items():
        values = [value for place, value in found.get(cell, {}).values() if place == where]
        ours = sum(values) / len(values) if values else None
        lines.append(
            Line(cell, label, ours, "", theirs.get(cell), cell in theirs and theirs[cell] is None, len(values))
        )
    there = tuple(line for line in lines if line.ours is not None)
    return Run(data, suite, stands_for, setting, where, measure, tuple(lines), direction(there))


def _value(content: Content, preset: Preset, measure: str) -> tuple[str, float] | None:
    """What a cell's result is read from, and the value: the grid's task, the headline average, or the mean of tasks."""
    tasks = {
        task: sum(leg.measures[measure] for leg in legs.values()) / len(legs)
        for task, legs in content.tasks.items()
        if all(measure in leg.measures for leg in legs.values())
    }
    for task, value in tasks.items():
        if preset.task and bare(task) == f"{preset.suite}/{preset.task}":
            return task, value
    for average in content.averages[:1]:
        if measure in average.measures:
            return average.name, average.measures[measure]
    if not tasks:
        return None
    first, *rest = tasks
    return (f"mean of {len(tasks)} tasks" if rest else first), sum(tasks.values()) / len(tasks)
