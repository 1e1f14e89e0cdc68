"""Axes with round ends, and marks that lie where their numbers are."""

from __future__ import annotations

import re
from xml.dom import minidom

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderboard.svg import Axis, axis, interval_bar


@pytest.mark.parametrize(
    ("values", "start", "end", "step"),
    [([0.38, 0.81], 0.3, 0.9, 0.1), ([0.468, 0.49], 0.465, 0.49, 0.005), ([0.0, 1.0], 0.0, 1.0, 0.2)],
)
def test_round_ends(values: list[float], start: float, end: float, step: float) -> None:
    """By hand: the smallest round step with at most six of them."""
    found = axis(values)
    assert found is not None
    assert (found.start, found.end, found.step) == pytest.approx((start, end, step))
    assert found.ticks == pytest.approx([start + place * step for place in range(round((end - start) / step) + 1)])


@given(st.lists(st.floats(-1, 1), min_size=1))
def test_an_axis_holds_all_its_values(values: list[float]) -> None:
    """With at most seven ticks, and every value between the insets."""
    found = axis(values)
    assert found is not None
    assert found.start < found.end
    assert found.start <= min(values) + 1e-9
    assert found.end >= max(values) - 1e-9
    assert len(found.ticks) <= 8
    assert all(found.inset <= found.pixel(value) <= found.width - found.inset for value in values)


def test_no_value_no_axis() -> None:
    """A board without intervals."""
    assert axis([]) is None


def test_a_bar_lies_where_its_numbers_are() -> None:
    """Ends, value and seeds in pixels, worked out by hand: 152 pixels for the whole axis, 4 left free."""
    on = Axis(0.0, 1.0, 0.25)
    drawn = interval_bar(on, 0.25, 0.5, 0.75, [0.4, 0.6])
    minidom.parseString(drawn)  # noqa: S318 (drawn by us, a line above)
    assert 'x1="42.0" y1="9" x2="118.0"' in drawn
    assert 'cx="80.0"' in drawn
    assert 'd="M64.8 14v5M95.2 14v5"' in drawn
    assert "hollow" not in drawn


def test_one_seed_is_a_hollow_mark_without_tick() -> None:
    """The interval then says nothing of training."""
    drawn = interval_bar(Axis(0.0, 1.0, 0.25), 0.25, 0.5, 0.75, [0.5])
    assert 'class="hollow"' in drawn
    assert not re.search(r"tick|style=", drawn)
