"""Whatever changes a number is in the system's hash: every setting of the harness and of every method is changed once.

A change of a setting changes the hash of a system, or no key of a stage that its ranking rests on. Only what stages
declare `ENVIRONMENT` is in keys and in no hash; what that is, is asserted.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic.fields import FieldInfo

from bench.config.fields import leaves_of, values_of
from bench.config.layers import written
from bench.config.request import Request
from bench.core.errors import BenchError, PluginError
from bench.core.network import offline
from bench.pipeline import identity
from bench.pipeline.cells import ExperimentCell
from bench.pipeline.experiment import Experiment
from bench.pipeline.fine_tunings import PLACEHOLDER
from bench.pipeline.graph import GraphBuilder
from bench.pipeline.identity import system_graph
from bench.pipeline.plan import plan
from bench.pipeline.settings import RunConfig
from bench.pipeline.systems.system import System
from bench.plugins import Plugins, load
from bench.store.graph import closure
from bench.store.stage import ENVIRONMENT, NOT_IN_KEY, Cost, Stage, named
from bench.store.store import Store

RERANKED = replace(
    Request(methods=("bm25+crop",), suites=("mrtydi",), tasks=("sw",), regimes=("english",), rerank="trained"),
    offline=True,
    device="cpu",
)
PROCESSED = replace(RERANKED, methods=("bm25", "crop"), rerank=None, sets=("post.kind=calibrate", "tune.mine=self"))
BOTH_READOUTS = replace(
    RERANKED, methods=("msm",), suites=("xor-retrieve",), tasks=("te",), rerank=None, sets=("encode.readout=both",)
)
OWN_FOLDER = replace(
    RERANKED, methods=("bm25",), suites=("beir",), regimes=("unsupervised",), rerank=None, sets=("data.language=fi",)
)
CASES = {"hybrid, re-ranked": RERANKED, "post-processed": PROCESSED, "both readouts": BOTH_READOUTS}
TINY = Path(__file__).parents[1] / "fixtures" / "tiny-beir"
PAIRS = f"{TINY}:test"

ADDRESS = {"mini.world", "encode.readout"}
"""Settings that say what a system is tested on, or which rows there are."""
ENVIRONMENT_SETTINGS = {"compute.threads"}
"""The settings that may change bytes and identify no system."""
ENVIRONMENT_FIELDS = {
    *("encode.compute", "encode_part.compute", "mine_encode.compute", "fit.compute", "post.machine", "index.compute"),
    *("train.compute", "train_point.compute", "tune.compute", "train_cross.compute", "rerank.compute"),
    *("index.resolved", "mine_index.resolved"),
    *("search.tag", "mine_search.tag", "fuse.tag", "rerank.tag"),
}


@dataclass(frozen=True)
class Row:
    """A system of an experiment: its hash, and the keys that its first ranking rests on."""

    hash: str
    cell: ExperimentCell
    builder: GraphBuilder

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys; they are asked for only where two hashes are equal, since most of a plan's time goes to them."""
        subset = next(self.cell.subsets(self.builder))
        return frozenset(stage.key for stage in subset.score.ranking.chain())


def rows(experiment: Experiment) -> dict[tuple[str, str], Row]:
    """Return the systems of an experiment by method and what distinguishes its rows."""
    table = {}
    for cell in experiment.cells:
        system = cell.system
        tuned = system.recipes.of_encoder(PLACEHOLDER)
        kind = f"{type(system).__name__}{' by protocol' if system.protocol else ''}{' tuned' if tuned else ''}"
        kind = f"{kind} of {type(inner).__name__}" if (inner := getattr(system, "inner", None)) else kind
        table[system.method.name, kind] = Row(cell.identity.hash, cell, experiment.graph)
    return table


def other_value(leaf: FieldInfo, value: Any) -> Iterator[Any]:
    """Yield valid values that are not `value`, nearest first; which of them a config accepts is for it to say."""
    kinds = {type(None)} ^ {type(None), *(get_args(leaf.annotation) or (leaf.annotation,))}
    if get_origin(leaf.annotation) is Literal or any(get_origin(kind) is Literal for kind in kinds):
        names = [name for kind in (leaf.annotation, *kinds) if get_origin(kind) is Literal for name in get_args(kind)]
        yield from (name for name in names if name != value)
    elif isinstance(value, bool) or bool in kinds:
        yield not value
    elif isinstance(value, int) or (value is None and int in kinds):
        yield from ((value or 0) + 1, (value or 0) + 2, (value or 2) * 2, (value or 2) - 1, 1_000, 100_000)
    elif isinstance(value, float) or (value is None and float in kinds):
        yield from (number for number in ((value or 0.5) * 0.5, (value or 0.5) * 0.9, 1.0, 2.0) if number != value)
    elif isinstance(value, tuple):
        yield from (value[:-1], [*value, *value], ["en"], [1, 2])
    else:
        yield from ("de", PAIRS, "other")


WITH = {
    "curve.cool": ("curve.points=3",),
    "curve.cooled": ("curve.points=3", "curve.cool=0.2"),
    "train.compile": ("train.token_bucket=64",),
}
"""What settings want besides, of those that do."""


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return load()


@pytest.fixture(autouse=True)
def one_tag(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give all runs one tag, which is in keys and changes no rank, and leave out what is in no key and takes time."""
    monkeypatch.setattr(System, "tag", "tag")
    monkeypatch.setattr(System, "notes", {})


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(tmp_path_factory.mktemp("store"))


@dataclass
class Changes:
    """What came of changing settings, one at a time."""

    every: bool  # in each case, or only where no earlier one has shown it
    count: int = 0
    refused: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)  # keys changed, hash not
    environment: set[str] = field(default_factory=set)
    shown: set[str] = field(default_factory=set)  # settings of the harness that changed a hash

    def add(self, name: str, key: str, before: Mapping[Any, Row], after: Mapping[Any, Row]) -> None:
        self.count += 1
        for system in before.keys() & after.keys():
            old, new = before[system], after[system]
            if old.hash != new.hash and not key.startswith("method."):
                self.shown.add(key)
            if old.hash == new.hash and old.keys != new.keys:
                if key in ENVIRONMENT_SETTINGS:
                    self.environment.add(key)
                else:
                    self.unseen.append(f"{key} of {system} ({name})")


def change_each(
    changes: Changes,
    name: str,
    request: Request,
    leaves: Mapping[str, FieldInfo],
    values: Mapping[str, Any],
    resolve: Callable[[Request], Experiment],
) -> None:
    """Resolve a request once for each setting, changed to the first other value that is accepted."""
    plain = request, rows(resolve(request))
    for key, leaf in leaves.items():
        if key in ADDRESS or key.startswith("tuning.") or (key in changes.shown and not changes.every):
            continue
        request, before = plain
        if key in WITH:
            request = replace(request, sets=(*request.sets, *WITH[key]))
            before = rows(resolve(request))
        for value in other_value(leaf, values[key]):
            try:
                after = rows(resolve(replace(request, sets=(*request.sets, f"{key}={written(value)}"))))
            except BenchError:
                continue
            changes.add(name, key, before, after)
            break
        else:
            changes.refused.append(f"{key} ({name})")


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_every_setting_that_changes_a_number_changes_the_hash(
    plugins: Plugins, store: Store, monkeypatch: pytest.MonkeyPatch, every: bool
) -> None:
    """Every setting of the harness, in cases with every kind of system; every setting of every method.

    In the quick round a setting is changed in the cases up to the first in which it changes a hash.
    """
    toy = system_graph(Toy(strength=1.0))
    monkeypatch.setattr(identity, "untuned_graph", lambda *_: toy)  # nothing here reads the hash without fine-tunings
    monkeypatch.setattr(
        "bench.pipeline.compute.cores", lambda: 2
    )  # so that one thread is another number than the default

    def resolve(request: Request) -> Experiment:
        with offline(request.offline):
            return Experiment.resolve(request, plugins, store)

    changes = Changes(every)
    harness = leaves_of(RunConfig)
    for name, request in {**CASES, "own folder": replace(OWN_FOLDER, tasks=(str(TINY),))}.items():
        typed = {key: value for key, _, value in (text.partition("=") for text in request.sets)}
        change_each(changes, name, request, harness, {**values_of(RunConfig()), **typed}, resolve)
    for name, owned in sorted(plugins.methods.items()):
        method = owned.value
        request = replace(RERANKED, methods=(name,), rerank=None, regimes=("unsupervised",))
        request = replace(request, preset="pretrained/mbert") if name == "pretrained" else request
        config = leaves_of(method.config, "method.")
        change_each(changes, name, request, config, values_of(method.config(), "method."), resolve)
    assert not changes.unseen
    assert changes.environment == ENVIRONMENT_SETTINGS
    assert changes.count > (500 if every else 300)
    assert len(changes.refused) < 0.05 * changes.count, changes.refused


def stage_classes(base: type[Stage] = Stage) -> Iterator[type[Stage]]:
    for kind in base.__subclasses__():
        if kind.__module__.startswith("bench."):
            yield kind
        yield from stage_classes(kind)


def test_the_environment_is_exactly_this() -> None:
    """What stages declare to be in keys and in no hash."""
    declared = {
        f"{kind.name}.{item.name}"
        for kind in stage_classes()
        if hasattr(kind, "name")
        for item in fields(kind)
        if item.metadata.get("environment")
    }
    assert declared == ENVIRONMENT_FIELDS


@dataclass(frozen=True, kw_only=True)
class Toy(Stage):
    """A stage as a newcomer writes it."""

    name, code = "toy", 1
    strength: float
    machine: str = field(default="", metadata=ENVIRONMENT)
    batch: int = field(default=1, metadata=NOT_IN_KEY)

    title = "toy"
    cost = Cost("toy", 1.0, 1.0)

    def run(self, space: Any, folders: Any) -> Mapping[str, Any]:
        return {}


def test_a_new_field_is_in_the_hash_without_another_edit() -> None:
    """And one that is declared environment is in the key alone, one that is marked `NOT_IN_KEY` in neither."""
    base = Toy(strength=1.0)
    changed: Sequence[Toy] = replace(base, strength=2.0), replace(base, machine="gpu"), replace(base, batch=2)
    assert [system_graph(stage) != system_graph(base) for stage in changed] == [True, False, False]
    assert [stage.key != base.key for stage in changed] == [True, True, False]


@dataclass(frozen=True, kw_only=True)
class Clash(Toy):
    """A stage two of whose inputs have one name in the key."""

    first: Stage
    second: Stage = field(metadata=named("first"))


def test_two_inputs_of_one_key_name_are_refused() -> None:
    """Of the two, one would be lost from the key."""
    with pytest.raises(PluginError) as caught:
        _ = Clash(strength=1.0, first=Toy(strength=1.0), second=Toy(strength=2.0)).key
    assert caught.value.found == "fields first and second, both called first in the key"
    assert caught.value.hint


def test_the_graph_of_a_system_holds_no_machine(plugins: Plugins, store: Store) -> None:
    """Two numbers of threads give one graph; the chain of stages is whole."""
    single_threaded, two_threaded = (
        plan(replace(RERANKED, sets=(f"compute.threads={count}",)), plugins, store) for count in (1, 2)
    )
    assert [cell.identity.graph for cell in single_threaded.cells] == [
        cell.identity.graph for cell in two_threaded.cells
    ]
    assert {step.key for step in closure([single_threaded.subsets[0][0].score.ranking])}
    names = {node["stage"] for cell in single_threaded.cells for node in cell.identity.graph.values()}
    assert {"read", "validate", "prepare", "init", "train", "tune", "encode", "weigh", "fuse", "rerank"} <= names
