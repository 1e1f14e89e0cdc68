"""A result that means harm: names are shown as text, wherever they appear."""

from typing import Any

import pytest

pytestmark = pytest.mark.browser


def test_a_name_that_means_harm_is_text(visit: Any, html: list[str]) -> None:
    """Built from what the real writer wrote: no element, no dialog, no error; the name is shown letter by letter."""
    page_visit = visit()
    shown = 0
    for name in html:
        page = page_visit.go(name)
        assert page.locator("img").count() == 0, name
        assert page.locator("[onerror]").count() == 0, name
        only_our_scripts = page.evaluate(
            "[...document.scripts].every(one => one.type === 'application/json' || one.src)"
        )
        assert only_our_scripts, name
        shown += "onerror=" in page.locator("body").inner_text()
    assert shown >= 5
    assert page_visit.faults == []


def test_a_harmful_name_stays_text_in_what_the_script_makes(visit: Any, html: list[str]) -> None:
    """Pinned, chosen, compared and asked for query by query."""
    page_visit = visit("suites/made-up/unsupervised.html")
    page = page_visit.page
    page.locator("tr[data-id^=img-src] .pin").click()
    page.locator("#base").select_option(index=3)
    assert "onerror=" in page.locator("#board [data-k=score]").inner_text()
    assert "[U+202E]" in page.locator("#board [data-k=score]").inner_text()
    (row,) = [name for name in html if name.startswith("runs/made-up-unsupervised-img")]
    page = page_visit.go(row)
    page.get_by_role("button", name="Show values").first.click()
    page.locator(".queries table").first.wait_for()
    assert "onerror=" in page.locator(".queries table").first.inner_text()
    page = page_visit.go("compare/made-up-unsupervised.html")
    page.locator("#pair select").first.select_option(index=3)
    page.locator("#pair .lead").wait_for()
    assert "onerror=" in page.locator("#pair").inner_text()
    assert page.locator("img, [onerror]").count() == 0
    assert page_visit.faults == []
