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
from leaderboard.site.site import Catalogue, MethodCard
from leaderboard.site.verify import errors
from tests.leaderboard.conftest import Publisher, site_of

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
    card = MethodCard("crop", "1", "", "Someone (arXiv 2302.01626).", "", {}, "MIT", "https://github.com/some/one")
    for code, shown in (
        (card.code, '<a href="https://github.com/some/one">some/one</a>'),
        ("javascript:x", "javascript:x"),
    ):
        site = replace(site_of(results, Catalogue({"crop": replace(card, code=code)})), built="2026-11-23")
        page = build.files(site)[f"{STEM}.html"].decode()
        cells = ["2026-11-23", "MIT", '<a href="https://arxiv.org/abs/2302.01626">arxiv.org/abs/2302.01626</a>', shown]
        assert "".join(f"<td>{cell}</td>" for cell in cells) in page
        page_data = json.loads(page.partition('id="board-data">')[2].partition("</script>")[0])
        assert page_data["about"] == [f"crop crop 2026-11-23 mit https://arxiv.org/abs/2302.01626 {code}"]


def test_every_key_is_declared_once_a_view() -> None:
    """Two columns of one key in one view would hide each other."""
    for view in (View.CSV, View.JSON, View.PAGE, View.PRINT):
        keys = [column.key for column in columns.COLUMNS if view in column.views]
        assert len(keys) == len(set(keys))
