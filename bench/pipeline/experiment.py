"""What was typed, resolved once: systems × tasks × settings × seeds. Nothing that this rests on reads a request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from bench.config.grids import apply_grid
from bench.config.layers import SettingRow, describe, pretrained_as
from bench.config.profiles import DEFAULT, Profile, choose_data, profile
from bench.config.request import Request
from bench.core.errors import UsageError
from bench.core.messages import canonical, did_you_mean, unknown
from bench.core.system_graph import Graph
from bench.pipeline.cells import Cell, Cells, NotApplicable, synthetic_warnings
from bench.pipeline.compute import Compute, compute
from bench.pipeline.fine_tunings import retriever
from bench.pipeline.graph import GraphBuilder
from bench.pipeline.identity import hash_of, untuned_graph
from bench.pipeline.pretraining import Pretraining, corpus_name, pretraining
from bench.pipeline.public_names import public_names
from bench.pipeline.settings import RunConfig, Settings, Variant, variants
from bench.pipeline.systems.combined import TRAINED, Reranked, Reranker, hybrid, parts_of, rate_warnings
from bench.pipeline.systems.dense import CONTRACT, Dense, PostProcessed, Pretrained, Trained, backbone_warnings
from bench.pipeline.systems.system import Lexical, OwnEncoder, System, distinct_label, labels
from bench.pipeline.tasks import language_warnings, suites_of, tasks_of, with_language
from bench.plugins import Plugins
from bench.store.inputs import Inputs
from bench.store.stage import Stage
from bench.store.store import Store
from bench.types import SETTINGS, DataRequest, Method


@dataclass(frozen=True)
class Experiment:
    """What is to be compared, on what."""

    profile: Profile
    cells: tuple[Cell, ...]
    refused: tuple[NotApplicable, ...]
    settings: tuple[SettingRow, ...]  # the harness's own
    seed: int  # the first one
    results: Path
    executor: str
    workers: int | None
    offline: bool
    again: bool  # what is stored with another log is trained again
    graph: GraphBuilder  # what the stages of its cells are built with
    warnings: tuple[str, ...]

    @classmethod
    def resolve(cls, request: Request, plugins: Plugins, store: Store) -> Experiment:
        """Resolve every name and setting of a request; read nothing but checksums of files.

        Raises:
            UsageError: an unknown name, an incoherent mix, a file that is not there.
            ConfigError: a setting that is unknown, of the wrong type or out of range.
            PluginError: a plugin that is broken and needed.
        """
        request, size, harness, systems, graph, reranker = _systems(request, plugins, store)
        run = harness.run
        data_request = DataRequest(choose_data(size, request.data), request.data_dir, request.offline, run.mini.world)
        suites = suites_of(request.suites, request.tasks, plugins)
        settings = [_setting(name) for name in request.settings or SETTINGS[:1]]
        language = run.data.language
        tasks = [
            (suite, [with_language(task, language) for task in tasks_of(suite, request.tasks, data_request)])
            for suite in suites
        ]
        all_tasks = [task for _, suite_tasks in tasks for task in suite_tasks]
        warnings = synthetic_warnings(run.mini.world, systems, all_tasks)
        local = [task for task in all_tasks if task.data == "local"]
        if language and not local:
            raise UsageError(
                f"found data.language={language}, which holds for folders of your own (--task FOLDER) only"
            )
        warnings += [sentence for task in local for sentence in language_warnings(task, language)]
        selection = Cells(data_request, size, request.seeds, plugins, graph).select(systems, tasks, settings)
        warnings += selection.warnings
        warnings += [*_system_warnings(systems, graph), *backbone_warnings(systems), *rate_warnings(reranker, harness)]
        return cls(
            profile=size,
            cells=selection.cells,
            refused=selection.refused,
            settings=tuple(describe(run, harness.origins)),
            seed=request.seed,
            results=request.results,
            executor=request.executor,
            workers=request.workers,
            offline=request.offline,
            again=request.again,
            graph=graph,
            warnings=tuple(warnings),
        )


def pretrainings(request: Request, plugins: Plugins, store: Store) -> tuple[Profile, list[Stage]]:
    """Return the profile, and the stages that train the encoders of a request, whatever they are tested on."""
    request, size, _, systems, graph, _ = _systems(request, plugins, store)
    trained = [system for system in systems if isinstance(system, Trained)]
    chains = (system.pretrained(request.seed, graph).chain() for system in trained)
    return size, list({stage.key: stage for stage in chain.from_iterable(chains)}.values())


def _systems(
    request: Request, plugins: Plugins, store: Store
) -> tuple[Request, Profile, Settings, list[System], GraphBuilder, Reranker | None]:
    """Return the request with what a preset says, the size, the harness's settings, systems, graph and re-ranker."""
    request, size = _with_preset(request, plugins)
    methods, preset = _methods(request, plugins)
    inputs = Inputs(store)
    resolved = [
        replace(variant, public_names=public_names([getattr(variant.resolved.method, "model", None)], inputs))
        for variant in variants(request, methods, preset, size)
    ]
    request = apply_grid(request, methods, preset)
    harness = resolved[0].resolved  # the harness's own settings are the same for all methods
    _applicable(request, methods, harness.run)
    graph = GraphBuilder(store, plugins.measures_by_name, describe(harness.run, harness.origins))
    named_variants = zip(resolved, labels(resolved, request.label), strict=True)
    rows = [row for variant, label in named_variants for row in _rows(variant, label, request, size, inputs, plugins)]
    systems = _distinct_starts(rows, graph)
    systems += [hybrid(name, systems) for name in request.methods if len(parts_of(name)) > 1]
    reranker = _reranker(request, size, harness.run, inputs, plugins)
    if reranker is not None:
        systems += [
            Reranked(system.ending("rerank"), system.method, system.resolved, system, reranker) for system in systems
        ]
    return request, size, harness, systems, graph, reranker


def _with_preset(request: Request, plugins: Plugins) -> tuple[Request, Profile]:
    """What is asked for, with what a run preset says where the user says nothing, and the size."""
    preset = plugins.run_preset(request.preset)
    if preset is None:
        return replace(request, seeds=request.seeds or (0,)), profile(request.profile or DEFAULT)
    request = preset.applied(request)
    size = profile(request.profile or DEFAULT)
    return request, replace(size, values={**size.values, **preset.values})


def _distinct_starts(systems: Sequence[System], builder: GraphBuilder) -> list[System]:
    """Leave out starts that are the same; those of one label that differ are called by what differs."""
    starts: dict[str, tuple[System, Graph]] = {}
    distinct = []
    for system in systems:
        if not system.untrained:
            distinct.append(system)
            continue
        graph = untuned_graph(system, builder)
        if hash_of(system, graph) in starts:
            continue
        rival = next((start_graph for start, start_graph in starts.values() if start.label == system.label), None)
        starts[hash_of(system, graph)] = system, graph
        distinct.append(system if rival is None else replace(system, label=distinct_label(system.label, graph, rival)))
    return distinct


def _system_warnings(systems: Sequence[System], builder: GraphBuilder) -> list[str]:
    """Warn of cells that turned out to be one system, and of tuned settings that were changed."""
    labels_by_hash: dict[str, list[str]] = {}
    for system in systems:
        if system.grid:
            labels_by_hash.setdefault(hash_of(system, untuned_graph(system, builder)), []).append(system.label)
    warnings = [
        f"{' and '.join(labels)} are one system here: a setting given by --set or --config holds for all cells"
        for labels in labels_by_hash.values()
        if len(labels) > 1
    ]
    return warnings + [
        f"{system.label}: the settings are not all those that the sweep chose, so it does not count as tuned"
        for system in systems
        if system.tuned_for and system.tuning is None
    ]


def _rows(
    variant: Variant, label: str, request: Request, size: Profile, inputs: Inputs, plugins: Plugins
) -> list[System]:
    """Return the systems of a method with its settings: with its start, other readouts, post-processed twins."""
    method, resolved, grid, names = variant.method, variant.resolved, variant.grid, variant.public_names
    if method.contract is None:
        return [(OwnEncoder if method.encoder else Lexical)(label, method, resolved, grid=grid, model_names=names)]
    machine = _compute(request, size, resolved.run, trains=method.trainer is not None)
    processed = resolved.run.post.kind != "none" and method.searches_vectors
    sample: Pretraining | None = None  # what post-processing is fitted on
    starts: list[Dense] = []
    if method.trainer is None:
        ready: Dense = Pretrained(label, method, resolved, machine, grid=grid, model_names=names)
        if processed:
            sample = _pretraining(request, size, resolved.run, inputs, plugins, ready.backbone)
    else:
        preset = pretrained_as(method, size, (request.preset or "").rpartition("/")[2])
        backbone = request.backbone or (preset and preset.backbone) or size.backbone
        corpus = preset.corpus if preset else None
        plan = _pretraining(request, size, resolved.run, inputs, plugins, backbone, corpus)
        budget = {name: value for name, value in resolved.run.budget if value is not None}
        usual = {"tokens": size.budget} if size.budget else {"steps": (preset and preset.steps) or size.steps}
        sample = replace(plan, **(budget or usual))
        trained = Trained(label, method, resolved, machine, sample, grid=grid)
        ready, starts = trained, trained.before_training().readings()
    rows = ready.readings()
    twins = [PostProcessed.from_system(row, sample) for row in rows if processed and sample]
    return [*rows, *twins, *starts]


def _compute(request: Request, size: Profile, run: RunConfig, *, trains: bool = True) -> Compute:
    """Return the machine of an encoder. Raises `UsageError` for devices and processes that are not there."""
    absent = request.devices is not None
    return compute(run.compute, size, request.device, request.executor, request.workers, absent=absent, trains=trains)


def _pretraining(
    request: Request,
    size: Profile,
    run: RunConfig,
    inputs: Inputs,
    plugins: Plugins,
    backbone: str,
    preset_corpus: str | None = None,
) -> Pretraining:
    """Return what a backbone is trained on. Raises `UsageError` for a corpus that is not there."""
    name = corpus_name(request.corpus or preset_corpus, size, run)
    return pretraining(name, backbone, request.data_dir, run, inputs, plugins.corpora_by_name)


def _reranker(request: Request, size: Profile, run: RunConfig, inputs: Inputs, plugins: Plugins) -> Reranker | None:
    """Return what re-ranks, None for nothing. Raises `UsageError` for a device or a corpus that is not there."""
    if request.rerank is None:
        return None
    machine = _compute(request, size, run)
    if request.rerank != TRAINED:
        return Reranker(request.rerank, machine, public_names=public_names([request.rerank], inputs))
    backbone = run.rerank.backbone or request.backbone or size.backbone
    scratch = backbone.startswith("scratch:")
    corpus = _pretraining(request, size, run, inputs, plugins, backbone) if scratch else None
    miner = retriever(run.rerank.mine, plugins)
    return Reranker(TRAINED, machine, backbone, corpus, miner, public_names([backbone], inputs))


def _setting(name: str) -> str:
    setting = canonical(name)
    if setting not in SETTINGS:
        raise UsageError(f"no setting {name!r}{did_you_mean(name, SETTINGS)} There are: {', '.join(SETTINGS)}.")
    return setting


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
    methods = list({method.name: method for method in map(plugins.method, names)}.values())
    if slash and plugins.method(owner) not in methods:
        raise UsageError(
            f"preset {request.preset} belongs to {owner}, found --method {', '.join(names)}; name {owner} too"
        )
    return methods, bare if slash else request.preset


def _applicable(request: Request, methods: Sequence[Method], run: RunConfig) -> None:
    """Refuse options and settings that nothing in the run listens to."""
    names, post, readout = ", ".join(method.name for method in methods), run.post.kind, run.encode.readout
    trains = request.rerank == TRAINED or any(method.trains for method in methods)
    if request.backbone is not None and not trains:
        raise UsageError(f"found --backbone {request.backbone}, but {names} trains no encoder; leave --backbone out")
    device, _, number = request.device.partition(":")
    if device not in {"auto", "cpu", "cuda", "mps"} or (number and not (device == "cuda" and number.isdigit())):
        raise UsageError(f"found --device {request.device!r}, expected auto, cpu, cuda, cuda:N or mps")
    if post != "none" and not any(method.contract and method.searches_vectors for method in methods):
        raise UsageError(f"found post.kind={post}, but {names} makes no vectors; leave it out")
    if request.corpus is not None and post == "none" and not trains:
        raise UsageError(f"found --corpus {request.corpus}, but {names} trains no encoder; leave --corpus out")
    if readout != CONTRACT and not any(method.contract for method in methods):
        raise UsageError(f"found encode.readout={readout}, but {names} makes no vectors; leave it out")
