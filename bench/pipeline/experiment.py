"""What was typed, resolved once: systems × tasks × settings × seeds. Nothing after this reads a request."""

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
from bench.core.messages import unknown
from bench.core.system_graph import Graph
from bench.pipeline import joint
from bench.pipeline.compute import compute
from bench.pipeline.dense import CONTRACT, Dense, Pretrained, Trained, backbone_warnings
from bench.pipeline.encoders import Encoders
from bench.pipeline.identity import hash_of, untuned_graph
from bench.pipeline.joint import combined, parts_of
from bench.pipeline.legs import Legs
from bench.pipeline.names import places
from bench.pipeline.pretraining import Pretraining, pretraining, sample
from bench.pipeline.selection import Cell, NotApplicable, select
from bench.pipeline.settings import RunConfig, Settings, Variant, variants
from bench.pipeline.systems import Embedding, Sparse, System, distinct_label, labels
from bench.plugins import Plugins
from bench.store.inputs import Inputs
from bench.store.stage import Stage
from bench.store.store import Store
from bench.types import Method


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
    warnings: tuple[str, ...]

    @classmethod
    def resolve(cls, request: Request, plugins: Plugins, store: Store) -> Experiment:
        """Resolve every name and setting of a request; read nothing but checksums of files.

        Raises:
            UsageError: an unknown name, an incoherent mix, a file that is not there.
            ConfigError: a setting that is unknown, of the wrong type or out of range.
            PluginError: a plugin that is broken and needed.
        """
        request, size, harness, systems, reranker = _systems(request, plugins, store)
        builder = Legs(store, plugins, describe(harness.run, harness.origins))
        data = choose_data(size, request.data)
        selection = select(request, systems, plugins, data, harness.run, size)
        system_warnings = (
            *_about_systems(systems, builder),
            *backbone_warnings(systems),
            *joint.rate_warnings(reranker, harness),
        )
        return cls(
            profile=size,
            cells=selection.cells,
            refused=selection.refused,
            settings=tuple(describe(harness.run, harness.origins)),
            seed=request.seed,
            results=request.results,
            executor=request.executor,
            workers=request.workers,
            warnings=(*selection.warnings, *system_warnings),
        )


def pretrainings(request: Request, plugins: Plugins, store: Store) -> tuple[Profile, list[Stage]]:
    """Return the profile, and the stages that train the encoders of a request, whatever they are tested on."""
    request, size, _, systems, _ = _systems(request, plugins, store)
    trained = [system for system in systems if isinstance(system, Trained)]
    chains = (Encoders(system, request.seed, Inputs(store), plugins).pretrained().chain() for system in trained)
    return size, list({stage.key: stage for stage in chain.from_iterable(chains)}.values())


def _systems(
    request: Request, plugins: Plugins, store: Store
) -> tuple[Request, Profile, Settings, list[System], joint.Reranker | None]:
    """Return the request with what a preset says, the size, the harness's own settings, systems and re-ranker."""
    request, size = _with_preset(request, plugins)
    methods, preset = _methods(request, plugins)
    inputs = Inputs(store)
    resolved = [
        replace(variant, places=places([getattr(variant.resolved.method, "model", None)], inputs))
        for variant in variants(request, methods, preset, size)
    ]
    request = apply_grid(request, methods, preset)
    harness = resolved[0].resolved  # the harness's own settings are the same for all methods
    _applicable(request, methods, harness.run)
    named_variants = zip(resolved, labels(resolved, request.label), strict=True)
    rows = [row for variant, label in named_variants for row in _rows(variant, label, request, size, store, plugins)]
    builder = Legs(store, plugins, describe(harness.run, harness.origins))
    single_systems = _starts_once(rows, builder)
    reranker = joint.reranker(request, size, harness.run, store, plugins)
    systems = combined(request.methods, single_systems, reranker)
    return request, size, harness, systems, reranker


def _with_preset(request: Request, plugins: Plugins) -> tuple[Request, Profile]:
    """What is asked for, with what a run preset says where the user says nothing, and the size."""
    preset = plugins.run_preset(request.preset)
    if preset is None:
        return replace(request, seeds=request.seeds or (0,)), profile(request.profile or DEFAULT)
    request = preset.applied(request)
    size = profile(request.profile or DEFAULT)
    return request, replace(size, values={**size.values, **preset.values})


def _starts_once(systems: Sequence[System], builder: Legs) -> list[System]:
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


def _about_systems(systems: Sequence[System], builder: Legs) -> list[str]:
    """Tell of cells that turned out to be one system, and of tuned settings that were changed."""
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
    variant: Variant, label: str, request: Request, size: Profile, store: Store, plugins: Plugins
) -> list[System]:
    """Return the systems of a method with its settings: with its start, other readouts, post-processed twins."""
    method, resolved, grid = variant.method, variant.resolved, variant.grid
    if method.contract is None:
        return [
            (Embedding if method.encoder else Sparse)(label, method, resolved, grid=grid, own_places=variant.places)
        ]
    machine = compute(request, size, resolved.run.compute, trains=method.trainer is not None)
    processed = resolved.run.post.kind != "none"
    processed = processed and method.searches_vectors
    pretraining_plan: Pretraining | None = None
    starts: list[Dense] = []
    if method.trainer is None:
        ready: Dense = Pretrained(label, method, resolved, machine, grid=grid, own_places=variant.places)
        if processed:
            backbone = str(getattr(resolved.method, "model", ""))
            pretraining_plan = sample(request, size, resolved.run, store, backbone, plugins)
    else:
        preset = pretrained_as(method, size, (request.preset or "").rpartition("/")[2])
        pretraining_plan = pretraining(request, size, resolved.run, store, plugins, preset)
        trained = Trained(label, method, resolved, machine, pretraining_plan, grid=grid)
        ready, starts = trained, trained.start().readings()
    rows = ready.readings()
    return [*rows, *(row.processed(pretraining_plan) for row in rows if processed and pretraining_plan), *starts]


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
    trains = request.rerank == joint.TRAINED or any(method.trains for method in methods)
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
