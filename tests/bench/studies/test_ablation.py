"""Ablations: direction by hand, a grid from its plan to its table, and a cell whose training fails."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from scipy.stats import kendalltau

from bench.cli import list as listing
from bench.cli import run as run_command
from bench.cli import show, studies
from bench.config.request import Request
from bench.core.errors import DataError, UsageError
from bench.evaluation.grid import CellResult, Direction, describe, direction
from bench.pipeline.plan import plan
from bench.pipeline.run import Outcome, run
from bench.plugins import Plugins
from bench.store.graph import NullListener
from bench.store.store import Store
from bench.studies.ablation import ablations
from bench.types import GridCell, Method, Preset
from methods.bm25 import BM25


def line(cell: str, ours: float | None, paper: float | None, *, fails: bool = False) -> CellResult:
    """A cell with both numbers."""
    return CellResult(cell, f"m@t={cell}", ours, "" if ours is not None else "it is nan", paper, fails, 1)


def test_direction_by_hand() -> None:
    """Six pairs, one the other way round, as in scipy; ties do not count (tau-b); failures come last."""
    lines = [line("a", 0.2, 70), line("b", 0.1, 80), line("c", 0.5, 90), line("d", 0.9, 95)]
    order = direction(lines)
    assert (order.pairs, order.alike) == (6, 5)
    assert order.tau == pytest.approx(4 / 6)
    assert order.tau == pytest.approx(kendalltau([0.2, 0.1, 0.5, 0.9], [70, 80, 90, 95]).statistic)
    # A pair that the paper does not tell apart is no pair; one that we do not tell apart is not alike.
    lines = [line("a", 0.1, 70), line("b", 0.1, 80), line("c", 0.3, 80)]
    order = direction(lines)
    assert (order.pairs, order.alike) == (2, 1)
    assert order.tau == pytest.approx(1 / 2)  # one pair agrees, none disagrees, over √(2 · 2)
    assert direction([line("a", 0.1, 1), line("b", 0.1, 2)]).tau is None
    lines = [line("a", None, 1), line("b", 0.0, 2), line("c", 0.9, None, fails=True), line("d", 0.5, None)]
    order = direction(lines)
    # paper: c < a < b; ours: a < b < c
    assert (order.pairs, order.alike) == (3, 1)
    assert order.tau == pytest.approx(-1 / 3)
    lines = [line("a", 0.2, 70), line("b", 0.1, 80), line("c", 0.5, 90)]
    sure = {frozenset({"m@t=a", "m@t=b"}): True, frozenset({"m@t=b", "m@t=c"}): True}
    order = direction(lines, sure)
    assert (order.sure, order.sure_alike) == (2, 1)
    assert describe(order) == (
        "direction: 2 of 3 pairs of cells ordered as in the paper (67%), Kendall's tau-b +0.33; "
        "of the 2 pairs that the queries distinguish here, 1"
    )
    assert "no two cells" in describe(Direction(0, 0, None))


Carry = Callable[..., Outcome]
Make = Callable[..., Method]


@pytest.fixture
def carry(tmp_path: Path, with_methods: Callable[..., Plugins]) -> Carry:
    def call(method: Method, **request: Any) -> Outcome:
        typed = Request(**{"suites": (), "methods": (method.name,), **request}, results=tmp_path / "results")
        return run(typed, with_methods(method), Store(tmp_path / "store"), NullListener())

    return call


CELLS = (
    GridCell("k1=0", {"k1": 0.0}, {"nDCG": 30.0, "more": 1.0}),
    GridCell("k1=0.9", {"k1": 0.9}, {"nDCG": 40.0}),
    GridCell("words", {"k1": 0.9, "analyzer": "words"}, {"more": 2.0}),
)
GRID = Preset({"b": 0.75}, "a paper", "k1", CELLS, suite="beir", reported_measure="nDCG")
TOY = replace(BM25, name="toy", presets={"k1": GRID})


def test_a_grid_runs_every_cell_in_one_plan(carry: Carry, tiny: Path) -> None:
    """A system a cell, checks of the data shared, the result saying which cell it is, ours next to the paper's."""
    outcome = carry(TOY, preset="toy/k1", tasks=(str(tiny),))
    assert [row["system"] for row in outcome.rows] == ["toy@k1=k1=0", "toy@k1=k1=0.9", "toy@k1=words"]
    stages = [step.stage.name for step in outcome.plan.steps]
    assert (stages.count("validate"), stages.count("read"), stages.count("index")) == (1, 1, 3)
    systems = [result.content["system"] for result in outcome.published]
    assert [system["grid"] for system in systems] == [{"preset": "toy/k1", "cell": cell.name} for cell in CELLS]
    assert {row["key"]: row["value"] for row in systems[0]["settings"]}["method.b"] == 0.75
    (ablation,) = ablations(outcome)
    assert (ablation.preset, ablation.paper, ablation.measure, ablation.where) == (
        "toy/k1",
        "nDCG",
        "nDCG@10",
        "beir/tiny-beir",
    )
    measured = [row["measures"]["nDCG@10"] for row in outcome.rows]
    assert [row.ours for row in ablation.lines] == pytest.approx(measured)
    assert [row.paper for row in ablation.lines] == [30.0, 40.0, None]
    assert ablation.direction.pairs == 1
    assert ablation.as_json()["suite"] == "beir"
    only = carry(TOY, preset="toy/k1=words", tasks=(str(tiny),))
    assert [row["system"] for row in only.rows] == ["toy@k1=words"]
    assert not any(step.runs for step in only.plan.steps)


def test_what_is_read_can_be_a_task_and_a_measure(carry: Carry, tiny: Path) -> None:
    """The preset's own measure, where the suite is the preset's own."""
    toy = replace(TOY, presets={"k1": replace(GRID, measure="R@100", task="tiny-beir")})
    outcome = carry(toy, preset="toy/k1", tasks=(str(tiny),))
    (ablation,) = ablations(outcome)
    assert (ablation.measure, ablation.where) == ("R@100", "beir/tiny-beir")
    assert ablation.lines[0].ours == outcome.rows[0]["measures"]["R@100"]


def test_what_is_typed_holds_over_the_place_of_a_grid(tmp_path: Path, with_methods: Callable[..., Plugins]) -> None:
    """A grid has the suite and the task of its paper where neither is typed; a typed suite is taken whole."""
    plugins = with_methods(replace(TOY, presets={"k1": replace(GRID, suite="mrtydi", task="sw")}))

    def tasks(suites: tuple[str, ...] = (), tasks: tuple[str, ...] = ()) -> set[str]:
        request = Request(("toy",), suites, tasks, preset="toy/k1", results=tmp_path / "results")
        cells = plan(request, plugins, Store(tmp_path / "store")).cells
        return {task.id for cell in cells for task in cell.tasks}

    assert tasks() == {"mini/mrtydi/sw"}
    assert tasks(tasks=("te",)) == {"mini/mrtydi/te"}
    assert tasks(suites=("mrtydi",)) > {"mini/mrtydi/sw", "mini/mrtydi/te"}
    assert {name.rpartition("/")[0] for name in tasks(suites=("tatoeba",))} == {"mini/tatoeba"}


def test_cells_that_are_one_system_give_a_warning(
    tmp_path: Path, tiny: Path, with_methods: Callable[..., Plugins]
) -> None:
    """`--set` over what the grid varies."""
    typed = Request(("toy",), (), (str(tiny),), preset="toy/k1", sets=("method.k1=0.9",), results=tmp_path / "results")
    ready = plan(typed, with_methods(TOY), Store(tmp_path / "store"))
    (warning,) = ready.warnings
    assert warning.startswith("toy@k1=k1=0,k1=0.9 and toy@k1=k1=0.9 are one system here")


def test_a_cell_whose_training_fails_does_not_cost_the_others(carry: Carry, dense: Make, small: dict[str, Any]) -> None:
    """It is reported, comes last, and leaves no result; the start of the training is scored once for each readout."""
    cells = (
        GridCell("bad", {"fault": "nan"}, fails=True),
        GridCell("good", {}, {"acc": 3}),
        GridCell("cls", {"pooling": "cls"}),
    )
    outcome = carry(dense(*cells), preset="dense/grid", **small)
    (failure,) = outcome.failed
    assert failure.cell.system.label == "dense@grid=bad"
    assert failure.reason == "the loss of training step 7 is nan"
    systems = "dense@init", "dense@grid=good", "dense@grid=cls", "dense@init@pooling=cls"
    assert [row["system"] for row in outcome.rows] == [*systems]
    (ablation,) = ablations(outcome)
    states = [(row.cell, row.failed != "", row.paper_fails) for row in ablation.lines]
    assert states == [("bad", True, True), ("good", False, False), ("cls", False, False)]
    assert ablation.where == "beir/tiny-beir"
    assert (ablation.direction.pairs, ablation.direction.alike) == (1, 1)


def test_what_is_no_finding_ends_the_run(carry: Carry, dense: Make, small: dict[str, Any]) -> None:
    """Data that cannot be read, and a training outside a grid."""
    with pytest.raises(DataError, match="rubbish"):
        carry(dense(GridCell("bad", {"fault": "disk"}), GridCell("good", {})), preset="dense/grid", **small)
    with pytest.raises(UsageError, match="step 7 is nan"):
        carry(dense(), suites=("beir",), **small | {"sets": (*small["sets"], 'method.fault="nan"')})


def test_the_command_prints_ours_and_the_papers(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tiny: Path, with_methods: Callable[..., Plugins]
) -> None:
    """`bench run --preset` and `bench ablate` print the same table; `--json` holds it; grids are listed and shown."""
    toy = replace(TOY, presets={"elsewhere": replace(GRID, suite="tatoeba"), "k1": GRID})
    monkeypatch.setattr("bench.plugins.load", lambda: with_methods(toy))
    places = ["--task", str(tiny), "--store", str(tmp_path / "store"), "--results", str(tmp_path / "results")]

    def printed_by(command: Any, *words: str) -> str:
        return str(CliRunner().invoke(command, words, catch_exceptions=False).stdout)

    table = printed_by(run_command.command, "--preset", "toy/k1", *places)
    lines = [line.split() for line in table.splitlines()]
    assert ["cell", "ours:", "nDCG@10,", "percent", "paper:", "nDCG"] in lines
    assert any(line[:1] == ["words"] and line[-1] == "—" for line in lines)
    assert "toy/k1 direction: " in table
    repeated = printed_by(studies.ablate, "toy/k1", *places)
    assert repeated.splitlines() == [line for line in table.splitlines() if line in repeated.splitlines()]
    printed = json.loads(printed_by(studies.ablate, *places, "--method", "toy", "--json"))
    (ablation,), (skipped,) = printed["ablations"], printed["not_applicable"]
    assert [row["paper"] for row in ablation["lines"]] == [30.0, 40.0, None]
    assert ablation["direction"]["pairs"] == 1
    assert skipped["preset"] == "toy/elsewhere"
    assert "suite tatoeba takes no folder of your own" in skipped["reason"]
    assert "cells of toy/k1" in printed_by(show.command, "toy")
    rows = json.loads(printed_by(listing.command, "presets", "--json"))["presets"]
    assert [row["cells"] for row in rows if row["name"] == "toy/k1"] == [3]
