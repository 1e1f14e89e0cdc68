"""Drawings as SVG: elements, axes with round ticks, the plane between them, intervals, and line charts, as text too.

Written by hand rather than by a drawing library, so that the same numbers always give the same bytes and nothing heavy
is installed for one chart. Drawings inside a page take their colours from its classes; a chart that is a document of
its own has Okabe and Ito's, which colour-blind readers can distinguish, a grey and a brown, and dashes and markers that
differ as well.

As text, for a terminal of 80 columns, a line is a letter at its points, and dots between them; a bar over a point is
the range of its values (seeds). Level lines are dashes with their letter at the right end. A place that several lines
share has `*`.
"""

import math
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from string import ascii_lowercase, ascii_uppercase

from bench.core.files import write_bytes
from bench.evaluation.tables import html_text

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
_SMALLEST = 1e-9
"""Of the largest value: numbers that differ by less are the same on an axis."""
_LETTERS = ascii_lowercase + ascii_uppercase
_SHARED, _BETWEEN, _RANGE, _LEVEL = "*", "·", "│", "-"
_WEAK = {" ": 0, _LEVEL: 1, _BETWEEN: 2, _RANGE: 3}
"""What gives way to what where two parts of a drawing meet; letters give way to nothing."""


def element(name: str, *inside: str, **attributes: str | float | None) -> str:
    """Return an SVG element.

    Args:
        name: of the element: `rect`.
        inside: its content, already escaped.
        attributes: are escaped; None leaves one out, floats get one decimal, `kind` is the class, `_` becomes `-`.
    """
    words = []
    for key, value in attributes.items():
        if value is not None:
            written = f"{value:.1f}" if isinstance(value, float) else html_text(str(value))
            words.append(f' {"class" if key == "kind" else key.replace("_", "-")}="{written}"')
    opening = f"<{name}{''.join(words)}"
    return f"{opening}>{''.join(inside)}</{name}>" if inside else f"{opening}/>"


def text(x: float, y: float, words: str, kind: str | None = None, anchor: str | None = None) -> str:
    """Return a line of text; `anchor` is `start`, `middle` or `end`."""
    return element("text", html_text(words), kind=kind, x=float(x), y=float(y), text_anchor=anchor)


def segment(x: float, y: float, to_x: float, to_y: float, kind: str | None = None) -> str:
    """Return a straight line."""
    return element("line", kind=kind, x1=float(x), y1=float(y), x2=float(to_x), y2=float(to_y))


def circle(x: float, y: float, radius: str, kind: str | None = None, hint: str = "") -> str:
    """Return a circle; a pointer shows its hint."""
    inside = [element("title", html_text(hint))] if hint else []
    return element("circle", *inside, kind=kind, cx=float(x), cy=float(y), r=radius)


def path(points: Iterable[tuple[float, float]], kind: str | None = None) -> str:
    """Return a line through points."""
    return element("path", kind=kind, d="M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points))


def figure(width: int, height: int, body: Iterable[str], kind: str, label: str = "") -> str:
    """Return a drawing for a page; one without a label is hidden from screen readers."""
    accessibility = {"role": "img", "aria_label": label} if label else {"aria_hidden": "true"}
    return element(
        "svg", *body, kind=kind, width=width, height=height, viewBox=f"0 0 {width} {height}", **accessibility
    )


@dataclass(frozen=True)
class Axis:
    """A linear scale of `width` pixels from `start` to `end`, with `inset` pixels left free at both ends."""

    start: float
    end: float
    step: float
    width: int = 160
    inset: int = 4

    def pixel(self, value: float) -> float:
        """Return where a value lies, from the left; values outside lie at the ends."""
        share = min(1.0, max(0.0, (value - self.start) / (self.end - self.start)))
        return self.inset + (self.width - 2 * self.inset) * share

    @property
    def ticks(self) -> list[float]:
        """Round values from one end to the other."""
        return [self.start + place * self.step for place in range(round((self.end - self.start) / self.step) + 1)]

    def exact(self, value: float) -> str:
        """Print a value with the decimals that the step needs."""
        power = math.floor(math.log10(self.step) + _SMALLEST)
        halves = abs(self.step / 10.0**power - 2.5) < _SMALLEST
        return f"{value:.{max(0, halves - power)}f}"


def axis(values: Iterable[float], *, width: int = 160, most: int = 6) -> Axis | None:
    """Return an axis with round ends that holds all values, in at most `most` steps; None for no value."""
    numbers = list(values)
    if not numbers:
        return None
    low, high = min(numbers), max(numbers)
    span = high - low
    if span <= _SMALLEST * max(abs(low), abs(high), 1.0):
        span = max(abs(high), 1.0) / 10
    power = 10 ** math.floor(math.log10(span / most))
    for step in (power * factor for factor in _STEPS):
        start, end = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
        if end - start <= most * step + step / 2:
            break
    return Axis(start, end if end > start else start + step, step, width)


@dataclass(frozen=True)
class Counts:
    """A scale of counts: linear up to the smallest one above 0 and logarithmic beyond, so that 0 has a place on it.

    Args:
        ticks: all counts that occur, ascending.
        width: as in `Axis`, like `inset`.
    """

    ticks: tuple[float, ...]
    width: int
    inset: int = 14

    def pixel(self, value: float) -> float:
        """Where a count lies, from the left."""
        first, last = self._scaled(self.ticks[0]), self._scaled(self.ticks[-1])
        share = 0.5 if last == first else (self._scaled(value) - first) / (last - first)
        return self.inset + (self.width - 2 * self.inset) * share

    def _scaled(self, value: float) -> float:
        """Linear from 0 to the unit, with log's slope from there."""
        unit = next((tick for tick in self.ticks if tick > 0), 1.0)
        return value / unit if value <= unit else 1 + math.log(value / unit)


@dataclass(frozen=True)
class Plane:
    """The area between two axes, in pixels of the drawing; the horizontal one starts at `start`, or at `left`."""

    up: Axis
    left: float
    right: float
    top: float
    across: Axis | Counts | None = None
    start: float | None = None

    def x(self, value: float) -> float:
        """Return where a value lies, from the left of the drawing."""
        begin = self.left if self.start is None else self.start
        return begin + (self.across.pixel(value) if self.across is not None else 0.0)

    def y(self, value: float) -> float:
        """Return where a value lies, from the top of the drawing."""
        return self.top + self.up.width - self.up.pixel(value)

    def levels(self, show: Callable[[float], str], kind: str | None = None) -> Iterator[str]:
        """Yield a line of the grid and its number for every tick of the vertical axis."""
        for value in self.up.ticks:
            y = self.y(value)
            yield segment(self.left, y, self.right, y, "grid")
            yield text(self.left - 6, y + 4, show(value), kind, "end")

    def numbers(self, y: float, show: Callable[[float], str], kind: str | None = None) -> Iterator[str]:
        """Yield the numbers of the horizontal axis at a height; one that would run into another is left out."""
        free = -math.inf
        for value in self.across.ticks if self.across is not None else ():
            x, words = self.x(value), show(value)
            if x - 4 * len(words) >= free:
                yield text(x, y, words, kind, "middle")
                free = x + 4 * len(words) + 4


def short(value: float) -> str:
    """Print a number of an axis: `0.25`, `40k`, `1.5M`."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:g}{unit}"
    return f"{value:.6g}"


def _rounded(value: float) -> float:
    """Round to three digits."""
    return float(f"{value:.3g}")


def interval_bar(
    on: Axis, low: float, value: float, high: float, seeds: Sequence[float], band: tuple[float, float] | None = None
) -> str:
    """Draw an interval with its value over a band, and a dot below for each seed, or one hollow mark.

    It may be stretched sideways: dots are lines of no length, whose round ends keep their shape. Cells say the numbers.
    """
    x = f"{on.pixel(value):.1f}"
    body = (
        [element("path", kind="band", d="M{0:.1f} 0H{1:.1f}V32H{0:.1f}z".format(*map(on.pixel, band)))] if band else []
    )
    body.append(element("path", d=f"M{on.pixel(low):.1f} 13H{on.pixel(high):.1f}"))
    body.append(element("path", kind="value", d=f"M{x} 13h0"))
    if len(seeds) > 1:
        body.append(element("path", kind="seeds", d="".join(f"M{on.pixel(seed):.1f} 24h0" for seed in seeds)))
    else:
        body.append(element("path", kind="hole", d=f"M{x} 13h0"))
    drawing = figure(on.width, 32, body, "interval")
    return drawing.replace("<svg ", '<svg preserveAspectRatio="none" ', 1)


@dataclass(frozen=True)
class Point:
    """The values at one place of the axis, e.g. one a seed; x is 0 or more."""

    x: float
    values: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Where the line goes through."""
        return fmean(self.values)


@dataclass(frozen=True)
class Series:
    """A line of a chart; a `level` one has the same value whatever x is, and is drawn right across.

    The values of a point are drawn as faint points; of a line with a `band`, the area from the lowest to the highest.
    A `branch_of` another line has the colour of that line, hollow squares and dots between them; its name is that of
    the line, a comma, and what is different (`crop, cooled`).
    """

    name: str
    points: tuple[Point, ...]
    level: bool = False
    band: bool = False
    branch_of: str | None = None


@dataclass(frozen=True)
class Chart:
    """A line chart; notes are sentences below the title, `x` and `y` name the axes."""

    title: str
    notes: tuple[str, ...]
    x: str
    y: str
    lines: tuple[Series, ...]


_WIDTH, _LEFT, _RIGHT, _TOP, _HEIGHT, _BOTTOM = 760, 64, 28, 34, 300, 52
_LINE, _TICKS, _CHARACTERS = 18, 6, 100
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#9a6a4f")
_DASHES = ("none", "8 4", "2 3", "9 3 2 3")
_BRANCH = "1 4"
_STYLE = """
  .ground { fill: #ffffff } text { fill: #1f2328; font: 13px system-ui, sans-serif }
  .title { font-weight: 600; font-size: 15px } .note, .tick { fill: #59636e; font-size: 12px }
  .grid { stroke: #d1d9e0 } .axis { stroke: #59636e }
  @media (prefers-color-scheme: dark) {
    .ground { fill: #0d1117 } text { fill: #f0f6fc } .note, .tick { fill: #9198a1 }
    .grid { stroke: #30363d } .axis { stroke: #9198a1 }
  }
"""


def line_chart(chart: Chart) -> str:
    """Draw a chart as an SVG document, readable on light and dark ground; x is a scale of `Counts`.

    Level lines take no place on the x axis where other lines have places.

    Raises:
        ValueError: no line has a value.
    """
    notes = [part for note in chart.notes for part in textwrap.wrap(note, _CHARACTERS)]
    top = _TOP + _LINE * len(notes) + 30
    bottom = top + _HEIGHT
    values = (value for line in chart.lines for point in line.points for value in point.values)
    up = axis(values, width=_HEIGHT, most=_TICKS)
    if up is None:
        raise ValueError("a chart without a value")
    lines_with_places = [line for line in chart.lines if not line.level] or chart.lines
    counts = Counts(
        tuple(sorted({point.x for line in lines_with_places for point in line.points})), _WIDTH - _LEFT - _RIGHT
    )
    plane = Plane(up, _LEFT, _WIDTH - _RIGHT, top, counts)
    stems = [line for line in chart.lines if line.branch_of is None]
    branches = [line for line in chart.lines if line.branch_of is not None]
    styles = {line.name: _LineStyle(number) for number, line in enumerate(stems)}
    styles |= {line.name: _LineStyle(styles[str(line.branch_of)].number, branch=True) for line in branches}
    entries = [(styles[line.name], line.name, line.level) for line in stems]
    kinds = {line.name.removeprefix(f"{line.branch_of}, "): styles[line.name] for line in branches}
    entries += [(style, f"{kind}, in the colour of its line", False) for kind, style in kinds.items()]
    columns = 1 if len(entries) <= _TICKS else 2
    rows = math.ceil(len(entries) / columns)
    height = bottom + _BOTTOM + _LINE * rows + 10
    body = [
        element("title", html_text(chart.title), id="title"),
        element("desc", html_text(" ".join(chart.notes)), id="about"),
        element("style", _STYLE),
        element("rect", kind="ground", width=_WIDTH, height=height),
        text(_LEFT, 24, chart.title, "title"),
        *(text(_LEFT, _TOP + _LINE * (at + 1) - 6, note, "note") for at, note in enumerate(notes)),
        text(_LEFT - 48, top - 10, chart.y, "tick"),
        *plane.levels(up.exact, "tick"),
        segment(plane.left, bottom, plane.right, bottom, "axis"),
        *(segment(plane.x(count), bottom, plane.x(count), bottom + 5, "axis") for count in counts.ticks),
        *plane.numbers(bottom + 19, _count, "tick"),
        text((plane.left + plane.right) / 2, bottom + 37, chart.x, "tick", "middle"),
    ]
    for line in (*branches, *stems):
        body += _line_parts(line, styles[line.name], plane)
    for number, (style, name, level) in enumerate(entries):
        x = _LEFT + (_WIDTH - _LEFT - _RIGHT) // columns * (number // rows)
        y = bottom + _BOTTOM + _LINE * (number % rows)
        body.append(_stroke("path", style, d=f"M{x} {float(y):.1f}h34"))
        body += [] if level else [_marker(style, x + 17, y, 4.5, "1")]
        body.append(text(x + 44, y + 4, name))
    head = {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {_WIDTH} {height}", "role": "img"}
    parts = [f"\n{part}" for part in body]
    return element("svg", *parts, "\n", width=_WIDTH, height=height, aria_labelledby="title about", **head) + "\n"


def _count(value: float) -> str:
    """Print a count of the horizontal axis in four digits: `62.5k`, `1M`, `20.12G`."""
    return short(float(f"{value:.4g}"))


@dataclass(frozen=True)
class Drawing:
    """An SVG document that notebooks show."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        """Say how to keep it."""
        return f"Drawing of {len(self.svg):,} bytes; .save(path) writes it"

    def save(self, path: Path | str) -> None:
        """Write the document."""
        write_bytes(Path(path), self.svg.encode())


def dot_chart(title: str, lines: Mapping[str, Sequence[float]], heads: Mapping[str, float]) -> str:
    """Draw a line a name: its values as faint dots, its head as a bar with the number, on one horizontal axis."""
    margin = 40 + 7 * max(map(len, lines))
    on = axis([value for values in lines.values() for value in values] + [*heads.values()], width=_WIDTH - margin - 60)
    if on is None:
        raise ValueError("a chart without a value")
    bottom = _TOP + 26 * len(lines) + 6
    plane = Plane(on, margin, margin + on.width, _TOP, on)
    body = [
        element("style", _STYLE),
        element("rect", kind="ground", width=_WIDTH, height=bottom + 30),
        text(16, 22, title, "title"),
        *(segment(plane.x(value), _TOP, plane.x(value), bottom, "grid") for value in on.ticks),
        *plane.numbers(bottom + 18, on.exact, "tick"),
    ]
    for at, (name, values) in enumerate(lines.items()):
        y = _TOP + 26 * at + 20.0
        body.append(text(margin - 12, y + 4, name, None, "end"))
        body += [_marker(_LineStyle(0), plane.x(value), y, 3, "0.35") for value in values]
        if name in heads:
            x = plane.x(heads[name])
            body.append(_stroke("path", _LineStyle(1), d=f"M{x:.1f} {y - 9:.1f}v18").replace(_DASHES[1], _DASHES[0]))
            body.append(text(_WIDTH - 12, y + 4, f"{heads[name]:.1f}", None, "end"))
    head = {"xmlns": "http://www.w3.org/2000/svg", "viewBox": f"0 0 {_WIDTH} {bottom + 30}", "role": "img"}
    return element("svg", *body, width=_WIDTH, height=bottom + 30, aria_label=title, **head) + "\n"


@dataclass(frozen=True)
class _LineStyle:
    """Colour, dashes and marker of a line, by its number; a branch has the colour of its line."""

    number: int
    branch: bool = False

    @property
    def colour(self) -> str:
        return _COLOURS[self.number % len(_COLOURS)]

    @property
    def dashes(self) -> str:
        return _BRANCH if self.branch else _DASHES[self.number % len(_DASHES)]

    @property
    def square(self) -> bool:
        return self.branch or self.number % 2 == 1


def _line_parts(line: Series, style: _LineStyle, plane: Plane) -> list[str]:
    """A line through the means, a marker at each, and the single values faintly."""
    if line.level:
        y = plane.y(fmean(point.mean for point in line.points))
        return [_stroke("path", style, d=f"M{plane.left:g} {y:.1f}H{plane.right:g}")]
    points = sorted(line.points, key=lambda point: point.x)
    corners = " ".join(f"{plane.x(point.x):.1f},{plane.y(point.mean):.1f}" for point in points)
    parts = []
    if line.band and any(len(point.values) > 1 for point in points):
        edges = [(point.x, max(point.values)) for point in points] + [(p.x, min(p.values)) for p in reversed(points)]
        area = " ".join(f"{plane.x(x):.1f},{plane.y(y):.1f}" for x, y in edges)
        parts.append(element("polygon", points=area, fill=style.colour, fill_opacity="0.15", stroke="none"))
    parts += [_stroke("polyline", style, points=corners)] if len(points) > 1 else []
    for point in points:
        x = plane.x(point.x)
        if len(point.values) > 1 and not line.band:
            parts += [_marker(style, x, plane.y(value), 3, "0.35") for value in point.values]
        parts.append(_marker(style, x, plane.y(point.mean), 4.5, "1", f"{line.name}: {point.mean:.4g}"))
    return parts


def _stroke(name: str, style: _LineStyle, **place: str) -> str:
    """A line in its colour and dashes."""
    width = "1" if style.branch else "2"
    return element(name, **place, fill="none", stroke=style.colour, stroke_width=width, stroke_dasharray=style.dashes)


def _marker(style: _LineStyle, x: float, y: float, size: float, opacity: str, hint: str = "") -> str:
    """A circle or a square in the colour of its line, hollow of a branch; a pointer shows its hint."""
    inside = [element("title", html_text(hint))] if hint else []
    paint = (
        {"kind": "ground", "stroke": style.colour, "stroke_width": "2"}
        if style.branch
        else {"fill": style.colour, "fill_opacity": opacity}
    )
    if style.square:
        side = f"{2 * size:g}"
        return element("rect", *inside, x=float(x - size), y=float(y - size), width=side, height=side, **paint)
    return element("circle", *inside, cx=float(x), cy=float(y), r=f"{size:g}", **paint)


def text_chart(chart: Chart, width: int = 80, height: int = 16) -> str:
    """Draw a chart; x is a scale of `bench.evaluation.svg.Counts`.

    Args:
        chart: its lines.
        width: columns that it may take.
        height: rows between the axes.

    Raises:
        ValueError: no line has a value.
    """
    values = [value for line in chart.lines for point in line.points for value in point.values]
    up = axis(values, width=height, most=4)
    if up is None:
        raise ValueError("a chart without a value")
    numbers = {_row(up, height, tick): up.exact(tick) for tick in up.ticks}
    margin = max(map(len, numbers.values())) + 2
    places = [line for line in chart.lines if not line.level] or list(chart.lines)
    across = Counts(tuple(sorted({point.x for line in places for point in line.points})), width - margin, inset=1)
    grid = [[" "] * (width - margin) for _ in range(height)]
    for letter, line in zip(_LETTERS, chart.lines, strict=False):
        _draw(grid, line, letter, up, across)
    rows = [
        f"{numbers.get(at, ''):>{margin - 2}} {'┤' if at in numbers else '│'}{''.join(cells).rstrip()}"
        for at, cells in enumerate(grid)
    ]
    ticks, base = [" "] * (width - margin), ["─"] * (width - margin)
    free = 0
    for tick in across.ticks:
        column, words = round(across.pixel(tick)), _count(tick)
        base[min(column, len(base) - 1)] = "┴"
        begin = min(max(0, column - len(words) // 2), len(ticks) - len(words))
        if begin >= free:
            ticks[begin : begin + len(words)] = words
            free = begin + len(words) + 1
    legend = [f"  {letter} {line.name}" for letter, line in zip(_LETTERS, chart.lines, strict=False)]
    return "\n".join(
        [
            f"{chart.y} by {chart.x}"[:width],
            *(row[:width] for row in rows),
            f"{'':>{margin - 2}} └{''.join(base)}"[:width],
            f"{'':>{margin}}{''.join(ticks).rstrip()}",
            *(entry[:width] for entry in legend),
        ]
    )


def _row(up: Axis, height: int, value: float) -> int:
    """Return the row of a value, 0 the highest."""
    share = (value - up.start) / (up.end - up.start)
    return min(height - 1, max(0, round((height - 1) * (1 - share))))


def _draw(grid: list[list[str]], line: Series, letter: str, up: Axis, across: Counts) -> None:
    """Draw a line over what is there."""
    height, last = len(grid), len(grid[0]) - 1

    def draw(column: int, row: int, mark: str) -> None:
        cell = grid[row][column]
        if mark in _WEAK:
            if cell in _WEAK and _WEAK[cell] < _WEAK[mark]:
                grid[row][column] = mark
        else:
            grid[row][column] = mark if cell in _WEAK or cell == mark else _SHARED

    if line.level:
        row = _row(up, height, math.fsum(point.mean for point in line.points) / len(line.points))
        for column in range(last):
            draw(column, row, _LEVEL)
        draw(last, row, letter)
        return
    points = sorted(line.points, key=lambda point: point.x)
    columns = [min(last, round(across.pixel(point.x))) for point in points]
    for (first, second), (begin, end) in zip(pairwise(points), pairwise(columns), strict=True):
        for column in range(begin + 1, end):
            share = (column - begin) / (end - begin)
            draw(column, _row(up, height, first.mean + share * (second.mean - first.mean)), _BETWEEN)
    for point, column in zip(points, columns, strict=True):
        ends: Sequence[int] = [_row(up, height, value) for value in (max(point.values), min(point.values))]
        for row in range(ends[0], ends[1] + 1):
            draw(column, row, _RANGE)
        draw(column, _row(up, height, point.mean), letter)
