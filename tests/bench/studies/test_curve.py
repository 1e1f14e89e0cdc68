"""Curves of pretrainings, from what is typed to what is drawn."""

import json
import shutil
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.config.request import Request, RequestVariant
from bench.core.errors import StoreError, UsageError
from bench.evaluation.learning_curves.trainings import CurveFile, CurvePoint, by_scoring, curve_files, read
from bench.plugins import Plugins, load
from bench.store.graph import NullListener
from bench.store.store import Store
from bench.studies.curve import CurvePlan, _Row, curves, prepare, run, without_point
from bench.testing import fields

Curved = Callable[..., tuple[CurvePlan, list[CurveFile]]]
Usage = namedtuple("Usage", "total used free")
LEXICON = 20
"""Words of the planted corpus."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BEIR folder of five passages, whose test cannot be read, and next to it documents to train on."""
    folder = tmp_path_factory.mktemp("curves") / "made"
    (folder / "qrels").mkdir(parents=True)
    texts = {"p1": "red red red", "p2": "red blue blue blue", "p3": "green", "p4": "white", "p5": "black"}
    rows = [{"_id": name, "title": "", "text": text} for name, text in texts.items()]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    queries = {"second": "red", "last": "red", "none": "red"}
    (folder / "queries.jsonl").write_text(
        "".join(json.dumps({"_id": name, "text": text}) + "\n" for name, text in queries.items())
    )
    # p2 is found second; of p3, p4 and p5, which do not match, p5 comes first by id, so p3 is the last of five
    judged = {"second": "p2\t1", "last": "p3\t1", "none": "p1\t0"}
    lines = "".join(f"{query}\t{text}\n" for query, text in judged.items())
    (folder / "qrels" / "dev.tsv").write_text(f"query-id\tcorpus-id\tscore\n{lines}")
    (folder / "qrels" / "test.tsv").write_bytes(b"\xff\xfe no judgements")
    long = folder.with_name("long")
    long.mkdir()
    sentences = [f"word{at % LEXICON} word{at * 3 % LEXICON} word{at * 7 % LEXICON} red blue." for at in range(60)]
    documents = [
        {"id": str(at), "lang": "en", "title": "", "sentences": sentences[at : at + 4]}
        for at in range(len(sentences) - 4)
    ]
    (long / "en.jsonl").write_text("".join(json.dumps(document) + "\n" for document in documents))
    return folder


@pytest.fixture
def curved(place: Path, plugins: Plugins) -> Curved:
    """Draw curves on the folder's dev part; what is trained is kept for other tests, where none has its own store."""

    def call(
        methods: str, *sets: str, guarded: Plugins = plugins, kept: Path | None = None, **options: Any
    ) -> tuple[CurvePlan, list[CurveFile]]:
        usual = ("prepare.vocabulary=512", "budget.tokens=2000", "data.language=en", "compute.threads=1")
        trained = methods != "bm25"
        request = Request(
            tuple(methods.split(",")),
            ("beir",),
            options.pop("tasks", (f"{place}:dev",)),
            sets=(*(usual if trained else usual[2:3]), *sets),
            backbone="scratch:1x16" if trained else None,
            corpus=str(place.with_name("long")) if trained else None,
            **options,
        )
        store = Store(kept or place.with_name("store"))
        ready = prepare(request, guarded, store)
        return ready, run(ready, guarded, store, NullListener())

    return call


def test_what_is_not_trained_is_a_level_line_by_hand(curved: Curved) -> None:
    """Five passages: rank 2 is 1 − 1/log2(6), rank 5 is 1 − log2(5)/log2(6), nothing relevant is 0; no test is read."""
    _, files = curved("bm25")
    ((scoring, (bm25,)),) = by_scoring(files).items()
    assert (bm25.kind, bm25.seed, len(bm25.points), scoring.measure) == ("level", 0, 1, "nDCG@10")
    assert scoring.strata[0].queries == ("second", "last", "none")
    assert bm25.points[0].values["LogRank"] == pytest.approx(
        (1 - 1 / 2.5849625, 1 - 2.3219281 / 2.5849625, 0), abs=1e-7
    )
    assert bm25.points[0].values["nDCG@10"] == pytest.approx((0.6309298, 0, 0), abs=1e-7)
    (lines,) = curves(files)
    assert lines.picture("LogRank").splitlines()[-1] == "  a bm25 (not trained)"
    assert lines.remarks == ("bm25: not trained, so drawn and not compared",)
    assert lines.compared == ()


def test_a_training_is_a_curve(curved: Curved, tmp_path: Path) -> None:
    """Start, points and row of each seed; cooled ones apart; files give the same curves, and no result is written."""
    ready, files = curved("bm25,crop", "curve.points=3", "curve.cool=0.2", seeds=(0, 1), results=tmp_path / "results")
    trainings = {(item.training.system, item.training.kind, item.training.seed): item.training for item in files}
    assert trainings.keys() == {
        ("bm25", "level", 0),
        *(("crop", kind, seed) for kind in ("along", "cooled") for seed in (0, 1)),
    }
    shares = {"along": [0, 0.25, 0.5, 1], "cooled": [0, 0.3, 0.6, 1]}
    for (_, kind, seed), training in trainings.items():
        if kind == "level":
            continue
        assert [point.share for point in training.points] == pytest.approx(shares[kind])
        assert [point.label for point in training.points][::3] == ["crop@init", "crop"]
        assert training.points[0].tokens == 0
        spent = [point.tokens or 0.0 for point in training.points]
        assert spent == sorted(spent)
        assert spent[-1] >= 2000
        assert (training.budget, training.unit, training.backbone) == (2000, "tokens", "scratch:1x16")
        assert all(len(point.values["LogRank"]) == 3 for point in training.points)
        other = trainings["crop", "along" if kind == "cooled" else "cooled", seed]
        assert (training.points[0], training.points[-1]) == (other.points[0], other.points[-1])
    assert trainings["crop", "along", 0].start != trainings["crop", "along", 1].start
    assert all(task.id.endswith("@dev") for cell in ready.plan.cells for task in cell.tasks)
    (lines,) = curves(files)
    assert list(lines.lines) == ["bm25", "crop", "crop, cooled"]
    assert [part.kind for part in lines.compared] == ["along", "along", "cooled", "cooled"]
    assert any("fewer than 3 seeds of crop (2); crop, cooled (2)" in sentence for sentence in lines.remarks)
    kept = sorted(file.write(tmp_path / "curves") for file in files)
    assert curve_files(tmp_path / "curves") == kept
    (again,) = curves(map(read, kept))
    assert again.table("LogRank").shown() == lines.table("LogRank").shown()
    assert not list(tmp_path.rglob("result.json"))
    again_ready, same = curved("bm25,crop", "curve.points=3", "curve.cool=0.2", seeds=(0, 1))
    assert not any(step.runs for step in again_ready.plan.steps)
    assert same == files


def test_what_cannot_be_drawn_is_refused(curved: Curved, place: Path) -> None:
    """Each with what to type; a system that is made of others is left out, and the rest goes on."""
    refused: list[tuple[str, dict[str, Any], str]] = [
        ("bm25", {"tasks": (str(place),)}, "a test"),
        ("bm25", {"regimes": ("unsupervised", "english")}, "--regime unsupervised,english; a curve is of one"),
        ("", {}, "no method"),
        ("bm25+crop", {"tasks": (f"{place}:dev",)}, "bm25\\+crop"),
    ]
    for methods, options, message in refused[:3]:
        with pytest.raises(UsageError, match=message):
            curved(methods, **options)
    ready, files = curved("bm25,crop,bm25+crop", "curve.points=2", "fuse.how=rrf")
    assert [sentence for sentence in ready.left_out if sentence.startswith("bm25+crop+fuse@how=rrf has no curve")]
    assert {item.training.system for item in files} == {"bm25", "crop"}
    with pytest.raises(UsageError, check=fields(found="axis 'hours'", expected="tokens, steps, flops, seconds")):
        curves(files, "hours")
    with pytest.raises(UsageError, check=fields(found="--forecast 1", expected="a number above 1")):
        curves(files, beyond=1)


@pytest.mark.parametrize(("fault", "reason"), [("", "cannot stop on the way"), ("nan", "is nan")])
def test_a_training_that_fails_spares_the_others(
    curved: Curved, dense: Any, with_methods: Any, fault: str, reason: str
) -> None:
    """A trainer without `fit`, and one that diverges: its points say why, the start and other curves are there."""
    sets = ("curve.points=2", *([f'method.fault="{fault}"'] if fault else []))
    _, files = curved("bm25,dense" if not fault else "dense", *sets, guarded=with_methods(dense()))
    (lines,) = curves(files)
    broken = next(item.training for item in files if item.training.method == "dense")
    start, *points = broken.points
    assert start.values.keys() == {"nDCG@10", "LogRank"}
    assert len(points) == 2
    for point in points:
        assert not point.values
        assert reason in point.failed
    assert sum("has no value" in sentence for sentence in lines.remarks) == 2
    assert lines.picture("LogRank")
    assert lines.compared == ()


def variants(**options: Any) -> tuple[RequestVariant, ...]:
    """Crop, and ict with other options, as a file has them that names no method above its variants."""
    return RequestVariant("a", {"methods": "crop"}), RequestVariant("b", {"methods": "ict", **options})


def test_variants_alone_are_curves(curved: Curved) -> None:
    """Nothing above them names a method; their points are those of the rows that `bench run` would make."""
    _, files = curved("", "curve.points=2", variants=variants())
    assert [item.training.system for item in files] == ["crop", "ict"]
    assert [point.label for point in files[1].training.points] == ["ict@init", "ict@1k", "ict"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"regimes": "english"}, "--regime unsupervised,english; a curve is of one"),
        ({"suites": "mrtydi", "tasks": "sw"}, "--suite beir,mrtydi; a curve is of one"),
        ({"data": "official"}, "--data mini,official; a curve is of one"),
    ],
)
def test_variants_on_another_scoring_are_refused(
    curved: Curved, tmp_path: Path, options: dict[str, str], told: str
) -> None:
    """Curves of two regimes differ in more than their methods: before any work."""
    with pytest.raises(UsageError, match=told):
        curved("", "curve.points=2", variants=variants(**options), kept=tmp_path / "store")
    assert not [*(tmp_path / "store").glob("artefacts/*")]


def test_variants_on_other_questions_are_refused(tmp_path: Path, plugins: Plugins) -> None:
    """Before any work, too, with what to type."""
    on_fi = RequestVariant("b", {"methods": "bm25", "tasks": "fi", "sets": ("method.k1=2",)})
    request = Request(("bm25",), ("mrtydi",), ("sw",), variants=(RequestVariant("a", {}), on_fi))
    with pytest.raises(UsageError, check=fields(found="on other dev questions than bm25", hint="--task NAME")):
        prepare(request, plugins, Store(tmp_path / "store"))


def test_points_belong_to_trainings_that_are_tuned_as_they_are(tmp_path: Path, plugins: Plugins) -> None:
    """Two variants of a fine-tuning after one pretraining: each has its own points and its own start."""
    tuned = tuple(RequestVariant(name, {"sets": (f"tune.epochs={name}",)}) for name in "13")
    common: dict[str, Any] = {"regimes": ("english",), "backbone": "scratch:1x16", "variants": tuned}
    sets = ("prepare.vocabulary=800", "budget.tokens=4000", "curve.points=3")
    ready = prepare(Request(("crop",), ("mrtydi",), ("sw",), sets=sets, **common), plugins, Store(tmp_path / "store"))
    epochs: dict[str, set[float]] = {}
    labels: dict[str, list[str]] = {}
    for cell in ready.plan.cells:
        if not cell.system.untrained:
            epochs.setdefault(without_point(cell), set()).add(cell.system.resolved.run.tune.epochs)
            labels.setdefault(without_point(cell), []).append(cell.system.label)
    assert sorted(epochs.values(), key=min) == [{1}, {3}]
    assert [sorted(group) for group in labels.values()] == [["crop", "crop@1k", "crop@2k"]] * 2
    rows = [
        _Row(cell, subsets, CurvePoint(cell.system.label, 0.0, None, None, None, None))
        for cell, subsets in zip(ready.plan.cells, ready.plan.subsets, strict=True)
    ]
    starts = [row for row in rows if row.cell.system.untrained]
    for row in rows:
        (start,) = (start for start in starts if row.begins(start))
        assert start.cell.system.resolved.run.tune.epochs == row.cell.system.resolved.run.tune.epochs


def test_systems_of_one_label_are_called_as_rows_are(curved: Curved) -> None:
    """Two budgets of one method: the lines, the sentences, the CSV and the JSON tell which is which."""
    budgets: tuple[dict[str, Any], ...] = ({"methods": "crop"}, {"methods": "crop", "sets": ("budget.tokens=3000",)})
    two = tuple(RequestVariant(name, options) for name, options in zip("ab", budgets, strict=True))
    _, files = curved("", "curve.points=2", variants=two)
    (lines,) = curves(files)
    names = [f"crop-{item.training.hash[:8]}" for item in files]
    assert len({*names}) == 2
    assert list(lines.lines) == names
    assert [part.bands.scores.methods for part in lines.compared[::2]] == [(name,) for name in names]
    assert [item["system"] for item in lines.as_json()["trainings"]] == names
    assert {row[5] for row in lines.records().rows} == {*names}


def test_a_training_that_stops_is_drawn_up_to_there(curved: Curved) -> None:
    """Nobody has trained to a point past the stop: it has no value and says why, and the end is not drawn there."""
    sets = ("curve.points=4", "train.stop_when=collapsed", "method.learning_rate=0.5", "budget.tokens=60000")
    _, (file,) = curved("ict", *sets)
    *reached, end = file.training.points
    assert (end.tokens or 0) < 60_000 * 0.9
    assert end.failed.startswith(f"stopped at {100 * (end.tokens or 0) / 60_000:.3g} % of its budget: vectors fall")
    assert not end.values
    at_stop = (end.tokens or 0) / 60_000
    assert [bool(point.values) for point in reached] == [point.share < at_stop for point in reached]
    (lines,) = curves([file])
    assert max(point.x for point in lines.chart("LogRank").lines[0].points) < (end.tokens or 0)
    assert lines.table("LogRank").shown()[0][-1] == "—"


def test_again_trains_again(curved: Curved, tmp_path: Path) -> None:
    """What is stored with another log is made anew, once, as by `bench run`."""
    curved("crop", "curve.points=2", kept=tmp_path)
    sets = ("curve.points=2", "train.probe_every=1")
    ready, _ = curved("crop", *sets, again=True, kept=tmp_path)
    assert {stage.name for stage in ready.plan.again} == {"train", "train_point"}
    ready, _ = curved("crop", *sets, again=True, kept=tmp_path)
    assert ready.plan.again == ()


def test_what_cannot_be_written_or_kept_is_told_before_any_work(
    curved: Curved, place: Path, tmp_path: Path, plugins: Plugins, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that is a file, and a disk without room for the points' encoders."""
    store = Store(tmp_path / "store")
    ready = prepare(Request(("bm25",), ("beir",), (f"{place}:dev",), sets=("data.language=en",)), plugins, store)
    with pytest.raises(StoreError, match="--out"):
        run(ready, plugins, store, NullListener(), place / "corpus.jsonl")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**9, 10**9, 1000))
    with pytest.raises(UsageError, check=fields(hint="--store")):
        curved("crop", "curve.points=2", kept=store.root)
    assert not [*store.artefacts()]


def test_a_folder_of_checkpoints_is_a_curve_of_steps(curved: Curved, tmp_path: Path, place: Path) -> None:
    """Two encoders of a training as checkpoint-10 and checkpoint-40; their values are those of these points."""
    _, files = curved("crop", "curve.points=2", kept=tmp_path / "store")
    ours = files[0].training.points
    encoders = sorted(
        (tmp_path / "store" / "artefacts").glob("train*/*/encoder"), key=lambda path: path.stat().st_mtime
    )
    for steps, encoder in zip((10, 40), encoders, strict=True):
        shutil.copytree(encoder, tmp_path / "mine" / f"checkpoint-{steps}")
    request = Request((str(tmp_path / "mine"),), ("beir",), (f"{place}:dev",), sets=("data.language=en",))
    store = Store(tmp_path / "store")
    ready = prepare(request, load({}), store)
    (file,) = run(ready, load({}), store, NullListener())
    training = file.training
    assert (training.system, training.kind, training.unit, training.budget) == ("mine", "along", "steps", 40)
    assert [(point.label, point.share, point.steps) for point in training.points] == [
        ("pretrained@mine-10", 0.25, 10),
        ("pretrained@mine-40", 1.0, 40),
    ]
    assert [point.values["LogRank"] for point in training.points] == [point.values["LogRank"] for point in ours[1:]]
    with pytest.raises(UsageError, check=fields(found="no point of mine whose tokens", hint="--axis steps")):
        curves([file])[0].picture("LogRank")
    (lines,) = curves([file], "steps")
    assert [point.x for point in lines.chart("LogRank").lines[0].points] == [10, 40]


def test_unlike_shards_are_said_and_not_compared(curved: Curved) -> None:
    """Two vocabularies of one corpus: the sentence names the setting, and no pair is compared."""
    sizes: tuple[dict[str, Any], ...] = ({"methods": "crop"}, {"methods": "msm", "sets": ("prepare.vocabulary=700",)})
    _, files = curved("", "curve.points=2", variants=tuple(map(RequestVariant, "ab", sizes)))
    (lines,) = curves(files)
    assert all(not part.bands.pairs for part in lines.compared)
    (remark,) = (remark for remark in lines.remarks if "unlike" in remark)
    assert remark.startswith("the curves have unlike prepare.vocabulary (")
    assert "700" in remark
