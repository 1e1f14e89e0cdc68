"""Pages of a row, of a pair, of a method and of what there is, under a hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import csv_rows, wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

PAIR = "compare/made-up-unsupervised.html"


def row_page(html: list[str], stem: str) -> str:
    """Return the page of a row by what precedes its hash."""
    (page_name,) = [name for name in html if re.fullmatch(rf"{stem}-[0-9a-f]{{8,}}\.html", name)]
    return page_name


def sign(value: float) -> str:
    return f"{value:+.1f}".replace("-", "−")


def test_values_of_queries_come_on_request(visit: Any, html: list[str], site: Path) -> None:
    """Nothing is there until it is asked for; then the lowest first, as the CSV beside it has them; it goes again."""
    name = row_page(html, "mini/runs/mrtydi-unsupervised-bm25")
    page_visit = visit(name)
    page = page_visit.page
    item = page.locator(".queries li").first
    assert item.locator("table").count() == 0
    item.get_by_role("button", name="Show values").click()
    item.locator("table").wait_for()
    assert item.get_by_role("button").get_attribute("aria-expanded") == "true"
    beside = (site / name).parent / str(item.get_by_role("link", name="CSV").get_attribute("href"))
    csv_values = csv_rows(beside.resolve().read_text())
    heads = item.locator("thead th").all_inner_texts()
    cells = [row.locator("th, td").all_inner_texts() for row in item.locator("tbody tr").all()]
    assert len(cells) == len(csv_values) == 60
    values = [float(row[1]) for row in cells]
    assert values == sorted(values)
    by_id = {row["query"]: row for row in csv_values}
    for query, *shown in cells:
        assert shown == [f"{100 * float(by_id[query][measure]):.1f}" for measure in heads[1:]]
    item.get_by_role("button").click()
    assert item.locator("table").is_hidden()
    assert page_visit.faults == []


def test_the_command_can_be_copied(visit: Any, html: list[str]) -> None:
    """The clipboard holds what the page shows."""
    page = visit(row_page(html, "mini/runs/mrtydi-english-crop")).page
    page.get_by_role("button", name="Copy the command").click()
    wait_until(page, "document.querySelector('[role=status]').textContent === 'Copied'")
    command = page.evaluate("navigator.clipboard.readText()").strip()
    assert command == page.get_by_role("region", name="Command").inner_text().strip()
    assert command.startswith("bench run --method crop --suite mrtydi --task ar,sw,th --regime english --data mini")
    page.get_by_text("This row, its method and its benchmark, as BibTeX").click()
    page.get_by_role("button", name="Copy the entries").click()
    wait_until(page, "navigator.clipboard.readText().then((text) => text.startsWith('@misc{'))")


def test_a_pair_as_its_address_says(visit: Any, site: Path) -> None:
    """The verdict has the numbers of the table of all pairs; the other way round every sign turns."""
    page_visit = visit(f"{PAIR}#a=invented-last&b=invented-best")
    page = page_visit.page
    lead = page.locator("#pair .lead")
    assert lead.inner_text().startswith("invented-best is significantly better than invented-last")
    lost = difference(page)
    (csv_row,) = [
        row
        for row in csv_rows((site / PAIR).with_suffix(".csv").read_text())
        if not row["task"] and {row["system"], row["other"]} == {"invented-best", "invented-last"}
    ]
    value = 100 * float(csv_row["difference"]) * (1 if csv_row["system"] == "invented-last" else -1)
    assert lost == sign(value)
    assert value < 0
    page.evaluate("location.hash = '#a=invented-best&b=invented-last'")
    wait_until(page, "document.querySelector('#pair select').value === 'invented-best'")
    wait_until(page, "document.querySelector('#pair .lead').textContent.includes(': +')")
    assert difference(page) == sign(-value)
    assert page.locator("#pair svg.forest circle").count() == 11
    assert page_visit.faults == []


def difference(page: Page) -> str:
    match = re.search(r": ([+−]?[\d.]+) RR@100 points", page.locator("#pair .lead").inner_text())
    assert match
    return match[1]


def test_a_pair_of_one_s_own_choice(visit: Any) -> None:
    """The lists choose, the address follows; one system twice is no pair; unknown names are left out."""
    page = visit(f"{PAIR}#a=nobody&b=<b>&c=1").page
    first, second = page.locator("#pair select").first, page.locator("#pair select").nth(1)
    assert first.input_value() != second.input_value()
    first.select_option("invented-middle")
    second.select_option("invented-middle")
    page.get_by_text("Choose two different systems.").wait_for()
    second.select_option("invented-tied")
    page.locator("#pair .lead").wait_for()
    assert page.url.endswith("#a=invented-middle&b=invented-tied")


def test_queries_gained_and_lost(visit: Any) -> None:
    """On request: gains from above, then losses, each the difference of its two values."""
    page_visit = visit(f"{PAIR}#a=invented-tied&b=invented-best")
    page = page_visit.page
    page.get_by_role("button", name="Show queries gained and lost").click()
    table = page.locator("table", has_text="gains most")
    table.wait_for()
    rows = [
        [cell.replace("−", "-") for cell in row.locator("td").all_inner_texts()]
        for row in table.locator("tbody tr").all()
    ]
    gaps = [float(row[-1]) for row in rows]
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] > 0 > gaps[-1]
    assert all(
        abs(float(first) - float(second) - gap) < 0.11 for (first, second, _), gap in zip(rows, gaps, strict=True)
    )
    assert page_visit.faults == []


def test_grids_sort(visit: Any) -> None:
    """The grid of the first page sorts by a suite, says so, and returns."""
    page = visit("mini/index.html").page
    table = page.locator("table.grid").first
    built = table.locator("tbody tr").all_inner_texts()
    button = table.locator("thead button").nth(1)
    button.click()
    assert table.locator("[aria-sort=descending]").count() == 1
    button.click()
    button.click()
    assert table.locator("tbody tr").all_inner_texts() == built
    assert table.locator("[aria-sort]").count() == 0


def test_a_line_is_brought_out(visit: Any) -> None:
    """The focus on a name of the key dims the other lines."""
    page = visit("mini/methods/crop.html").page
    key = page.locator(".key [data-k]").first
    key.focus()
    panels = page.locator(".panels").first
    assert "focus" in str(panels.get_attribute("class"))
    assert panels.locator(".hot").count() > 0
    page.locator("h1").evaluate("() => document.activeElement.blur()")
    assert "focus" not in str(panels.get_attribute("class"))
