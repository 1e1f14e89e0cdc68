"""Points of a training: where on its way its encoder is looked at, and what such a point is called.

A point `along` has the weights after a share of the budget, in the midst of a schedule that falls to 0 at the end of
the budget: what the training is at that moment. A `cooled` one is a branch from there, whose rate falls to 0 over some
more of it: what a training of about that budget would have come to. A curve is of one kind; the last point of either
is the training itself.
"""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

from bench.core.errors import UsageError
from bench.pipeline.settings import CurveConfig

_UNITS = ((10**15, "P"), (10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))


@dataclass(frozen=True)
class Point:
    """A point of a training before its end."""

    share: float  # of the budget, spent along the training
    cool: float | None = None  # of that share, spent besides on the branch that cools down; None: no branch

    @property
    def kind(self) -> Literal["along", "cooled"]:
        """Of which curve it is."""
        return "along" if self.cool is None else "cooled"

    @property
    def cost(self) -> float:
        """Share of the budget that it took, the branch included: its place on the axis of a curve."""
        return self.share * (1 + (self.cool or 0.0))

    def dump(self) -> dict[str, Any]:
        """Return what a result says of it."""
        return {"kind": self.kind, "share": self.share} | ({} if self.cool is None else {"cool": self.cool})

    def suffix(self, budget: float, unit: str) -> str:
        """Return what a label ends in: `500k` (tokens along the training), `500k-cooled`, `50steps`.

        Args:
            budget: of the training.
            unit: of the budget, empty for tokens.
        """
        return f"{amount(self.share * budget)}{unit}" + ("" if self.cool is None else "-cooled")


def points(settings: CurveConfig) -> tuple[Point, ...]:
    """Return the points that settings ask for before the end, the earliest first, at each the one along first."""
    if settings.points is None:
        return ()
    shares = [2.0 ** -(settings.points - 1 - number) for number in range(settings.points - 1)]
    cooled = shares if settings.cool is not None else []
    if settings.cooled is not None:
        cooled = cooled[-settings.cooled :]
    along = {share: (Point(share),) for share in shares}
    return tuple(
        point
        for share in shares
        for point in (*along[share], *((Point(share, settings.cool),) if share in cooled else ()))
    )


def refuse_lost(points_on_the_way: tuple[Point, ...], budget: float, label: str) -> None:
    """Raise `UsageError` for points at which nothing is spent yet: more of them than the budget has room for."""
    if points_on_the_way and points_on_the_way[0].share * budget < 1:
        raise UsageError(
            where="curve.points",
            found=f"a first point at {points_on_the_way[0].share * budget:.2g} of a budget of {budget:,.0f} ({label})",
            expected="a budget of which every point has spent something",
            hint="type fewer points: --set curve.points=…",
        )


def amount(number: float) -> str:
    """Return a whole number in its largest unit without loss, `7.812k`; `number` is rounded to it."""
    whole = round(number)
    size, unit = next(((size, unit) for size, unit in _UNITS if whole >= size), (1, ""))
    text = format(Decimal(whole) / size, "f")
    return f"{text}{unit}"
