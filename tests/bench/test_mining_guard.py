"""Mining on the embedded world's Mr. TyDi: no negative is a judged positive, and no judgement of a test is opened."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from bench import mini, pipeline
from bench.data.stored_pairs import Pairs
from bench.graph import Quiet, make, steps
from bench.mini import retrieval
from bench.plugins import load
from bench.recipes import Recipes
from bench.request import Request
from bench.store import Store
from bench.tune import TuneConfig
from bench.tune_recipes import TuneRecipes
from bench.tunings import Tuning
from bench.types import DataRequest, Judgement
from suites.tunings import languages, msmarco

LANGUAGE = "sw"
LABEL = f"mrtydi/{LANGUAGE}:"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The splits whose judgements somebody opens from now on."""
    found: list[str] = []
    plain = retrieval._judgements

    def noted(settings: Any, language: str, split: str) -> Iterator[Judgement]:
        found.append(split)
        yield from plain(settings, language, split)

    monkeypatch.setattr(retrieval, "_judgements", noted)
    return found


def planned(tmp_path: Path, store: Store) -> pipeline.Plan:
    """A plan of a tiny encoder's start, tuned for the test in one language."""
    corpus = tmp_path / "corpus" / f"{LANGUAGE}.jsonl"
    corpus.parent.mkdir()
    rows = ({"id": one.id, "sentences": one.sentences} for one in mini.documents(LANGUAGE))
    corpus.write_text("".join(json.dumps(row) + "\n" for row in islice(rows, 40)), encoding="utf-8")
    request = Request(("crop",), ("mrtydi",), tasks=(LANGUAGE,), settings=("english",), backbone="scratch:1x32")
    sets = ("prepare.vocabulary=800", "budget.tokens=500")
    request = replace(request, corpus=str(corpus.parent), device="cpu", sets=sets, results=tmp_path / "results")
    return pipeline.plan(request, load(), store)


@pytest.mark.slow
@pytest.mark.parametrize("miner", ["bm25", "self"])
def test_no_judged_positive_and_no_judgement_of_a_test(tmp_path: Path, opened: list[str], miner: Any) -> None:
    """Held against the training judgements by id and against the passages by text; every pair finds a negative."""
    store = Store(tmp_path / "store")
    ready = planned(tmp_path, store)
    (at,) = (at for at, cell in enumerate(ready.cells) if cell.system.untrained)
    start = ready.legs[at][0].by_stage["tune"].inputs["start"]
    pairs = languages(DataRequest("mini"), msmarco, (LANGUAGE,))
    tuning = Tuning("mined", pairs, TuneConfig(mine=miner, mine_keep=5, steps=1), "ours")
    recipes = TuneRecipes(Recipes(store, load(), []), ready.cells[at].system, 0, load())
    mined = recipes.tuned(start, [tuning]).inputs["pairs"]
    for step in steps([mined], store):
        make(step.node, store, Quiet())
    assert "test" not in opened
    found = Pairs(store.folder(mined.recipe))
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
