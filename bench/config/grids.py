"""Grids: a preset whose cells are systems of their own, e.g. the rows of an ablation table; what plugins promise of it.

Also what a search space promises, for it is made of the same things: a config's keys and values that it takes.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench.config.fields import flat
from bench.config.layers import SettingRow, check_preset
from bench.config.request import Request
from bench.config.spaces import Choice, LogUniform, Space, Uniform
from bench.core.messages import canonical, unknown_name
from bench.types import Method, Preset

_CELL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+=,-]*")
_LONGEST = 80
"""Characters of a label, which appears in tables, paths and run files."""


@dataclass(frozen=True)
class CellReference:
    """Which cell of which grid a system is."""

    preset: str  # with its method, e.g. `ccp/table5`
    cell: str

    @property
    def label(self) -> str:
        """Name of the system: `ccp@table5=no-bn`."""
        method, _, preset = self.preset.partition("/")
        return f"{method}@{preset}={self.cell}"


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


def apply_grid(request: Request, methods: Sequence[Method], preset: str | None) -> Request:
    """Return a request that names no suite with the suite, task and setting of its grid; any other as it is."""
    grids = [named_grid[1] for method in methods if (named_grid := grid_of(method, (preset or "").partition("=")[0]))]
    if not grids or request.suites:
        return request
    tasks = tuple(dict.fromkeys(grid.task for grid in grids)) if all(grid.task for grid in grids) else ()
    return replace(
        request,
        suites=tuple(dict.fromkeys(grid.suite for grid in grids)),
        tasks=request.tasks or tasks,
        settings=request.settings or tuple(dict.fromkeys(grid.setting for grid in grids if grid.setting)),
    )


def is_default_layer(row: SettingRow) -> bool:
    """Return whether a value comes from a preset or what lies below it, rather than from a file or `--set`."""
    return row.origin.partition(" ")[0] in {"default", "profile", "preset"}


def grid_faults(method: Method) -> Iterator[str]:
    """Yield what is wrong with a method's grids, for a config that is sound."""
    for name, preset in method.presets.items():
        names = [cell.name for cell in preset.cells]
        repeated = sorted(
            {
                cell_name
                for cell_name in names
                if [canonical(name_of_cell) for name_of_cell in names].count(canonical(cell_name)) > 1
            }
        )
        if repeated:
            yield f"preset {name}: has the cell {', '.join(repeated)} more than once"
        if preset.cells and not preset.suite:
            yield f"preset {name}: has cells and names no suite, expected where ours is looked at"
        labels = {label for cell in preset.cells for label in cell.reported}
        if preset.cells and len(labels) > 1 and preset.reported_measure not in labels:
            yield f"preset {name}: reported_measure is {preset.reported_measure!r}, expected one of {sorted(labels)}"
        for cell in preset.cells:
            place = f"preset {name}, cell {cell.name!r}"
            if not _CELL.fullmatch(cell.name):
                yield f"{place}: expected letters, digits and . _ + = , - as a name, the first a letter or digit"
            if len(CellReference(f"{method.name}/{name}", cell.name).label) > _LONGEST:
                yield f"{place}: a label of more than {_LONGEST} characters; shorten the name"
            values = dict(flat(preset.values)) | dict(flat(cell.values))
            yield from (f"{place}: {fault}" for fault in check_preset(method.config, values))


def space_faults(method: Method) -> Iterator[str]:
    """Yield what is wrong with a method's search space, for a config that is sound."""
    for key, space in method.space.items():
        fault = _space_fault(space)
        if fault:
            yield f"space {key}: {fault}"
            continue
        for value in ends(space):
            yield from (f"space {key}: {fault}" for fault in check_preset(method.config, {key: value}))


def _space_fault(space: object) -> str:
    """Return what is wrong with a space, whatever the key; empty where nothing is."""
    if isinstance(space, Choice):
        if None in space.values:
            return "holds None, which a settings file cannot say"
        distinct = {repr(value) for value in space.values}
        return "" if space.values and len(distinct) == len(space.values) else "expected values, all different"
    if not isinstance(space, Uniform | LogUniform):
        return f"found {space!r:.80}, expected Choice, Uniform or LogUniform"
    if not (math.isfinite(space.low) and math.isfinite(space.high) and space.low < space.high):
        return f"goes from {space.low} to {space.high}, expected two numbers, the lower one first"
    return "low is not above 0" if isinstance(space, LogUniform) and space.low <= 0 else ""


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
