"""The last look at a site: every kind of fault, put in by hand, is found."""

from dataclasses import replace
from pathlib import Path

import pytest

from leaderboard.build import files
from leaderboard.site.render import SCRIPT, STYLE
from leaderboard.site.verify import errors, too_large
from tests.conftest import cases
from tests.leaderboard.conftest import Publisher, site_of

PAGE = "suites/made/unsupervised.html"


@pytest.fixture
def good(publish_result: Publisher, results: Path, board_pages: None) -> dict[str, bytes]:
    """A site without faults: two systems, of which one lacks a task, and names that need escapes."""
    system = {"method": "crop"}
    publish_result("crop & <co>", {"made/a": {"": [0.5, 0.7, 0.1]}, "made/b": {"": [0.25, 0.75, 0.5]}}, system=system)
    publish_result(
        "=bm25", {"made/a": {"": [0.4, 0.2, 0.3]}, "made/b": {"": [0.3, 0.1, 0.2]}}, system={"method": "bm25"}
    )
    publish_result("part", {"made/a": {"": [0.4, 0.2, 0.3]}})
    return files(replace(site_of(results), built="2026-01-01"))


def changed(files: dict[str, bytes], name: str, old: str, new: str) -> list[str]:
    """The faults after one text of a page was replaced."""
    content = files[name].decode()
    assert old in content
    return list(errors({**files, name: content.replace(old, new, 1).encode()}))


@pytest.mark.parametrize(("old", "new", "sentence"), cases("what-is-wrong-in-a-page"))
def test_what_is_wrong_in_a_page(good: dict[str, bytes], old: str, new: str, sentence: str) -> None:
    """A number that differs from its CSV, a filled gap, a row or link that leads nowhere, what would be fetched."""
    assert list(errors(good)) == [], "as it is built"
    faults = changed(good, PAGE, old, new)
    assert any(sentence in fault for fault in faults), faults


def test_a_rank_and_an_interval(good: dict[str, bytes]) -> None:
    """Changed in the CSV instead."""
    name = "suites/made/unsupervised.csv"
    lines = good[name].decode().splitlines()
    cells = lines[1].split(",")
    cells[12:15] = ["0.000001", "0.999999", "7"]
    faults = list(errors({**good, name: "\n".join([lines[0], ",".join(cells), *lines[2:]]).encode()}))
    assert any("interval; its CSV says [0.0, 100.0]" in fault for fault in faults), faults
    assert any("rank; its CSV says 7" in fault for fault in faults), faults


def test_links_of_readers_may_lead_out_and_carry_state(good: dict[str, bytes]) -> None:
    """A paper on the web; a view in the fragment."""
    assert changed(good, PAGE, 'href="#protocol"', 'href="https://example.org/paper"') == []
    assert changed(good, PAGE, 'href="#protocol"', 'href="#sort=-a&amp;pin=crop"') == []


def test_a_style_that_fetches(good: dict[str, bytes]) -> None:
    """By whatever way; names of XML languages are no addresses."""
    for name, added in (
        (STYLE, b"@import 'x'"),
        (STYLE, b"a { b: url(x) }"),
        (SCRIPT, b"fetch('https://example.org')"),
    ):
        assert any("fetches nothing" in fault for fault in errors({**good, name: good[name] + added}))
    svg = good[SCRIPT] + b"const svg = 'http://www.w3.org/2000/svg';"
    assert list(errors({**good, SCRIPT: svg})) == []


BUDGETS = {"index.html": 120, "mini/index.html": 120, PAGE: 200, "runs/x.html": 40, "cost.html": 500}


@pytest.mark.parametrize(("name", "most"), [*BUDGETS.items(), (STYLE, 20), (SCRIPT, 25), ("data/q/x.js", 300)])
def test_budgets(name: str, most: int) -> None:
    """A byte too many is too large."""
    assert too_large({name: b"x" * (most << 10)}) == []
    assert too_large({name: b"x" * ((most << 10) + 1)}) == [(name, (most << 10) + 1, most << 10)]
