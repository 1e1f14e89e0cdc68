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
from bench.evaluation.curves import LABELS, MOST, thinned
from bench.evaluation.results import CURVES, RESULT
from bench.evaluation.results.read import Result
from bench.evaluation.svg import Plane, axis, circle, element, figure, path, short

WIDTH, HEIGHT, MARGIN_LEFT, MARGIN_BOTTOM, MARGIN_TOP = 340, 200, 48, 24, 10
COLOURS, MARKED = 6, 12
"""Lines of a panel that colours and dashes distinguish; twice as many where the second half is thin."""
_POINTS, _LEAST_POINTS = 720, 30
"""Of all lines of a panel as they are drawn, and of a single one at least; the bundle has more."""
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

    Raises:
        StoreError: the file is not as the result names it, or holds what no run writes.
    """
    seal = result.content.files.get(CURVES)
    if seal is None:
        return {}
    file = result.path.parent / CURVES
    try:
        if file.stat().st_size > _LARGEST or sha256_file(file) != seal:
            expected = f"those that {RESULT} names, at most {_LARGEST:,}"
            raise StoreError(where=file, found="other bytes", expected=expected, hint="run it again")
        return Curves.model_validate_json(file.read_bytes()).root
    except OSError as error:
        raise StoreError(f"{file} cannot be read: {error.strerror}; rerun the command that wrote it") from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        location = ".".join(map(str, first["loc"]))
        raise StoreError(where=file, found=f"a fault at {location!a}", expected=first["msg"]) from error


@dataclass(frozen=True)
class PanelLine:
    """A line of a panel.

    Args:
        name: of the system.
        colour: number of its colour and dash.
        seeds: its trainings, one a seed.
    """

    name: str
    colour: int
    seeds: Sequence[CurveLine]


@dataclass(frozen=True)
class Panel:
    """A small multiple.

    Args:
        name: what is drawn, as the log calls it, e.g. `loss`.
        across: what x counts.
        lines: one a system.
    """

    name: str
    across: str
    lines: Sequence[PanelLine]

    @property
    def label(self) -> str:
        """What the page calls it."""
        return LABELS.get(self.name, self.name)

    @property
    def last(self) -> list[tuple[str, float]]:
        """The last value of each line, mean over seeds."""
        return [(line.name, float(np.mean([seed.y[-1] for seed in line.seeds]))) for line in self.lines]


def panels(systems: Sequence[tuple[str, Sequence[Training]]], stage: str, most: int = COLOURS) -> list[Panel]:
    """Build a panel for every measure of a stage.

    Args:
        systems: names with trainings, one a seed; those without a training of the stage are left out.
        stage: `train`, say; a second one of its kind is called `train-2`.
        most: number of systems that are drawn.

    Returns:
        The panels, the loss first and probes last.
    """
    trained = []
    for name, seeds in systems:
        if stage_seeds := [training for training in seeds if training.stage.partition("-")[0] == stage]:
            trained.append((name, stage_seeds))
    trained = trained[:most]
    measures = {name for _, seeds in trained for training in seeds for name in training.lines}
    order = sorted(measures, key=lambda name: (name != "loss", name.startswith("probe "), name))
    return [
        Panel(
            measure,
            trained[0][1][0].across,
            [
                PanelLine(name, colour, lines)
                for colour, (name, seeds) in enumerate(trained)
                if (lines := [training.lines[measure] for training in seeds if measure in training.lines])
            ],
        )
        for measure in order[:_PANELS]
    ]


def draw(panel: Panel) -> Markup:
    """Draw a panel: thin seeds, a thick mean, a mark at the end of the line."""
    seeds = [seed for line in panel.lines for seed in line.seeds]
    across = axis((x for seed in seeds for x in (0.0, seed.x[-1])), width=WIDTH - MARGIN_LEFT, most=3)
    up = axis((y for seed in seeds for y in seed.y), width=HEIGHT - MARGIN_TOP - MARGIN_BOTTOM, most=4)
    if across is None or up is None:
        return Markup()
    plane = Plane(up, MARGIN_LEFT, WIDTH, MARGIN_TOP, across)
    most = max(_LEAST_POINTS, _POINTS // (len(seeds) + len(panel.lines)))

    def pixels(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
        return [(plane.x(x), plane.y(y)) for x, y in thinned(points, most)]

    lines = []
    for line in panel.lines:
        mean = mean_line(line.seeds)
        thin = [path(pixels(list(zip(seed.x, seed.y, strict=True))), "thin") for seed in line.seeds]
        end = circle(plane.x(mean[-1][0]), plane.y(mean[-1][1]), "3")
        parts = (*(thin if len(thin) > 1 else ()), path(pixels(mean)), end)
        lines.append(element("g", *parts, kind=f"l{line.colour}", data_k=line.colour))
    ends = "; ".join(f"{name} ends at {value:.4g}" for name, value in panel.last)
    label = f"{panel.label} against {panel.across}: {ends}"
    body = (*plane.levels(short), *plane.numbers(HEIGHT - 6, short), *lines)
    return Markup(figure(WIDTH, HEIGHT, body, "curve", label))  # noqa: S704 (all texts are escaped)


def mean_line(seeds: Sequence[CurveLine]) -> list[tuple[float, float]]:
    """Return the mean of several lines at the places of the first, as far as all of them go."""
    start, end = max(seed.x[0] for seed in seeds), min(seed.x[-1] for seed in seeds)
    places = [x for x in seeds[0].x if start <= x <= end] or [end]
    means = np.mean([np.interp(places, seed.x, seed.y) for seed in seeds], axis=0)
    return list(zip(places, means.tolist(), strict=True))
