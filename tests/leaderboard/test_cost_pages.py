"""Quality against cost: the frontier is what nothing cheaper reaches."""

import re
from itertools import combinations, pairwise

from hypothesis import given
from hypothesis import strategies as st

from leaderboard.pages.cost import Point, draw, frontier
from tests.leaderboard.conftest import Build, Publisher

POINTS = st.lists(
    st.builds(
        Point, st.text(max_size=3), st.none() | st.floats(0.001, 1e7), st.sampled_from([0.0, 0.1, 0.2, 0.5, 1.0])
    ),
    min_size=1,
    max_size=12,
)


def test_the_frontier_by_hand() -> None:
    """Untrained ones cost nothing; of two at one price the better; what is dearer and no better is left out."""
    costs = {"dear": (100, 0.9), "twin": (10, 0.48), "poor": (20, 0.45), "cheap": (10, 0.5), "bm25": (None, 0.4)}
    points = [Point(name, *cost_and_score) for name, cost_and_score in costs.items()]
    assert [point.name for point in frontier(points)] == ["bm25", "cheap", "dear"]


@given(POINTS)
def test_nothing_beats_the_frontier(points: list[Point]) -> None:
    """Every point is matched by one of the frontier that costs no more; along it scores only rise; all are drawn."""
    assert draw(points, "<told>").count("<circle") == len(points)
    best = frontier(points)
    assert all(
        any((rival.cost or 0) <= (point.cost or 0) and rival.score >= point.score for rival in best) for point in points
    )
    assert [rival.score for rival in best] == sorted({rival.score for rival in best})


def test_the_page_lists_what_it_draws(publish_result: Publisher, site: Build) -> None:
    """A row that was trained for an unknown time is left out; a mark's number is its row's. No cost, no page."""
    publish_result("bm25", {"made/a": {"": [0.4, 0.4]}})
    assert "cost.html" not in site()
    publish_result("unknown", {"made/a": {"": [0.9, 0.9]}}, system={"budget": 5})
    metadata = {"train": {"seconds": 3600.0, "tokens": 5, "flops": 2.0}, "encode": {"vectors": 1000, "dimensions": 128}}
    subset = {"metadata": metadata, "seconds": {"encode": 50.0, "encode-2": 4.0, "search": 7.0}}
    publish_result("crop", {"made/a": {"": [0.6, 0.6]}}, system={"budget": 5}, subset=subset)
    page = site()["cost.html"].decode()
    assert '<td class="n">54 s</td><td class="n">7 s</td><td class="n">500.0 KiB</td>' in page
    assert '<text class="name"' in page
    assert "Each of these scores higher than every cheaper system: bm25 (40.0, not trained) and crop (60.0, " in page
    assert page.count("<circle") == page.count("<tr data-k=") == 2
    assert "unknown" not in page.partition("<main")[2]


def test_the_axis_has_times_that_people_say() -> None:
    """From the last round time below to the first above, also for one point that lies on one."""
    shown = {(6_480.0, 11_160.0): ["1 h", "3 h", "10 h"], (60.0,): ["1 min", "3 min"], (4, 45): ["3 s", "10 s", "30 s"]}
    for costs, numbers in shown.items():
        svg = draw([Point("x", cost, 0.5) for cost in costs], "x")
        assert re.findall(r">([\d.]+ (?:s|min|h))</text>", svg)[: len(numbers)] == numbers


def test_no_name_lies_on_another() -> None:
    """Twelve systems of one cost and score: each name is there, on a line of its own."""
    points = [Point(f"system-{at}", 100.0, 0.5) for at in range(12)]
    for kind, high in (("name", 13), ("number", 26)):
        lines = sorted(map(float, re.findall(f'<text class="{kind}" x="[^"]*" y="([^"]*)"', draw(points, "x"))))
        assert len(lines) == 12
        crowd = draw([*points, *(Point(f"more-{at}", 100.0 + at, 0.4) for at in range(20))], "x")
        assert crowd.count(f'class="{kind}"') == 1, "of more than 30 systems, that of the frontier alone"
        assert all(below - above >= high - 0.1 for above, below in pairwise(lines))


def test_no_name_lies_on_a_mark_or_a_name_beside_it() -> None:
    """Scores and seconds of SciFact's rows, as the committed rows have them; boxes of letters 7 pixels wide."""
    rows: dict[str, tuple[float | None, float]] = {
        "bm25": (None, 67.8),
        "all-MiniLM-L6-v2": (None, 64.5),
        "mlm@init": (None, 14.5),
        "contriever": (58, 14.6),
    }
    rows |= {"simcse": (77, 10.3), "crop": (88, 10.4), "ccp": (92, 14.0), "ict": (92.5, 13.5), "auto-mlm": (100, 7.6)}
    rows |= {"msm": (123, 13.1), "mlm": (135, 9.4)}
    drawing = draw([Point(name, cost, score / 100) for name, (cost, score) in rows.items()], "x")
    marks = [tuple(map(float, mark)) for mark in re.findall(r'<circle[^>]* cx="([^"]*)" cy="([^"]*)"', drawing)]
    names = re.findall(r'<text class="name" x="([^"]*)" y="([^"]*)"( text-anchor="end")?>([^<]*)<', drawing)
    assert len(marks) == len(names) == len(rows)
    boxes = []
    for x, y, at_end, name in names:
        start = float(x) - 7 * len(name) * bool(at_end)
        boxes.append((start, start + 7 * len(name), float(y) - 9, float(y) + 2))
    for (left, right, top, bottom), (left2, right2, top2, bottom2) in combinations(boxes, 2):
        assert right <= left2 or right2 <= left or bottom <= top2 or bottom2 <= top
    for left, right, top, bottom in boxes:
        assert not [(x, y) for x, y in marks if left - 4 < x < right + 4 and top - 4 < y < bottom + 4]
