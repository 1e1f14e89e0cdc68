"""Which points settings ask for, and what they are called."""

import re

import pytest

from bench.core.errors import UsageError
from bench.pipeline.points import Point, amount, points, refuse_lost
from bench.pipeline.settings import CurveConfig
from bench.testing import fields

UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}


def test_points_double_up_to_the_end() -> None:
    """The end itself is the row; of branches the last before the end where fewer are asked for."""
    assert points(CurveConfig()) == ()
    assert points(CurveConfig(points=2)) == (Point(1 / 2),)
    assert points(CurveConfig(points=4)) == (Point(1 / 8), Point(1 / 4), Point(1 / 2))
    assert points(CurveConfig(points=3, cool=0.2)) == (
        *(Point(1 / 4), Point(1 / 4, 0.2)),
        *(Point(1 / 2), Point(1 / 2, 0.2)),
    )
    assert points(CurveConfig(points=3, cool=0.2, cooled=1)) == (Point(1 / 4), Point(1 / 2), Point(1 / 2, 0.2))
    assert points(CurveConfig(points=3, cool=0.2, cooled=9)) == points(CurveConfig(points=3, cool=0.2))


def test_kinds_and_costs() -> None:
    """A branch costs what it takes besides."""
    along, cooled = Point(0.5), Point(0.5, 0.2)
    assert (along.kind, along.cost, along.dump()) == ("along", 0.5, {"kind": "along", "share": 0.5})
    assert (cooled.kind, cooled.cost) == ("cooled", 0.6)
    assert cooled.dump() == {"kind": "cooled", "share": 0.5, "cool": 0.2}


@pytest.mark.parametrize(
    ("share", "budget", "unit", "label"),
    [
        (1 / 2, 1_000_000, "", "500k"),
        (1 / 128, 1_000_000, "", "7.812k"),
        (1 / 4, 20_000_000, "", "5M"),
        (1 / 8, 20_000_000, "", "2.5M"),
        (1 / 2, 1_000_001, "", "500k"),
        (1 / 2, 1_234_567, "", "617.284k"),
        (1 / 2, 100, "steps", "50steps"),
        (1 / 4, 4e15, "flops", "1Pflops"),
    ],
)
def test_what_a_point_is_called(share: float, budget: float, unit: str, label: str) -> None:
    """The whole number of tokens that it stands for, without loss."""
    assert Point(share).suffix(budget, unit) == label
    assert Point(share, 0.2).suffix(budget, unit) == f"{label}-cooled"


@pytest.mark.parametrize("budget", [1, 7, 999, 1000, 123_456, 10**6, 20 * 10**6 + 1, 3 * 10**9])
def test_a_label_says_which_point_it_is(budget: int) -> None:
    """Read back it is the share of the budget, to a token; no two points have one label."""
    labels: dict[str, Point] = {}
    for point in points(CurveConfig(points=21, cool=0.2)):
        if point.share * budget < 1:
            continue
        suffix = point.suffix(budget, "")
        match = re.fullmatch(r"([\d.]+)([kMG]?)(-cooled)?", suffix)
        assert match
        assert abs(float(match[1]) * UNITS[match[2]] - point.share * budget) <= 0.5
        assert bool(match[3]) == (point.kind == "cooled")
        assert labels.setdefault(suffix, point) == point


@pytest.mark.parametrize(
    ("number", "text"), [(0.6, "1"), (999, "999"), (1000, "1k"), (1_500_000, "1.5M"), (2e9, "2G"), (3e13, "30T")]
)
def test_amounts(number: float, text: str) -> None:
    """Rounded to a whole number, then exact."""
    assert amount(number) == text


def test_a_budget_too_small_for_its_points() -> None:
    """What would have seen nothing is refused."""
    refuse_lost(points(CurveConfig(points=3)), 4, "crop")
    with pytest.raises(UsageError, check=fields(where="curve.points", found="0.5 of a budget of 2", hint="fewer")):
        refuse_lost(points(CurveConfig(points=3)), 2, "crop")
