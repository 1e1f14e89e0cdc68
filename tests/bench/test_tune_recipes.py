"""What enters the keys of tunings: pairs as they are or mined, from which start; and a run from end to end."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from bench import pipeline
from bench.config import Config, resolve
from bench.data.pairs import with_dev
from bench.dense import Contract
from bench.errors import PluginError
from bench.graph import Cost, Node, Quiet, closure, node
from bench.plugins import Plugins, load
from bench.pretraining import Compute
from bench.profiles import profile
from bench.recipes import Recipes
from bench.request import Request
from bench.store import Store
from bench.systems import System
from bench.tune import TuneConfig
from bench.tune_recipes import TuneRecipes
from bench.tunings import Tuning
from bench.types import Item, Method, Source, TrainingPair

pairs: Source[TrainingPair] = Source("p", "p/1", (), lambda: iter(()))


@pytest.fixture
def recipes(tmp_path: Path) -> Callable[..., TuneRecipes]:
    """Make the recipes of a dense system."""

    def make(seed: int = 0, plugins: Plugins | None = None, *sets: str) -> TuneRecipes:
        method = load().method("crop")
        system = System("crop", method, resolve([method], profile=profile(), sets=sets)["crop"], Compute("cpu", 1))
        return TuneRecipes(Recipes(Store(tmp_path / "store"), load(), []), system, seed, plugins)

    return make


def start() -> Node:
    """An encoder that somebody else makes."""

    def work(*_: Any) -> dict[str, Any]:
        """Never called."""
        raise AssertionError

    return node("train", "start", {"name": "start"}, work, Cost("train", 1, 1))


def tuning(**values: Any) -> Tuning:
    """A fine-tuning."""
    return Tuning("p", pairs, TuneConfig(**values), "a paper")


def stages(target: Node) -> list[str]:
    """The stages that a node rests on, each as often as it stands there."""
    return sorted(one.recipe.stage for one in closure([target]))


def test_without_mining_the_pairs_are_learnt_from(recipes: Callable[..., TuneRecipes]) -> None:
    """And how negatives would be mined is no part of the key."""
    plain = recipes().tuned(start(), [tuning()])
    assert stages(plain) == ["pairs", "train", "tune"]
    assert recipes().tuned(start(), [tuning(mine_keep=3, mine_margin=0.5, mine_to=7)]).key == plain.key
    assert recipes().tuned(start(), [tuning(epochs=1.0)]).key != plain.key


@pytest.mark.parametrize("miner", ["none", "bm25", "self"])
def test_dev_pairs_are_part_of_the_key(recipes: Callable[..., TuneRecipes], miner: str) -> None:
    """Weights may be chosen by them; nothing is mined from them, and every tuning of two has them."""
    held: Source[TrainingPair] = Source("dev", "dev/1", (), lambda: iter(()))
    own = replace(tuning(mine=miner), pairs=with_dev(pairs, held))
    plain, chosen = (recipes().tuned(start(), [one]) for one in (tuning(mine=miner), own))
    assert plain.key != chosen.key
    other = replace(own, pairs=with_dev(pairs, replace(held, reader="dev/2")))
    assert recipes().tuned(start(), [other]).key != chosen.key
    assert chosen.inputs["dev"].recipe.stage == "pairs"
    tunes = [one for one in closure([chosen]) if one.recipe.stage == "tune"]
    assert {one.inputs["dev"].key for one in tunes} == {chosen.inputs["dev"].key}
    assert len(tunes) == (2 if miner == "self" else 1)
    pools = [one for one in closure([chosen]) if one.recipe.stage == "pool"]
    assert chosen.inputs["dev"].key not in {one.inputs["pairs"].key for one in pools}


def test_a_retriever_mines(recipes: Callable[..., TuneRecipes]) -> None:
    """It searches the pool of the pairs, whatever the seed and the system; the config says what is tuned."""
    mined = recipes().tuned(start(), [tuning(mine="bm25")])
    assert stages(mined) == ["mine", "mine_index", "mine_search", "pairs", "pool", "train", "tune"]
    pairs_of = mined.inputs["pairs"]
    assert recipes(1).tuned(start(), [tuning(mine="bm25", epochs=1.0)]).inputs["pairs"].key == pairs_of.key
    assert mined.inputs["start"].recipe.stage == "train"


def test_an_encoder_mines_for_itself(recipes: Callable[..., TuneRecipes]) -> None:
    """The first tuning is the one without mining; the second begins from the same start, on what the first mined."""
    plain = recipes().tuned(start(), [tuning()])
    twice = recipes().tuned(start(), [tuning(mine="self")])
    assert stages(twice) == [
        "mine",
        "mine_encode",
        "mine_encode",
        "mine_search",
        "pairs",
        "pool",
        "train",
        *["tune"] * 2,
    ]
    assert twice.inputs["start"].key == start().key
    vectors = [twice.inputs["pairs"].inputs[name] for name in ("queries", "passages")]
    assert {one.inputs["encoder"].key for one in vectors} == {plain.key}
    assert [one.recipe.identity["role"] for one in vectors] == ["query", "passage"]
    assert recipes(1).tuned(start(), [tuning(mine="self")]).inputs["pairs"].key != twice.inputs["pairs"].key


def test_the_tuned_encoder_reads_as_it_was_tuned(recipes: Callable[..., TuneRecipes]) -> None:
    """Pooling, lengths and similarity of all tunings so far; settings for the test change nothing."""
    steps = [tuning(query_tokens=40), tuning(mine="self", pooling="cls", similarity="dot", passage_tokens=50)]
    mined = recipes().tuned(start(), steps).inputs["pairs"]
    read = {role: dict(mined.inputs[role].recipe.identity["contract"]) for role in ("queries", "passages")}  # type: ignore[arg-type]  # JSON
    assert (read["queries"]["query_length"], read["passages"]["passage_length"]) == (40, 50)
    assert {one["pooling"] for one in read.values()} == {"cls"}
    assert mined.inputs["run"].recipe.identity["similarity"] == "dot"
    other = recipes(0, None, "encode.query_prompt=query: ").tuned(start(), steps)
    assert other.inputs["pairs"].key == mined.key


@pytest.mark.parametrize("miner", ["bm25", "self"])
def test_every_rule_of_mining_is_part_of_the_key(recipes: Callable[..., TuneRecipes], miner: str) -> None:
    """And no two of them are taken for each other; only how deep it goes makes another search."""
    ways: list[dict[str, Any]] = [{}, {"mine_from": 2}, {"mine_to": 50}, {"mine_margin": 0.9}, {"mine_keep": 5}]
    found = [recipes().tuned(start(), [tuning(mine=miner, **values)]) for values in ways]
    assert len({one.key for one in found}) == len(ways)
    assert len({one.inputs["pairs"].inputs["run"].key for one in found}) == 2


@pytest.mark.parametrize("miner", ["bm25", "self"])
def test_no_judgement_of_a_test_is_near(recipes: Callable[..., TuneRecipes], miner: str) -> None:
    """Mining rests on pairs and encoders alone: neither a leg nor a corpus of a task is read before a tuning ends."""
    assert not {"read", "validate", "score", "texts"} & set(stages(recipes().tuned(start(), [tuning(mine=miner)])))


def test_a_method_that_cannot_index(recipes: Callable[..., TuneRecipes]) -> None:
    """Whoever is called bm25 must have a retriever; the plugins that are given are asked, nobody else."""
    found = load()
    dense = Method("bm25", "1", "", "", Config, contract=lambda _: Contract())
    shelf = MappingProxyType({**found.methods, "bm25": replace(found.methods["bm25"], value=dense)})
    with pytest.raises(PluginError, match="bm25 has no retriever"):
        recipes(0, replace(found, methods=shelf)).tuned(start(), [tuning(mine="bm25")])


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("miner", ["bm25", "self"])
def test_mined_pairs_end_to_end(tmp_path: Path, miner: str) -> None:
    """A task of the embedded world after a tuning on mined pairs; no negative is a positive; nothing is made again."""
    from bench.data.stored_pairs import Pairs
    from bench.mini import documents

    corpus = tmp_path / "corpus" / "en.jsonl"
    corpus.parent.mkdir()
    rows = ({"id": one.id, "sentences": one.sentences, "title": one.title} for one in documents("en"))
    corpus.write_text("".join(json.dumps(row) + "\n" for row in islice(rows, 100)), encoding="utf-8")
    sets = ("prepare.vocabulary=1500", "budget.tokens=2000", "tune.steps=2", f"tune.mine={miner}", "tune.mine_keep=3")
    places = {"corpus": str(corpus.parent), "store": tmp_path / "store", "results": tmp_path / "results"}
    fixed = {"tasks": ("en",), "settings": ("english",), "backbone": "scratch:1x32", "device": "cpu"}
    request = Request(("crop",), ("mrtydi",), sets=sets, **fixed, **places)  # type: ignore[arg-type]  # of several types
    outcome = pipeline.run(request, load(), Store(tmp_path / "store"), Quiet())
    assert [row["system"] for row in outcome.rows] == ["crop", "crop@init"]
    (leg,) = outcome.plan.legs[0]
    mined = leg.by_stage["mine"]
    found = Pairs(Store(tmp_path / "store").folder(mined.recipe))
    before = Pairs(Store(tmp_path / "store").folder(mined.inputs["pairs"].recipe))
    assert [one.query for one in found] == [one.query for one in before]
    assert found.negatives.tolist() == [3] * len(before)
    right: dict[str, set[Item]] = {}
    for one in before:
        right.setdefault(one.query.text, set()).update(one.positives)
    assert not any(right[one.query.text] & set(one.negatives) for one in found)
    again = pipeline.plan(request, load(), Store(tmp_path / "store"))
    assert not [step.node.recipe.title for step in again.steps if step.runs]
