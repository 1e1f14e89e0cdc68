"""Carry out a plan: run what the store lacks, then merge every scored subset into its result file."""

import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.config.request import Request
from bench.core.errors import StoreError, UsageError
from bench.core.files import Fault, explain
from bench.core.machine import cores
from bench.core.scratch import sweep
from bench.evaluation.results import Published
from bench.evaluation.results.scores import Scores
from bench.pipeline.cells import ExperimentCell
from bench.pipeline.downloads import fetched_by_libraries, refuse_large
from bench.pipeline.passports import source_of
from bench.pipeline.plan import Plan, foreign_versions, missing_files, plan
from bench.pipeline.publish import heading_row, publish, refuse_unlike, row
from bench.pipeline.resources import Devices, needs
from bench.pipeline.stages.train import Train
from bench.pipeline.stages.train_point import TrainPoint
from bench.plugins import Plugins
from bench.retrieval.backbones import cached_references, fetch_reference
from bench.store.executors import executor
from bench.store.graph import Listener, closure, steps
from bench.store.housekeeping import tidy
from bench.store.leases import leased
from bench.store.stage import Stage
from bench.store.store import Store

_WORTH_WORKERS = 30.0
"""Seconds of work below which workers take longer to start than they save."""


@dataclass(frozen=True)
class Failure:
    """A cell of a grid or of a curve whose training failed; the others went on."""

    cell: ExperimentCell
    reason: str


@dataclass(frozen=True, repr=False)
class Outcome(Scores):
    """What a run came to; `rows` and `macro` are as `bench run --json` prints them."""

    published: tuple[Published, ...]
    plan: Plan
    failed: tuple[Failure, ...] = ()  # cells of a grid that could not be trained


def plan_for_run(request: Request, plugins: Plugins, store: Store) -> Plan:
    """Return the plan of a request that is about to run: models of the hub are known by their commits.

    Of one that is not in the cache the smallest file is fetched beforehand, so that no weights are keyed by a name
    alone. Planning may have fetched some files of a model itself, to learn how it is read: what was named before that
    is named again. Raises as `plan` does.
    """
    before = cached_references()
    ready = plan(request, plugins, store)
    sources = [source_of(step.stage) for step in ready.steps if step.runs]
    unknown = dict.fromkeys(source.place for source in sources if source and source.revision is None)
    known = [model for model in unknown if fetch_reference(model)]
    return plan(request, plugins, store) if known or cached_references() != before else ready


def run(request: Request, plugins: Plugins, store: Store, listener: Listener, ready: Plan | None = None) -> Outcome:
    """Carry out a plan (`ready`, if it is made): run what the store lacks, then merge scored subsets into results.

    Raises as `plan` does and what a stage raises; all stages finished before are kept.
    """
    todo = ready or plan_for_run(request, plugins, store)
    refuse_unready(todo, store, todo.experiment.results)
    for cell, subsets in zip(todo.cells, todo.subsets, strict=True):
        refuse_unlike(todo.experiment.results, cell, subsets, store, todo.profile)
    with at_work(todo, store):
        return _published(_renewed(todo, store), plugins, store, listener)


def refuse_unready(todo: Plan, store: Store, folder: Path | None = None, option: str = "--results") -> None:
    """Refuse before any work what could not end.

    Args:
        todo: what is to run.
        store: where its stages are kept.
        folder: that is written to in the end, if any.
        option: that names the folder.

    Raises:
        UsageError: files are missing, downloads are large and nobody asked for them, the store's disk is too small.
        StoreError: the folder cannot be written.
    """
    for error in missing_files(todo.steps):
        raise error
    refuse_large(fetched_by_libraries(todo.cells, [step.stage for step in todo.steps if step.runs]))
    if folder is not None:
        _writable(folder, option)
    _refuse_small_disk(todo, store)


@contextmanager
def at_work(todo: Plan, store: Store) -> Iterator[None]:
    """Lease the artefacts of a plan, tidy the store, and mark what is trained again, so that it is."""
    with leased(store, [step.stage.key for step in todo.steps]):
        tidy(store)
        sweep()
        for name, version in foreign_versions(todo.cells).items():
            store.remember_version(name, version)
        running = {step.stage.key for step in todo.steps if step.runs}
        for stage in todo.again:
            if stage.key in running:
                store.mark(store.folder(stage), [Fault(store.folder(stage), "a log by other settings")])
        yield


def _renewed(todo: Plan, store: Store) -> Plan:
    """Return the plan as the store is now that its artefacts are leased: some may have been removed since."""
    if all(step.state != "cached" or store.folder(step.stage).exists() for step in todo.steps):
        return todo
    return replace(todo, steps=tuple(steps([subset.score for cell in todo.subsets for subset in cell], store)))


def _published(todo: Plan, plugins: Plugins, store: Store, listener: Listener) -> Outcome:
    """Run what the store lacks and write the result files, all artefacts being leased."""
    results, size = todo.experiment.results, todo.profile
    failed = execute(todo, plugins, store, listener)
    broken = [failure.cell for failure in failed]
    rows: list[dict[str, Any]] = []
    averages: list[dict[str, Any]] = []
    published = []
    for cell, subsets in zip(todo.cells, todo.subsets, strict=True):
        if any(cell is broken_cell for broken_cell in broken):
            continue
        result = publish(results, cell, subsets, store, size)
        published.append(result)
        plugins.notify("bench_scored", result=result.content)
        heading = heading_row(cell, size, result)
        rows += [row(heading, subset, store, result) for subset in subsets]
        averages += [{**heading, **average} for average in result.content["macro"]]
    primary = {cell.suite.name: cell.suite.primary for cell in todo.cells}
    return Outcome(tuple(rows), tuple(averages), primary, tuple(published), todo, failed)


def execute(
    todo: Plan, plugins: Plugins, store: Store, listener: Listener, *, each: bool = False
) -> tuple[Failure, ...]:
    """Run what the store lacks of a plan; return the cells of grids whose training failed, which spares the others.

    With `each`, it is so of every cell, and of whatever fails in what rests on a training.
    """
    trained: set[str] = set()
    for item in closure([step.stage for step in todo.steps] if each else []):
        if isinstance(item, Train) or any(dependency.key in trained for dependency in item.inputs.values()):
            trained.add(item.key)
    tracker = _TrackingListener(listener, plugins, trained)
    rests_on = [{item.key for item in closure([subset.score for subset in subsets])} for subsets in todo.subsets]
    outside_grids = {
        key for cell, keys in zip(todo.cells, rests_on, strict=True) if cell.system.grid is None for key in keys
    }

    def tolerates(item: Stage, error: Exception) -> bool:
        """Spare the others a training of grids' cells alone, and one that is looked at on its way."""
        if each:
            return item.key in trained and isinstance(error, UsageError)
        if not isinstance(item, Train) or not isinstance(error, UsageError):
            return False
        return item.key not in outside_grids or item.reaches < 1 or bool(item.after)

    workers = todo.experiment.workers or (cores() if todo.seconds > _WORTH_WORKERS else 1)
    work = [step.stage for step in todo.steps if step.runs]
    executor(todo.experiment.executor, workers).run(work, store, tracker, tolerates)
    failed = tracker.untrained
    reasons = [next((failed[key] for key in failed if key in keys), None) for keys in rests_on]
    return tuple(Failure(cell, reason) for cell, reason in zip(todo.cells, reasons, strict=True) if reason is not None)


@dataclass(frozen=True)
class _TrackingListener:
    """Forward stage events to plugin hooks, and remember trainings that failed."""

    listener: Listener
    plugins: Plugins
    spared: set[str] = field(default_factory=set)  # keys of further stages that may fail
    untrained: dict[str, str] = field(default_factory=dict)

    def started(self, item: Stage) -> None:
        self.listener.started(item)
        self.plugins.notify("bench_stage_started", stage=item.about())

    def advanced(self, item: Stage, units: float) -> None:
        self.listener.advanced(item, units)

    def logged(self, item: Stage, line: Mapping[str, Any]) -> None:
        self.listener.logged(item, line)
        self.plugins.notify("bench_step", stage=item.about(), step=line)

    def finished(self, item: Stage, state: str, seconds: float, error: BaseException | None = None) -> None:
        self.listener.finished(item, state, seconds, error)
        if state == "failed" and (isinstance(item, Train) or item.key in self.spared):
            self.untrained[item.key] = str(error)
        outcome = {"state": state, "seconds": seconds, **({"error": str(error)} if error else {})}
        self.plugins.notify("bench_stage_finished", stage=item.about(), outcome=outcome)


def _refuse_small_disk(todo: Plan, store: Store) -> None:
    """Refuse before any work points of trainings for whose encoders the store's disk has no room."""
    to_make = [step.stage for step in todo.steps if step.runs and isinstance(step.stage, TrainPoint)]
    disk = sum(estimate.disk for estimate in needs(to_make, Devices("cpu", 1)))
    if not disk:
        return
    store.root.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(store.root).free
    if disk > free:
        raise UsageError(
            where=f"store {store.root}",
            found=f"{free / 1e6:,.1f} MB free",
            expected=f"{disk / 1e6:,.1f} MB for the encoders of {len(to_make)} points",
            hint="name a store on a larger disk by --store, or type fewer points: --set curve.points=…, in a race "
            "--no-guess",
        )


def _writable(folder: Path, option: str = "--results") -> None:
    """Refuse before any work a folder that cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):  # runs side by side use one folder: the name must be this run's own
            pass
    except OSError as error:
        raise StoreError(
            f"cannot write to the {option.removeprefix('--')} folder {folder}: {explain(error)}; nothing was run and "
            f"finished stages are kept: fix that or choose another folder by {option}"
        ) from error
