"""Carry out a plan: run what the store lacks, then merge every scored leg into its result file."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.config.request import Request
from bench.core.errors import StoreError, UsageError
from bench.core.files import explain
from bench.core.network import offline
from bench.evaluation.results import Published
from bench.pipeline.plan import Plan, plan
from bench.pipeline.publish import heading_row, publish, row
from bench.pipeline.selection import Cell
from bench.plugins import Plugins
from bench.store.executors import executor
from bench.store.graph import CHECKS, Listener, closure, steps
from bench.store.housekeeping import tidy
from bench.store.leases import leased
from bench.store.stage import Stage
from bench.store.store import Store


@dataclass(frozen=True)
class Failure:
    """A cell of a grid whose training failed; the others went on."""

    cell: Cell
    reason: str


@dataclass(frozen=True)
class Outcome:
    """What a run came to."""

    rows: tuple[dict[str, Any], ...]  # one a scored leg, as `bench run --json` prints them
    macro: tuple[dict[str, Any], ...]  # one an average of a whole suite
    published: tuple[Published, ...]
    plan: Plan = field(repr=False)
    failed: tuple[Failure, ...] = ()  # cells of a grid that could not be trained


def run(request: Request, plugins: Plugins, store: Store, listener: Listener, ready: Plan | None = None) -> Outcome:
    """Carry out a plan: run what the store lacks, then merge every scored leg into its result file.

    `ready` is the plan, if the caller has made it already.

    Raises:
        BenchError: see `plan`; and what a stage raises. All stages finished before are kept.
    """
    todo = ready or plan(request, plugins, store)
    _writable(todo.experiment.results)
    with offline(request.offline), leased(store, [step.stage.key for step in todo.steps]):
        tidy(store)
        return _published(_renewed(todo, store), plugins, store, listener)


def _renewed(todo: Plan, store: Store) -> Plan:
    """Return the plan as the store is now that its artefacts are leased: some may have been removed since."""
    if all(step.state != "cached" or store.folder(step.stage).exists() for step in todo.steps):
        return todo
    return replace(todo, steps=tuple(steps([leg.score for cell in todo.legs for leg in cell], store)))


def _published(todo: Plan, plugins: Plugins, store: Store, listener: Listener) -> Outcome:
    """Run what the store lacks and write the result files, all artefacts being leased."""
    results, size = todo.experiment.results, todo.profile
    failed = carry_out(todo, plugins, store, listener)
    broken = {id(failure.cell) for failure in failed}
    rows: list[dict[str, Any]] = []
    averages: list[dict[str, Any]] = []
    published = []
    for cell, legs in zip(todo.cells, todo.legs, strict=True):
        if id(cell) in broken:
            continue
        done = publish(results, cell, legs, store, size)
        published.append(done)
        plugins.notify("bench_scored", result=done.content)
        heading = heading_row(cell, size)
        rows += [row(heading, leg, store, done) for leg in legs]
        averages += [{**heading, **average} for average in done.content["macro"]]
    return Outcome(tuple(rows), tuple(averages), tuple(published), todo, failed)


def carry_out(todo: Plan, plugins: Plugins, store: Store, listener: Listener) -> tuple[Failure, ...]:
    """Run what the store lacks of a plan; a cell of a grid whose training fails does not keep the others from running.

    Returns:
        The cells of grids that could not be trained.

    Raises:
        BenchError: what a stage raises, but for the training of a grid's cell.
    """
    heard, runner = _TrackingListener(listener, plugins), executor(todo.experiment.executor)
    work = [step.stage for step in todo.steps if step.runs]
    if not any(cell.system.grid for cell in todo.cells):
        runner.run(work, store, heard)
        return ()
    runner.run([item for item in work if item.name in CHECKS], store, heard)
    done = {item.key for item in work if item.name in CHECKS}
    failed = []
    for cell, legs in zip(todo.cells, todo.legs, strict=True):
        mine = {item.key for item in closure([leg.score for leg in legs])}
        before = next((reason for key, reason in heard.untrained.items() if key in mine), None)
        if before is None:
            try:
                runner.run([item for item in work if item.key in mine - done], store, heard)
                done |= mine
            except UsageError as error:
                if cell.system.grid is None or not heard.untrained.keys() & mine:
                    raise
                before = str(error)
        if before is not None:
            failed.append(Failure(cell, before))
    return tuple(failed)


@dataclass(frozen=True)
class _TrackingListener:
    """Forward stage events to plugin hooks, and remember trainings that failed."""

    listener: Listener
    plugins: Plugins
    untrained: dict[str, str] = field(default_factory=dict)

    def started(self, item: Stage) -> None:
        self.listener.started(item)
        self.plugins.notify("bench_stage_started", stage=item.about())

    def advanced(self, item: Stage, units: float) -> None:
        self.listener.advanced(item, units)

    def finished(self, item: Stage, state: str, seconds: float, error: BaseException | None = None) -> None:
        self.listener.finished(item, state, seconds, error)
        if state == "failed" and item.name == "train":
            self.untrained[item.key] = str(error)
        outcome = {"state": state, "seconds": seconds, **({"error": str(error)} if error else {})}
        self.plugins.notify("bench_stage_finished", stage=item.about(), outcome=outcome)


def _writable(folder: Path) -> None:
    """Refuse before any work a results folder that cannot be written."""
    probe = folder / ".writable"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise StoreError(
            f"cannot write to the results folder {folder}: {explain(error)}; nothing was run and finished stages are "
            "kept: mend that or choose another folder by --results"
        ) from error
