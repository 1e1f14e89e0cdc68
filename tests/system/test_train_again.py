"""A stored training whose log was made by other settings: a sentence, and the same weights when it is trained again."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.config.request import Request
from bench.pipeline.plan import plan
from bench.pipeline.run import run
from bench.plugins import load
from bench.store.graph import NullListener
from bench.store.store import Store
from bench.training.config import ENCODER, LOG

SMALL: dict[str, Any] = {
    "methods": ("crop",),
    "suites": ("mrtydi",),
    "tasks": ("sw",),
    "backbone": "scratch:1x32",
    "device": "cpu",
    "sets": ("prepare.vocabulary=800", "prepare.max_documents=20", "budget.steps=6", "compute.threads=1"),
}


def test_another_log_is_offered_and_changes_no_weight(
    tmp_path: Path, corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without `--again` nothing is trained, and one sentence says how the stored training was logged."""
    store, plugins = Store(tmp_path / "store"), load()
    request = Request(**SMALL, corpus=str(corpus), results=tmp_path / "results")
    outcome = run(request, plugins, store, NullListener())
    train = outcome.plan.subsets[0][0].by_name["train"]
    weights = (store.folder(train) / ENCODER / "model.safetensors").read_bytes()
    log = (store.folder(train) / LOG).read_bytes()

    other = replace(request, sets=(*request.sets, "train.probe_every=2"))
    offered = plan(other, plugins, store)
    assert not any(step.runs for step in offered.steps)
    (sentence,) = [warning for warning in offered.warnings if "--again" in warning]
    assert sentence == (
        f"crop on {corpus.name}, seed 0 is stored with a log by train.probe_every=200, not 2; its weights are the "
        "same; type --again to train it again"
    )
    again = replace(other, again=True)
    assert [step.stage.name for step in plan(again, plugins, store).steps if step.runs] == ["train"]
    assert store.state(train) == "cached", "a plan removes nothing"
    with monkeypatch.context() as patch:
        patch.setattr("bench.pipeline.run.execute", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            run(again, plugins, store, NullListener())
    assert (store.folder(train) / LOG).read_bytes() == log, "the old one stays until the new one is whole"
    assert [step.stage.name for step in plan(other, plugins, store).steps if step.runs] == ["train"], "it goes on"
    run(again, plugins, store, NullListener())
    assert (store.folder(train) / ENCODER / "model.safetensors").read_bytes() == weights
    assert (store.folder(train) / LOG).read_bytes() != log
    assert not [warning for warning in plan(other, plugins, store).warnings if "--again" in warning]
    assert not any(step.runs for step in plan(again, plugins, store).steps)
