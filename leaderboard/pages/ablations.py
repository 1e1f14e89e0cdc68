"""Ablation pages: a grid in the paper's own table shape, ours beside it; mini data in a tree of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from leaderboard.ablations import Grid, Run, grids
from leaderboard.kit import Files, Renderer, Site
from leaderboard.places import FIRST, folder
from leaderboard.text import slug


@dataclass(frozen=True)
class Shown:
    """A page of a grid.

    Args:
        grid: the cells and the paper's numbers.
        data: kind of data of ours.
        stands_for: the benchmark that ours are a substitute for, empty for a benchmark itself.
        runs: ours.
        stem: path of the page, without the ending.
    """

    grid: Grid
    data: str
    stands_for: str
    runs: tuple[Run, ...]
    stem: str


def files(site: Site, renderer: Renderer) -> Files:
    """`ablations/index.html`, and for every grid a page of official data and one of each other kind that it ran on."""
    found = [page for grid in grids(site) for page in _pages(grid)]
    if not found:
        return
    yield (
        "ablations/index.html",
        renderer.page("ablations.html", "ablations/index", title="Ablations", pages=found),
    )
    for page in found:
        yield (
            f"{page.stem}.html",
            renderer.page(
                "ablation.html",
                page.stem,
                data=page.data,
                stands_for=page.stands_for,
                title=f"{page.grid.method}/{page.grid.name}",
                page=page,
                grid=page.grid,
                cells={cell.name: cell for cell in page.grid.preset.cells},
                others=[other for other in found if other.grid is page.grid and other is not page],
            ),
        )


def _pages(grid: Grid) -> Sequence[Shown]:
    """The pages of a grid: that of official data always, for it has the paper's table."""
    kinds = dict.fromkeys([(FIRST, ""), *((run.data, run.stands_for) for run in grid.runs)])
    name = f"{slug(grid.method)}-{slug(grid.name)}"
    return [
        Shown(
            grid,
            data,
            stands_for,
            tuple(run for run in grid.runs if (run.data, run.stands_for) == (data, stands_for)),
            f"{folder(data, stands_for)}ablations/{name}{f'-{slug(stands_for)}' if stands_for else ''}",
        )
        for data, stands_for in kinds
    ]
