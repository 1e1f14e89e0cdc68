"""Grids: means over seeds, failures, and both layouts."""

import pytest

from bench.evaluation.grid import Grid, GridRun
from bench.evaluation.tables import Column

RUNS = ("crop", "0", 0, 0.1), ("crop", "0", 1, 0.3), ("bm25", "0", 0, 0.4), ("crop", "all", 0, 0.5)
FAILED = GridRun("crop", "all", 1, None, "the loss is nan")
GRID = Grid((*(GridRun(*run, where="beir/a") for run in RUNS), FAILED))


def test_means_are_over_seeds_of_cells_that_finished() -> None:
    """None of a failed seed or of a cell that nobody ran; a row a system or a row a cell, percent and dashes."""
    assert GRID.mean("0", "crop") == pytest.approx(0.2)
    assert GRID.mean("all", "crop") is None
    assert GRID.mean("all", "bm25") is None
    assert (GRID.failed("all"), GRID.failed("0")) == ("the loss is nan", "")
    assert (GRID.systems, GRID.cells, GRID.seeds, GRID.where) == (["crop", "bm25"], ["0", "all"], 2, "beir/a")
    assert GRID.by_system("t").shown() == [["crop", "20.0", "—"], ["bm25", "40.0", "—"]]
    table = GRID.by_cell("t", Column("cell", value=str), Column("runs", value=lambda cell: len(GRID.of(cell))))
    assert table.shown() == [["0", "3"], ["all", "2"]]
