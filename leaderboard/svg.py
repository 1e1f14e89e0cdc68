"""Small drawings as inline SVG: an axis with round ticks, and the mark of a row on it. Colours come from classes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)


@dataclass(frozen=True)
class Axis:
    """A straight axis.

    Args:
        start: value at its left end.
        end: value at its right end, greater than `start`.
        step: between ticks.
        width: in pixels.
        inset: pixels that are left free at both ends.
    """

    start: float
    end: float
    step: float
    width: int = 160
    inset: int = 4

    def pixel(self, value: float) -> float:
        """Where a value lies, from the left; values outside lie at the ends."""
        share = min(1.0, max(0.0, (value - self.start) / (self.end - self.start)))
        return self.inset + (self.width - 2 * self.inset) * share

    @property
    def ticks(self) -> list[float]:
        """Round values from one end to the other."""
        return [self.start + place * self.step for place in range(round((self.end - self.start) / self.step) + 1)]


def axis(values: Iterable[float], *, width: int = 160, most: int = 6) -> Axis | None:
    """Make an axis with round ends that holds all values; None for no value.

    Args:
        values: finite.
        width: in pixels.
        most: steps between ticks, at most.
    """
    held = list(values)
    if not held:
        return None
    low, high = min(held), max(held)
    span = (high - low) or max(abs(high), 1.0) / 10
    power = 10 ** math.floor(math.log10(span / most))
    for step in (power * factor for factor in _STEPS):
        start, end = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
        if end - start <= most * step + step / 2:
            break
    return Axis(start, end if end > start else start + step, step, width)


def interval_bar(on: Axis, low: float, value: float, high: float, seeds: Sequence[float]) -> Markup:
    """Draw an interval with its value, and a tick below it for each seed; one seed is a hollow mark without tick.

    The numbers stand in the cells beside it, so that the drawing is hidden from screen readers.
    """
    left, middle, right = (f"{on.pixel(one):.1f}" for one in (low, value, high))
    ticks = "".join(f"M{on.pixel(one):.1f} 14v5" for one in seeds) if len(seeds) > 1 else ""
    below = f'<path class="tick" d="{ticks}"/>' if ticks else ""
    hollow = "" if len(seeds) > 1 else ' class="hollow"'
    return Markup(  # noqa: S704 (numbers of ours only)
        f'<svg class="interval" width="{on.width}" height="20" viewBox="0 0 {on.width} 20" aria-hidden="true">'
        f'{below}<line x1="{left}" y1="9" x2="{right}" y2="9"/><circle cx="{middle}" cy="9" r="3.5"{hollow}/></svg>'
    )
