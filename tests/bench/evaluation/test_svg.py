"""Drawings: charts, axes and bars, and the curves of trainings that they are drawn from."""

import json
import math
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.core.files import read_sealed
from bench.evaluation.curves import MOST, curves, thinned
from bench.evaluation.results import CURVES, Entry, Heading, faults, publish
from bench.evaluation.svg import Axis, Chart, Point, Series, axis, interval_bar, line_chart
from tests.published import identified

SVG = "{http://www.w3.org/2000/svg}"


def chart(*lines: Series, title: str = "a title", notes: tuple[str, ...] = ()) -> ElementTree.Element:
    return ElementTree.fromstring(line_chart(Chart(title, notes, "pairs", "percent", lines)))  # noqa: S314 (our own text)


def line(name: str, *points: tuple[float, Sequence[float]]) -> Series:
    return Series(name, tuple(Point(x, tuple(values)) for x, values in points))


def corners(root: ElementTree.Element, at: int = 0) -> list[tuple[float, float]]:
    polyline = root.findall(f"{SVG}polyline")[at].get("points") or ""
    return [(float(x), float(y)) for x, _, y in (corner.partition(",") for corner in polyline.split())]


def texts(root: ElementTree.Element) -> list[str]:
    return ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]


def test_means_are_joined_and_seeds_are_faint() -> None:
    """Three places, two seeds: markers at means, faint ones at values; the axis is linear, then logarithmic."""
    root = chart(line("a", (300, (30.0, 50.0)), (0, (10.0, 20.0)), (100, (20.0, 20.0))))
    (x0, y0), (x100, y100), (x300, y300) = corners(root)
    assert x0 < x100 < x300
    assert (y0 - y100) / (y100 - y300) == pytest.approx((20 - 15) / (40 - 20), abs=0.02)
    dots = [dot for dot in root.findall(f"{SVG}circle") if float(dot.get("cy") or 0) < 400]
    faint = sorted(float(dot.get("cy") or 0) for dot in dots if dot.get("fill-opacity") == "0.35")
    unit = (y0 - y300) / 25
    assert faint == pytest.approx(sorted(y0 + unit * (15 - value) for value in (30, 50, 10, 20, 20, 20)), abs=0.2)
    assert {"0", "100", "300", "a title", "percent", "pairs", "a"} <= set(texts(root))
    # Up to the smallest number above 0 is one unit; from there a factor of e is one.
    root = chart(line("a", (0, (1.0,)), (100, (2.0,)), (100 * math.e, (3.0,)), (100 * math.e**3, (4.0,))))
    first, *later = (x for x, _ in corners(root))
    assert [(x - first) / (later[0] - first) for x in later] == pytest.approx([1, 2, 4], abs=0.01)


def test_counts_are_printed_short_and_as_people_read_them() -> None:
    """No `1e+06`."""
    root = chart(line("a", (62_500, (1.0,)), (1e6, (2.0,)), (2.00495e10, (3.0,))))
    assert {"62.5k", "1M", "20.05G"} <= set(texts(root))


def test_a_level_line_goes_right_across() -> None:
    """One value, no marker in the plot, at the height of that value; it takes no place on the axis."""
    root = chart(line("a", (100, (10.0,)), (200, (20.0,))), Series("b", (Point(0, (15.0,)),), level=True))
    (_, low), (_, high) = corners(root)
    levels = [node.get("d") or "" for node in root.findall(f"{SVG}path")]
    assert any(part.startswith("M64 ") and part.endswith("H732") for part in levels)
    (height,) = (float(part[4:].partition("H")[0]) for part in levels if "H" in part)
    assert height == pytest.approx((low + high) / 2, abs=0.1)
    ticks = [float(node.get("x1") or 0) for node in root.findall(f"{SVG}line") if node.get("x1") == node.get("x2")]
    assert len(ticks) == 2


def test_a_branch_has_the_colour_of_its_line() -> None:
    """Hollow squares joined by dots; the legend names the kind once, in two columns from seven entries on."""
    points = (Point(100, (10.0,)), Point(200, (20.0,)))
    stems = [Series(f"s{number}", points) for number in range(6)]
    branches = [Series(f"{stem.name}, cooled", points, branch_of=stem.name) for stem in stems]
    root = chart(*stems, *branches)
    colours = [str(node.get("stroke")) for node in root.findall(f"{SVG}polyline")]
    assert sorted(colours) == sorted([*set(colours)] * 2)
    hollow = [node for node in root.findall(f"{SVG}rect") if node.get("class") == "ground" and node.get("stroke")]
    assert len(hollow) == 6 * 2 + 1
    assert texts(root)[-7:] == [*(stem.name for stem in stems), "cooled, in the colour of its line"]
    entries = [node for node in root.iter(f"{SVG}text") if "".join(node.itertext()) in texts(root)[-7:]]
    assert len({node.get("x") for node in entries}) == 2
    assert {"1.25M"} <= set(texts(chart(line("a", (1.25e6, (1.0,)), (8, (2.0,))))))


def test_texts_are_escaped_and_apart() -> None:
    """Labels come from users; title, sentences, axis name and highest tick follow each other with room between."""
    root = chart(line("<a> & b", (1, (1.0,))), title='t < "u"', notes=("not comparable & so on",))
    assert "<a> & b" in texts(root)
    assert root.find(f"{SVG}title").text == 't < "u"'  # type: ignore[union-attr]  # there is one
    assert root.find(f"{SVG}desc").text == "not comparable & so on"  # type: ignore[union-attr]  # there is one
    style = root.find(f"{SVG}style")
    assert style is not None
    assert "prefers-color-scheme: dark" in (style.text or "")
    root = chart(line("a", (1, (1.0,)), (2, (3.0,))), notes=("one sentence", "another sentence"))
    words = ("a title", "one sentence", "another sentence", "percent", "3.0")
    heights = {"".join(node.itertext()): float(node.get("y") or 0) for node in root.iter(f"{SVG}text")}
    assert all(below - above >= 14 for above, below in pairwise(heights[word] for word in words))


values = st.lists(st.floats(0, 100), min_size=1, max_size=4)


@given(st.dictionaries(st.integers(0, 10**6), values, min_size=1, max_size=6), st.integers(1, 9))
def test_everything_stays_inside(points: dict[int, list[float]], copies: int) -> None:
    """Whatever the numbers: marks lie inside the frame, ticks of the vertical axis ascend, bytes are the same."""
    lines = [line(f"s{at}", *points.items()) for at in range(copies)]
    text = line_chart(Chart("t", ("n",), "x", "y", tuple(lines)))
    assert text == line_chart(Chart("t", ("n",), "x", "y", tuple(lines)))
    root = ElementTree.fromstring(text)  # noqa: S314 (our own text)
    width, height = float(root.get("width") or 0), float(root.get("height") or 0)
    for dot in root.iter(f"{SVG}circle"):
        assert 0 < float(dot.get("cx") or -1) < width
        assert 0 < float(dot.get("cy") or -1) < height
    grid = [node for node in root.iter(f"{SVG}line") if node.get("class") == "grid"]
    heights = [float(node.get("y1") or 0) for node in grid]
    assert all(before > after for before, after in pairwise(heights))
    for at in range(copies if len(points) > 1 else 0):
        xs = [x for x, _ in corners(root, at)]
        assert all(before <= after for before, after in pairwise(xs))


@pytest.mark.parametrize(
    ("values", "start", "end", "step"),
    [([0.38, 0.81], 0.3, 0.9, 0.1), ([0.468, 0.49], 0.465, 0.49, 0.005), ([0.0, 1.0], 0.0, 1.0, 0.2)],
)
def test_round_ends(values: list[float], start: float, end: float, step: float) -> None:
    """By hand: the smallest round step with at most six of them."""
    scale = axis(values)
    assert axis([]) is None
    assert scale is not None
    assert (scale.start, scale.end, scale.step) == pytest.approx((start, end, step))
    assert scale.ticks == pytest.approx([start + place * step for place in range(round((end - start) / step) + 1)])


@given(st.lists(st.floats(-1, 1), min_size=1))
def test_an_axis_holds_all_its_values(values: list[float]) -> None:
    """With at most seven ticks, and every value between the insets."""
    scale = axis(values)
    assert scale is not None
    assert scale.start < scale.end
    assert scale.start <= min(values) + 1e-9
    assert scale.end >= max(values) - 1e-9
    assert len(scale.ticks) <= 8
    assert all(scale.inset <= scale.pixel(value) <= scale.width - scale.inset for value in values)


def test_a_bar_lies_where_its_numbers_are() -> None:
    """Ends, value, seeds and band by hand: 152 pixels for the axis, 4 left free; one seed is a hollow mark alone."""
    on = Axis(0.0, 1.0, 0.25)
    bar = interval_bar(on, 0.25, 0.5, 0.75, [0.4, 0.6], (0.0, 0.5))
    drawing = ElementTree.fromstring(bar)  # noqa: S314 (our own text)
    assert {node.get("class", "line"): node.get("d") for node in drawing} == {
        "band": "M4.0 0H80.0V32H4.0z",
        "line": "M42.0 13H118.0",
        "value": "M80.0 13h0",
        "seeds": "M64.8 24h0M95.2 24h0",
    }
    hollow = interval_bar(on, 0.25, 0.5, 0.75, [0.5])
    assert 'class="hole"' in hollow
    assert not re.search(r"seeds|band|style=", hollow)


def log(folder: Path, *lines: dict[str, Any]) -> Path:
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_lines_of_a_log(tmp_path: Path) -> None:
    """Losses, probes and dev values against tokens, a cross-encoder's questions or steps; an empty log has no lines."""
    entries = (
        {"step": 0, "tokens": 0, "probe": {"accuracy": 0.1, "chance": 0.03}, "warnings": []},
        {"step": 5, "tokens": 50, "loss": 4.0, "learning_rate": 0.1, "gradient_norm": 2.0},
        {"step": 9, "tokens": 90, "dev": 0.5, "best_step": 9, "loss": math.nan},
        {"step": 10, "tokens": 100, "loss": 3, "probe": {"accuracy": 0.4}, "done": True},
    )
    losses, probes = {"x": [50, 100], "y": [4.0, 3]}, {"x": [0, 100], "y": [0.1, 0.4]}
    lines = {"loss": losses, "dev": {"x": [90], "y": [0.5]}, "probe accuracy": probes}
    assert curves(log(tmp_path, *entries)) == {"across": "tokens", "lines": lines}
    assert curves(log(tmp_path, {"step": 1, "loss": 1.0}))["across"] == "step"
    assert curves(log(tmp_path, {"step": 1, "questions": 8, "loss": 1.0}))["across"] == "questions"
    assert curves(log(tmp_path))["lines"] == {}
    long = curves(log(tmp_path, *({"tokens": at, "loss": float(at % 7)} for at in range(5000))))
    assert len(long["lines"]["loss"]["x"]) <= MOST


@given(st.lists(st.floats(-1e6, 1e6), max_size=2000), st.integers(4, 60))
def test_thinning_keeps_ends_and_extremes(values: list[float], most: int) -> None:
    """Few points, in order, all of them the line's own; no peak is lost."""
    points = [(float(x), y) for x, y in enumerate(values)]
    thin = thinned(points, most)
    assert len(thin) <= max(most, min(len(points), most))
    assert thin == sorted(set(thin))
    assert set(thin) <= set(points)
    assert (thin[:1], thin[-1:]) == (points[:1], points[-1:])
    assert min((y for _, y in thin), default=0) == min(values, default=0)
    assert max((y for _, y in thin), default=0) == max(values, default=0)
    assert thinned(points, max(len(points), 4)) == points


def test_a_bundle_keeps_the_curves_that_its_tasks_rest_on(tmp_path: Path) -> None:
    """Tasks merge, and so do curves; what no task names any more goes; the checksum is that of the file.

    The system is fine-tuned on pairs that each task has of its own, so tasks may rest on unlike tunings.
    """
    own_pairs = {"reader": "<made of the task>"}
    system = identified({"label": "m", "method": "m", "version": "1"}, stage="pairs", pairs=own_pairs)
    suite = {"name": "s", "version": "1", "title": "S"}
    heading = Heading(system, suite, "unsupervised", "official", "mini", 0, {"method": ""})
    for name in ("run.gz", "values.gz"):
        (tmp_path / name).write_bytes(b"")

    def entry(task: str, **keys: str) -> Entry:
        content = {"measures": {"R@1": 0.5}, "queries": 1, "keys": keys}
        training_curves = {
            key: {"stage": stage, "lines": {"loss": {"x": [1], "y": [2]}}} for stage, key in keys.items()
        }
        return Entry(task, "", content, tmp_path / "run.gz", tmp_path / "values.gz", training_curves)

    def stored_curves() -> set[str]:
        return set(json.loads((published.path.parent / CURVES).read_bytes()))

    results = tmp_path / "results"
    published = publish(results, heading, [entry("s/a", train="t", tune="a1")], ())
    published = publish(results, heading, [entry("s/b", train="t", tune="b1")], ())
    assert stored_curves() == {"t", "a1", "b1"}
    published = publish(results, heading, [entry("s/a", train="t", tune="a2")], ())
    assert stored_curves() == {"t", "a2", "b1"}
    assert faults(published.path) == []
    (published.path.parent / CURVES).write_bytes(b"{}")
    assert [fault.path.name for fault in faults(published.path)] == [CURVES]
    plain = publish(tmp_path / "plain", heading, [entry("s/a")], ())
    assert CURVES not in read_sealed(plain.path)["files"]
