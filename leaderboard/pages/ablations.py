"""Ablation pages: a grid in the paper's own table shape, next to ours; mini data in a tree of their own.

A result is a cell's where it is of the grid's method and bears the cell's name (`ccp@table5=no-bn`). Numbers of one
kind of data, suite and regime share a table; only the order of the cells is compared with the paper.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from bench.config.fields import flat
from bench.config.grids import CellReference, reported
from bench.core.messages import bare
from bench.evaluation.grid import CellResult, Direction, Grid, GridRun, describe, direction
from bench.evaluation.results import shares
from bench.evaluation.results.format import Content
from bench.evaluation.results.read import Result
from bench.types import GridCell, Preset
from leaderboard.pages.variants import variant_tables
from leaderboard.site.boards import FIRST, Tree
from leaderboard.site.render import Files, Renderer
from leaderboard.site.site import Site
from leaderboard.site.text import slug, suite_heading


@dataclass(frozen=True)
class Run:
    """A grid as it came out on one suite, in one regime, on one kind of data.

    Args:
        data: kind of data.
        suite: heading of the suite, which names the tasks behind ours unless it was run whole.
        proxy_for: the benchmark that the suite is a proxy for, empty for a benchmark itself.
        regime: its regime.
        source: what ours is: a task, an average, or the mean of some tasks.
        measure: of ours.
        lines: one a cell, in the grid's order.
        direction: of the lines that both sides have.
    """

    data: str
    suite: str
    proxy_for: str
    regime: str
    source: str
    measure: str
    lines: tuple[CellResult, ...]
    direction: Direction

    @property
    def sentence(self) -> str:
        """How far the order agrees with the paper's."""
        description = describe(self.direction)
        return description[0].upper() + description[1:]

    @property
    def ours(self) -> dict[str, CellResult]:
        """Lines by cell."""
        return {line.cell: line for line in self.lines}


@dataclass(frozen=True)
class PresetGrid:
    """A preset with cells.

    Args:
        method: canonical name of its method.
        name: of the preset.
        preset: the preset.
        runs: as it came out here.
        data: of a page of the grid, the kind of data of ours.
        proxy_for: the benchmark that ours are of a proxy for, empty for a benchmark itself.
    """

    method: str
    name: str
    preset: Preset
    runs: tuple[Run, ...]
    data: str = FIRST
    proxy_for: str = ""

    @property
    def stem(self) -> str:
        """Path of its page, without the ending."""
        name = "-".join(map(slug, filter(None, (self.method, self.name, self.proxy_for))))
        return f"{Tree(self.data, self.proxy_for).folder}ablations/{name}"

    @property
    def labels(self) -> tuple[str, ...]:
        """The paper's columns for the cells, the one that ours is compared with first."""
        names = dict.fromkeys(name for cell in self.preset.cells for name in cell.reported)
        return tuple(sorted(names, key=lambda name: name != self.preset.label))

    @property
    def axes(self) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
        """Rows and columns of a table of two factors; None where the cells are no such table."""
        return axes([cell.name for cell in self.preset.cells])

    def printed(self, cell: GridCell, label: str) -> str:
        """Return the paper's number of a cell under a label; `fails`, or empty if there is none."""
        if label in cell.reported:
            return f"{cell.reported[label]:g}" if cell.reported[label] % 1 else f"{cell.reported[label]:.1f}"
        return "fails" if cell.fails and label == (self.preset.label or label) else ""

    def settings(self, cell: GridCell) -> str:
        """Return the settings of a cell over the grid's own values."""
        return ", ".join(f"{key}={value}" for key, value in flat(cell.values))


def grids(site: Site) -> list[PresetGrid]:
    """Return every grid of every method, with what this site has of it; only verified results count."""
    results = [result for result in site.results if site.records.verification(result).verified]
    return [
        PresetGrid(method.name, name, preset, tuple(_runs(site, results, method.name, name, preset)))
        for _, method in sorted(site.catalogue.methods.items())
        for name, preset in method.presets.items()
        if preset.cells
    ]


def axes(names: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Parse names as rows and columns, in their order: `window=2,batch=8` → `window=2` and `batch=8`.

    Return None where a name has not two parts, or where they make a single row or column or leave more than half of the
    places empty.
    """
    parts = [name.split(",") for name in names]
    if any(len(part) != 2 for part in parts):
        return None
    rows, columns = (tuple(dict.fromkeys(part[side] for part in parts)) for side in (0, 1))
    sparse = 2 * len(names) < len(rows) * len(columns)
    return None if min(len(rows), len(columns)) == 1 or sparse else (rows, columns)


def _runs(site: Site, results: Sequence[Result], method: str, name: str, preset: Preset) -> list[Run]:
    """Lay out what there is of a grid, one table a kind of data, suite and regime.

    Cells that have nothing here are lines without ours. The measure is the grid's own on its own suite, elsewhere the
    suite's primary one; all lines of a table are values of one source, the most frequent.

    Args:
        site: knows the suites of plugins.
        results: verified results.
        method: canonical name of the grid's method.
        name: of the preset.
        preset: the grid.
    """
    labels = {CellReference(f"{method}/{name}", cell.name).label: cell.name for cell in preset.cells}
    groups: dict[tuple[str, str, str, str], list[Content]] = {}
    for result in results:
        content = result.content.tested()
        if content.system.method == method and content.system.label in labels and content.tasks:
            key = (content.data, content.suite.name, content.suite.proxy_for, content.regime)
            groups.setdefault(key, []).append(content)
    tables = []
    for (data, suite, proxy_for, regime), group in sorted(groups.items()):
        subsets = next(iter(group[0].tasks.values()))
        usual = group[0].suite.primary or next(iter(next(iter(subsets.values())).measures))
        measure = (preset.measure if suite == preset.suite else "") or usual
        runs: dict[tuple[str, int], GridRun] = {}
        scored: dict[str, Collection[str]] = {}
        for content in group:
            if sourced := _value(content, preset, measure):
                label, seed = content.system.label, content.seed
                runs[label, seed] = GridRun(label, labels[label], seed, sourced[1], where=sourced[0])
                scored[sourced[0]] = sourced[2]
        sources = [run.where for run in runs.values()]
        source = max(dict.fromkeys(sources), key=sources.count, default="")
        grid = Grid(tuple(run for run in runs.values() if run.where == source))
        lines = grid.against(reported(preset), {cell: label for label, cell in labels.items()})
        measured = [line for line in lines if line.ours is not None]
        run = {task for content in group for task in content.tasks}
        plugin = site.catalogue.suites.get(suite)
        heading = suite_heading(group[0].suite, data, plugin, scored.get(source, run), run)
        tables.append(Run(data, heading, proxy_for, regime, source, measure, lines, direction(measured)))
    return tables


def _value(content: Content, preset: Preset, measure: str) -> tuple[str, float, Collection[str]] | None:
    """Return the source of a cell's value, the value, and the tasks behind it.

    The source is the grid's task, the headline average, or the mean of all tasks.
    """
    tasks = {
        task: sum(subset.measures[measure] for subset in subsets.values()) / len(subsets)
        for task, subsets in content.tasks.items()
        if all(measure in subset.measures for subset in subsets.values())
    }
    for task, value in tasks.items():
        if preset.task and bare(task) == f"{preset.suite}/{preset.task}":
            return task, value, [task]
    for average in content.averages[:1]:
        if measure in average.measures:
            subsets = {task: [*by_subset] for task, by_subset in content.tasks.items()}
            members = {task for task, _ in shares(subsets, average.members)} if average.members else {*subsets}
            return average.name, average.measures[measure], members
    if not tasks:
        return None
    first, *more = tasks
    return (f"mean of {len(tasks)} tasks" if more else first), sum(tasks.values()) / len(tasks), [*tasks]


def files(site: Site, renderer: Renderer) -> Files:
    """Yield `ablations/index.html`, which lists variants too, and pages of every grid.

    They are one of official data, which is always there, for it has the paper's table, and one of each kind of data
    that the grid ran on.
    """
    grid_pages = []
    for grid in grids(site):
        for data, proxy_for in dict.fromkeys([(FIRST, ""), *((run.data, run.proxy_for) for run in grid.runs)]):
            runs = tuple(run for run in grid.runs if (run.data, run.proxy_for) == (data, proxy_for))
            grid_pages.append(replace(grid, runs=runs, data=data, proxy_for=proxy_for))
    tables = variant_tables(site)
    if not grid_pages and not tables:
        return
    if not tables and not any(page.runs for page in grid_pages):
        renderer.empty.add("ablations/index.html")
    yield renderer.page("ablations.html", "ablations/index", title="Ablations", pages=grid_pages, tables=tables)
    for grid in grid_pages:
        siblings = [page for page in grid_pages if (page.method, page.name) == (grid.method, grid.name)]
        yield renderer.page(
            "ablation.html",
            grid.stem,
            title=f"{grid.method}/{grid.name}",
            of=Tree(grid.data, grid.proxy_for),
            grid=grid,
            cells={cell.name: cell for cell in grid.preset.cells},
            others=[page for page in siblings if page is not grid],
        )
