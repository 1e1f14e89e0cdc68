"""The plan: a graph of stages for (methods × suites × settings × seeds), held against the store, then carried out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench import reranking, results
from bench.combined import combined, parts_of
from bench.config import describe
from bench.errors import StoreError, UsageError
from bench.executors import executor
from bench.fsio import explain
from bench.graph import CHECKS, Listener, Node, Step, closure, steps
from bench.grids import as_the_grid_says, variants
from bench.lint_recipes import Suspicion, suspicions
from bench.plugins import Plugins
from bench.pretraining import compute, pretraining, sample
from bench.profiles import DEFAULT, Profile, choose_data, profile
from bench.publishing import heading_row, publish, row
from bench.recipes import LegNodes, Recipes
from bench.request import Request
from bench.selection import Cell, NotApplicable, Selection, select
from bench.store import Store
from bench.systems import CONTRACT, System, about_backbones, systems
from bench.types import Method
from bench.wording import unknown


@dataclass(frozen=True)
class Plan:
    """What would run, and for what.

    Args:
        request: what was asked for, with what a grid says where the user says nothing.
        profile: the size.
        cells: the grid's applicable cells.
        legs: for each cell, its legs with their nodes.
        refused: the cells that do not apply, each with its reason.
        steps: every stage in the order of work.
        warnings: sentences for people.
        lints: systems that read texts without the prompts that their encoders want; `bench.lint_recipes.measure` says
            what that changes.
    """

    request: Request
    profile: Profile
    cells: tuple[Cell, ...]
    legs: tuple[tuple[LegNodes, ...], ...]
    refused: tuple[NotApplicable, ...]
    steps: tuple[Step, ...]
    warnings: tuple[str, ...] = ()
    lints: tuple[Suspicion, ...] = ()

    @property
    def seconds(self) -> float:
        """Estimated seconds of work left."""
        return sum(step.seconds for step in self.steps)


@dataclass(frozen=True)
class Failure:
    """A cell of a grid whose training failed; the others went on.

    Args:
        cell: which one.
        reason: in a sentence.
    """

    cell: Cell
    reason: str


@dataclass(frozen=True)
class Outcome:
    """What a run came to.

    Args:
        rows: one a scored leg, as `bench run --json` prints them.
        macro: one an average of a whole suite.
        published: the result files.
        plan: what was planned.
        failed: cells of a grid that could not be trained.
    """

    rows: tuple[dict[str, Any], ...]
    macro: tuple[dict[str, Any], ...]
    published: tuple[results.Published, ...]
    plan: Plan = field(repr=False)
    failed: tuple[Failure, ...] = ()


def plan(request: Request, plugins: Plugins, store: Store) -> Plan:
    """Resolve every name and setting, read nothing but files' checksums, and hold the graph against the store.

    Raises:
        UsageError: an unknown name, an incoherent mix, a file that is not there.
        ConfigError: a setting that is unknown, of the wrong type or out of range.
        PluginError: a plugin that is broken and needed.
    """
    request, size = _asked(request, plugins)
    methods, preset = _methods(request, plugins)
    _applicable_options(request, methods)
    resolved = variants(request, methods, preset, size)
    request = as_the_grid_says(request, methods, preset)
    data = choose_data(size, request.data)
    own = resolved[0].resolved  # the harness's own settings are the same for all methods
    _applicable_corpus(request, methods, own.run.post.kind)
    _applicable_readout(own.run.encode.readout, methods)
    alone = _starts_once(
        ready for system in systems(resolved, request.label) for ready in _with_encoder(system, request, size, store)
    )
    again = reranking.reranker(request, size, own.run, store)
    named = combined(request.methods, alone, again)
    chosen = select(request, named, plugins, data, own.run, size)
    recipes = Recipes(store, plugins, describe(own.run, own.origins))
    legs = tuple(tuple(recipes.legs(cell)) for cell in chosen.cells)
    targets = [leg.score for cell in legs for leg in cell]
    warnings = (*_warnings(chosen, legs), *_about_systems(named), *about_backbones(named), *reranking.about(again, own))
    lints = tuple(suspicions(recipes, chosen.cells))
    warnings += tuple(one.sentence for one in lints)
    return Plan(request, size, chosen.cells, legs, chosen.refused, tuple(steps(targets, store)), warnings, lints)


def _asked(request: Request, plugins: Plugins) -> tuple[Request, Profile]:
    """What is asked for, with what a run preset says where the user says nothing, and the size."""
    given = plugins.run_preset(request.preset)
    if given is None:
        return replace(request, seeds=request.seeds or (0,)), profile(request.profile or DEFAULT)
    request = given.applied(request)
    size = profile(request.profile or DEFAULT)
    return request, replace(size, values={**size.values, **given.values})


def _starts_once(systems: Iterable[System]) -> list[System]:
    """Leave out starts that are the same; those of one method that differ (in readout) are told apart."""
    found: dict[str, System] = {}
    kept = []
    for system in systems:
        if not system.untrained:
            kept.append(system)
        elif system.hash not in found:
            rows = [other for other in found.values() if other.protocol == system.protocol]
            alike = sum(other.label.startswith(system.label) for other in rows)
            found[system.hash] = replace(system, label=f"{system.label}{alike + 1}") if alike else system
            kept.append(found[system.hash])
    return kept


def _about_systems(systems: Sequence[System]) -> list[str]:
    """Tell of cells that turned out to be one system, and of tuned settings that were changed."""
    same: dict[str, list[str]] = {}
    for system in systems:
        if system.grid:
            same.setdefault(system.hash, []).append(system.label)
    told = [
        f"{' and '.join(labels)} are one system here: a setting given by --set or --config holds for all cells"
        for labels in same.values()
        if len(labels) > 1
    ]
    return told + [
        f"{system.label}: the settings are not all those that the sweep chose, so it does not count as tuned"
        for system in systems
        if system.tuned_for and system.tuning is None
    ]


def _with_encoder(system: System, request: Request, size: Profile, store: Store) -> list[System]:
    """Give a dense system its machine and what it is pretrained from.

    A trained one brings its start along; either brings its twin of another readout, and its post-processed twins, where
    they are asked for.
    """
    if system.method.contract is None:
        return [system]
    run = system.resolved.run
    machine = compute(request, size, run)
    processed = run.post.kind != "none"
    if system.method.trainer is None:
        ready = replace(system, compute=machine)
        model, starts = str(getattr(system.resolved.method, "model", "")), []
        given = sample(request, size, run, store, model) if processed else None
    else:
        given = pretraining(request, size, run, store)
        ready = replace(system, compute=machine, pretraining=given)
        starts = ready.start().readings()
    rows = ready.readings()
    return [*rows, *(row.processed(given) for row in rows if processed and given), *starts]


def _methods(request: Request, plugins: Plugins) -> tuple[list[Method], str | None]:
    """The methods asked for, and the preset's bare name (`bm25/lucene` names its method too)."""
    owner, slash, bare = (request.preset or "").partition("/")
    names = tuple(part for name in request.methods for part in parts_of(name)) or ((owner,) if slash else ())
    if not names and request.preset:
        raise UsageError(
            f"{unknown('run preset', request.preset, sorted(plugins.runs))} For one of a method type --method too, "
            f"or --preset METHOD/{request.preset}."
        )
    if not names:
        raise UsageError(f"no method was named; type --method NAME, there are: {', '.join(sorted(plugins.methods))}")
    methods = list({found.name: found for found in map(plugins.method, names)}.values())
    if slash and plugins.method(owner) not in methods:
        raise UsageError(
            f"preset {request.preset} belongs to {owner}, found --method {', '.join(names)}; name {owner} too"
        )
    return methods, bare if slash else request.preset


def _applicable_options(request: Request, methods: Sequence[Method]) -> None:
    """Refuse options that nothing in the run listens to."""
    names = ", ".join(method.name for method in methods)
    trains = request.rerank == reranking.TRAINED or any(method.trains for method in methods)
    if request.backbone is not None and not trains:
        raise UsageError(f"found --backbone {request.backbone}, but {names} trains no encoder; leave --backbone out")
    device, _, number = request.device.partition(":")
    if device not in {"auto", "cpu", "cuda", "mps"} or (number and not (device == "cuda" and number.isdigit())):
        raise UsageError(f"found --device {request.device!r}, expected auto, cpu, cuda, cuda:N or mps")


def _applicable_corpus(request: Request, methods: Sequence[Method], post: str) -> None:
    """Refuse a corpus or a post-processing that nothing in the run listens to."""
    names = ", ".join(method.name for method in methods)
    if post != "none" and not any(method.contract for method in methods):
        raise UsageError(f"found post.kind={post}, but {names} makes no vectors; leave it out")
    trains = request.rerank == reranking.TRAINED or any(method.trains for method in methods)
    if request.corpus is not None and post == "none" and not trains:
        raise UsageError(f"found --corpus {request.corpus}, but {names} trains no encoder; leave --corpus out")


def _applicable_readout(readout: str, methods: Sequence[Method]) -> None:
    """Refuse a readout that nothing in the run listens to."""
    if readout != CONTRACT and not any(method.contract for method in methods):
        names = ", ".join(method.name for method in methods)
        raise UsageError(f"found encode.readout={readout}, but {names} makes no vectors; leave it out")


def _warnings(chosen: Selection, legs: Sequence[Sequence[LegNodes]]) -> tuple[str, ...]:
    """Tell what makes numbers mean something else than their names say."""
    found = {
        f"search.k={leg.k} is shallower than the deepest measure of {leg.task.id} (cut {leg.depth}): "
        f"measures below that depth count only {leg.k} documents"
        for cell in legs
        for leg in cell
        if leg.depth is not None and leg.k < leg.depth
    }
    return (*chosen.warnings, *sorted(found))


def run(request: Request, plugins: Plugins, store: Store, listener: Listener, ready: Plan | None = None) -> Outcome:
    """Carry out a plan: run what the store lacks, then merge every scored leg into its result file.

    Args:
        request: what was asked for.
        plugins: who brings methods and suites; their trackers hear of results.
        store: where stages are kept.
        listener: hears of stages.
        ready: the plan, if the caller has made it already.

    Raises:
        BenchError: see `plan`; and what a stage raises. All stages finished before are kept.
    """
    todo = ready or plan(request, plugins, store)
    _writable(request.results)
    failed = carry_out(todo, plugins, store, listener)
    broken = {id(failure.cell) for failure in failed}
    rows: list[dict[str, Any]] = []
    averages: list[dict[str, Any]] = []
    published = []
    for cell, legs in zip(todo.cells, todo.legs, strict=True):
        if id(cell) in broken:
            continue
        done = publish(request.results, cell, legs, store, todo.profile)
        published.append(done)
        plugins.notify("bench_scored", result=done.content)
        heading = heading_row(cell, todo.profile)
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
    heard, runner = _Told(listener, plugins), executor(todo.request.executor)
    work = [step.node for step in todo.steps if step.runs]
    if not any(cell.system.grid for cell in todo.cells):
        runner.run(work, store, heard)
        return ()
    runner.run([item for item in work if item.recipe.stage in CHECKS], store, heard)
    done = {item.key for item in work if item.recipe.stage in CHECKS}
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
class _Told:
    """A listener that passes everything on, tells the plugins' trackers, and remembers trainings that failed."""

    listener: Listener
    plugins: Plugins
    untrained: dict[str, str] = field(default_factory=dict)

    def started(self, item: Node) -> None:
        self.listener.started(item)
        self.plugins.notify("bench_stage_started", stage=item.about())

    def advanced(self, item: Node, units: float) -> None:
        self.listener.advanced(item, units)

    def finished(self, item: Node, state: str, seconds: float, error: BaseException | None = None) -> None:
        self.listener.finished(item, state, seconds, error)
        if state == "failed" and item.recipe.stage == "train":
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
