"""Line charts as SVG: values with their mean by number of training pairs, readable on light and dark ground.

Written by hand rather than by a drawing library, so that the same numbers always give the same bytes and nothing heavy
is installed for one chart. Colours are Okabe and Ito's, which colour-blind readers tell apart; dashes and markers
differ as well.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from xml.sax.saxutils import escape, quoteattr

_WIDTH, _LEFT, _RIGHT, _TOP, _HEIGHT, _BOTTOM = 760, 64, 28, 34, 300, 52
_LINE, _TICKS, _CHARACTERS = 18, 5, 100
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
_DASHES = ("none", "8 4", "2 3", "9 3 2 3")
_STYLE = """
  .ground { fill: #ffffff } text { fill: #1f2328; font: 13px system-ui, sans-serif }
  .title { font-weight: 600; font-size: 15px } .note, .tick { fill: #59636e; font-size: 12px }
  .grid { stroke: #d1d9e0 } .axis { stroke: #59636e }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117 } text { fill: #f0f6fc } .note, .tick { fill: #9198a1 }
    .grid { stroke: #30363d } .axis { stroke: #9198a1 }
  }
"""


@dataclass(frozen=True)
class Point:
    """The values at one place of the axis.

    Args:
        x: 0 or more.
        values: at least one, e.g. one a seed.
    """

    x: float
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Where the line goes through."""
        return fmean(self.values)


@dataclass(frozen=True)
class Line:
    """A line of the chart.

    Args:
        name: in the legend.
        points: at least one; their order does not matter.
        level: it has one value, whatever x is, and is drawn right across.
    """

    name: str
    points: tuple[Point, ...]
    level: bool = False


@dataclass(frozen=True)
class Chart:
    """What is drawn.

    Args:
        title: in one line.
        notes: sentences below it.
        x: what the axis counts.
        y: what the values are.
        lines: at least one.
    """

    title: str
    notes: tuple[str, ...]
    x: str
    y: str
    lines: tuple[Line, ...]


def line_chart(chart: Chart) -> str:
    """Draw a chart as an SVG document.

    The horizontal axis is linear up to the smallest number above 0 and logarithmic beyond, so that 0, 100 and 100,000
    stand on one axis; places that occur are its ticks.
    """
    notes = [part for note in chart.notes for part in _wrapped(note)]
    top = _TOP + _LINE * len(notes) + 30
    across, up = _across(chart.lines), _Upwards.over(chart.lines, top)
    bottom = top + _HEIGHT
    legend = bottom + _BOTTOM
    body = [
        f'<rect class="ground" width="{_WIDTH}" height="{legend + _LINE * len(chart.lines) + 10}"/>',
        _text(_LEFT, 24, chart.title, "title"),
        *(_text(_LEFT, _TOP + _LINE * (at + 1) - 6, note, "note") for at, note in enumerate(notes)),
        *_vertical(up, chart.y, top),
        *_horizontal(across, chart.x, bottom),
    ]
    for at, line in enumerate(chart.lines):
        body += _drawn(line, at, across, up)
        body += _named(line, at, legend + _LINE * at)
    height = legend + _LINE * len(chart.lines) + 10
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'viewBox="0 0 {_WIDTH} {height}" role="img" aria-labelledby="title told">'
    )
    told = f'<title id="title">{escape(chart.title)}</title><desc id="told">{escape(" ".join(chart.notes))}</desc>'
    return "\n".join((head, told, f"<style>{_STYLE}</style>", *body, "</svg>", ""))


@dataclass(frozen=True)
class _Across:
    """The horizontal axis.

    Args:
        ticks: that occur, ascending.
        unit: the smallest number above 0, where the scale turns from linear to logarithmic.
    """

    ticks: tuple[float, ...]
    unit: float

    def __call__(self, x: float) -> float:
        """The place of a number."""
        first, last = self._scaled(self.ticks[0]), self._scaled(self.ticks[-1])
        share = 0.5 if last == first else (self._scaled(x) - first) / (last - first)
        return _LEFT + 14 + share * (_WIDTH - _LEFT - _RIGHT - 28)

    def _scaled(self, x: float) -> float:
        """Linear from 0 to the unit, with log's slope from there."""
        return x / self.unit if x <= self.unit else 1 + math.log(x / self.unit)


def _across(lines: Sequence[Line]) -> _Across:
    """The axis that all points stand on; lines that are level have no place of their own where others have."""
    own = [point.x for line in lines if not line.level for point in line.points]
    ticks = sorted(set(own or [point.x for line in lines for point in line.points]))
    return _Across(tuple(ticks), next((x for x in ticks if x > 0), 1.0))


@dataclass(frozen=True)
class _Upwards:
    """The vertical axis.

    Args:
        step: between two ticks.
        low: number of the lowest tick, in steps.
        high: of the highest.
        top: where the highest stands.
    """

    step: float
    low: int
    high: int
    top: float

    @staticmethod
    def over(lines: Sequence[Line], top: float) -> _Upwards:
        """The axis that all values stand on, with round numbers at its ticks."""
        values = [value for line in lines for point in line.points for value in point.values]
        least, most = min(values), max(values)
        rough = (most - least or abs(most) or 1.0) / _TICKS
        scale = 10.0 ** math.floor(math.log10(rough))
        step = next(scale * part for part in (1, 2, 5, 10) if scale * part >= rough * (1 - 1e-9))
        low, high = math.floor(least / step + 1e-9), math.ceil(most / step - 1e-9)
        return _Upwards(step, low, max(high, low + 1), top)

    def __call__(self, y: float) -> float:
        """The place of a value."""
        return self.top + _HEIGHT * (self.high - y / self.step) / (self.high - self.low)

    @property
    def ticks(self) -> Iterable[float]:
        """The numbers beside the axis."""
        return (number * self.step for number in range(self.low, self.high + 1))


def _vertical(up: _Upwards, name: str, top: float) -> list[str]:
    """The vertical axis with its grid."""
    places = max(0, -math.floor(math.log10(up.step)))
    parts = [_text(_LEFT - 48, top - 10, name, "tick")]
    for value in up.ticks:
        y = up(value)
        parts.append(_segment(_LEFT, y, _WIDTH - _RIGHT, y, "grid"))
        parts.append(_text(_LEFT - 8, y + 4, f"{value:.{places}f}", "tick", "end"))
    return parts


def _horizontal(across: _Across, name: str, bottom: float) -> list[str]:
    """The horizontal axis; a tick's number is left out where it would run into the one before."""
    parts = [_segment(_LEFT, bottom, _WIDTH - _RIGHT, bottom, "axis")]
    free = -math.inf
    for number in across.ticks:
        x, text = across(number), f"{number:,g}" if number < 1e6 else f"{number:.3g}"
        parts.append(_segment(x, bottom, x, bottom + 5, "axis"))
        if x - 4 * len(text) >= free:
            parts.append(_text(x, bottom + 19, text, "tick", "middle"))
            free = x + 4 * len(text) + 4
    return [*parts, _text((_LEFT + _WIDTH - _RIGHT) / 2, bottom + 37, name, "tick", "middle")]


def _drawn(line: Line, at: int, across: _Across, up: _Upwards) -> list[str]:
    """A line through the means, a marker at each, and the single values faintly."""
    if line.level:
        y = up(fmean(point.mean for point in line.points))
        return [f'<path d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}" {_stroke(at)}/>']
    points = sorted(line.points, key=lambda point: point.x)
    way = " ".join(f"{across(point.x):.1f},{up(point.mean):.1f}" for point in points)
    parts = [f'<polyline points="{way}" {_stroke(at)}/>'] if len(points) > 1 else []
    for point in points:
        if len(point.values) > 1:
            parts += [_marker(at, across(point.x), up(value), 3, 0.35) for value in point.values]
        parts.append(_marker(at, across(point.x), up(point.mean), 4.5, 1, f"{line.name}: {point.mean:.4g}"))
    return parts


def _named(line: Line, at: int, y: float) -> list[str]:
    """A line of the legend."""
    parts = [f'<path d="M{_LEFT} {y:.1f}h34" {_stroke(at)}/>']
    if not line.level:
        parts.append(_marker(at, _LEFT + 17, y, 4.5, 1))
    return [*parts, _text(_LEFT + 44, y + 4, line.name)]


def _stroke(at: int) -> str:
    """How the line of a number is drawn."""
    colour, dash = _COLOURS[at % len(_COLOURS)], _DASHES[at % len(_DASHES)]
    return f'fill="none" stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}"'


def _marker(at: int, x: float, y: float, size: float, opacity: float, told: str = "") -> str:
    """A circle or a square, with what a pointer is told of it."""
    name = f"<title>{escape(told)}</title>" if told else ""
    look = f'fill="{_COLOURS[at % len(_COLOURS)]}" fill-opacity="{opacity:g}"'
    if at % 2:
        place = f'x="{x - size:.1f}" y="{y - size:.1f}" width="{2 * size:g}" height="{2 * size:g}"'
        return f"<rect {place} {look}>{name}</rect>"
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size:g}" {look}>{name}</circle>'


def _segment(x: float, y: float, to_x: float, to_y: float, kind: str) -> str:
    """A straight line of an axis."""
    return f'<line class={quoteattr(kind)} x1="{x:.1f}" y1="{y:.1f}" x2="{to_x:.1f}" y2="{to_y:.1f}"/>'


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    """A line of text."""
    own = f" class={quoteattr(kind)}" if kind else ""
    return f'<text{own} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _wrapped(text: str) -> list[str]:
    """A sentence in lines that fit."""
    return textwrap.wrap(text, _CHARACTERS)
