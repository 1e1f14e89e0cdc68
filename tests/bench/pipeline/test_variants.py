"""Variants of a request: one plan of all, equal ones refused; the error says in which variant it is."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench.config.request import Request, RequestVariant
from bench.core.errors import ConfigError, UsageError
from bench.pipeline.plan import Plan, plan
from bench.plugins import Plugins
from bench.store.store import Store
from bench.testing import fields

TINY = Path(__file__).parents[2] / "fixtures" / "tiny-beir"


def planned(tmp_path: Path, plugins: Plugins, methods: str, *variants: dict[str, Any], **options: Any) -> Plan:
    """Plan methods on the tiny folder, with variants called a, b, c."""
    named = tuple(RequestVariant(name, variant) for name, variant in zip("abc", variants, strict=False))
    options = {"backbone": "scratch:1x8", "sets": ("budget.tokens=100",)} | options
    request = replace(Request.from_options(methods, "beir", tasks=TINY, **options), variants=named)
    return plan(request, plugins, Store(tmp_path / "store"))


def cells(ready: Plan) -> list[tuple[str, str, int]]:
    """Label, hash and seed of each cell, in order."""
    return [(cell.system.label, cell.identity.hash, cell.seed) for cell in ready.cells]


def test_a_plan_of_variants_is_that_of_the_requests_typed_one_by_one(tmp_path: Path, plugins: Plugins) -> None:
    """Cells with their labels and hashes, and stages; what two have in common comes once."""
    base = ("budget.tokens=100",)
    variants: list[dict[str, Any]] = [{}, {"sets": ("method.temperature=0.3",), "seeds": "1"}]
    both = planned(tmp_path, plugins, "crop,ict", *variants, seeds="0,1")
    first = planned(tmp_path, plugins, "crop,ict", seeds="0,1")
    second = planned(tmp_path, plugins, "crop,ict", sets=(*base, "method.temperature=0.3"), seeds="1")
    assert len(cells(both)) == len(set(cells(both))) == 8 + 4 - 2, "seed 1 of both starts is shared"
    assert set(cells(both)) == {*cells(first), *cells(second)}
    keys = [step.stage.key for step in both.steps]
    assert len(keys) == len(set(keys))
    assert {*keys} == {step.stage.key for ready in (first, second) for step in ready.steps}
    assert len(both.cells) == len(both.subsets)


def test_a_baseline_that_no_variant_changes_comes_once(tmp_path: Path, plugins: Plugins) -> None:
    """BM25 next to a method whose setting varies."""
    variants = ({"sets": ("method.temperature=0.3",)}, {"sets": ("method.temperature=0.4",)})
    labels = [label for label, *_ in cells(planned(tmp_path, plugins, "bm25,crop", *variants))]
    assert sorted(labels) == ["bm25", "crop@init", "crop@temperature=0.3", "crop@temperature=0.4"]


@pytest.mark.parametrize(
    ("variants", "expectation"),
    [
        ([{}, {"sets": ("method.k1=0.9",)}], {"where": "b", "found": "no system that is not one of a"}),
        ([{}, {"sets": ("method.k1=2",)}, {"sets": ("method.k1=2",)}], {"where": "c", "found": "not one of b"}),
        ([{"label": "x"}, {"label": "y"}], {"where": "b", "found": "y, which is x of a"}),
        ([{}, {"profile": "small", "data": "official"}], {"where": "b", "found": "profile small next to mini"}),
    ],
    ids=["same settings", "twice", "two labels", "two profiles"],
)
def test_equal_variants_are_refused(
    tmp_path: Path, plugins: Plugins, variants: list[dict[str, Any]], expectation: dict[str, str]
) -> None:
    """By their systems, whatever they are called and however they are typed."""
    with pytest.raises(UsageError, check=fields(exit_code=2, **expectation)):
        planned(tmp_path, plugins, "bm25", *variants, backbone=None, sets=())


def test_an_error_names_its_variant(tmp_path: Path, plugins: Plugins) -> None:
    """With the class and the fields that it has."""
    with pytest.raises(ConfigError, match=r"^b: method\.k2", check=fields(where="b", hint="method.k1")):
        planned(tmp_path, plugins, "bm25", {}, {"sets": ("method.k2=1",)}, backbone=None, sets=())
