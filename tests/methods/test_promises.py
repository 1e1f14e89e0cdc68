"""What all our methods have in common: presets for every profile, a search space, and one budget."""

from __future__ import annotations

import pytest

from bench.config import check_preset, resolve
from bench.plugins import load
from bench.profiles import PROFILES, profile
from bench.types import Method

METHODS = {name: owned.value for name, owned in load().methods.items()}
TRAINED = [name for name, method in METHODS.items() if method.trains]


def test_the_methods_are_there() -> None:
    """The seven, and the baselines."""
    seven = {"bm25", "ict", "crop", "ccp", "msm", "auto-mlm", "contriever"}
    assert seven | {"pretrained", "mlm", "simcse", "quickthought", "cmlm"} <= set(METHODS)


@pytest.mark.parametrize("name", TRAINED)
def test_what_its_paper_prints_is_a_preset(name: str) -> None:
    """Large profiles take it; it says where its values come from, and is one that a config takes."""
    method = METHODS[name]
    paper = method.presets["paper"]
    assert paper.source
    assert check_preset(method.config, paper.values) == []
    for size in ("small", "paper"):
        given = resolve([method], profile=profile(size))[name]
        assert all(given.origins[f"method.{key}"] == f"profile {size}" for key in paper.values)
        assert getattr(given.method, "learning_rate", 0) <= 5e-4  # weights that were trained before want small steps


@pytest.mark.parametrize("name", [*TRAINED, "bm25"])
def test_it_can_be_tuned(name: str) -> None:
    """It has a search space."""
    assert METHODS[name].space


@pytest.mark.parametrize("method", METHODS.values(), ids=list(METHODS))
def test_every_preset_stands_in_its_card(method: Method) -> None:
    """By its name."""
    missing = [name for name in method.presets if f"`{name}`" not in method.card()]
    assert missing == []


def test_a_preset_that_is_named_stands_in_the_place_of_the_profiles() -> None:
    """A plain one does; the cells of a grid lie over it."""
    ccp, size = METHODS["ccp"], PROFILES["mini"]
    assert resolve([ccp], profile=size)["ccp"].origins["method.bank.capacity"] == "profile mini"
    assert resolve([ccp], profile=size, preset="paper")["ccp"].origins["method.bank.capacity"] == "preset paper"
    plain = resolve([ccp], profile=None)["ccp"]
    assert "method.bank.capacity" not in plain.origins
    named = resolve([METHODS["contriever"]], profile=size, preset="mcontriever")["contriever"]
    assert named.origins["method.queue"] == "preset mcontriever"
