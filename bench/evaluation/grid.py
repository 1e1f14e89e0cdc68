"""Grids of runs: systems in cells with several seeds, and whether cells come in the same order as in a paper's table.

The structure behind sweeps, ablations and few-shot curves, and the board's pages of ablations.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from bench.evaluation.tables import Column, Table, percent


@dataclass(frozen=True)
class CellResult:
    """A cell of a grid next to the paper's number."""

    cell: str
    system: str
    ours: float | None  # a fraction, the mean over seeds; None where the training failed
    failed: str  # why
    paper: float | None  # None where the paper prints nothing, or that training fails
    paper_fails: bool
    seeds: int


@dataclass(frozen=True)
class GridRun:
    """One system in one cell (settings, a number of training pairs, a trial) with one seed."""

    system: str
    cell: str
    seed: int
    value: float | None  # a fraction; None where the training failed
    failed: str = ""  # why
    where: str = ""  # what it is of: a task, an average, or the mean of some tasks


@dataclass(frozen=True)
class Grid:
    """All runs of a grid, in the order in which they were planned."""

    runs: tuple[GridRun, ...]

    @property
    def systems(self) -> list[str]:
        """Labels in the order of the runs."""
        return list(dict.fromkeys(run.system for run in self.runs))

    @property
    def cells(self) -> list[str]:
        """Names of cells, in the order of the runs."""
        return list(dict.fromkeys(run.cell for run in self.runs))

    @property
    def seeds(self) -> int:
        """How many different seeds there are."""
        return len({run.seed for run in self.runs})

    @property
    def where(self) -> str:
        """What the values are of; empty where every training failed."""
        return next((run.where for run in reversed(self.runs) if run.where), "")

    def runs_of(self, cell: str, system: str | None = None) -> list[GridRun]:
        """Return the runs of a cell, one a seed and system."""
        return [run for run in self.runs if run.cell == cell and system in (None, run.system)]

    def mean(self, cell: str, system: str | None = None) -> float | None:
        """Return the mean of a cell over seeds; None where there is no run, or one of them failed."""
        values = [run.value for run in self.runs_of(cell, system)]
        finished = [value for value in values if value is not None]
        return fmean(finished) if finished and len(finished) == len(values) else None

    def by_system(self, caption: str, head: Callable[[str], str] = str) -> Table:
        """Lay it out with one row a system and one column a cell, in percent; `head` turns a cell into its heading."""
        columns = [Column(cell, head(cell), number=True, show=percent) for cell in self.cells]
        rows = tuple((system, *(self.mean(cell, system) for cell in self.cells)) for system in self.systems)
        return Table(caption, (Column("system"), *columns), rows)

    def against(self, paper: Mapping[str, float | None], systems: Mapping[str, str]) -> tuple[CellResult, ...]:
        """Return the cells of `systems` (label by cell) next to a paper's numbers, None where it says they fail."""
        return tuple(
            CellResult(
                cell,
                system,
                self.mean(cell),
                next((run.failed for run in self.runs_of(cell) if run.failed), ""),
                paper.get(cell),
                cell in paper and paper[cell] is None,
                len(self.runs_of(cell)),
            )
            for cell, system in systems.items()
        )


@dataclass(frozen=True)
class Direction:
    """How far two orders of the same cells agree."""

    pairs: int  # of cells that the paper distinguishes and that were run
    alike: int  # of these, ordered here as in the paper
    # Kendall's tau-b, 1 the same order, −1 the reverse; None where one side does not distinguish any pair
    tau: float | None
    # of the pairs, those that the tests distinguish here (corrected p ≤ 0.05); None where nothing was tested
    sure: int | None = None
    sure_alike: int | None = None  # of these, ordered as in the paper


def direction(cells: Sequence[CellResult], sure: Mapping[frozenset[str], bool] | None = None) -> Direction:
    """Compare two orders of cells; a failure is below every number. `sure`: whether tests distinguish a pair."""
    from scipy.stats import kendalltau

    compared = [cell for cell in cells if cell.paper is not None or cell.paper_fails]
    ours = [-math.inf if cell.ours is None else cell.ours for cell in compared]
    theirs = [-math.inf if cell.paper is None else cell.paper for cell in compared]
    pairs = [(a, b) for a, b in combinations(range(len(compared)), 2) if theirs[a] != theirs[b]]
    same_order = [(a, b) for a, b in pairs if ours[a] != ours[b] and (ours[a] > ours[b]) == (theirs[a] > theirs[b])]
    ranks = [[sorted(set(side)).index(number) for number in side] for side in (ours, theirs)]
    both_vary = all(len(set(side)) > 1 for side in ranks)
    tau = float(kendalltau(*ranks, variant="b").statistic) if both_vary else None
    if sure is None:
        return Direction(len(pairs), len(same_order), tau)
    certain = [pair for pair in pairs if sure.get(frozenset(compared[place].system for place in pair))]
    return Direction(len(pairs), len(same_order), tau, len(certain), len(set(certain) & set(same_order)))


def describe(direction: Direction) -> str:
    """Return a direction as a sentence."""
    if not direction.pairs:
        return "direction: no two cells that the paper distinguishes"
    tau = "not defined (all alike)" if direction.tau is None else f"{direction.tau:+.2f}".replace("-", "−")
    sentence = (
        f"direction: {direction.alike} of {direction.pairs} pairs of cells ordered as in the paper "
        f"({direction.alike / direction.pairs:.0%}), Kendall's tau-b {tau}"
    )
    if direction.sure is None:
        return sentence
    return f"{sentence}; of the {direction.sure} pairs that the queries distinguish here, {direction.sure_alike}"
