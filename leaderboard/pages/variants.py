"""Variants: settings of a method varied by `bench ablate --vary`, each a row of gains over the method as it is.

A result says itself that it is a variant, what it varies, and the label and hash of the system that it varies, which is
the first row, if the board has it. Differences and intervals are those of the board's tests.
"""

from collections import defaultdict
from dataclasses import dataclass

from bench.config.grids import CellReference
from bench.evaluation.significance.families import Comparison
from leaderboard.site.boards import Board, Row
from leaderboard.site.render import Files, Renderer
from leaderboard.site.site import Site
from leaderboard.site.statistics import HEADLINE
from leaderboard.site.text import slug

_NAMED = 3
"""Tasks that a title names."""


@dataclass(frozen=True)
class VariantTable:
    """A system of a board with its variants.

    Args:
        board: it.
        default: the system as it is.
        variants: verified rows, by what they vary.
    """

    board: Board
    default: Row
    variants: dict[str, Row]

    @property
    def title(self) -> str:
        """What the page is called: the system and its tasks, not their suite, of which they may be a part."""
        names = [column.name for column in self.board.columns]
        tasks = ", ".join(names) if len(names) <= _NAMED else f"{len(names)} tasks of {self.board.title}"
        return f"{self.default.name} on {tasks}: settings varied"

    @property
    def stem(self) -> str:
        """Path of its page, without the ending."""
        name = slug(f"{self.board.suite}-{self.board.regime}-{self.default.name}")
        return f"{self.board.tree.folder}ablations/varied-{name}-{self.default.system.hash[:8]}"

    def headline(self, row: Row) -> Comparison | None:
        """Return a variant minus the default over all tasks; None where one of them lacks a task."""
        names = row.name, self.default.name
        return self.board.tests.ranks.comparison(*names) if self.board.tests.ranks.has(*names, HEADLINE) else None

    def on_task(self, row: Row, task: str) -> Comparison | None:
        """Return a variant minus the default on a task; None where one of them lacks it."""
        names = row.name, self.default.name
        return self.board.tests.cells.comparison(*names, task) if self.board.tests.cells.has(*names, task) else None

    def once(self, row: Row) -> bool:
        """Whether a variant or the default was trained only once, so that nothing is known of a training's luck."""
        return any(
            len(side.seeds) == 1 and not self.board.systems[side.name].first.deterministic
            for side in (row, self.default)
        )


def variant_tables(site: Site) -> list[VariantTable]:
    """Return the systems of all boards that have variants; what may be one of two systems (before tuning) has none."""
    tables = []
    for board in site.boards:
        by_default: dict[tuple[str, str], dict[str, Row]] = defaultdict(dict)
        whole: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for row in board.all_rows:
            grid = row.system.grid
            if row.verified and grid and CellReference(grid.preset, grid.cell).is_variant:
                by_default[grid.preset, grid.default or ""][grid.cell + row.name.removeprefix(row.system.label)] = row
            elif row.verified:
                whole[row.system.label, row.system.untuned_hash].append(row)
        tables += [
            VariantTable(board, whole[default][0], dict(sorted(variants.items())))
            for default, variants in sorted(by_default.items())
            if len(whole[default]) == 1
        ]
    return tables


def files(site: Site, renderer: Renderer) -> Files:
    """Yield a page for every system that has variants."""
    for table in variant_tables(site):
        yield renderer.page("variants.html", table.stem, title=table.title, of=table.board.tree, table=table)
