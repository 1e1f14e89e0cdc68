"""`--stop-when flat`: trainings that end where dev questions show no gain, and whose row says where and why."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from bench.cli.outcome import print_outcome
from bench.config.request import Request
from bench.core.encoder_config import TrainingJob
from bench.core.errors import UsageError
from bench.core.workspace import Workspace
from bench.evaluation.compare.lineage import lineages
from bench.evaluation.learning_curves.standstill import standstill
from bench.evaluation.results.read import results
from bench.pipeline.experiment import pretrainings
from bench.pipeline.plan import Plan, plan
from bench.pipeline.run import run
from bench.pipeline.stages import train_until_flat
from bench.pipeline.stages.read import Read
from bench.pipeline.stages.train import Train
from bench.pipeline.stages.train_point import train_to
from bench.pipeline.stages.train_until_flat import TrainUntilFlat
from bench.plugins import Plugins, load
from bench.store.graph import NullListener, closure
from bench.store.stage import Stage
from bench.store.store import Store
from bench.studies import curve, sweep
from bench.testing import fields
from bench.types import Json
from methods.crop import CROP, CropConfig
from tests.conftest import plugin

QUICK = (
    *("method.pairs=4", "prepare.vocabulary=512", "budget.tokens=2000", "compute.threads=1"),
    "encode.passage_length=32",
)
SURELY, GOES_ON = "curve.gain=1", "curve.gain=-1"


@dataclass(frozen=True)
class Deaf:
    """Trains as `crop` does, and to its end whatever the job says."""

    config: CropConfig

    def train(self, start: Path, shards: Path, job: TrainingJob, work: Workspace) -> Mapping[str, Json]:
        """Ignore where to stop."""
        return CROP.build_trainer(self.config).train(start, shards, replace(job, until=None), work)


DEAF = replace(CROP, name="deaf", trainer=f"{__name__}:Deaf", presets={})


@pytest.fixture
def plugins() -> Plugins:
    return load({}, extra=[plugin("bench_methods", DEAF)])


@pytest.fixture
def request_of(tmp_path: Path) -> Callable[..., Request]:
    """A request on a task of the embedded world."""
    (tmp_path / "long").mkdir()
    sentences = [f"word{at % 20} word{at * 3 % 20} word{at * 7 % 20} red blue." for at in range(60)]
    documents = [{"id": str(at), "lang": "en", "title": "", "sentences": sentences[at : at + 4]} for at in range(56)]
    (tmp_path / "long" / "en.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents))

    def make(*sets: str, methods: str = "crop", suite: str = "mrtydi", task: str = "sw", **more: Any) -> Request:
        places = {"store": tmp_path / "store", "results": tmp_path / "results", "device": "cpu"}
        options = {**places, "tasks": (task,), "backbone": "scratch:1x16", "corpus": str(tmp_path / "long"), **more}
        options.setdefault("stop_when", "flat")
        return Request.from_options(methods, suite, **{**options, "sets": (*QUICK, *sets)})

    return make


def _training(ready: Plan) -> Train:
    (stage,) = [step.stage for step in ready.steps if isinstance(step.stage, Train)]
    return stage


def _made(stage: Train, store: Store) -> tuple[dict[str, bytes], Json]:
    """What a training wrote, and what it says of where it stopped."""
    artefact = store.open(stage)
    assert artefact is not None
    names = ("encoder/model.safetensors", "log.jsonl")
    return {name: (artefact.folder / name).read_bytes() for name in names}, artefact.metadata["stopped"]


def _make(stage: Stage, store: Store) -> None:
    """Make a stage and what it rests on."""
    for item in closure([stage]):
        store.make(item)


def test_a_row_says_where_its_training_stopped_and_why(
    plugins: Plugins, request_of: Callable[..., Request], capsys: pytest.CaptureFixture[str]
) -> None:
    """At the first look that may decide; its row is of the start's kind, and says which questions are the test's."""
    request = request_of(SURELY, "curve.patience=2")
    store = Store(request.store)
    outcome = run(request, plugins, store, NullListener())
    marks = {row["system"]: row.get("mark", "") for row in outcome.rows}
    assert marks == {"crop@pairs=4,stop_when=flat": "stopped at 32 %", "crop@init": ""}  # a step takes 3.2 %
    stage = _training(outcome.plan)
    files, stopped = _made(stage, store)
    assert isinstance(stopped, Mapping)
    assert (stopped["share"], stopped["step"]) == (0.32, 10)
    assert re.fullmatch(
        r"LogRank on dev questions changed by [+-]0\.\d{4} over the last 20% of the budget, at most by "
        r"[+-]0\.\d{4}: less than 1",
        str(stopped["why"]),
    )
    assert json.loads(files["log.jsonl"].splitlines()[-1])["step"] <= 10
    print_outcome(outcome, [], {}, [])
    assert "stopped at 32 % of its budget, for LogRank on dev questions" in capsys.readouterr().out
    by_label = {result.content.system.label: result for result in results(request.results)}
    trained = by_label["crop@pairs=4,stop_when=flat"].whole
    rule = {"looks": 10, "patience": 2, "gain": 1.0, "dev_of": ["mrtydi/sw"]}
    assert trained["system"]["stop_when_flat"] == rule
    keys = next(subset["keys"] for subsets in trained["tasks"].values() for subset in subsets.values())
    read = {step.stage.key: step.stage.label for step in outcome.plan.steps if isinstance(step.stage, Read)}
    assert (read[keys["read"]], read[keys["read-2"]]) == ("mini/mrtydi/sw", "mini/mrtydi/sw@dev")
    lines = lineages({label: [result] for label, result in by_label.items()})
    assert lines["crop@pairs=4,stop_when=flat"].start == "crop@init"


@pytest.mark.slow
def test_one_that_gains_goes_on_to_the_bytes_of_the_whole_training(
    plugins: Plugins, request_of: Callable[..., Request]
) -> None:
    """Looks change nothing; ten pauses and a kill at a look, or after it, neither."""
    store = Store(request_of().store)
    flat, whole = (
        _training(plan(request_of(GOES_ON, **rule), plugins, store)) for rule in ({}, {"stop_when": "never"})
    )
    for stage in (flat, whole):
        _make(stage, store)
    files, stopped = _made(flat, store)
    assert stopped is None
    folder = store.folder(whole)
    assert files == {name: (folder / name).read_bytes() for name in files}


@pytest.mark.slow
@pytest.mark.parametrize(("lost", "count"), [("", 5), ("look-2.json", 5 + 4)])
def test_killed_trainings_stop_where_others_do(
    plugins: Plugins, request_of: Callable[..., Request], monkeypatch: pytest.MonkeyPatch, lost: str, count: int
) -> None:
    """Killed while it is looked at, on the way, and after the last look: the same bytes, and no look is made twice.

    Unless one was lost: then the training begins anew, for the weights are further by then.
    """
    ready = plan(request_of(SURELY, "curve.patience=4"), plugins, Store(request_of().store))
    stage, look, looked = _training(ready), TrainUntilFlat._look, list[dict[str, Json]]()
    kills = {"look": 2, "train": 4, "rule": 8}

    def killing(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that is killed at one of its calls."""
        left = [kills[name]]

        def call(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                raise KeyboardInterrupt(name)
            return real(*arguments, **named)

        return call

    def counted(*arguments: Any) -> Any:
        looked.append(look(*arguments))
        return looked[-1]

    expected = Store(request_of().store.with_name("expected"))
    _make(stage, expected)
    store = Store(request_of().store)
    for item in closure([stage])[:-1]:
        store.make(item)
    monkeypatch.setattr(TrainUntilFlat, "_look", killing("look", counted))
    monkeypatch.setattr(train_until_flat, "standstill", killing("rule", standstill))
    monkeypatch.setattr(train_until_flat, "train_to", killing("train", train_to))
    killed = []
    for _ in range(4):
        try:
            store.make(stage)
        except KeyboardInterrupt as kill:
            killed.append(str(kill))
        if lost and killed == [*kills]:
            (store.root / "work" / f"train-{stage.key}" / "parts" / lost).unlink(missing_ok=True)
    assert killed == [*kills]
    assert len(looked) == count
    assert _made(stage, store) == _made(stage, expected)


def test_the_rule_and_its_questions_are_in_key_and_hash(plugins: Plugins, request_of: Callable[..., Request]) -> None:
    """Of the trainings that it stops alone; no test is among what a training rests on."""
    store = Store(request_of().store)

    def of(*sets: str, **more: Any) -> tuple[str, str]:
        ready = plan(request_of(*sets, **more), plugins, store)
        (cell,) = [cell for cell in ready.cells if not cell.system.untrained]
        return _training(ready).key, cell.identity.hash

    unlike = [of(), of("curve.patience=4"), of("curve.gain=0.02"), of(task="ko"), of(tasks=("sw", "ko"))]
    unlike += [of(stop_when=rule) for rule in ("never", "collapsed")]
    assert len({key for key, _ in unlike}) == len({identity for _, identity in unlike}) == len(unlike)
    assert of("curve.patience=4", "curve.gain=0.5", stop_when="never") == of(stop_when="never")
    assert of(tasks=("ko", "sw")) == of(tasks=("sw", "ko"))
    stage = _training(plan(request_of(tasks=("sw", "ko")), plugins, store))
    assert {item.label for item in stage.chain() if isinstance(item, Read)} == {
        "mini/mrtydi/sw@dev",
        "mini/mrtydi/ko@dev",
    }


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ({"suite": "tatoeba", "task": "swh-eng"}, {"found": "no questions of mini/tatoeba/swh-eng other than those"}),
        ({"task": "sw@dev"}, {"where": "--stop-when flat for crop", "found": "mini/mrtydi/sw@dev"}),
        ({"tasks": ("sw", "ko@dev")}, {"found": "mini/mrtydi/ko@dev", "hint": "--task mrtydi/sw; or leave"}),
        ({"sets": ("curve.points=3",)}, {"found": "--stop-when flat and curve.points"}),
        ({"methods": "mlm"}, {"where": "--stop-when flat for mlm", "hint": "leave --stop-when out"}),
    ],
)
def test_what_cannot_stop_so_is_refused(
    plugins: Plugins, request_of: Callable[..., Request], typed: dict[str, Any], expected: dict[str, str]
) -> None:
    """In a sentence with what to type."""
    request = request_of(*typed.get("sets", ()), **{name: value for name, value in typed.items() if name != "sets"})
    if request.methods == ("mlm",):  # which has no pairs
        request = replace(request, sets=tuple(text for text in request.sets if text != QUICK[0]))
    with pytest.raises(UsageError, check=fields(**expected)):
        plan(request, plugins, Store(request.store))


def test_without_a_suite_there_is_nothing_to_stop_by(plugins: Plugins, request_of: Callable[..., Request]) -> None:
    """As `bench plan` lists what trainings take, whatever they are tested on."""
    request = request_of()
    with pytest.raises(UsageError, check=fields(found="--stop-when flat, and no suite", hint="leave --stop-when out")):
        pretrainings(request, plugins, Store(request.store))


def test_studies_that_go_by_dev_questions_have_none_left(plugins: Plugins, request_of: Callable[..., Request]) -> None:
    """What they score on may not stop a training besides."""
    request, expected = request_of(), fields(found="mini/mrtydi/sw@dev", hint="leave --stop-when out")
    with pytest.raises(UsageError, check=expected):
        sweep.prepare(replace(request, tasks=("sw@dev",)), 2, plugins, Store(request.store))
    with pytest.raises(UsageError, check=fields(found="--stop-when flat and curve.points")):
        curve.prepare(replace(request, sets=(*request.sets, "curve.points=2")), plugins, Store(request.store))


@pytest.mark.parametrize(
    ("methods", "sets", "expected"),
    [
        ("deaf", (), {"where": "--stop-when flat of deaf", "found": "a trainer that cannot stop"}),
        ("crop", ("budget.tokens=300",), {"where": "--stop-when flat for crop", "hint": "raise the budget"}),
    ],
)
def test_trainings_that_cannot_be_looked_at_are_refused(
    plugins: Plugins, request_of: Callable[..., Request], methods: str, sets: tuple[str, ...], expected: dict[str, str]
) -> None:
    """One that goes on, and one whose steps take more than a tenth of the budget each."""
    request = request_of(*sets, methods=methods)
    store = Store(request.store)
    with pytest.raises(UsageError, check=fields(**expected)):
        _make(_training(plan(request, plugins, store)), store)
