"""The page of a suite under a hand: sort, filter, pin, measure, baseline, copy, download, keyboard, its address."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.browser.conftest import csv_rows, wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.browser

SUITE = "suites/made-up/unsupervised"
MINI = "mini/suites/mrtydi/unsupervised"
BUILT = ["invented-best", "invented-tied", "invented-middle", "<img", "invented-last", "invented-unfinished"]
"""The rows in the order of rank; the last one lacks tasks."""


@pytest.fixture
def board(visit: Any) -> Iterator[Page]:
    """The page, which must not have complained when the test is over."""
    page_visit = visit(f"{SUITE}.html")
    yield page_visit.page
    assert page_visit.faults == []


def names(page: Page, table: str = "board") -> list[str]:
    """What visible rows are called, shortened to what tells them apart."""
    row_names = page.locator(f"#{table} tbody tr[data-id]:visible th").all_inner_texts()
    return [re.sub(r"^[☆★]\s*|\s*●.*$", "", name).split()[0] for name in row_names]


def column(page: Page, key: str, table: str = "board") -> list[str]:
    """What visible rows show in a column; nothing where a cell spans several."""
    place = page.locator(f"#{table} thead tr:first-child > *").evaluate_all(
        "(heads, key) => heads.findIndex(head => head.dataset.k === key)", key
    )
    rows = page.locator(f"#{table} tbody tr[data-id]:visible")
    return [
        row.locator("td, th").nth(place).inner_text() for row in rows.all() if row.locator("[colspan]").count() == 0
    ]


def head(page: Page, key: str, table: str = "board") -> Locator:
    return page.locator(f"#{table} thead [data-k={key}]")


def press(page: Page, key: str, table: str = "board") -> None:
    head(page, key, table).locator("button").click()


def live(page: Page) -> str:
    """What a screen reader hears."""
    return page.locator("[role=status][aria-live=polite]").inner_text()


def test_sort(board: Page) -> None:
    """Numbers from above, the other way, as built, stably and in both tables; one header says so, and a voice.

    What is missing stays last both ways, and its cell says why.
    """
    assert names(board) == BUILT
    press(board, "score")
    assert names(board) == BUILT
    assert head(board, "score").get_attribute("aria-sort") == "descending"
    assert "sorted by score, descending" in live(board)
    assert "6 of 6 rows" in live(board)
    press(board, "score")
    assert names(board) == [*BUILT[4::-1], BUILT[5]]
    assert head(board, "score").get_attribute("aria-sort") == "ascending"
    press(board, "score")
    assert names(board) == BUILT
    assert board.locator("[aria-sort]").count() == 0
    assert "by rank" in live(board)
    press(board, "seeds")  # which are equal for four rows
    assert names(board)[:4] == BUILT[:4]
    press(board, "t3", "heat")
    assert board.locator("[aria-sort]").count() == 1
    assert names(board) == names(board, "heat")
    values = [float(cell.split()[0].replace("−", "-").replace("+", "")) for cell in column(board, "t3", "heat")[:5]]
    assert values == sorted(values, reverse=True)
    for _ in range(2):
        press(board, "t11", "heat")
        assert names(board, "heat")[-1] == "invented-unfinished"
    cell = board.locator("#heat tr[data-id=invented-unfinished] td").last
    assert cell.inner_text().startswith("—")
    assert "not run" in (cell.text_content() or "")


def test_filter(board: Page) -> None:
    """It hides rows of both tables, says how many of how many, can be cleared, and changes no rank."""
    ranks = dict(zip(names(board), column(board, "rank"), strict=False))
    assert board.locator("#clear").is_hidden()
    board.locator("#q").fill("MIDDLE")
    assert names(board) == names(board, "heat") == ["invented-middle"]
    assert column(board, "rank") == [ranks["invented-middle"]]
    assert board.locator("#count").inner_text() == "1 of 6 rows; ranks over all 6"
    board.locator("#q").fill("last INVENTED")
    assert names(board) == ["invented-last"], "every word"
    board.locator("#q").fill("Invented")
    assert names(board) == BUILT, "by method, too"
    board.locator("#clear").click()
    assert names(board) == BUILT
    assert board.evaluate("document.activeElement.id") == "q"
    assert board.url.endswith(("#", ".html"))


def test_pin(board: Page) -> None:
    """One pinned row turns scores into paired differences with their intervals; two lead to their comparison."""
    before = column(board, "score")
    ends = column(board, "interval")
    board.get_by_role("button", name="Pin invented-middle").click()
    assert names(board)[0] == "invented-middle"
    assert "invented-middle" in head(board, "score").inner_text()
    gaps = dict(zip(names(board), column(board, "score"), strict=False))
    assert gaps["invented-middle"] == "0.0"
    csv_values = csv_rows((Path(board.url.partition("#")[0].removeprefix("file://")).with_suffix(".csv")).read_text())
    score = {row["system"].split()[0].lstrip("'"): float(row["score"] or "nan") for row in csv_values}
    for name in ("invented-best", "invented-last"):
        gap = 100 * (score[name] - score["invented-middle"])
        assert gaps[name] == f"{gap:+.1f}".replace("-", "−")
    best = dict(zip(names(board), column(board, "interval"), strict=False))["invented-best"]
    low, high = (float(end) for end in re.findall(r"[\d.]+", best))
    assert low < 100 * (score["invented-best"] - score["invented-middle"]) < high
    board.get_by_role("button", name="Pin invented-last").click()
    assert names(board)[:2] == ["invented-middle", "invented-last"]
    assert board.locator("#pair").get_attribute("href") == (
        "../../compare/made-up-unsupervised.html#a=invented-middle&b=invented-last"
    )
    board.locator("#unpin").click()
    assert (names(board), column(board, "score"), column(board, "interval")) == (BUILT, before, ends)


def test_measure_switch(board: Page) -> None:
    """Scores of the other measure, which has no test: no interval, and the page says whose the ranks are."""
    before = column(board, "score")
    board.locator("#measure").select_option("R@100")
    json_board = json.loads(
        (Path(board.url.partition("#")[0].removeprefix("file://")).with_suffix(".json")).read_text()
    )
    assert all(float(new) > float(old) for new, old in zip(column(board, "score"), before, strict=True))
    assert set(column(board, "interval")) == {"—"}
    assert "are of RR@100" in board.locator("#count").inner_text()
    assert json_board["measure"] == "RR@100"
    board.locator("#measure").select_option("RR@100")
    assert column(board, "score") == before


@pytest.mark.parametrize("stem", [SUITE, MINI])
def test_every_view_of_the_map_shows_every_cell(visit: Any, stem: str) -> None:
    """Below each task's head, in differences, in values, and with all cells filled; the caption says which it is."""
    page = visit(f"{stem}.html").page
    titles = page.locator("#heat thead tr:first-child > *").count()
    places = "row => Array.from(row.cells, cell => cell.offsetParent ? Math.round(cell.getBoundingClientRect().x) : -1)"
    below = page.locator("#heat thead tr:first-child").evaluate(places)
    for pressed, unit in (
        ((), "points"),
        (("#abs",), "percent"),
        (("#abs", "#fill"), "points"),
        (("#abs",), "percent"),
    ):
        for button in pressed:
            page.locator(button).click()
        rows = page.locator("#heat tbody tr[data-id]")
        assert [rows.nth(place).evaluate(places) for place in range(rows.count())] == [below] * rows.count()
        assert all(len(re.findall(r"\d\.\d", text)) == 1 for text in rows.locator("td[class*=a]").all_inner_texts())
        assert titles == len(below)
        assert unit in page.locator("#view").inner_text()
        assert page.locator("#by-gap").is_visible() == (unit == "points") != page.locator("#by-value").is_visible()


def test_the_least_important_cells_have_the_weakest_mark(board: Page) -> None:
    """A small difference that is not significant has no line; a significant one is bold in every shade."""
    board.locator("#base").select_option("invented-best")
    lines = "cell => getComputedStyle(cell).borderBottomColor"
    weak = board.locator("#heat td.u.d3").first
    assert weak.evaluate(lines) == "rgba(0, 0, 0, 0)"
    clear = board.locator("#heat td.s b").first
    assert clear.evaluate("one => getComputedStyle(one).fontWeight") == "600"


def test_map(board: Page) -> None:
    """Another baseline, its own row without a colour; absolute values; every cell filled."""
    board.locator("#base").select_option("invented-best")
    row = board.locator("#heat tr[data-id=invented-best] td")
    assert {cell.split()[0] for cell in row.all_inner_texts()} == {"0.0"}
    assert board.locator("#heat tr[data-id=invented-best] td[class*=' d']").count() == 0
    gap = board.locator("#heat tr[data-id=invented-last] td").first
    assert gap.inner_text().startswith("−")
    board.locator("#abs").click()
    assert board.locator("#abs").get_attribute("aria-pressed") == "true"
    assert re.fullmatch(r"\d+\.\d", gap.inner_text().strip())
    board.locator("#abs").click()
    under = board.locator("#heat td.u").first
    plain = under.evaluate("cell => getComputedStyle(cell).backgroundColor")
    board.locator("#fill").click()
    assert under.evaluate("cell => getComputedStyle(cell).backgroundColor") != plain


def test_regimes_are_links(board: Page) -> None:
    """The switch of regimes leads to the other page and says which is this one; a filter stays behind."""
    board.locator("#q").fill("best")
    chips = board.get_by_role("navigation", name="Regime")
    assert chips.locator("[aria-current=page]").inner_text() == "unsupervised"
    chips.get_by_role("link", name="english").click()
    assert board.url.endswith("/suites/made-up/english.html")
    assert board.locator("#q").input_value() == ""
    assert len(names(board)) == 5


def test_state_lies_in_the_fragment(board: Page, visit: Any) -> None:
    """What was chosen can be sent to somebody, survives a reload, and follows a change of the address."""
    press(board, "seeds")
    board.locator("#q").fill("invented")
    board.get_by_role("button", name="Pin invented-last").click()
    board.locator("#abs").click()
    fragment = board.url.partition("#")[2]
    assert set(fragment.split("&")) == {"sort=-seeds", "q=invented", "pin=invented-last", "view=abs"}
    row_names = names(board)
    board.reload()
    assert names(board) == row_names
    assert visit(f"{SUITE}.html#{fragment}").page.locator("#q").input_value() == "invented"
    board.evaluate("location.hash = '#sort=-score&pin=nobody,invented-tied&base=none&nothing=1&measure=XX&sort=<b>'")
    wait_until(board, "document.querySelector('#q').value === ''")
    assert names(board)[0] == "invented-tied"
    assert head(board, "score").get_attribute("aria-sort") == "descending"
    assert board.locator("#measure").input_value() == "RR@100"


@pytest.mark.parametrize("kind", ["CSV", "LaTeX", "Markdown"])
def test_copy_view(board: Page, kind: str) -> None:
    """The clipboard holds the rows that are seen, in their order, with what they are."""
    board.locator("#q").fill("invented-")
    press(board, "rank")
    press(board, "rank")
    board.locator(f"[data-copy={kind}][data-of=board]").click()
    wait_until(board, "text => document.querySelector('[role=status]').textContent === text", arg=f"copied as {kind}")
    text = board.evaluate("navigator.clipboard.readText()")
    assert "RR@100, percent; Made-up (11 tasks), official data" in text.replace("\\_", "_")
    shown = dict(zip(names(board), column(board, "score"), strict=False))
    places = [text.index(name) for name in shown]
    assert places == sorted(places)
    assert all(f"{value}" in text for value in shown.values())
    assert "ranks and tests over all 6 rows" in text
    if kind == "CSV":
        assert [row["System"] for row in csv_rows(text)] == names(board)
        assert [row["Avg., %"] for row in csv_rows(text)][:4] == column(board, "score")
    elif kind == "LaTeX":
        assert r"\textbf{invented-best}" in text
        assert r"\toprule" in text
    else:
        assert "| **invented-best** |" in text
    board.locator("#q").fill("img")  # a name that is no code: its signs are not bare
    board.locator(f"[data-copy={kind}][data-of=board]").click()
    wait_until(board, "async () => (await navigator.clipboard.readText()).includes('img')")
    bare = {"LaTeX": "&amp", "Markdown": "<img"}.get(kind)
    assert not bare or not re.search(rf"(?<!\\){re.escape(bare)}", board.evaluate("navigator.clipboard.readText()"))


@pytest.mark.parametrize("stem", [SUITE, MINI])
def test_downloads_hold_the_numbers_of_the_table(visit: Any, site: Path, stem: str) -> None:
    """The files behind the links have the rows, scores and tasks that the page shows."""
    page = visit(f"{stem}.html").page
    with page.expect_download() as waiting:
        page.locator("#files").get_by_role("link", name="CSV", exact=True).click()
    text = Path(waiting.value.path()).read_text(encoding="utf-8")
    assert text == (site / f"{stem}.csv").read_text(encoding="utf-8")
    csv_values = csv_rows(text)
    assert [f"{100 * float(row['score']):.1f}" for row in csv_values if row["score"]] == column(page, "score")
    scores, cells = column(page, "score"), page.locator("#heat tbody td:last-child i").all_text_contents()
    task = list(csv_values[0])[-1]
    assert [f"{100 * float(row[task]):.1f}" for row in csv_values if row[task]] == cells
    page.locator("#files").get_by_role("link", name="JSON", exact=True).click()  # shown, where it is a file: address
    rows = json.loads(page.locator("pre").inner_text())["rows"]
    assert [f"{100 * row['score']:.1f}" for row in rows if row["score"] is not None] == scores


def tab(page: Page, until: str, key: str = "Tab") -> None:
    """Go on with the keyboard until what has the focus fits a selector; it must show that it has it."""
    for _ in range(60):
        page.keyboard.press(key)
        if page.evaluate("what => document.activeElement.matches(what)", until):
            break
    else:
        pytest.fail(f"the keyboard does not come to {until}")
    focused = page.evaluate(
        """() => {
            const one = document.activeElement, box = one.getBoundingClientRect(), style = getComputedStyle(one);
            const middle = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
            return [style.outlineStyle, parseFloat(style.outlineWidth), one.contains(middle) || one === middle];
        }"""
    )
    assert focused[0] != "none", until
    assert focused[1] >= 2, until
    assert focused[2], f"something lies over {until}"


def test_keyboard(board: Page) -> None:
    """Skip link, filter, header, row, pin, copy: each can be reached, is seen, and acts; the window is low."""
    board.set_viewport_size({"width": 700, "height": 320})
    tab(board, ".skip")
    board.keyboard.press("Enter")
    assert board.evaluate("document.activeElement.id") == "main"
    tab(board, "#q")
    board.keyboard.type("invented-")
    assert len(names(board)) == 5
    tab(board, "thead [data-k=seeds] button")
    board.keyboard.press("Enter")
    assert head(board, "seeds").get_attribute("aria-sort") == "descending"
    tab(board, "tr[data-id=invented-last] th a")
    tab(board, "tr[data-id=invented-last] .pin", "Shift+Tab")
    board.keyboard.press("Space")
    assert board.evaluate("document.activeElement.getAttribute('aria-label')") == "Pin invented-last"
    assert board.evaluate("document.activeElement.getAttribute('aria-pressed')") == "true"
    tab(board, "[data-copy=Markdown][data-of=board]")
    board.keyboard.press("Enter")
    wait_until(board, "document.querySelector('[role=status]').textContent === 'copied as Markdown'")


def test_the_head_of_a_low_table_hides_no_row(board: Page) -> None:
    """Back from the end of the table, what has the focus stands below the sticky header and beside the first column."""
    board.set_viewport_size({"width": 700, "height": 300})
    board.locator("#base").focus()
    tables = 0
    for _ in range(40):
        board.keyboard.press("Shift+Tab")
        clear = board.evaluate(
            """() => {
                const one = document.activeElement;
                if (!one.closest("#board tbody")) return null;
                return one.getBoundingClientRect().top - one.closest("table").tHead.getBoundingClientRect().bottom;
            }"""
        )
        if clear is not None:
            tables += 1
            assert clear >= 0
    assert tables >= 10


def test_further_columns_come_on_demand(visit: Any) -> None:
    """Few are there at first; all are when the box is ticked, without the script as well."""
    for script in (True, False):
        page = visit(f"{SUITE}.html", script=script).page
        shown = page.locator("#board thead th:visible")
        few = shown.count()
        assert page.locator("#board thead th.extra").count() > 2
        page.locator(".few .all").last.check()
        assert shown.count() == few + page.locator("#board thead th.extra").count()
