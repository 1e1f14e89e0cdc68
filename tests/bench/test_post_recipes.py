"""What enters the keys of post-processing: which samples and fits are shared, and which never are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.config import Config, Resolved, RunConfig
from bench.dense import Contract
from bench.graph import Cost, Node, closure, node
from bench.post_recipes import PostRecipes
from bench.pretraining import Compute, Pretraining
from bench.sections import PostConfig
from bench.systems import System
from bench.types import Corpus, Item, Judgement, Leg, Method, Source

PLAIN = Contract()
PROMPTED = Contract(query_prompt="query: ", passage_prompt="passage: ")


def given(name: str) -> Node:
    """An input that somebody else makes."""

    def work(*_: Any) -> Mapping[str, Any]:
        """Never called."""
        raise AssertionError

    return node("encode", name, {"name": name}, work, Cost("encode", 1, 1))


def nodes(
    kind: str, asked: str = "sw", searched: str = "en", contract: Contract = PLAIN, seed: int = 0, **settings: Any
) -> tuple[list[Node], Node, Node]:
    """The fits of a leg, and its passages and queries after them."""
    run = RunConfig(post=PostConfig.model_validate({"kind": kind, **settings}))
    method = Method("x", "1", "", "", Config, contract=lambda _: contract)
    sample: Pretraining = Pretraining("scratch:1x32", "c", Source("c", "c/1", (), lambda: iter(())), "c", 1)
    system = System("x", method, Resolved(Config(), run, {}), Compute("cpu", 1)).processed(sample)
    items: Source[Item] = Source("i", "i/1", (), lambda: iter(()))
    judgements: Source[Judgement] = Source("j", "j/1", (), lambda: iter(()))
    leg = Leg("", items, judgements, Corpus("corpus", items, searched), asked)
    made = PostRecipes(system, seed, given("encoder"), contract, given("shards"), leg)
    *fits, passages, queries = made.nodes(given("passages"), given("queries"), given("leg"))
    return fits, passages, queries


def samples(fits: list[Node]) -> set[tuple[str, str]]:
    """Language and role of every sample that fits rest on."""
    found: list[Mapping[str, Any]] = [one.recipe.identity for one in closure(fits)]
    return {(one["sample"]["language"], one["role"]) for one in found if "sample" in one}


def test_one_fit_where_both_sides_are_alike() -> None:
    """One language, no prompts; with prompts the roles differ, and so do their means."""
    fits, passages, queries = nodes("shift", "sw", "sw")
    assert len(fits) == 1
    assert passages.inputs["fit"].key == queries.inputs["fit"].key == fits[0].key
    assert samples(fits) == {("sw", "passage")}
    prompted, passages, queries = nodes("shift", "sw", "sw", PROMPTED)
    assert samples(prompted) == {("sw", "passage"), ("sw", "query")}
    assert passages.inputs["fit"].inputs["sample"].recipe.identity["role"] == "passage"
    assert queries.inputs["fit"].inputs["sample"].recipe.identity["role"] == "query"


def test_over_all_languages() -> None:
    """Centring and whitening draw on the whole corpus, whatever the leg speaks, and so share one fit."""
    for kind in ("centre", "whiten"):
        fits, passages, _ = nodes(kind)
        assert samples(fits) == {("", "passage")}
        assert nodes(kind, "fi", "ja")[0][0].key == fits[0].key
        assert passages.recipe.identity["language"] == ""


def test_texts_that_say_their_own_language() -> None:
    """Every language of the corpus is fitted."""
    assert samples(nodes("shift", "", "")[0]) == {("", "passage")}
    turned, passages, queries = nodes("calibrate", "", "", pivot="en")
    assert samples(turned) == {("", "passage"), ("en", "passage")}
    assert (passages.recipe.identity["language"], queries.recipe.identity["language"]) == ("", "")


def test_only_the_language_that_is_turned_rests_on_the_pivot() -> None:
    """The pivot's own fit is that of shift-scale."""
    _, passages, queries = nodes("calibrate")
    _, plain, _ = nodes("shift-scale")
    assert passages.key == plain.key
    assert "pivot" not in passages.inputs["fit"].inputs
    assert set(queries.inputs["fit"].inputs) == {"sample", "pivot"}
    _, both, _ = nodes("calibrate", pivot="fi")
    assert "pivot" in both.inputs["fit"].inputs


def test_what_decides_a_fit() -> None:
    """Kind, sample and scale do; a seed does only where something is drawn."""
    ways: list[tuple[str, dict[str, Any]]] = [
        ("shift", {}),
        ("shift-scale", {}),
        ("shift-scale", {"sentences": 10}),
        ("shift-scale", {"scale_by": "var"}),
        ("calibrate", {}),
        ("calibrate", {"rotation": {"neighbours": 5}}),
    ]
    assert len({nodes(kind, **values)[2].key for kind, values in ways}) == len(ways)
    assert nodes("calibrate", seed=1)[2].key == nodes("calibrate", seed=2)[2].key
    drawn = {"init": "adversarial"}
    assert nodes("calibrate", seed=1, rotation=drawn)[2].key != nodes("calibrate", seed=2, rotation=drawn)[2].key
