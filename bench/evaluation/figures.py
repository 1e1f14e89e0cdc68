"""Figures for papers, on axes of matplotlib: values by system, and differences with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from bench.core.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bench.evaluation.svg import Chart

_ROW = 0.35
"""Inches of a row of axes that are made here."""


class Bar(NamedTuple):
    """A difference with its interval, in points; an interval that is not known is not drawn."""

    name: str
    value: float
    low: float | None
    high: float | None


def dots(title: str, lines: Mapping[str, Sequence[float]], heads: Mapping[str, float], ax: Axes | None = None) -> Axes:
    """Draw a line a name: its values as faint dots, its head as a bar.

    Args:
        title: written above.
        lines: values by name, in percent.
        heads: headline by name, in percent.
        ax: axes to draw on; default: new ones.

    Raises:
        UsageError: matplotlib is not installed.
    """
    ax = _rows(title, list(lines), ax)
    for at, (name, values) in enumerate(lines.items()):
        ax.plot(values, [at] * len(values), "o", color="C0", alpha=0.35)
        if name in heads:
            ax.plot([heads[name]], [at], "|", color="C1", markersize=14, markeredgewidth=2)
    return ax


def intervals(title: str, bars: Sequence[Bar], ax: Axes | None = None) -> Axes:
    """Draw differences with their intervals around a line at 0.

    Args:
        title: written above.
        bars: from top to bottom.
        ax: axes to draw on; default: new ones.

    Raises:
        UsageError: matplotlib is not installed.
    """
    ax = _rows(title, [bar.name for bar in bars], ax)
    ax.axvline(0, color="0.6", linewidth=1)
    for at, bar in enumerate(bars):
        if bar.low is not None and bar.high is not None:
            ax.plot([bar.low, bar.high], [at, at], "-", color="C0")
        ax.plot([bar.value], [at], "o", color="C0")
    return ax


def curves(chart: Chart, ax: Axes | None = None) -> Axes:
    """Draw the lines of a chart, the range of values as a band; x is linear up to the first point, then logarithmic.

    Args:
        chart: what is drawn.
        ax: axes to draw on; default: new ones.

    Raises:
        UsageError: matplotlib is not installed.
    """
    ax = _new_axes(4.0) if ax is None else ax
    places = sorted({point.x for line in chart.lines if not line.level for point in line.points})
    for number, line in enumerate(chart.lines):
        means, colour = [point.mean for point in line.points], f"C{number}"
        if line.level:
            ax.axhline(sum(means) / len(means), color=colour, linestyle="--", label=line.name)
            continue
        x = [point.x for point in line.points]
        ax.plot(x, means, "o-", color=colour, label=line.name)
        ends = ([min(point.values) for point in line.points], [max(point.values) for point in line.points])
        ax.fill_between(x, *ends, color=colour, alpha=0.15, linewidth=0)
    if positive := [place for place in places if place > 0]:
        ax.set_xscale("symlog", linthresh=positive[0])
    ax.set_xlabel(chart.x)
    ax.set_ylabel(chart.y)
    ax.set_title(chart.title)
    ax.legend()
    return ax


def _rows(title: str, names: Sequence[str], ax: Axes | None) -> Axes:
    """Return axes with a row for each name, the first on top."""
    ax = _new_axes(1 + _ROW * len(names)) if ax is None else ax
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_title(title)
    return ax


def _new_axes(inches: float) -> Axes:
    """Return new axes of a height. Raises `UsageError` where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError(
            found="no matplotlib, which draws figures",
            expected="it installed",
            hint="pip install 'retrieval-bench[plot]'",
        ) from error
    axes: Axes = Figure(figsize=(6.4, inches), layout="constrained").subplots()
    return axes
