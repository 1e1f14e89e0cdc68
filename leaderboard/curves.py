"""Curves of trainings: read from the bundles, and drawn as small multiples, one panel a measure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from markupsafe import Markup, escape
from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError, model_validator

from bench.curves import MOST, thinned
from bench.errors import StoreError
from bench.fsio import sha256_file
from bench.results import CURVES, RESULT
from leaderboard.read import Result
from leaderboard.svg import Axis, axis
from leaderboard.text import visible

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 340, 200, 48, 24, 10
COLOURS = 6
"""Lines of a panel that can be told apart."""
_POINTS, _FEW = 720, 30
"""Of all lines of a panel as they are drawn, and of one of them at least; the bundle has more."""
_PANELS = 12
_LARGEST = 1 << 20

Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e15, le=1e15)]
Name = Annotated[str, Field(max_length=80)]


class _Part(BaseModel):
    """A part of the file."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Line(_Part):
    """Places and values, as many of both."""

    x: Annotated[list[Number], Field(min_length=1, max_length=MOST)]
    y: Annotated[list[Number], Field(min_length=1, max_length=MOST)]

    @model_validator(mode="after")
    def _even(self) -> Line:
        """Refuse a line whose points have no place, or go back."""
        if len(self.x) != len(self.y) or self.x != sorted(self.x):
            raise ValueError("as many x as y, and x ascending")
        return self


class Training(_Part):
    """The curves of one training."""

    stage: Name
    across: Name
    lines: Annotated[dict[Name, Line], Field(max_length=40)]


class _Curves(RootModel[dict[Name, Training]]):
    """By the key of the training's stage."""


def trainings(result: Result) -> Mapping[str, Training]:
    """Read the curves of a result by the key of the training; none where the bundle has none.

    Raises:
        StoreError: the file is not as the result names it, or holds what no run writes.
    """
    wanted = result.content.files.get(CURVES)
    if wanted is None:
        return {}
    path = result.path.parent / CURVES
    try:
        if path.stat().st_size > _LARGEST or sha256_file(path) != wanted:
            raise StoreError(f"{path}: found other bytes than {RESULT} names, or more than {_LARGEST:,}; run it again")
        return _Curves.model_validate_json(path.read_bytes()).root
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}; run the command that made it again") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise StoreError(f"{path}: found a fault at {place!a}, expected: {first['msg']}") from error


@dataclass(frozen=True)
class Drawn:
    """A line of a panel.

    Args:
        name: of the system.
        colour: number of its colour and dash.
        seeds: its trainings, one a seed.
    """

    name: str
    colour: int
    seeds: Sequence[Line]


@dataclass(frozen=True)
class Panel:
    """A small multiple.

    Args:
        name: of what is drawn: `loss`.
        across: what x counts.
        lines: of the systems.
    """

    name: str
    across: str
    lines: Sequence[Drawn]

    @property
    def last(self) -> list[tuple[str, float]]:
        """Where each line ends: mean over seeds."""
        return [(line.name, float(np.mean([seed.y[-1] for seed in line.seeds]))) for line in self.lines]


def panels(held: Sequence[tuple[str, Sequence[Training]]], stage: str) -> list[Panel]:
    """Make a panel for every measure of a stage.

    Args:
        held: by name of the system, its trainings, one a seed; at most `COLOURS` systems are drawn.
        stage: verb of the stage.
    """
    own = [(name, [one for one in every if one.stage.partition("-")[0] == stage]) for name, every in held]
    shown = [(name, every) for name, every in own if every][:COLOURS]
    every_name = {name for _, every in shown for one in every for name in one.lines}
    names = sorted(every_name, key=lambda name: (name != "loss", name.startswith("probe "), name))
    found = []
    for name in names[:_PANELS]:
        lines = [
            Drawn(system, colour, seeds)
            for colour, (system, every) in enumerate(shown)
            if (seeds := [one.lines[name] for one in every if name in one.lines])
        ]
        found.append(Panel(name, shown[0][1][0].across, lines))
    return found


def draw(panel: Panel) -> Markup:
    """Draw a panel: seeds thin, their mean thick, a mark where the line ends."""
    every = [seed for line in panel.lines for seed in line.seeds]
    across = axis((x for seed in every for x in (0.0, seed.x[-1])), width=WIDTH - LEFT, most=3)
    up = axis((y for seed in every for y in seed.y), width=HEIGHT - TOP - BOTTOM, most=4)
    if across is None or up is None:
        return Markup()
    ends = "; ".join(f"{name} ends at {value:.4g}" for name, value in panel.last)
    most = max(_FEW, _POINTS // (len(every) + len(panel.lines)))
    body = [*_frame(across, up), *(part for line in panel.lines for part in _line(line, across, up, most))]
    told = escape(visible(f"{panel.name} against {panel.across}: {ends}"))
    return Markup(  # noqa: S704 (numbers of ours; the only text is escaped above)
        f'<svg class="curve" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="{told}">{"".join(body)}</svg>'
    )


def mean_line(seeds: Sequence[Line]) -> list[tuple[float, float]]:
    """The mean of several lines at the places of the first, as far as all of them go."""
    start, end = max(seed.x[0] for seed in seeds), min(seed.x[-1] for seed in seeds)
    places = [x for x in seeds[0].x if start <= x <= end] or [end]
    means = np.mean([np.interp(places, seed.x, seed.y) for seed in seeds], axis=0)
    return list(zip(places, means.tolist(), strict=True))


def short(value: float) -> str:
    """A number of an axis: `0.25`, `40k`, `1.5M`."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:.6g}"


def _frame(across: Axis, up: Axis) -> Iterator[str]:
    """Grid and numbers of both axes."""
    for value in up.ticks:
        y = _y(up, value)
        yield f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH}" y2="{y:.1f}"/>'
        yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{short(value)}</text>'
    for value in across.ticks:
        x = LEFT + across.pixel(value)
        yield f'<text x="{x:.1f}" y="{HEIGHT - 6}" text-anchor="middle">{short(value)}</text>'


def _line(line: Drawn, across: Axis, up: Axis, most: int) -> Iterator[str]:
    """A system's lines; the script highlights what has its number."""
    yield f'<g class="l{line.colour}" data-k="{line.colour}">'
    whole = mean_line(line.seeds)
    if len(line.seeds) > 1:
        for seed in line.seeds:
            yield f'<path class="thin" d="{_path(list(zip(seed.x, seed.y, strict=True)), across, up, most)}"/>'
    yield f'<path d="{_path(whole, across, up, most)}"/>'
    x, y = whole[-1]
    yield f'<circle cx="{LEFT + across.pixel(x):.1f}" cy="{_y(up, y):.1f}" r="3"/></g>'


def _path(points: Sequence[tuple[float, float]], across: Axis, up: Axis, most: int) -> str:
    """A line through points."""
    return "M" + "L".join(f"{LEFT + across.pixel(x):.1f} {_y(up, y):.1f}" for x, y in thinned(points, most))


def _y(up: Axis, value: float) -> float:
    """Where a value stands, from the top."""
    return TOP + up.width - up.pixel(value)
