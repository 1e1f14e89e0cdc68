"""Trainings that end before their budget: in the key where typed, told by the row, failed trials of sweeps."""

import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from bench.cli.outcome import print_outcome
from bench.config.request import Request
from bench.config.spaces import Choice
from bench.core.encoder_config import TrainingJob
from bench.core.errors import UsageError
from bench.core.workspace import Workspace
from bench.evaluation.results.scores import load_results
from bench.pipeline.plan import Plan, plan
from bench.pipeline.run import run
from bench.pipeline.stages.train import Train
from bench.plugins import Plugins, load
from bench.store.graph import NullListener
from bench.store.store import Store
from bench.studies import sweep
from bench.testing import fields
from bench.types import Json
from methods.crop import CROP, CropConfig
from tests.conftest import plugin

WHY = "vectors fall onto one point: mean cosine 1.000"
STOP: dict[str, Json] = {"share": 0.2, "step": 3, "why": WHY}


@dataclass(frozen=True)
class Stopping:
    """Says that it stopped where it may and its vectors are those of the first token, and leaves the start as it is."""

    config: CropConfig

    def train(self, start: Path, shards: Path, job: TrainingJob, work: Workspace) -> Mapping[str, Json]:
        """Write the start."""
        shutil.copytree(start, work.out / "encoder")
        (work.out / "log.jsonl").write_text("")
        may = self.config.stop_when == "collapsed"
        stopped = STOP if self.config.pooling == "cls" else None
        return {"tokens": job.tokens, "steps": 3, **({"stopped": stopped} if may else {})}


@dataclass(frozen=True)
class Deaf(Stopping):
    """Goes on to its end whatever it is told."""

    def train(self, start: Path, shards: Path, job: TrainingJob, work: Workspace) -> Mapping[str, Json]:
        """Write the start, and no word about stopping."""
        metadata = super().train(start, shards, job, work)
        return {name: value for name, value in metadata.items() if name != "stopped"}


METHOD = replace(
    CROP, name="stopping", trainer=f"{__name__}:Stopping", space={"pooling": Choice(("mean", "cls"))}, presets={}
)
DEAF = replace(METHOD, name="deaf", trainer=f"{__name__}:Deaf")


@pytest.fixture
def plugins() -> Plugins:
    return load({}, extra=[plugin("bench_methods", METHOD, DEAF)])


@pytest.fixture
def request_of(tmp_path: Path, small: dict[str, Any]) -> Callable[..., Request]:
    """A request of a method on the tiny folder, pretrained on a few documents."""
    corpus = tmp_path / "corpus" / "en.jsonl"
    corpus.parent.mkdir()
    rows = ({"id": f"d{at}", "sentences": [f"word {at} of {number}" for number in range(6)]} for at in range(20))
    corpus.write_text("".join(json.dumps(row) + "\n" for row in rows))
    places = {"corpus": str(corpus.parent), "store": tmp_path / "store", "results": tmp_path / "results"}

    def make(methods: str, *sets: str, **more: Any) -> Request:
        options = {**small, **places, "device": "cpu", **more}
        return Request.from_options(methods, "beir", **{**options, "sets": (*small["sets"], *sets)})

    return make


def _trainings(ready: Plan) -> dict[str, str]:
    """The key of each training by its method."""
    return {step.stage.method: step.stage.key for step in ready.steps if isinstance(step.stage, Train)}


def test_a_row_says_where_its_training_stopped_and_why(
    plugins: Plugins, request_of: Callable[..., Request], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Behind its name, in the run's last lines, and among results; a training that went on to its end says nothing."""
    asked = request_of("stopping", "method.pooling=cls", stop_when="collapsed")
    outcome = run(asked, plugins, Store(asked.store), NullListener())
    assert {row["system"]: row.get("mark") for row in outcome.rows} == {
        "stopping@pooling=cls,stop_when=collapsed": "stopped at 20 %",
        "stopping@init": None,
    }
    print_outcome(outcome, [], {}, [])
    printed = capsys.readouterr().out
    assert "stop_when=collapsed (stopped at 20 %)" in printed
    assert f"stop_when=collapsed, seed 0: stopped at 20 % of its budget, for {WHY}" in printed
    assert "stop_when=collapsed (stopped at 20 %)" in repr(load_results(asked.results))
    to_the_end = request_of("stopping", "method.pooling=mean", stop_when="collapsed", results=tmp_path / "others")
    assert not any("mark" in row for row in run(to_the_end, plugins, Store(asked.store), NullListener()).rows)


def test_the_rule_is_in_the_key_where_it_is_typed(plugins: Plugins, request_of: Callable[..., Request]) -> None:
    """And only of what it can stop: `mlm` compares no vectors, so its training is the one without the rule."""
    free, never, typed = (
        _trainings(plan(request_of("stopping,mlm", **rule), plugins, Store(request_of("mlm").store)))
        for rule in ({}, {"stop_when": "never"}, {"stop_when": "collapsed"})
    )
    assert free == never
    assert free["stopping"] != typed["stopping"]
    assert free["mlm"] == typed["mlm"]


@pytest.mark.parametrize("methods", ["bm25", "mlm", "bm25,mlm"])
def test_where_nothing_can_stop_the_rule_is_refused(
    plugins: Plugins, request_of: Callable[..., Request], methods: str
) -> None:
    """With what to leave out."""
    asked = request_of(methods, stop_when="collapsed")
    expected = fields(where=f"--stop-when collapsed for {methods.replace(',', ', ')}", hint="leave --stop-when out")
    with pytest.raises(UsageError, check=expected):
        plan(asked, plugins, Store(asked.store))


def test_a_trainer_that_does_not_look_is_refused(plugins: Plugins, request_of: Callable[..., Request]) -> None:
    """Its row would carry a rule in its key that nobody kept."""
    asked = request_of("deaf", stop_when="collapsed")
    expected = fields(where="--stop-when of deaf", found="a trainer that does not say whether it stopped")
    with pytest.raises(UsageError, check=expected):
        run(asked, plugins, Store(asked.store), NullListener())


def test_a_trial_that_collapses_fails_and_is_not_encoded(
    plugins: Plugins, request_of: Callable[..., Request], tmp_path: Path
) -> None:
    """By default; the settings that are chosen run with the rule, from the same training; `never` scores all."""
    task = shutil.copytree(request_of("stopping").tasks[0], tmp_path / "tiny")
    (task / "qrels" / "test.tsv").rename(task / "qrels" / "dev.tsv")
    asked = request_of("stopping", tasks=(f"{task}:dev",))
    store = Store(asked.store)
    ready = sweep.prepare(asked, 2, plugins, store)
    assert [dict(values) for values in ready.draws["stopping"]] == [{}, {"pooling": "cls"}]
    (swept,), _ = sweep.run(ready, plugins, store, NullListener(), tmp_path / "sweeps")
    assert [trial.failed for trial in swept.trials] == ["", f"stopped at 20 % of its budget: {WHY}"]
    assert (swept.chosen, swept.trials[1].score) == (0, None)
    states = {
        (step.stage.name, cell.system.grid.cell): store.state(step.stage)
        for cell, subsets in zip(ready.plan.cells, ready.plan.subsets, strict=True)
        if cell.system.grid is not None
        for step in ready.plan.steps
        if step.stage.key in {stage.key for subset in subsets for stage in subset.stages}
        if step.stage.name in ("train", "encode", "score")
    }
    assert {name for (name, cell), state in states.items() if cell == "1" and state == "cached"} == {"train"}
    assert {name for (name, cell), state in states.items() if cell == "0" and state == "cached"} == {
        "train",
        "encode",
        "score",
    }
    assert 'stop_when = "collapsed"' in swept.config.read_text()
    chosen = plan(request_of("stopping", tasks=(f"{task}:dev",), file=swept.config), plugins, store)
    assert not [step for step in chosen.steps if step.stage.name == "train" and step.runs]
    free = sweep.prepare(replace(asked, sets=(*asked.sets, "train.stop_when=never")), 2, plugins, store)
    (swept,), _ = sweep.run(free, plugins, store, NullListener(), tmp_path / "sweeps")
    assert not any(trial.failed for trial in swept.trials)
    assert "stop_when" not in swept.config.read_text()
