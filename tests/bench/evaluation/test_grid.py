"""Grids: means over seeds, failures, and a row a system."""

import pytest

from bench.evaluation.grid import Grid, GridRun

RUNS = ("crop", "0", 0, 0.1), ("crop", "0", 1, 0.3), ("bm25", "0", 0, 0.4), ("crop", "all", 0, 0.5)
FAILED = GridRun("crop", "all", 1, None, "the loss is nan")
GRID = Grid((*(GridRun(*run, where="beir/a") for run in RUNS), FAILED))


def test_means_are_over_seeds_of_cells_that_finished() -> None:
    """None of a failed seed or of a cell that nobody ran; a row a system, percent and dashes."""
    assert GRID.mean("0", "crop") == pytest.approx(0.2)
    assert GRID.mean("all", "crop") is None
    assert GRID.mean("all", "bm25") is None
    against = GRID.against({}, dict.fromkeys(GRID.cells, "crop"))
    assert [(line.cell, line.failed) for line in against] == [("0", ""), ("all", "the loss is nan")]
    assert (GRID.systems, GRID.cells, GRID.seeds, GRID.where) == (["crop", "bm25"], ["0", "all"], 2, "beir/a")
    assert GRID.by_system("t").shown() == [["crop", "20.0", "—"], ["bm25", "40.0", "—"]]
