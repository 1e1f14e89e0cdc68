"""How pages look under other circumstances: themes, paper, forced colours, a large zoom, no motion, no script."""

import re
from typing import Any

import pytest

pytestmark = pytest.mark.browser

SUITE = "suites/made-up/unsupervised.html"
PAGES = (
    "index.html",
    SUITE,
    "mini/suites/mrtydi/unsupervised.html",
    "compare/made-up-unsupervised.html#a=invented-best&b=invented-last",
    "mini/methods/crop.html",
    "mini/cost.html",
    "reported.html",
    "reported/msm.html",
    "ablations/index.html",
    "protocols/mrtydi.html",
    "substitutes/suites/made-up-two/unsupervised.html",
)


def count(expression: str, condition: str) -> str:
    """A script that counts elements by a condition on `one` and its `style`."""
    test = f"one => {{ const style = getComputedStyle(one); return {condition}; }}"
    return f"[...document.querySelectorAll('{expression}')].filter({test}).length"


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_theme(visit: Any, dark: bool) -> None:
    """The button names what it does, turns the page over, and the choice holds on the next page."""
    page = visit(SUITE, dark=dark).page
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    light, black = "rgb(255, 255, 255)", "rgb(18, 22, 27)"
    before, after = (black, light) if dark else (light, black)
    assert page.evaluate(ground) == before
    page.get_by_role("button", name="Light theme" if dark else "Dark theme").click()
    assert page.evaluate(ground) == after
    page.get_by_role("link", name="Cost").click()
    page.wait_for_url("**/cost.html")
    assert page.evaluate(ground) == after, "before the script that comes after the page"
    page.locator(".theme").wait_for()
    page.get_by_role("button", name="Dark theme" if dark else "Light theme").click()
    assert page.evaluate(ground) == before


def test_paper(visit: Any) -> None:
    """Light, all of the table, nothing to press; the columns' names stay."""
    page = visit(SUITE, dark=True).page
    page.get_by_role("button", name="Pin invented-last").click()
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") in {
        "rgb(255, 255, 255)",
        "rgba(0, 0, 0, 0)",
    }
    for control in (".theme", ".pin", "#q", "#measure", "[data-copy]", ".skip", ".site nav", "#abs"):
        assert page.locator(f"{control}:visible").count() == 0, control
    assert page.locator("#board thead [data-k=seeds]").is_visible()
    assert "Seeds" in page.locator("#board thead [data-k=seeds]").inner_text()
    style = page.locator(".scroll").first.evaluate(
        "box => [getComputedStyle(box).overflowX, getComputedStyle(box).maxHeight]"
    )
    assert style == ["visible", "none"]
    assert page.locator("#board thead").evaluate("head => getComputedStyle(head).display") == "table-header-group"


def test_forced_colours(visit: Any) -> None:
    """Significant cells keep a border where colours are taken away, and what is pressed a thicker one."""
    page = visit(f"{SUITE}#base=invented-best", forced="active").page
    assert page.locator("#heat td.s").first.evaluate("cell => getComputedStyle(cell).borderTopWidth") == "2px"
    assert page.locator("#heat td.u").first.evaluate("cell => getComputedStyle(cell).borderTopWidth") == "0px"
    page.locator("#fill").click()
    assert page.locator("#fill").evaluate("one => getComputedStyle(one).borderTopWidth") == "3px"


@pytest.mark.parametrize("width", [320, 400])
def test_a_large_zoom(visit: Any, width: int) -> None:
    """400 % of a window of 1,280: the page flows, only tables scroll, and no column is locked there."""
    page_visit = visit(width=width)
    for name in PAGES:
        page = page_visit.go(name)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, name
        locked = page.evaluate(count("table *", "style.position === 'sticky' && one.tagName !== 'CAPTION'"))
        assert (locked == 0) or width > 320, name
    assert page_visit.faults == []


def test_targets_are_large_and_nothing_moves(visit: Any) -> None:
    """What is pressed measures at least 24 pixels both ways; who wants no motion gets none."""
    page = visit(SUITE).page
    moves = count("*", "parseFloat(style.transitionDuration) > 0 || style.animationName !== 'none'")
    assert page.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"
    assert page.evaluate(moves) == 0
    small = page.evaluate(
        count("button, select, input", "one.offsetParent && Math.min(one.offsetWidth, one.offsetHeight) < 24")
    )
    assert small == 0


def test_names_keep_to_themselves(visit: Any) -> None:
    """Names of systems stand in elements that turn no text round them, and no sign of direction is left bare."""
    page = visit(SUITE).page
    assert page.locator("#board tbody tr[data-id] th bdi").count() == 6
    assert page.evaluate("getComputedStyle(document.querySelector('#board tbody bdi')).unicodeBidi") == "isolate"
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", page.content())


def test_cells_have_colours_without_a_script(visit: Any) -> None:
    """Those of the differences that are significant; that tables are whole, another test looks at on every page."""
    without = visit(SUITE, script=False).page
    significant = without.locator("#heat td.s").first
    assert significant.evaluate("cell => getComputedStyle(cell).backgroundColor") != "rgb(255, 255, 255)"
