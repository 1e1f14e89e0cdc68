"""Curves of trainings: read from the bundles, and drawn as small multiples, one panel a measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from markupsafe import Markup
from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError, model_validator

from bench.core.errors import StoreError
from bench.core.files import sha256_file
from bench.evaluation.curves import MOST, thinned
from bench.evaluation.results import CURVES, RESULT
from bench.evaluation.results.read import Result
from bench.evaluation.svg import Plane, axis, circle, element, figure, path, short

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 340, 200, 48, 24, 10
COLOURS, MARKED = 6, 12
"""Lines of a panel that colours and dashes distinguish; twice as many where the other half is thin."""
_POINTS, _FEW = 720, 30
"""Of all lines of a panel as they are drawn, and of one of them at least; the bundle has more."""
_PANELS = 12
_LARGEST = 1 << 20

Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e15, le=1e15)]
Name = Annotated[str, Field(max_length=80)]


class _Part(BaseModel):
    """A part of the file."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class CurveLine(_Part):
    """Places and values, as many of both."""

    x: Annotated[list[Number], Field(min_length=1, max_length=MOST)]
    y: Annotated[list[Number], Field(min_length=1, max_length=MOST)]

    @model_validator(mode="after")
    def _even(self) -> CurveLine:
        """Refuse a line whose points have no place, or go back."""
        if len(self.x) != len(self.y) or self.x != sorted(self.x):
            raise ValueError("as many x as y, and x ascending")
        return self


class Training(_Part):
    """The curves of one training."""

    stage: Name
    across: Name
    lines: Annotated[dict[Name, CurveLine], Field(max_length=40)]


class Curves(RootModel[dict[Name, Training]]):
    """By the key of the training's stage."""


def trainings(result: Result) -> Mapping[str, Training]:
    """Read the curves of a result by the key of the training; none where the bundle has none.

    Raises `StoreError` where the file is not as the result names it, or holds what no run writes.
    """
    wanted = result.content.files.get(CURVES)
    if wanted is None:
        return {}
    path = result.path.parent / CURVES
    try:
        if path.stat().st_size > _LARGEST or sha256_file(path) != wanted:
            expected = f"those that {RESULT} names, at most {_LARGEST:,}"
            raise StoreError(where=path, found="other bytes", expected=expected, hint="run it again")
        return Curves.model_validate_json(path.read_bytes()).root
    except OSError as error:
        raise StoreError(f"{path} cannot be read: {error.strerror}; rerun the command that wrote it") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise StoreError(where=path, found=f"a fault at {place!a}", expected=first["msg"]) from error


@dataclass(frozen=True)
class Drawn:
    """A line of a panel."""

    name: str
    colour: int  # number of its colour and dash
    seeds: Sequence[CurveLine]  # its trainings, one a seed


@dataclass(frozen=True)
class Panel:
    """A small multiple."""

    name: str  # of what is drawn: `loss`
    across: str  # what x counts
    lines: Sequence[Drawn]

    @property
    def last(self) -> list[tuple[str, float]]:
        """The last value of each line, mean over seeds."""
        return [(line.name, float(np.mean([seed.y[-1] for seed in line.seeds]))) for line in self.lines]


def panels(held: Sequence[tuple[str, Sequence[Training]]], stage: str, most: int = COLOURS) -> list[Panel]:
    """Build a panel for every measure of a stage, given the trainings of each system, one a seed; `most` are drawn."""
    own = [(name, [one for one in every if one.stage.partition("-")[0] == stage]) for name, every in held]
    shown = [(name, every) for name, every in own if every][:most]
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
    """Draw a panel: thin seeds, a thick mean, a mark at the end of the line."""
    every = [seed for line in panel.lines for seed in line.seeds]
    across = axis((x for seed in every for x in (0.0, seed.x[-1])), width=WIDTH - LEFT, most=3)
    up = axis((y for seed in every for y in seed.y), width=HEIGHT - TOP - BOTTOM, most=4)
    if across is None or up is None:
        return Markup()
    plane = Plane(up, LEFT, WIDTH, TOP, across)
    most = max(_FEW, _POINTS // (len(every) + len(panel.lines)))
    lines = (_line(line, plane, most) for line in panel.lines)
    ends = "; ".join(f"{name} ends at {value:.4g}" for name, value in panel.last)
    label = f"{panel.name} against {panel.across}: {ends}"
    body = (*plane.levels(short), *plane.numbers(HEIGHT - 6, short), *lines)
    return Markup(figure(WIDTH, HEIGHT, body, "curve", label))  # noqa: S704 (all texts are escaped)


def mean_line(seeds: Sequence[CurveLine]) -> list[tuple[float, float]]:
    """The mean of several lines at the places of the first, as far as all of them go."""
    start, end = max(seed.x[0] for seed in seeds), min(seed.x[-1] for seed in seeds)
    places = [x for x in seeds[0].x if start <= x <= end] or [end]
    means = np.mean([np.interp(places, seed.x, seed.y) for seed in seeds], axis=0)
    return list(zip(places, means.tolist(), strict=True))


def _line(line: Drawn, plane: Plane, most: int) -> str:
    whole = mean_line(line.seeds)
    thin = [list(zip(seed.x, seed.y, strict=True)) for seed in line.seeds] if len(line.seeds) > 1 else []
    parts = [path(_places(seed, plane, most), "thin") for seed in thin]
    parts.append(path(_places(whole, plane, most)))
    x, y = whole[-1]
    return element("g", *parts, circle(plane.x(x), plane.y(y), "3"), kind=f"l{line.colour}", data_k=line.colour)


def _places(points: Sequence[tuple[float, float]], plane: Plane, most: int) -> list[tuple[float, float]]:
    """Points of a line in pixels, thinned."""
    return [(plane.x(x), plane.y(y)) for x, y in thinned(points, most)]
