"""Grids of settings: cells that are run once through the pipeline, and read out as trials, a table or a curve.

A study is a grid and a read-out (`bench.evaluation.grid`). `bench sweep` draws cells from a search space and reads
their scores on dev questions; `bench ablate` runs the cells of a preset and lays them out next to a paper's numbers;
`bench few-shot` varies the number of training pairs and draws a curve. What cells have in common is made once, since
the store shares it.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager

from bench.config.request import Request
from bench.evaluation.results import Published
from bench.pipeline.cells import ExperimentCell
from bench.pipeline.plan import Plan
from bench.pipeline.run import Outcome, plan_for_run, run
from bench.plugins import Plugins
from bench.store.graph import Listener
from bench.store.store import Store

Progress = Callable[[Plan], AbstractContextManager[Listener]]
"""A plan → what shows its progress, for a `with`."""


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
        ready = plan_for_run(request, plugins, store)
        with progress(ready) as listener:
            yield name, run(request, plugins, store, listener, ready)


def finished(outcome: Outcome) -> Iterator[tuple[ExperimentCell, Published | None, str]]:
    """Yield every system, task and seed of a finished run with its result, or with None and why it has none."""
    reasons = {id(failure.cell): failure.reason for failure in outcome.failed}
    published = iter(outcome.published)
    for cell in outcome.plan.cells:
        reason = reasons.get(id(cell), "")
        yield cell, None if reason else next(published), reason
