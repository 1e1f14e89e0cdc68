"""A cross-encoder trained before it re-ranks: what it learns from, what enters its keys, what is refused."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.config.request import Request
from bench.core.errors import UsageError
from bench.pipeline import run as pipeline
from bench.pipeline.plan import Plan, plan
from bench.pipeline.systems.combined import TRAINED
from bench.plugins import load
from bench.store.graph import NullListener
from bench.store.stage import Stage
from bench.store.store import Store
from tests.conftest import cases

MRTYDI = Request(("bm25",), ("mrtydi",), tasks=("en",), regimes=("english",), rerank=TRAINED)
Planned = Callable[..., Plan]


@pytest.fixture
def planned(tmp_path: Path) -> Planned:
    def make(request: Request = MRTYDI, *sets: str, **changes: Any) -> Plan:
        changed = replace(request, sets=(*request.sets, *sets), **changes)
        return plan(changed, load(), Store(tmp_path / "store"))

    return make


def stages(plan: Plan, stage: str) -> dict[str, Stage]:
    return {step.stage.key: step.stage for step in plan.steps if step.stage.name == stage}


def keys(plan: Plan, *names: str) -> set[str]:
    return {key for name in names for key in stages(plan, name)}


def test_pairs_are_mined_learnt_and_used(planned: Planned) -> None:
    """BM25's negatives by default, or the pairs as they are; a row of the setting though BM25 has nothing to tune."""
    plan = planned()
    (cell,) = plan.cells
    assert (cell.system.label, cell.regime, cell.system.deterministic) == ("bm25+rerank", "english", False)
    assert [(refusal.system, refusal.suite) for refusal in plan.refused] == [("bm25", "mrtydi")]
    (reranking,), (training,), (mined,) = (stages(plan, stage).values() for stage in ("rerank", "train_cross", "mine"))
    assert reranking.inputs["trained"].key == training.key
    assert training.inputs["pairs"].key == mined.key
    assert training.inputs["begun"].key in stages(plan, "init")
    assert mined.inputs["pairs"].key in stages(plan, "pairs")
    assert not stages(plan, "tune")
    *names, reranked, scored = (item.name for item in plan.subsets[0][0].stages)
    assert (reranked, scored) == ("rerank", "score")
    assert {"pairs", "mine", "init", "train_cross", "search", "texts"} <= set(names)
    plain = planned(MRTYDI, "rerank.mine=none")
    assert not keys(plain, "mine", "pool")
    assert not keys(plain, "train_cross") & keys(planned(), "train_cross")
    assert plain.cells[0].identity.hash != planned().cells[0].identity.hash


@pytest.mark.parametrize(("change", "unchanged", "rekeyed"), cases("what-enters-keys"))
def test_what_enters_keys(planned: Planned, change: str, unchanged: tuple[str, ...], rekeyed: tuple[str, ...]) -> None:
    """What can change the bytes of a stage, and nothing else."""
    before, after = planned(), planned(MRTYDI, change)
    for stage in unchanged:
        assert keys(before, stage) == keys(after, stage) != set()
    for stage in rekeyed:
        assert not keys(before, stage) & keys(after, stage)


def test_trainings_are_shared_and_follow_each_other(planned: Planned) -> None:
    """One a seed, though BM25 has none, for all tasks of mini data; multilingual goes on from English."""
    plan = planned(tasks=("en", "sw"), seeds=(0, 1))
    assert [cell.seed for cell in plan.cells] == [0, 1]
    assert len(stages(plan, "train_cross")) == 2
    assert len(stages(plan, "mine")) == 1
    assert len(stages(plan, "rerank")) == 4
    plan = planned(regimes=("multilingual",))
    (last,) = (node.inputs["trained"] for node in stages(plan, "rerank").values())
    assert [last.name, last.inputs["begun"].name] == ["train_cross", "train_cross"]
    assert last.inputs["begun"].inputs["begun"].name == "init"


def test_without_pairs_nothing_is_trained(planned: Planned, tmp_path: Path) -> None:
    """The setting unsupervised has none, and says so; pairs of the user's do, and tune no encoder."""
    bare = replace(MRTYDI, methods=("bm25", "crop"), regimes=("unsupervised",))
    with pytest.raises(UsageError, match="unsupervised of mrtydi has no training pairs for --rerank trained; type"):
        planned(bare)
    both = planned(regimes=("unsupervised", "english"))
    assert [refusal.system for refusal in both.refused] == ["bm25+rerank", "bm25"]
    pairs = tmp_path / "own.tsv"
    pairs.write_text("".join(f"asked {at}\ttold {at}\n" for at in range(9)))
    trained = planned(bare, f"tune.data={pairs}")
    first = ("bm25", "crop", "crop@init")
    assert {cell.system.label for cell in trained.cells} == {*first, *(f"{name}+rerank" for name in first)}
    assert not stages(trained, "tune")
    assert len(stages(trained, "train_cross")) == 1  # whatever the first stage


def test_the_backbone_is_random_kept_or_a_ready_model(planned: Planned, tmp_path: Path) -> None:
    """BM25 trains nothing, yet options count; settings of a training change nothing of a ready model."""
    assert "scratch:1x32" in next(iter(stages(planned(backbone="scratch:1x32"), "init").values())).title
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "config.json").write_text("{}")
    trained = planned(MRTYDI, f"rerank.backbone={tmp_path / 'kept'}")
    assert not stages(trained, "init")
    assert any("which suits random weights and may undo what it knows" in warning for warning in trained.warnings)
    with pytest.raises(UsageError, match="expected a cross-encoder"):
        planned(MRTYDI, "rerank.backbone=./nowhere")
    for sets in ((), ("rerank.train.epochs=1", "rerank.mine=none")):
        (system,) = (cell.system for cell in planned(MRTYDI, *sets, rerank="some/model", regimes=()).cells[1:])
        assert system.choices["rerank"] == {"model": "some/model", "depth": 100}
        assert system.deterministic


def _model(folder: Path, weights: str) -> Path:
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_text(weights)
    return folder


def test_names_tell_re_rankers_apart(planned: Planned, tmp_path: Path) -> None:
    """By model or backbone and by what a profile does not say; what a ready model does not listen to is in no name."""
    one, other = (_model(tmp_path / name, name) for name in ("one", "other"))

    def row(*sets: str, **changes: Any) -> tuple[str, str]:
        (cell,) = (cell for cell in planned(MRTYDI, *sets, **changes).cells if "rerank" in cell.system.choices)
        return cell.system.label, cell.identity.hash

    ready = {"regimes": ()}
    rows = dict(
        [
            row(rerank=str(one), **ready),
            row(rerank=str(other), **ready),
            row("rerank.depth=10", rerank=str(one), **ready),
            row("rerank.depth=20", rerank=str(one), **ready),
            row(),
            row("rerank.train.epochs=1"),
            row("rerank.mine=none", "rerank.depth=10"),
            row(f"rerank.backbone={one}"),
            row(backbone=str(other)),
        ]
    )
    assert len(rows) == len(set(rows.values())) == 9
    names = [re.sub("-[0-9a-f]{8}(?=,|$)", "-DIGEST", label) for label in rows]
    assert names == [
        "bm25+rerank@model=one-DIGEST",
        "bm25+rerank@model=other-DIGEST",
        "bm25+rerank@model=one-DIGEST,depth=10",
        "bm25+rerank@model=one-DIGEST,depth=20",
        "bm25+rerank",
        "bm25+rerank@epochs=1.0",
        "bm25+rerank@depth=10,mine=none",
        "bm25+rerank@backbone=one-DIGEST",
        "bm25+rerank@backbone=other-DIGEST",
    ]
    plain = row(rerank=str(one), **ready)
    assert row("rerank.train.epochs=1", "rerank.mine=none", "rerank.depth=100", rerank=f"{one}/", **ready) == plain


def test_a_run_end_to_end(tmp_path: Path, tiny: Path, small: dict[str, Any]) -> None:
    """The result says what was learnt and how; R@100 stays where the top 100 change places; a second run reuses all."""
    documents = [json.loads(line) for line in (tiny / "corpus.jsonl").read_text().splitlines()]
    pairs = [{"query": " ".join(document["text"].split()[:4]), "positive": document["text"]} for document in documents]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    sets = ("rerank.train.epochs=0.5", "rerank.train.queries=2", "rerank.train.negatives=1")
    request = Request(
        ("bm25",), ("beir",), rerank=TRAINED, results=tmp_path / "results", store=tmp_path / "store", **small
    )
    request = replace(request, sets=(*request.sets, *sets, f"tune.data={tmp_path / 'own.jsonl'}"))
    store = Store(tmp_path / "store")
    outcome = pipeline.run(request, load(), store, NullListener())
    plain, reranked = outcome.rows
    name = "bm25+rerank@backbone=scratch-1x16,epochs=0.5,queries=2,negatives=1"
    assert (plain["system"], reranked["system"]) == ("bm25", name)
    assert plain["measures"]["R@100"] == reranked["measures"]["R@100"]
    content = outcome.published[1].content
    (subset,) = next(iter(content["tasks"].values())).values()
    (tuning,) = subset["tunings"]
    assert (tuning["model"], tuning["source"], tuning["config"]["mine"]) == ("re-ranker", "pairs of the user's", "bm25")
    assert "held_out" not in tuning
    assert subset["metadata"]["train_cross"]["questions"] == 20  # half an epoch of 40
    assert subset["metadata"]["rerank"]["pairs"] > 0
    assert [audit["corpus"] for audit in subset["audits"]] == [tuning["pairs"]]
    assert content["system"]["rerank"]["train"]["epochs"] == 0.5
    assert not any(step.runs for step in plan(request, load(), store).steps)
