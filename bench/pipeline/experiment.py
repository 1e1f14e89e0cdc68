"""What was typed, resolved once: systems × tasks × regimes × seeds. Nothing that this rests on reads a request."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from bench.config.grids import grid_address
from bench.config.layers import describe, pretrained_as
from bench.config.profiles import DEFAULT, Profile, choose_data, profile
from bench.config.request import Request
from bench.core.errors import UsageError
from bench.core.messages import canonical, did_you_mean, unknown
from bench.core.system_graph import Graph
from bench.data.corpora.named import is_named, parse
from bench.pipeline import resources
from bench.pipeline.cells import Cells, ExperimentCell, NotApplicable, synthetic_warnings
from bench.pipeline.compute import WORTH_IT, Compute, compute, fastest
from bench.pipeline.fine_tunings import retriever
from bench.pipeline.graph import GraphBuilder
from bench.pipeline.identity import hash_of, untuned_graph
from bench.pipeline.pretraining import PretrainingInputs, corpus_name, pretraining
from bench.pipeline.public_names import public_names
from bench.pipeline.quotas import budget_tokens, quota, with_quota
from bench.pipeline.settings import RunConfig, Variant, decided, variants
from bench.pipeline.systems.combined import TRAINED, Reranked, Reranker, hybrid, parts_of, rate_warnings
from bench.pipeline.systems.dense import OWN_CONFIG, Dense, PostProcessed, Trained, backbone_warnings
from bench.pipeline.systems.system import (
    LONGEST_LABEL,
    Lexical,
    OwnEncoder,
    System,
    by_precision,
    default_label,
    distinct_label,
    variant_label,
    variant_of,
)
from bench.pipeline.systems.until_flat import UntilFlat
from bench.pipeline.tasks import language_warnings, suites_of, tasks_of, with_headline, with_language
from bench.plugins import Plugins
from bench.store.input_hashes import InputHashes
from bench.store.stage import Stage
from bench.store.store import Store
from bench.training.config import FLAT, Precision
from bench.types import REGIMES, DataRequest, Method, Preset

_LABEL = re.compile(rf"[A-Za-z0-9][A-Za-z0-9@._+=,-]{{0,{LONGEST_LABEL - 1}}}")


@dataclass(frozen=True)
class Experiment:
    """What is to be compared, on what."""

    profile: Profile
    cells: tuple[ExperimentCell, ...]
    refused: tuple[NotApplicable, ...]
    seed: int  # the first one
    results: Path
    executor: str
    workers: int | None
    again: bool  # what is stored with another log is trained again
    graph: GraphBuilder  # what the stages of its cells are built with
    warnings: tuple[str, ...]

    @classmethod
    def resolve(
        cls, request: Request, plugins: Plugins, store: Store, quotas: Mapping[str, float] | None = None
    ) -> Experiment:
        """Resolve every name and setting of a request; read nothing but checksums of files.

        `quotas` are those of all requests that belong together (`largest_quotas`); None: of this one.

        Raises:
            UsageError: an unknown name, an incoherent mix, a file that is not there.
            ConfigError: a setting that is unknown, of the wrong type or out of range.
            PluginError: a plugin that is broken and needed.
        """
        request, size, methods, preset = _with_presets(request, plugins)
        systems, graph = _systems(request, size, methods, preset, plugins, store, quotas)
        run = systems[0].resolved.run  # the harness's own settings are the same for all methods
        data_request = DataRequest(choose_data(size, request.data), request.data_dir, request.offline, run.mini.world)
        regimes = [canonical(name) for name in request.regimes or REGIMES[:1]]
        for regime, name in zip(regimes, request.regimes, strict=False):
            if regime not in REGIMES:
                offer = f"{did_you_mean(name, REGIMES)} There are: {', '.join(REGIMES)}."
                raise UsageError(f"no regime {name!r}{offer}")
        language = run.data.language
        tasks = [
            (suite, [with_language(task, language) for task in tasks_of(suite, request.tasks, data_request)])
            for suite in suites_of(request.suites, request.tasks, plugins)
        ]
        tasks = [(with_headline(suite, suite_tasks), suite_tasks) for suite, suite_tasks in tasks]
        all_tasks = [task for _, suite_tasks in tasks for task in suite_tasks]
        warnings = [*_changed_presets(methods, preset or size.preset)]
        warnings += synthetic_warnings(run.mini.world, systems, all_tasks)
        local = [task for task in all_tasks if task.data == "local"]
        if language and not local:
            raise UsageError(
                f"found data.language={language}, which holds for folders of your own (--task FOLDER) only"
            )
        warnings += [f"{task.id}: {task.notice}" for task in all_tasks if task.notice]
        warnings += [sentence for task in local for sentence in language_warnings(task, language)]
        selector = Cells(data_request, size, request.seeds, plugins, graph)
        cells, refused, cell_warnings = selector.select(systems, tasks, regimes)
        warnings += [*cell_warnings, *_system_warnings(systems, cells)]
        warnings += [*backbone_warnings(systems), *rate_warnings(systems)]
        return cls(
            profile=size,
            cells=tuple(cells),
            refused=tuple(refused),
            seed=request.seed,
            results=request.results,
            executor=request.executor,
            workers=request.workers,
            again=request.again,
            graph=graph,
            warnings=tuple(warnings),
        )


def pretrainings(
    request: Request, plugins: Plugins, store: Store, quotas: Mapping[str, float] | None = None
) -> tuple[Profile, list[Stage]]:
    """Return the profile, and the stages that train the encoders of a request, whatever they are tested on.

    `quotas` are as for `Experiment.resolve`.
    """
    request, size, methods, preset = _with_presets(request, plugins)
    systems, graph = _systems(request, size, methods, preset, plugins, store, quotas)
    trained = [system for system in systems if isinstance(system, Trained)]
    chains = (system.pretrained(request.seed, graph).chain() for system in trained)
    return size, list({stage.key: stage for stage in chain.from_iterable(chains)}.values())


def largest_quotas(requests: Iterable[Request], plugins: Plugins) -> dict[str, float]:
    """Return the quota of each named corpus that the profile limits, from the largest budget of all requests on it.

    Returns:
        Text of the corpus → tokens a language; infinity for all of it. Raises as `Experiment.resolve`.
    """
    quotas: dict[str, float] = {}
    for typed in requests:
        request, size, methods, preset = _with_presets(typed, plugins)
        for variant in variants(request, methods, preset, size):
            for name, tokens in _quota(variant, request, size, preset, plugins).items():
                quotas[name] = max(tokens, quotas.get(name, 0.0))
    return quotas


def _quota(variant: Variant, request: Request, size: Profile, preset: str | None, plugins: Plugins) -> dict[str, float]:
    """Return the named corpus that a method is trained on or that its vectors are moved by, with its own quota."""
    method, run = variant.method, variant.resolved.run
    example = pretrained_as(method, size, preset) if method.trainer else None
    name = corpus_name(request.corpus or (example.corpus if example else None), size, run)
    if not size.quota or not is_named(name, plugins.corpora_by_name):
        return {}
    config, backbone = variant.resolved.method, request.backbone or (example and example.backbone) or size.backbone
    budget = _budget(run, size, example) if method.trainer else {"tokens": size.budget}
    tokens = budget_tokens(config, budget, backbone, run.compute.processes)
    exponent = getattr(config, "language_exponent", 1.0)
    most = quota(parse(name, plugins.corpora_by_name), tokens, exponent, size.quota)
    return {name: math.inf if most is None else most}


def _with_quota(
    variant: Variant,
    request: Request,
    size: Profile,
    preset: str | None,
    plugins: Plugins,
    quotas: Mapping[str, float],
) -> Variant:
    """Return a variant whose corpus has the quota of its experiment."""
    resolved = variant.resolved
    for name, alone in _quota(variant, request, size, preset, plugins).items():
        resolved = with_quota(resolved, size, quotas[name], alone)
    return replace(variant, resolved=resolved)


def _budget(run: RunConfig, size: Profile, example: Preset | None) -> dict[str, Any]:
    """Return what a pretraining may spend, by kind: as set, else as the profile or the preset has it."""
    budget = {name: value for name, value in run.budget if value is not None}
    usual = {"tokens": size.budget} if size.budget else {"steps": (example and example.steps) or size.steps}
    return budget or usual


def _with_presets(request: Request, plugins: Plugins) -> tuple[Request, Profile, list[Method], str | None]:
    """Return what is asked for, with what presets say where the user says nothing.

    A preset of a run fills in names and settings; a grid of a method, the suites and tasks that its paper has it on.

    Returns:
        The request; its profile; the methods; the bare name of the methods' preset (`bm25/lucene` is `lucene`).

    Raises:
        UsageError: no method is named, or one that the preset does not belong to.
    """
    run_preset = plugins.run_preset(request.preset)
    if run_preset is not None:
        request = run_preset.applied(request)
    size = profile(request.profile or DEFAULT)
    if run_preset is not None:
        size = replace(size, values={**size.values, **run_preset.values})
    owner, slash, bare = (request.preset or "").partition("/")
    names = tuple(part for name in request.methods for part in parts_of(name)) or ((owner,) if slash else ())
    if not names and owner:
        raise UsageError(
            f"{unknown('run preset', owner, sorted(plugins.runs))} For one of a method type --method too, "
            f"or --preset METHOD/{owner}."
        )
    if not names:
        raise UsageError(f"no method was named; type --method NAME, there are: {', '.join(sorted(plugins.methods))}")
    methods = list({method.name: method for method in map(plugins.method, names)}.values())
    if slash and plugins.method(owner) not in methods:
        raise UsageError(
            f"preset {owner}/{bare} belongs to {owner}, found --method {', '.join(names)}; name {owner} too"
        )
    preset = bare if slash else request.preset
    suites, tasks, regimes = grid_address(methods, preset)
    if suites and not request.suites:
        request = replace(request, suites=suites, tasks=request.tasks or tasks, regimes=request.regimes or regimes)
    return replace(request, seeds=request.seeds or (0,)), size, methods, preset


def _systems(
    request: Request,
    size: Profile,
    methods: Sequence[Method],
    preset: str | None,
    plugins: Plugins,
    store: Store,
    quotas: Mapping[str, float] | None,
) -> tuple[list[System], GraphBuilder]:
    """Return the systems that are to be compared, and what their stages are built with."""
    inputs = InputHashes(store)
    quotas = largest_quotas([request], plugins) if quotas is None else quotas
    precision = partial(_precision, request, size)
    resolved = [
        replace(
            variant,
            resolved=decided(variant.resolved, precision),
            public_names=public_names([getattr(variant.resolved.method, "model", None)], inputs),
        )
        for variant in (
            _with_quota(variant, request, size, preset, plugins, quotas)
            for variant in variants(request, methods, preset, size)
        )
    ]
    harness = resolved[0].resolved
    _applicable(request, methods, harness.run)
    graph = GraphBuilder(store, plugins.measures_by_name, describe(harness.run, harness.origins))
    systems: list[System] = []
    default = ""
    for variant, label in labelled(resolved, request.label):
        grid = replace(variant.grid, default=default) if variant.grid and variant.varied else variant.grid
        rows = _rows(replace(variant, grid=grid), label, request, size, preset, inputs, plugins)
        if request.varied and not variant.varied:
            default = hash_of(rows[0], untuned_graph(rows[0], graph))
        systems += rows
    systems = _distinct_starts(systems, graph)
    systems += [hybrid(name, systems) for name in request.methods if len(parts_of(name)) > 1]
    if request.rerank is None:
        return systems, graph
    reranker = _reranker(request.rerank, request, size, harness.run, inputs, plugins)
    return [*systems, *(Reranked.from_system(system, reranker, size.backbone) for system in systems)], graph


def labelled(variants: Sequence[Variant], label: str | None) -> list[tuple[Variant, str]]:
    """Return methods with their settings and their labels, each variant as one of the label before it.

    Raises as `labels` does.
    """
    labelled_variants: list[tuple[Variant, str]] = []
    whole = [variant for variant in variants if not variant.varied]
    plain, base = iter(labels(whole, label)), ""
    for variant in variants:
        if variant.varied:
            reference = variant_of(base, variant)
            labelled_variants.append((replace(variant, grid=reference), variant_label(reference)))
        else:
            base = next(plain)
            labelled_variants.append((variant, base))
    return labelled_variants


def labels(variants: Sequence[Variant], label: str | None) -> list[str]:
    """Return the labels of methods with their settings: those of `default_label`, unless the user gives one.

    A label given by the user names the only system, or follows each method's name where there are several; cells of a
    grid are called `LABEL=no-bn`. Raises `UsageError` for a label that does not fit in a table, a path and a run file.
    """
    if label is None:
        return [default_label(variant) for variant in variants]
    several = len({variant.method.name for variant in variants}) > 1
    names = []
    for variant in variants:
        name = f"{variant.method.name}@{label}" if several else label
        name = f"{name}={variant.grid.cell}" if variant.grid else name
        if not _LABEL.fullmatch(label) or not _LABEL.fullmatch(name):
            raise UsageError(
                f"found --label {label!r}, expected up to {LONGEST_LABEL} letters, digits and @ . _ + = , - without "
                "blanks, the first a letter or digit" + (f" (it makes {name})" if name != label else "")
            )
        names.append(name)
    return names


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


def _changed_presets(methods: Sequence[Method], name: str | None) -> list[str]:
    """Say of presets of that name, typed or taken by the profile, what they were in an earlier release."""
    return [
        f"{method.name}/{preset_name}: {preset.changed}"
        for method in methods
        for preset_name, preset in method.presets.items()
        if name and preset.changed and canonical(preset_name) == canonical(name)
    ]


def _system_warnings(systems: Sequence[System], cells: Sequence[ExperimentCell]) -> list[str]:
    """Warn of cells of a grid that turned out to be one system, and of tuned settings that were changed."""
    labels_by_hash: dict[str, dict[str, None]] = {}
    for cell in cells:
        if cell.system.grid:  # variants may differ in their fine-tunings alone
            labels_by_hash.setdefault(cell.identity.hash, {})[cell.system.label] = None
    warnings = dict.fromkeys(
        f"{' and '.join(labels)} are one system here: a setting given by --set or --config holds for all cells"
        for labels in labels_by_hash.values()
        if len(labels) > 1
    )
    return [*warnings] + [
        f"{system.label}: the settings are not all those that the sweep chose, so it does not count as tuned"
        for system in systems
        if system.tuned_for and system.tuning is None
    ]


def _rows(
    variant: Variant,
    label: str,
    request: Request,
    size: Profile,
    preset: str | None,
    inputs: InputHashes,
    plugins: Plugins,
) -> list[System]:
    """Return the systems of a method with its settings: with its start, other readouts, post-processed twins."""
    method, resolved, grid, names = variant.method, variant.resolved, variant.grid, variant.public_names
    if method.encoder_config is None:
        leaf = (OwnEncoder if method.encoder else Lexical)(label, method, resolved, grid=grid, model_names=names)
        return [by_precision(leaf)]
    machine = _compute(request, size, resolved.run, trains=method.trainer is not None)
    processed = resolved.run.post.kind != "none" and method.searches_vectors
    sample: PretrainingInputs | None = None  # what post-processing is fitted on
    starts: list[Dense] = []
    if method.trainer is None:
        ready = Dense(label, method, resolved, machine, grid=grid, model_names=names)
        if processed:
            sample = _pretraining(request, size, resolved.run, inputs, plugins, ready.backbone)
    else:
        example = pretrained_as(method, size, preset)
        backbone = request.backbone or (example and example.backbone) or size.backbone
        corpus = example.corpus if example else None
        plan = _pretraining(request, size, resolved.run, inputs, plugins, backbone, corpus)
        sample = replace(plan, **_budget(resolved.run, size, example))
        kind = UntilFlat if resolved.run.train.stop_when == FLAT else Trained
        trained = kind(label, method, resolved, machine, sample, grid=grid)
        ready, starts = trained, trained.before_training().variants()
    starts = list(map(by_precision, starts))
    on_the_way = ready.on_the_way() if isinstance(ready, Trained) else []
    rows = [by_precision(row) for system in (ready, *on_the_way) for row in system.variants()]
    twins = [PostProcessed.from_system(row, sample) for row in rows if processed and sample]
    return [*rows, *twins, *starts]


def _precision(request: Request, size: Profile) -> Precision:
    """Return the precision that `auto` means. Raises `UsageError` where other machines compute than this one."""
    if request.devices is not None:
        on = resources.machine(request.devices)
        return "bfloat16" if on.rate("bfloat16") > WORTH_IT * on.rate("float32") else "float32"
    if request.executor != "local":
        raise UsageError(
            where="precision",
            found=f"auto with --executor {request.executor}, whose machines are not this one",
            expected="float32 or bfloat16",
            hint="type --set train.precision=bfloat16 if they have units for it",
        )
    return fastest(size.device if request.device == "auto" else request.device)


def _compute(request: Request, size: Profile, run: RunConfig, *, trains: bool = True) -> Compute:
    """Return the machine of an encoder. Raises `UsageError` for devices and processes that are not there."""
    absent = request.devices is not None
    return compute(run.compute, size, request.device, request.executor, request.workers, absent=absent, trains=trains)


def _pretraining(
    request: Request,
    size: Profile,
    run: RunConfig,
    inputs: InputHashes,
    plugins: Plugins,
    backbone: str,
    preset_corpus: str | None = None,
) -> PretrainingInputs:
    """Return what a backbone is trained on. Raises `UsageError` for a corpus that is not there."""
    name = corpus_name(request.corpus or preset_corpus, size, run)
    return pretraining(name, backbone, request.data_dir, run, inputs, plugins.corpora_by_name)


def _reranker(
    model: str, request: Request, size: Profile, run: RunConfig, inputs: InputHashes, plugins: Plugins
) -> Reranker:
    """Return what re-ranks. Raises `UsageError` for a device or a corpus that is not there."""
    machine = _compute(request, size, run)
    if model != TRAINED:
        return Reranker(model, machine, public_names=public_names([model], inputs))
    backbone = run.rerank.backbone or request.backbone or size.backbone
    scratch = backbone.startswith("scratch:")
    corpus = _pretraining(request, size, run, inputs, plugins, backbone) if scratch else None
    miner = retriever(run.rerank.mine, plugins)
    return Reranker(TRAINED, machine, backbone, corpus, miner, public_names([backbone], inputs))


def _applicable(request: Request, methods: Sequence[Method], run: RunConfig) -> None:
    """Refuse options and settings that nothing in the run listens to."""
    names, post, readout = ", ".join(method.name for method in methods), run.post.kind, run.encode.readout
    trains = request.rerank == TRAINED or any(method.trains for method in methods)
    if request.backbone is not None and not trains:
        raise UsageError(f"found --backbone {request.backbone}, but {names} trains no encoder; leave --backbone out")
    device, _, number = request.device.partition(":")
    if device not in {"auto", "cpu", "cuda", "mps"} or (number and not (device == "cuda" and number.isdigit())):
        raise UsageError(f"found --device {request.device!r}, expected auto, cpu, cuda, cuda:N or mps")
    if post != "none" and not any(method.encoder_config and method.searches_vectors for method in methods):
        raise UsageError(f"found post.kind={post}, but {names} makes no vectors; leave it out")
    if request.corpus is not None and post == "none" and not trains:
        raise UsageError(f"found --corpus {request.corpus}, but {names} trains no encoder; leave --corpus out")
    stored = run.encode.vectors
    if stored != "float32" and not any(method.searches_vectors for method in methods):
        raise UsageError(f"found encode.vectors={stored}, but of {names} the harness stores no vectors; leave it out")
    if readout != OWN_CONFIG and not any(method.encoder_config for method in methods):
        raise UsageError(f"found encode.readout={readout}, but {names} makes no vectors; leave it out")
