"""Grids of settings: cells that are run once through the pipeline, and read out as trials, a table or a curve.

A study is a grid and a read-out. `bench sweep` draws cells from a search space and reads their scores on dev questions;
`bench ablate` runs the cells of a preset and lays them out next to a paper's numbers; `bench few-shot` varies the
number of training pairs and draws a curve. What cells have in common is made once, since the store shares it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import product
from typing import Any

from bench.config.request import Request
from bench.evaluation.grid import Grid, GridRun
from bench.evaluation.results import Published
from bench.pipeline.cells import Cell
from bench.pipeline.plan import Plan, plan
from bench.pipeline.run import Outcome, run
from bench.plugins import Plugins
from bench.store.graph import Listener
from bench.store.store import Store

Progress = Callable[[Plan], AbstractContextManager[Listener]]
"""A plan → what shows its progress, for a `with`."""


@dataclass(frozen=True)
class SettingsGrid:
    """Settings that vary, each with its values: every combination is a cell.

    Attributes:
        axes: the values of each setting, by its key.

    Example:
        >>> SettingsGrid({"k1": (0.5, 0.9), "b": (0.4,)}).cells
        ({'k1': 0.5, 'b': 0.4}, {'k1': 0.9, 'b': 0.4})
    """

    axes: Mapping[str, tuple[Any, ...]]

    @property
    def cells(self) -> tuple[dict[str, Any], ...]:
        """Settings by key, one dictionary a cell; the last axis varies fastest, and no axis makes no cell."""
        if not self.axes:
            return ()
        return tuple(dict(zip(self.axes, values, strict=True)) for values in product(*self.axes.values()))


def run_requests(
    requests: Mapping[str, Request], plugins: Plugins, store: Store, progress: Progress
) -> Iterator[tuple[str, Outcome]]:
    """Run the requests of a grid one after the other.

    Each is planned when its turn comes, since those before it have made what they share. Plan all of them first
    (`bench.pipeline.plan.plan`) where one that cannot run should cost no work.

    Args:
        requests: by the name of the cell.
        plugins: what is installed.
        store: where stages are kept.
        progress: plan → what shows its progress.

    Yields:
        The name of a cell and its finished run.
    """
    for name, request in requests.items():
        ready = plan(request, plugins, store)
        with progress(ready) as listener:
            yield name, run(request, plugins, store, listener, ready)


def finished(outcome: Outcome) -> Iterator[tuple[Cell, Published | None, str]]:
    """Yield every system, task and seed of a finished run with its result, or with None and why it has none."""
    reasons = {id(failure.cell): failure.reason for failure in outcome.failed}
    published = iter(outcome.published)
    for cell in outcome.plan.cells:
        reason = reasons.get(id(cell), "")
        yield cell, None if reason else next(published), reason


def read_out(
    runs: Iterable[tuple[Cell, Published | None, str]],
    name_of: Callable[[Cell], str],
    value_of: Callable[[Cell, Published], tuple[str, float]],
) -> Grid:
    """Read a value from every finished run.

    Args:
        runs: as `finished` yields them.
        name_of: run → the name of its cell.
        value_of: run and result → what the value is of (a task or an average), and the value, a fraction.
    """
    values = []
    for cell, result, reason in runs:
        where, value = ("", None) if result is None else value_of(cell, result)
        values.append(GridRun(cell.system.label, name_of(cell), cell.seed, value, reason, where))
    return Grid(tuple(values))
