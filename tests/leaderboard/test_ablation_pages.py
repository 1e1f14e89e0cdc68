"""Ablation pages: a grid's cells beside the paper's numbers, direction, shape, and kinds of data kept apart."""

import html
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from scipy.stats import kendalltau

from bench.types import GridCell, Preset
from leaderboard.pages import ablations
from leaderboard.pages.ablations import axes, grids
from leaderboard.site.captions import BANNERS
from leaderboard.site.render import Renderer, resolve_links
from leaderboard.site.site import Catalogue, Site
from tests.leaderboard.conftest import Publisher, method_of, site_of

PAPER = {"a,1": 60.0, "a,2": 70.5, "b,1": 80.0, "b,2": 90.0}
GRID = Preset(
    {},
    "Somebody 2020, table 5",
    "two factors",
    tuple(GridCell(name, {"x": at}, {"made accuracy": value}) for at, (name, value) in enumerate(PAPER.items())),
    suite="made",
    task="a",
)


def site(results: Path, preset: Preset = GRID) -> Site:
    method = method_of("m", {"t5": preset, "plain": Preset({}, "", "")})
    return site_of(results, Catalogue({"m": method}, {}))


def built(source: Site) -> dict[str, str]:
    pages = dict(ablations.files(source, Renderer(source)))
    return {name: html.unescape(resolve_links(name, content, pages).decode()) for name, content in pages.items()}


def publish(publish_result: Publisher, ours: Mapping[str, float], data: str = "mini", seed: int = 0) -> None:
    mark = "" if data == "official" else f"{data}/"
    for cell, value in ours.items():
        tasks = {f"{mark}made/a": {"": [value, value]}, f"{mark}made/b": {"": [0.9, 0.9]}}
        publish_result(f"m@t5={cell}", tasks, data=data, seed=seed)


def test_ours_beside_the_papers(publish_result: Publisher, results: Path) -> None:
    """The grid's task, means over seeds, and the direction that scipy gives."""
    ours = {"a,1": 0.1, "a,2": 0.4, "b,1": 0.2, "b,2": 0.8}
    publish(publish_result, ours)
    publish(publish_result, {cell: value + 0.1 for cell, value in ours.items()}, seed=1)
    ((run,),) = [grid.runs for grid in grids(site(results))]
    assert {line.cell: line.ours for line in run.lines} == pytest.approx(
        {cell: value + 0.05 for cell, value in ours.items()}
    )
    assert {line.seeds for line in run.lines} == {2}
    assert (run.source, run.measure) == ("mini/made/a", "RR@100")
    assert (run.direction.alike, run.direction.pairs) == (5, 6)
    assert run.direction.tau == pytest.approx(kendalltau(list(ours.values()), list(PAPER.values())).statistic)
    text = built(site(results))["mini/ablations/m-t5.html"]
    assert "Direction: 5 of 6 pairs of cells ordered as in the paper (83%), Kendall's tau-b +0.67." in text
    assert '<tr><th scope="row">a</th><td class="n">60.0</td><td class="n">70.5</td></tr>' in text
    assert '<tr><th scope="row">b</th><td class="n">25.0</td><td class="n">85.0</td></tr>' in text


def test_mini_and_official_lie_apart(publish_result: Publisher, results: Path) -> None:
    """A page for each, the mini one with its banner; neither has a number of the other."""
    publish(publish_result, {"a,1": 0.123, "b,1": 0.234})
    publish(publish_result, {"a,1": 0.345, "b,1": 0.456}, data="official")
    pages = built(site(results))
    assert set(pages) == {"ablations/index.html", "ablations/m-t5.html", "mini/ablations/m-t5.html"}
    assert "12.3" in pages["mini/ablations/m-t5.html"]
    assert BANNERS["mini"] in pages["mini/ablations/m-t5.html"]
    assert "34.5" not in pages["mini/ablations/m-t5.html"]
    assert "34.5" in pages["ablations/m-t5.html"]
    assert "12.3" not in pages["ablations/m-t5.html"]
    assert BANNERS["mini"] not in pages["ablations/m-t5.html"]
    assert "not run" in pages["ablations/m-t5.html"]


def test_other_systems_are_no_cells(publish_result: Publisher, results: Path) -> None:
    """A result of the method that is not of the grid, and another method's of that name, are left out."""
    publish_result("m", {"mini/made/a": {"": [0.5]}}, data="mini")
    publish_result("m@t5=a,1", {"mini/made/a": {"": [0.5]}}, data="mini", system={"method": "other"})
    publish_result("m@t5=a,1,k=2", {"mini/made/a": {"": [0.5]}}, data="mini")
    assert grids(site(results))[0].runs == ()
    assert "None of its cells has been run on official data yet" in built(site(results))["ablations/m-t5.html"]


def test_cells_that_fail_or_have_no_number(publish_result: Publisher, results: Path) -> None:
    """The paper's failure stands as a word and below every number; cells without a number are dashes."""
    cells = (*GRID.cells, GridCell("c,1", {}, fails=True), GridCell("c,2", {}))
    publish(publish_result, {"b,2": 0.5, "c,1": 0.6, "c,2": 0.7})
    source = site(results, replace(GRID, cells=cells))
    ((run,),) = [grid.runs for grid in grids(source)]
    assert (run.direction.alike, run.direction.pairs) == (0, 1)
    text = built(source)["mini/ablations/m-t5.html"]
    assert '<tr><th scope="row">c</th><td class="n">fails</td><td class="n">—<span' in text


def test_the_shape_of_a_table() -> None:
    """Two factors make rows and columns; anything else is a list. Presets without cells are no grids."""
    plain = method_of("m", {"plain": Preset({}, "", "")})
    assert built(Site((), (), Catalogue({"m": plain}, {}))) == {}
    assert axes(list(PAPER)) == (("a", "b"), ("1", "2"))
    assert axes(["window=2,batch=8", "window=2,batch=16", "window=3,batch=8"]) == (
        ("window=2", "window=3"),
        ("batch=8", "batch=16"),
    )
    assert axes(["a", "b"]) is None
    assert axes(["a,1", "b"]) is None
    assert axes(["a,1", "a,2"]) is None
    assert axes(["a,1", "b,2", "c,3"]) is None
