"""Mining on the embedded world's Mr. TyDi: no negative is a judged positive, and no judgement of a test is opened."""

import json
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from bench.config.request import Request
from bench.data import mini
from bench.data.pairs.stored_pairs import StoredPairs
from bench.pipeline.encoders import Encoders
from bench.pipeline.fine_tunings import Tuning
from bench.pipeline.plan import Plan, plan
from bench.pipeline.stages.tune import Tune
from bench.plugins import load
from bench.store.graph import NullListener, make, steps
from bench.store.inputs import Inputs
from bench.store.store import Store
from bench.training.fine_tuning_config import FineTuningConfig
from bench.types import DataRequest, Judgement
from suites.tunings import languages, msmarco

retrieval = import_module("bench.data.mini.questions")  # the package has a function of that name
LANGUAGE = "sw"
LABEL = f"mrtydi/{LANGUAGE}:"


def planned(folder: Path, store: Store) -> Plan:
    """A plan of a tiny encoder's start, tuned for the test in one language."""
    corpus = folder / "corpus" / f"{LANGUAGE}.jsonl"
    corpus.parent.mkdir(exist_ok=True)
    rows = ({"id": one.id, "sentences": one.sentences} for one in mini.documents(LANGUAGE))
    corpus.write_text("".join(json.dumps(row) + "\n" for row in islice(rows, 40)), encoding="utf-8")
    request = Request(("crop",), ("mrtydi",), tasks=(LANGUAGE,), settings=("english",), backbone="scratch:1x32")
    sets = ("prepare.vocabulary=800", "budget.tokens=500", "compute.threads=1")
    request = replace(request, corpus=str(corpus.parent), device="cpu", sets=sets, results=folder / "results")
    return plan(request, load(), store)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for both miners, whose store has the encoder once."""
    return tmp_path_factory.mktemp("guarded")


@pytest.mark.slow
@pytest.mark.parametrize("miner", ["bm25", "self"])
def test_no_judged_positive_and_no_judgement_of_a_test(
    folder: Path, miner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the ids of the training judgements and the texts of the passages; every pair finds a negative."""
    opened: list[str] = []
    plain = retrieval._judgements

    def noted(settings: Any, language: str, split: str) -> Iterator[Judgement]:
        opened.append(split)
        yield from plain(settings, language, split)

    monkeypatch.setattr(retrieval, "_judgements", noted)
    store = Store(folder / "store")
    ready = planned(folder, store)
    (at,) = (at for at, cell in enumerate(ready.cells) if cell.system.untrained)
    tuned = ready.legs[at][0].by_name["tune"]
    assert isinstance(tuned, Tune)
    pairs = languages(DataRequest("mini"), msmarco, (LANGUAGE,))
    tuning = Tuning("mined", pairs, FineTuningConfig(mine=miner, mine_keep=5, steps=1), "ours")
    encoders = Encoders(ready.cells[at].system, 0, Inputs(store), load())
    mined = encoders.tuned(tuned.start, [tuning]).inputs["pairs"]
    for step in steps([mined], store):
        make(step.stage, store, NullListener())
    assert "test" not in opened
    found = StoredPairs(store.folder(mined))
    judged: dict[str, set[str]] = {}
    for row in mini.judgements(LANGUAGE, "train").read():
        judged.setdefault(f"{LABEL}{row.query}", set()).add(f"{LABEL}{row.document}")
    texts = {f"{LABEL}{item.id}": item.text for item in mini.passages(LANGUAGE).read()}
    assert {one.query.id for one in found} == judged.keys()
    for one in found:
        right = judged[one.query.id]
        assert one.negatives
        assert not {item.id for item in one.negatives} & right
        assert not {item.text for item in one.negatives} & {texts[name] for name in right}
    list(mini.judgements(LANGUAGE, "test").read())
    assert opened[-1] == "test", "the guard sees who opens them"
