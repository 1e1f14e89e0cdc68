"""Rows at points on the way of a pretraining, which stays what it is: its key, its bytes, its row."""

import math
import shutil
from collections import namedtuple
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.config.request import Request
from bench.core.encoder_config import TrainingJob
from bench.core.errors import UsageError
from bench.core.workspace import Workspace
from bench.evaluation.compare.fairness import ComparedSystem, pair_warnings
from bench.evaluation.compare.lineage import lineages, role_of
from bench.evaluation.results import results
from bench.pipeline.plan import Plan, plan
from bench.pipeline.run import run
from bench.pipeline.stages.train import Train
from bench.plugins import load
from bench.store.graph import NullListener
from bench.store.store import Store
from bench.studies.reproduce.replay import ReplayOptions, prepared
from bench.testing import fields
from bench.training import loop
from methods.crop.trainer import CropTrainer
from tests.conftest import tree

SMALL: dict[str, Any] = {
    "methods": ("crop",),
    "suites": ("mrtydi",),
    "tasks": ("sw",),
    "backbone": "scratch:1x16",
    "device": "cpu",
    "sets": (
        *("prepare.vocabulary=800", "prepare.max_documents=60", "compute.threads=1"),
        *("budget.tokens=4000", "method.pairs=4"),
    ),
}
POINTS = "curve.points=4", "curve.cool=0.4", "curve.cooled=2"
HALF = "crop@pairs=4@2k"
LABELS = ["crop@pairs=4@500", "crop@pairs=4@1k", "crop@pairs=4@1k-cooled", HALF, f"{HALF}-cooled"]


@pytest.fixture(autouse=True)
def small_corpus(corpus: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretrain on a small corpus: of the mini world's 14 languages every document is read, however few are kept."""
    monkeypatch.setitem(SMALL, "corpus", str(corpus))


def request(folder: Path, *sets: str, **changed: Any) -> Request:
    values = {**SMALL, "store": folder / "store", "results": folder / "results", **changed}
    return Request(**{**values, "sets": (*SMALL["sets"], *sets)})


def trainings(ready: Plan) -> dict[str, Train]:
    """Return the stages that pretrain the systems of a plan, by label."""
    found = {}
    for cell, subsets in zip(ready.cells, ready.subsets, strict=True):
        stage = next((stage for stage in subsets[0].stages if isinstance(stage, Train)), None)
        if stage is not None:
            found[cell.system.label] = stage
    return found


def written(store: Store, stage: Train) -> dict[str, bytes]:
    """Return the files of an artefact, without manifests (its own and that of its start), which know the time."""
    return {name: data for name, data in tree(store.folder(stage)).items() if not name.endswith("manifest.json")}


@pytest.mark.slow
def test_points_are_rows_and_leave_the_training_as_it_is(tmp_path: Path) -> None:
    """Made on the way or asked for later: the same bytes; the last point is the row of a run without any."""
    plugins = load()
    plain, curve = Store(tmp_path / "plain" / "store"), Store(tmp_path / "curve" / "store")
    row = run(request(tmp_path / "plain"), plugins, plain, NullListener())
    outcome = run(request(tmp_path / "curve", *POINTS), plugins, curve, NullListener())
    assert [row["system"] for row in outcome.rows] == ["crop@pairs=4", *LABELS, "crop@init"]
    stages, (whole,) = trainings(outcome.plan), trainings(row.plan).values()
    assert stages["crop@pairs=4"].key == whole.key
    assert written(curve, whole) == written(plain, whole)
    rows = {row["system"]: row for row in outcome.rows}
    (expected,) = (made for made in row.rows if made["system"] == "crop@pairs=4")
    assert rows["crop@pairs=4"]["measures"] == expected["measures"]
    assert rows["crop@pairs=4"]["hash"] == expected["hash"]
    assert len({rows[label]["hash"] for label in ("crop@pairs=4", *LABELS)}) == 6
    assert not [*(curve.root / "work").iterdir()], "nothing is left of parts"

    later = run(request(tmp_path / "plain", *POINTS), plugins, plain, NullListener())
    ran = [step.stage for step in later.plan.steps if step.runs and isinstance(step.stage, Train)]
    assert {stage.name for stage in ran} == {"train_point"}, "the training itself is there"
    assert not [*(plain.root / "work").iterdir()]
    for label in LABELS:
        assert written(plain, stages[label]) == written(curve, stages[label]), label

    content = next(
        published.content for published in outcome.published if published.content["system"]["label"] == LABELS[2]
    )
    assert content["system"]["point"] == {"kind": "cooled", "share": 0.25, "cool": 0.4}
    assert content["system"]["budget"] == 4000
    (subset,) = content["tasks"]["mini/mrtydi/sw"].values()
    assert 1400 <= subset["metadata"]["train_point"]["tokens"] < 4000
    assert subset["keys"]["train_point"] == stages[LABELS[2]].key

    for published in outcome.published[:3]:
        options = ReplayOptions(tmp_path / "new", tmp_path / "again", corpus=SMALL["corpus"])
        again = prepared(published.content, options, plugins, curve)
        (cell,) = again.plan.cells
        assert cell.identity.hash == published.content["system"]["hash"]
        assert cell.system.label == published.content["system"]["label"]
        assert again.causes == ()


def test_a_plan_prices_what_lies_between_points(tmp_path: Path) -> None:
    """Points along a training cost what lies between them, branches what they take besides; later, all before them."""
    plugins, store = load(), Store(tmp_path / "store")
    ready = plan(request(tmp_path, *POINTS), plugins, store)
    units = {label: stage.cost.units for label, stage in trainings(ready).items()}
    assert units == pytest.approx(
        dict(zip(["crop@pairs=4", *LABELS], [2000, 500, 500, 400, 1000, 800], strict=True)), rel=1e-9
    )
    order = [step.stage for step in ready.steps if isinstance(step.stage, Train)]
    assert [getattr(stage, "share", 1.0) for stage in order] == [0.125, 0.25, 0.25, 0.5, 0.5, 1.0]
    assert [getattr(stage, "cool", None) for stage in order] == [None, None, 0.4, None, 0.4, None]
    assert plan(request(tmp_path), plugins, store).seconds < ready.seconds


@pytest.mark.slow
def test_a_resumed_plan_works_in_the_parts_of_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that ends between two points goes on from there: each step of the training is taken once."""
    plugins, store, taken = load(), Store(tmp_path / "store"), list[int]()
    step = loop._TrainingLoop.step

    def counted(self: Any) -> None:
        step(self)
        taken.append(self.progress.step)

    monkeypatch.setattr(loop._TrainingLoop, "step", counted)
    run(request(tmp_path, "curve.points=4"), plugins, store, NullListener())
    assert taken == list(range(1, len(taken) + 1)), "nothing is computed twice"


@pytest.mark.parametrize("reports", [True, False])
def test_a_trainer_that_cannot_stop_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reports: bool) -> None:
    """At the first step past a point where it tells its progress, else when it ends; nothing of it is kept."""
    original, steps = CropTrainer.train, list[float]()

    def deaf(self: CropTrainer, start: Path, shards: Path, job: TrainingJob, work: Workspace) -> Any:
        def advance(tokens: float) -> None:
            steps.append(tokens)
            if reports:
                work.advance(tokens)

        return original(self, start, shards, replace(job, until=None), replace(work, advance=advance))

    monkeypatch.setattr(CropTrainer, "train", deaf)
    plugins, store = load(), Store(tmp_path / "store")
    outcome = run(request(tmp_path, "curve.points=3"), plugins, store, NullListener())
    assert [row["system"] for row in outcome.rows] == ["crop@init"]
    assert {failure.cell.system.label for failure in outcome.failed} == {"crop@pairs=4", "crop@pairs=4@1k", HALF}
    assert all("cannot stop on the way" in failure.reason for failure in outcome.failed)
    assert (sum(steps[:-1]) < 1000 + max(steps)) == reports
    assert not [folder for folder in store.artefacts() if folder.parent.name.startswith("train")]


Usage = namedtuple("Usage", "total used free")


def test_a_disk_that_is_too_small_is_told_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the encoders of the points that are to be made; rows without points do not ask."""
    plugins, store = load(), Store(tmp_path / "store")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**9, 10**9, 1000))
    with pytest.raises(UsageError, check=fields(found="0.0 MB free", hint="--store")):
        run(request(tmp_path, *POINTS), plugins, store, NullListener())
    assert not [*store.artefacts()]


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        (("curve.points=20",), "every point has spent something"),
        (("curve.points=1",), "a whole number from 2"),
        (("curve.cool=0.2",), "--set curve.points=4"),
        (("curve.points=4", "curve.cooled=1"), "--set curve.cool=0.2"),
    ],
)
def test_points_that_cannot_be(tmp_path: Path, sets: tuple[str, ...], expected: str) -> None:
    """Before the first token; and settings that say nothing alone."""
    with pytest.raises(Exception, match=expected):
        plan(request(tmp_path, *sets), load(), Store(tmp_path / "store"))


@pytest.mark.slow
def test_a_training_that_diverges_ends_its_own_points_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Points before it are rows, those after it and the end are told as failed, and another method goes on."""
    original, seen = CropTrainer.loss, list[int]()

    def diverging(*arguments: Any) -> Any:
        seen.append(1)
        loss, metrics = original(*arguments)
        return loss * (math.nan if len(seen) > 6 else 1.0), metrics

    monkeypatch.setattr(CropTrainer, "loss", diverging)
    plugins, store = load(), Store(tmp_path / "store")
    outcome = run(request(tmp_path, "curve.points=4", methods=("crop", "ict")), plugins, store, NullListener())
    assert {failure.cell.system.label for failure in outcome.failed} == {"crop@pairs=4@2k", "crop@pairs=4"}
    assert all("training step 7 is nan" in failure.reason for failure in outcome.failed)
    rows = [row["system"] for row in outcome.rows]
    assert rows[:2] == ["crop@pairs=4@500", "crop@pairs=4@1k"]
    assert {"ict@pairs=4", "ict@pairs=4@500", "ict@pairs=4@1k", "ict@pairs=4@2k"} <= set(rows)


def test_points_are_tuned_as_rows_are(tmp_path: Path) -> None:
    """In a regime with training questions each point has its own fine-tuning."""
    plugins, store = load(), Store(tmp_path / "store")
    ready = plan(request(tmp_path, "curve.points=3", regimes=("english",)), plugins, store)
    starts = [step.stage.inputs["start"].name for step in ready.steps if step.stage.name == "tune"]
    assert sorted(starts) == ["init", "train", "train_point", "train_point"]


def test_a_point_is_compared_with_what_differs_told(tmp_path: Path) -> None:
    """A point and an end are told as such, and so is what each has seen; both have the start of the training."""
    plugins, store = load(), Store(tmp_path / "store")
    run(request(tmp_path, "curve.points=2"), plugins, store, NullListener())
    rows = {result.content.system.label: [result] for result in results(tmp_path / "results")}
    end, point = (ComparedSystem(label, [result.whole for result in rows[label]]) for label in ("crop@pairs=4", HALF))
    told = {sentence.partition(":")[0]: sentence for sentence in pair_warnings(end, point)}
    assert "0.5 of its budget, along" in told["point of the pretraining"]
    assert "tokens really seen in pretraining" in told
    assert role_of(rows[HALF]) == "contestant"
    assert {line.start for label, line in lineages(rows).items() if label != "crop@init"} == {"crop@init"}
