"""The papers' recipes: every printed value is a setting that there is, and what a paper prints holds together."""

from __future__ import annotations

import pytest

from bench.plugins import load
from bench.training.fine_tuning_config import FineTuningConfig
from bench.types import DataRequest, FineTuning

RECIPES = [
    (suite.name, setting, name, at, one)
    for suite in map(load().suite, load().suites)
    for setting, named in suite.recipes.items()
    for name, stages in named.items()
    for at, one in enumerate(stages)
]


@pytest.mark.parametrize(("suite", "setting", "name", "at", "one"), RECIPES)
def test_printed_values_are_settings(suite: str, setting: str, name: str, at: int, one: FineTuning) -> None:
    """Names, types and limits are those of `tune.*`; where it comes from is said."""
    FineTuningConfig(**one.values)
    assert one.source


def test_recipes_as_printed() -> None:
    """MSM's two stages on Mr. TyDi, DPR's comparison, XTREME-R's small batches of four times four."""
    plugins = load()
    english, own = plugins.suite("mrtydi").recipes["multilingual"]["msmarco"]
    assert [(one.values["epochs"], one.values["pairs"], one.values["learning_rate"]) for one in (english, own)] == [
        (3.0, 64, 2e-5),
        (40.0, 128, 1e-5),
    ]
    assert (english.values["similarity"], english.values["temperature"], english.values["tied"]) == ("dot", 1.0, False)
    (lareqa,) = plugins.suite("lareqa").recipes["english"]["squad"]
    assert (lareqa.values["loss"], lareqa.values["pairs"], lareqa.values["accumulate"]) == ("xtreme-r", 4, 4)
    (contriever,) = plugins.suite("beir").recipes["english"]["msmarco"]
    assert (contriever.values["optimiser"], contriever.values["temperature"], contriever.values["steps"]) == (
        *("asam", 0.05),
        20_000,
    )


@pytest.mark.parametrize("suite", ["mrtydi", "xor-retrieve", "mkqa", "lareqa", "beir"])
def test_mini_pairs_stand_for_all_recipes(suite: str) -> None:
    """On mini data English pairs are the embedded world's, whatever the recipe is called."""
    recipes = load().suite(suite).recipes["english"]
    for stages in recipes.values():
        (one,) = stages
        assert one.pairs is not None
        first = next(one.pairs(DataRequest("mini")).read())
        assert first.query.language in ("", "en")
        assert first.positives
