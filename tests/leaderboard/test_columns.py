"""A column is declared once: pages, files and prints follow, and the site is checked by the same declaration."""

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from leaderboard import build
from leaderboard.site import columns
from leaderboard.site.columns import BoardColumn, View
from leaderboard.site.site import Catalogue
from leaderboard.site.verify import errors
from tests.leaderboard.conftest import Publisher, method_of, site_of

STEM = "suites/made/unsupervised"


@pytest.fixture
def built(
    publish_result: Publisher, results: Path, monkeypatch: pytest.MonkeyPatch, board_pages: None
) -> Callable[..., dict[str, bytes]]:
    """Build the pages of two suites' systems with further columns; one of the systems lacks a task."""

    def call(*added: BoardColumn) -> dict[str, bytes]:
        monkeypatch.setattr(columns, "COLUMNS", (*columns.COLUMNS, *added))
        publish_result("crop", {"made/a": {"": [0.5, 0.75]}, "made/b": {"": [0.5, 0.25]}})
        publish_result("part", {"made/a": {"": [0.5, 0.25]}})
        return build.files(site_of(results))

    return call


def test_a_column_is_added_at_one_place(built: Callable[..., dict[str, bytes]]) -> None:
    """One declaration, and it is on the page, in CSV, JSON, LaTeX and Markdown; the build's own check reads it."""
    pages = built(BoardColumn("runs", "Runs", value=lambda line: 1000 * len(line.row.tasks)))
    page = pages[f"{STEM}.html"].decode()
    assert 'data-k="runs" class="n">Runs</th>' in page
    assert '<td class="n">2,000</td>' in page
    assert [row["runs"] for row in csv.DictReader(pages[f"{STEM}.csv"].decode().splitlines())] == ["2000", "1000"]
    assert [row["runs"] for row in json.loads(pages[f"{STEM}.json"])["rows"]] == [2000, 1000]
    assert "| runs |" in pages[f"{STEM}.md"].decode()
    assert "& 2,000" in pages[f"{STEM}.tex"].decode()
    assert list(errors(pages)) == []
    wrong = page.replace('<td class="n">2,000</td>', '<td class="n">2,001</td>')
    assert any("crop, runs" in fault for fault in errors({**pages, f"{STEM}.html": wrong.encode()}))


def test_a_column_may_choose_its_views(built: Callable[..., dict[str, bytes]]) -> None:
    """A share in percent, in files and on the page; an optional column without a value is not on the page."""
    share = BoardColumn("share", "Share", value=lambda line: len(line.row.tasks) / 2, percent=True)
    pages = built(
        BoardColumn("part", "Part", value=share.value, percent=True, views=View.CSV | View.PAGE),
        BoardColumn("none", "None", value=lambda _: None, views=View.PAGE, optional=True),
    )
    page = pages[f"{STEM}.html"].decode()
    assert "Part, %</th>" in page
    assert '<td class="n" data-v="0.5">50.0</td>' in page
    assert 'data-k="none"' not in page
    assert b"part" in pages[f"{STEM}.csv"].splitlines()[0]
    assert all("part" not in row for row in json.loads(pages[f"{STEM}.json"])["rows"])
    assert "| part |" not in pages[f"{STEM}.md"].decode().split("\n")[2]


def test_a_row_says_whose_it_is_and_the_filter_knows(
    publish_result: Publisher, results: Path, board_pages: None
) -> None:
    """Day, licence, paper and code, from the site and the method's plugin; what is no address is no link."""
    publish_result("crop", {"made/a": {"": [0.5, 0.75]}})
    address, citation = "https://github.com/some/one", "Someone (arXiv 2302.01626)."
    card = method_of("crop", citation=citation, licence="MIT", code=address)
    for code, shown in (
        (card.code, '<a href="https://github.com/some/one">some/one</a>'),
        ("javascript:x", "javascript:x"),
    ):
        site = replace(site_of(results, Catalogue({"crop": replace(card, code=code)})), built="2026-11-23")
        page = build.files(site)[f"{STEM}.html"].decode()
        cells = ["2026-11-23", "MIT", '<a href="https://arxiv.org/abs/2302.01626">arxiv.org/abs/2302.01626</a>', shown]
        assert "".join(f'<td class="extra">{cell}</td>' for cell in cells) in page
        page_data = json.loads(page.partition('id="board-data">')[2].partition("</script>")[0])
        assert page_data["about"] == [f"crop crop 2026-11-23 mit https://arxiv.org/abs/2302.01626 {code}"]


def test_every_key_is_declared_once_a_view() -> None:
    """Two columns of one key in one view would hide each other."""
    for view in (View.CSV, View.JSON, View.PAGE, View.PRINT):
        keys = [column.key for column in columns.COLUMNS if view in column.views]
        assert len(keys) == len(set(keys))


def test_there_is_room_for_columns_between() -> None:
    """Places for people are multiples of five, but for those that describe a row."""
    others = dict.fromkeys(("backbone", "parameters", "dimensions", "corpus", "budget"), 92)
    others |= dict.fromkeys(("date", "licence", "reference", "code"), 92)
    places = {column.key: column.place for column in columns.COLUMNS if View.PEOPLE & column.views}
    assert {key: place for key, place in places.items() if place % 5} == others
    assert BoardColumn("own").place == places["checked"] == 90, "before what describes a row"
    order = "system data rank score bar interval gain tied seeds cost paper marks checked backbone"
    assert sorted(places, key=lambda key: places[key])[: len(order.split())] == order.split()


HEADS = {
    "rank": "Rank",
    "score": "{headline}",
    "bar": "",
    "interval": "95 % interval",
    "gain": "Gain over start",
    "tied": "Tied",
    "seeds": "Seeds",
    "cost": "Training",
    "paper": "Paper",
    "marks": "Marks",
    "checked": "Checked",
    "backbone": "Backbone",
    "parameters": "Parameters",
    "dimensions": "Dimensions",
    "corpus": "Corpus",
    "budget": "Budget",
    "date": "Date",
    "licence": "Licence",
    "reference": "Reference",
    "code": "Code",
}


def test_heads_of_the_columns_of_a_page() -> None:
    """What scripts call a column, and what people read above it."""
    assert {column.key: column.head for column in columns.COLUMNS if View.PAGE in column.views} == HEADS


def test_a_board_for_programs_is_json_a_value_a_line(built: Callable[..., dict[str, bytes]]) -> None:
    """So that a difference between two states of a site is readable; letters of all scripts as they are."""
    pages = built()
    content = json.loads(pages[f"{STEM}.json"])
    assert pages[f"{STEM}.json"] == (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode()


def test_heads_in_print_are_small(built: Callable[..., dict[str, bytes]]) -> None:
    """But those of measures and tasks, which are names."""
    lines = built()[f"{STEM}.md"].decode().splitlines()
    heads = next(line for line in lines if line.startswith("| ")).strip("| ").split(" | ")
    assert heads[0] == "system"
    assert {"a", "b"} <= {*heads}
    assert "95 % interval" in heads or "interval" in heads


def test_a_number_is_read_from_the_csv_where_the_column_holds_numbers() -> None:
    """A name of digits stays as it is written; a count gets its comma."""
    assert BoardColumn("count", number=True).by_csv({"count": "1200"}) == "1,200"
    assert BoardColumn("version", number=False).by_csv({"version": "007"}) == "007"
    assert BoardColumn("count").by_csv({}) is None
