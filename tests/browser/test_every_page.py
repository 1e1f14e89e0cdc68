"""Every page of a site opens from files alone, quietly, quickly, and as everyone can read it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.browser

SECONDS = 1.0
"""In which a page is there, on a machine that does nothing else."""
SLACK = 3
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}
CONTRAST = {"runOnly": ["color-contrast"]}
WIDTHS = (1280, 390)
TREES = ("mini/", "local/", "substitutes/")


def kind(name: str) -> str:
    """The family of a page, with the tree that it stands in."""
    tree = next((tree for tree in TREES if name.startswith(tree)), "")
    return f"{tree.strip('/')}-{name.removeprefix(tree).split('/')[0].removesuffix('.html')}".strip("-")


def test_the_site_has_all_kinds_of_pages(html: list[str]) -> None:
    """What follows looks at every page; here it is said which there must be."""
    kinds = {"index", "suites", "methods", "runs", "compare", "cost"}
    shared = {"reported", "protocols", "ablations"}
    expected = kinds | shared | {f"mini-{name}" for name in kinds} | {"substitutes-suites"}
    assert expected <= {kind(name) for name in html}


@pytest.mark.parametrize("width", WIDTHS)
def test_pages_are_quiet_quick_and_accessible(visit: Any, html: list[str], axe: str, width: int) -> None:
    """No error, no request but for own files, in a second, nothing that axe-core calls serious; no wider than it is."""
    faults = []
    page_visit = visit(width=width)
    for name in html:
        page = page_visit.go(name)
        took = page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd")
        if took > 1000 * SECONDS * SLACK:
            faults.append(f"{name}: loaded in {took:.0f} ms")
        wide = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
        if wide > 0:
            faults.append(f"{name}: {wide} pixels wider than a window of {width}")
        page.evaluate(axe)
        faults += [f"{name}: {fault}" for fault in serious(page, RULES)]
        page.emulate_media(color_scheme="dark")  # changes colours alone
        faults += [f"{name}, dark: {fault}" for fault in serious(page, CONTRAST)]
        page.emulate_media(color_scheme="light")
    assert faults + page_visit.faults == []


def serious(page: Any, rules: Mapping[str, Any]) -> list[str]:
    report = page.evaluate("rules => axe.run(document, {resultTypes: ['violations'], preload: false, ...rules})", rules)
    return [
        f"{violation['id']}: {violation['help']}: {'; '.join(node['html'][:160] for node in violation['nodes'][:3])}"
        for violation in report["violations"]
        if violation["impact"] in {"serious", "critical"}
    ]


@pytest.mark.parametrize("width", WIDTHS)
def test_pictures_for_a_person(visit: Any, html: list[str], pictures: Path, width: int) -> None:
    """A picture of one page of every kind, to be looked at; each shows something."""
    kinds: dict[str, str] = {}
    for name in html:
        kinds.setdefault(kind(name), name)
    for dark in (False, True):
        page_visit = visit(width=width, dark=dark)
        for title, name in kinds.items():
            target = pictures / f"{title}-{width}-{'dark' if dark else 'light'}.png"
            page_visit.go(name).screenshot(path=target, full_page=width < 1000)
            assert target.stat().st_size > 2000


def test_pages_are_whole_without_javascript(visit: Any, html: list[str]) -> None:
    """Tables are there, and no control that does nothing; further columns come by the style alone."""
    page_visit = visit(script=False)
    for name in html:
        page = page_visit.go(name)
        assert page.locator("main").inner_text().strip(), name
        assert page.locator("button:visible, select:visible, input:not(.all):visible").count() == 0, name
