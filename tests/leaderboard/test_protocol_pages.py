"""Protocol pages: the card of every suite, what it is, and the boards that it leads to."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from bench.types import Suite
from leaderboard.pages import protocols
from leaderboard.site.render import Renderer, resolve_links
from leaderboard.site.site import Catalogue, Site
from tests.leaderboard.conftest import Publisher, site_of, suite_of

CARD = "# Made\n\nOne **measure**, <b>not</b> two.\n\n| a | b |\n|---|---:|\n| 1 | 2 |\n"


def built(source: Site) -> dict[str, str]:
    """The files of the family, their links settled as if every board had its page."""
    family_pages = dict(protocols.files(source, Renderer(source)))
    paths = {*family_pages, *(f"{board.stem}.html" for board in source.boards)}
    return {name: resolve_links(name, content, paths).decode() for name, content in family_pages.items()}


def site(results: Path, *suites: Suite) -> Site:
    return site_of(results, Catalogue({}, {suite.name: suite for suite in suites}))


def test_card_licence_citation_version_and_boards(publish_result: Publisher, results: Path) -> None:
    """Everything that the suite tells; a link to each board, mini ones named so."""
    for data, prefix in (("official", ""), ("mini", "mini/")):
        publish_result("bm25", {f"{prefix}made/a": {"": [0.5, 0.7]}}, data=data)
    files = [SimpleNamespace(licence=licence) for licence in ("CC BY 4.0", "MIT")]
    shown: dict[str, Any] = {"citation": "Someone 2020.", "licence": "CC BY 4.0.", "releases": lambda: files}
    suite = suite_of("made", "Made & more", card=CARD, **shown)
    text = built(site(results, suite))["protocols/made.html"]
    assert "<strong>measure</strong>" in text
    assert "&lt;b&gt;not&lt;/b&gt;" in text
    assert text.count("<dd>CC BY 4.0</dd>") == 1
    assert "<dd>MIT</dd>" in text
    assert "<dd>Someone 2020.</dd>" in text
    assert "<dd>1</dd>" in text
    assert "the benchmark itself, by its official protocol" in text
    assert '<a href="../suites/made/unsupervised.html">unsupervised</a>: official, 1 system' in text
    assert '<a href="../mini/suites/made/unsupervised.html">unsupervised</a>: mini data, 1 system' in text
    assert "Made &amp; more: protocol" in text


def test_a_substitute_says_so(results: Path) -> None:
    """What it stands for, with a link where that suite has a page; no board without results."""
    benchmark = suite_of("made", "Made", card=CARD)
    part = suite_of("zweit", "Zweit", proxy_for="made")
    lost = suite_of("lost", "Lost", proxy_for="absent")
    family_pages = built(site(results, part, lost, benchmark))
    assert '<a href="made.html">made</a>' in family_pages["protocols/zweit.html"]
    assert "not comparable" in family_pages["protocols/zweit.html"]
    assert "<dd>absent</dd>" in family_pages["protocols/lost.html"]
    assert "This site has no results on this suite." in family_pages["protocols/zweit.html"]
    assert "This suite has no card." in family_pages["protocols/zweit.html"]
    index = family_pages["protocols/index.html"]
    assert index.index(">Made</a>") < index.index(">Lost</a>") < index.index(">Zweit</a>")


def test_hostile_words_and_names(results: Path) -> None:
    """Words of a suite act nowhere, and its name stays in the folder; a site without suites has no such pages."""
    evil = '<script>alert(1)</script>" onload="x'
    family_pages = built(site(results, suite_of("../up", evil, card=evil, primary=evil, citation=evil, licence=evil)))
    assert all("<script>alert" not in text and 'onload="x' not in text for text in family_pages.values())
    assert all(name.startswith("protocols/") and ".." not in name for name in family_pages)
    assert built(site(results)) == {}
