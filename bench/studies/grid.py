"""Grids from finished runs."""

from collections.abc import Callable, Iterable, Iterator

from bench.evaluation.grid import Grid, GridRun
from bench.evaluation.results import Published
from bench.pipeline.run import Outcome
from bench.pipeline.selection import Cell


def finished(outcome: Outcome) -> Iterator[tuple[Cell, Published | None, str]]:
    """Yield every cell of a finished run with its result, or with why it has none."""
    reasons = {id(failure.cell): failure.reason for failure in outcome.failed}
    published = iter(outcome.published)
    for cell in outcome.plan.cells:
        reason = reasons.get(id(cell), "")
        yield cell, None if reason else next(published), reason


def collect(
    done: Iterable[tuple[Cell, Published | None, str]],
    cell_of: Callable[[Cell], str],
    value_of: Callable[[Cell, Published], tuple[str, float]],
) -> Grid:
    """Build a grid from finished cells; `value_of` reads from a result what the value is of, and the value."""
    runs = []
    for one, published, reason in done:
        where, value = ("", None) if published is None else value_of(one, published)
        runs.append(GridRun(one.system.label, cell_of(one), one.seed, value, reason, where))
    return Grid(tuple(runs))
