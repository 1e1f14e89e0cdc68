"""Links that are settled when all files are known."""

from __future__ import annotations

from markupsafe import Markup

from leaderboard.links import link, settled


def settle(path: str, label: object, page: str, files: set[str], *, bare: bool = True) -> str:
    """A link as it stands in a page."""
    return settled(page, link(path, label, bare=bare).encode(), files).decode()


def test_relative_to_the_page() -> None:
    """From whatever folder; the page itself is marked; fragments stay."""
    files = {"a/b.html", "c.html", "a/d/e.html"}
    assert settle("c.html", "C", "a/d/e.html", files) == '<a href="../../c.html">C</a>'
    assert settle("a/b.html#x", "B", "a/d/e.html", files) == '<a href="../b.html#x">B</a>'
    assert settle("c.html", "C", "c.html", files) == '<a href="c.html" aria-current="page">C</a>'


def test_a_page_that_is_not_built() -> None:
    """The label stays, or nothing."""
    assert settle("gone.html", "Gone", "c.html", set()) == "Gone"
    assert settle("gone.html", "Gone", "c.html", set(), bare=False) == ""


def test_labels_and_paths_are_escaped_once() -> None:
    """Control characters in a label cannot end the mark."""
    assert settle("c.html", "<b>\x03\x01", "d.html", {"c.html"}) == '<a href="c.html">&lt;b&gt;[U+0003][U+0001]</a>'
    assert settle('x"y.html', "X", "d.html", {'x"y.html'}) == "X", "no page has such a name, and none is invented"
    assert settle("c.html", Markup("<i>C</i>"), "d.html", {"c.html"}) == '<a href="c.html"><i>C</i></a>'
