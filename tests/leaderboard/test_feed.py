"""The feed of new rows: a row's day is that of the build which first showed it."""

import json
from pathlib import Path
from xml.dom import minidom

import pytest

from leaderboard.build import build
from tests.leaderboard.conftest import Publisher

pytestmark = pytest.mark.usefixtures("board_pages")


def told(path: Path) -> list[tuple[str, str, str]]:
    root = minidom.parse(str(path)).documentElement  # noqa: S318 (written by the build under test)
    assert root is not None
    assert root.namespaceURI == "http://www.w3.org/2005/Atom"
    found = []
    for one in root.getElementsByTagName("entry"):
        text = {name: one.getElementsByTagName(name)[0].firstChild for name in ("title", "updated", "id")}
        words = {name: str(node.nodeValue) for name, node in text.items() if node is not None}
        assert words["id"].startswith("urn:sha256:")
        found.append((words["title"], words["updated"], one.getElementsByTagName("link")[0].getAttribute("href")))
    return found


def test_days_stay(made: Publisher, results: Path, tmp_path: Path) -> None:
    """Built on a day, with a new row on another; names are escaped; the newest stands first."""
    made('<b> & "co"', {"made/a": {"": [0.5, 0.25]}}, about={"method": "crop"})
    build(results, tmp_path / "site", built="2026-01-01")
    page = "suites/made/unsupervised.html"
    first = ('<b> & "co" on Made, unsupervised: 37.5 RR@100', "2026-01-01T00:00:00Z", page)
    assert told(tmp_path / "site" / "feed.xml") == [first]
    made("crop", {"made/a": {"": [1.0, 0.5]}})
    build(results, tmp_path / "site", built="2026-02-01")
    second = ("crop on Made, unsupervised: 75.0 RR@100", "2026-02-01T00:00:00Z", page)
    assert told(tmp_path / "site" / "feed.xml") == [second, first]
    shown = (tmp_path / "site" / "index.html").read_text()
    assert shown.index('<time datetime="2026-02-01">') < shown.index('<time datetime="2026-01-01">2026-01-01</time> <a')
    assert 'type="application/atom+xml" title="New rows" href="feed.xml"' in shown


def test_other_data_have_a_feed_of_their_own(made: Publisher, results: Path, tmp_path: Path) -> None:
    """Its links are relative to where it lies; the official one does not name them."""
    made("crop", {"mini/made/a": {"": [0.5]}}, data="mini")
    made("crop", {"made/a": {"": [0.5]}})
    build(results, tmp_path / "site", built="2026-01-01")
    assert [link for *_, link in told(tmp_path / "site" / "mini" / "feed.xml")] == ["suites/made/unsupervised.html"]
    assert len(told(tmp_path / "site" / "feed.xml")) == 1
    assert "(mini)" in (tmp_path / "site" / "mini" / "feed.xml").read_text()


def test_without_a_day_there_is_no_feed(made: Publisher, results: Path, tmp_path: Path) -> None:
    """And a list that holds nonsense gives none."""
    made("crop", {"made/a": {"": [0.5]}})
    build(results, tmp_path / "site")
    assert not (tmp_path / "site" / "feed.xml").exists()
    listing = json.loads((tmp_path / "site" / "site.json").read_text())
    assert listing["days"] == {}
    listing["days"] = {"x": "<script>", "y": 7}
    (tmp_path / "site" / "site.json").write_text(json.dumps(listing))
    build(results, tmp_path / "site", built="2026-01-01")
    assert [day for _, day, _ in told(tmp_path / "site" / "feed.xml")] == ["2026-01-01T00:00:00Z"]
