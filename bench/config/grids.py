"""Grids: a preset whose cells are systems of their own, e.g. the rows of an ablation table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench.config.fields import flat
from bench.config.spaces import Choice, Space
from bench.core.messages import canonical, unknown_name
from bench.types import Method, Preset


@dataclass(frozen=True)
class CellReference:
    """Which cell of which grid a system is: a row of a preset's, or a variant of a method as configured."""

    preset: str  # with its method, e.g. `ccp/table5`; of a variant the label of what it varies, `mine` or `bm25@lucene`
    cell: str  # of a variant what is varied: `noise=0.1`
    default: str = ""  # hash, without fine-tunings, of what a variant varies; empty in grids of presets

    @property
    def label(self) -> str:
        """Name of the system: `ccp@table5=no-bn`, `mine@noise=0.1`, `bm25@lucene,b=0.0`."""
        if self.is_variant:
            return f"{self.preset}{',' if '@' in self.preset else '@'}{self.cell}"
        method, _, preset = self.preset.partition("/")
        return f"{method}@{preset}={self.cell}"

    @property
    def is_variant(self) -> bool:
        """Whether it varies a method as configured (`Request.varied`); no label has the slash of a preset."""
        return "/" not in self.preset


def grid_of(method: Method, name: str | None) -> tuple[str, Preset] | None:
    """Return the method's own spelling of a grid's name, and the grid; None where it has no grid of that name."""
    candidates = (
        (preset_name, preset)
        for preset_name, preset in method.presets.items()
        if name and canonical(preset_name) == canonical(name)
    )
    return next((pair for pair in candidates if pair[1].cells), None)


def grids(method: Method) -> dict[str, Preset]:
    """Return the method's presets that are grids, by name with the method: `ccp/table5`."""
    return {f"{method.name}/{name}": preset for name, preset in method.presets.items() if preset.cells}


def expand_grid(method: Method) -> Method:
    """Return the method with every cell of its grids as a plain preset `PRESET=CELL`."""
    cells = {
        f"{name}={cell.name}": replace(preset, values=dict(flat(preset.values)) | dict(flat(cell.values)), cells=())
        for name, preset in method.presets.items()
        for cell in preset.cells
    }
    return replace(method, presets={**method.presets, **cells})


def choose_presets(
    methods: Sequence[Method], name: str | None
) -> list[tuple[Method, str | None, CellReference | None]]:
    """Choose for every method the presets that a name refers to: itself, a grid's cells, or one cell of it.

    Returns (method, preset, the cell that it is), the preset None where the method has none of that name. Raises
    `UsageError` where none of the methods has.
    """
    choices: list[tuple[Method, str | None, CellReference | None]] = []
    for method in methods:
        grid = grid_of(method, name)
        if grid is not None:
            preset_name, preset = grid
            choices += [
                (method, f"{preset_name}={cell.name}", CellReference(f"{method.name}/{preset_name}", cell.name))
                for cell in preset.cells
            ]
            continue
        single = next(
            (
                preset_name
                for preset_name in expand_grid(method).presets
                if name and canonical(preset_name) == canonical(name)
            ),
            None,
        )
        cell = None
        if single is not None and single not in method.presets:
            preset_part, _, part = single.partition("=")
            cell = CellReference(f"{method.name}/{preset_part}", part)
        choices.append((method, single, cell))
    if name is not None and all(preset is None for _, preset, _ in choices):
        raise unknown_name(
            "preset", name, sorted({preset_name for method in methods for preset_name in method.presets})
        )
    return choices


def grid_address(
    methods: Sequence[Method], preset: str | None
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return suites, tasks and regimes on which papers have the grids of that name; nothing where it is no grid's."""
    grids = [named_grid[1] for method in methods if (named_grid := grid_of(method, (preset or "").partition("=")[0]))]
    suites = tuple(dict.fromkeys(grid.suite for grid in grids))
    tasks = tuple(dict.fromkeys(grid.task for grid in grids)) if all(grid.task for grid in grids) else ()
    return suites, tasks, tuple(dict.fromkeys(grid.regime for grid in grids if grid.regime))


def ends(space: Space) -> tuple[Any, ...]:
    """Return values that represent a space: all of a choice, the ends of a range."""
    return space.values if isinstance(space, Choice) else (float(space.low), float(space.high))


def reported(preset: Preset) -> Mapping[str, float | None]:
    """Return what the paper prints for each cell under the preset's label; None where it fails; others are left out."""
    return {
        cell.name: None if cell.fails else cell.reported[preset.label]
        for cell in preset.cells
        if cell.fails or preset.label in cell.reported
    }
