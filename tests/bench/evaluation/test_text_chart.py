"""Charts as text: as wide as they may be, with letters where the points are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.evaluation.svg import Chart, Point, Series, text_chart

VALUES = st.lists(st.floats(0, 100), min_size=1, max_size=3).map(tuple)
SERIES = st.builds(
    Series,
    st.text("abc ", min_size=1, max_size=90),
    st.lists(st.builds(Point, st.sampled_from([0.0, 1e3, 2.5e3, 1e6, 4e9]), VALUES), min_size=1, max_size=5).map(tuple),
    st.booleans(),
)


def chart(*lines: Series) -> Chart:
    return Chart("title", (), "tokens", "RR", lines)


@given(st.lists(SERIES, min_size=1, max_size=6), st.integers(40, 100))
def test_nothing_is_wider_than_it_may_be(lines: list[Series], width: int) -> None:
    """Whatever the numbers are; each line is named below."""
    drawn = text_chart(chart(*lines), width).split("\n")
    assert max(map(len, drawn)) <= width
    assert [row[2] for row in drawn[-len(lines) :]] == list("abcdef"[: len(lines)])


def test_points_lie_where_they_are() -> None:
    """Of four rows 0 to 30 is 10 a row: a rises from 0 to 30, b is level at 10, a seed of a's last point is at 20."""
    rising = Series("rising", (Point(0, (0.0,)), Point(10, (30.0, 20.0, 40.0))))
    drawn = text_chart(chart(rising, Series("level", (Point(1, (10.0,)),), level=True)), 40, 5).split("\n")
    rows = [row.partition("┤")[2] or row.partition("│")[2] for row in drawn[1:6]]
    assert drawn[0] == "RR by tokens"
    assert rows[1].endswith("a")
    assert rows[4].startswith(" a")
    assert rows[3].endswith("b")
    assert rows[3].count("-") > 20
    assert (rows[0].strip(), rows[2][-1]) == ("│", "│")
    assert drawn[7].split() == ["0", "10"]
    assert drawn[8:] == ["  a rising", "  b level"]


def test_places_that_lines_share_say_so() -> None:
    same = (Point(0, (1.0,)), Point(5, (2.0,)))
    drawn = text_chart(chart(Series("one", same), Series("two", same), Series("up", (Point(0, (3.0,)),))))
    assert drawn.count("*") == 2


def test_nothing_to_draw() -> None:
    with pytest.raises(ValueError, match="without a value"):
        text_chart(chart())
