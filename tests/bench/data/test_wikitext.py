"""Wikipedia's markup and files, against text written out by hand."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from bench.data.corpora.documents import blocks
from bench.data.corpora.wikitext import WikiArticle, extracted, page, plain
from bench.data.formats.faults import RecordError
from tests.conftest import cases, least_ratio


@pytest.mark.parametrize(("markup", "expected"), cases("wikitext"))
def test_running_text(markup: str, expected: str) -> None:
    """What readers see, paragraph by paragraph; what is dropped leaves its blanks to the sentence splitter."""
    assert plain(markup) == expected


PAGE: str = cases("a-page-of-a-dump")[0]


def test_page() -> None:
    """Number of the page (not of the revision), title and text; one cut off or without a title is refused."""
    assert page(PAGE) == WikiArticle("17", "Tom & Jerry", "Tom  ran.")
    with pytest.raises(RecordError, match="<page> without its </page>"):
        page(PAGE.removesuffix("</page>"))
    with pytest.raises(RecordError, match="<page> without a <title>"):
        page(PAGE.replace("title>", "t>"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("<ns>0</ns>", "<ns>10</ns>"),
        ("<id>17</id>", '<id>17</id>\n    <redirect title="Else" />'),
        (PAGE[PAGE.index("<text") : PAGE.index("</text>") + 7], '<text bytes="0" />'),
    ],
)
def test_pages_that_are_no_article(old: str, new: str) -> None:
    """Templates and talk, redirects, and pages whose text is gone."""
    assert page(PAGE.replace(old, new)) is None


def test_extracted() -> None:
    """The first line is left out where it repeats the title; lines between blocks are none of them."""
    block = '<doc id="12" url="https://x?curid=12" title="A &quot;B&quot;">\nA "B"\n\nText.\nMore.\n</doc>'
    assert extracted(block) == WikiArticle("12", 'A "B"', "\nText.\nMore.")
    assert extracted('<doc id="1" title="T">\nText.\n</doc>') == WikiArticle("1", "T", "Text.")
    with pytest.raises(RecordError, match="without its </doc>"):
        extracted('<doc id="12" title="A">\nText.')
    lines = ["<top>", " <page>", "", "  a", "</page>", "b", "<page>", "c"]
    pages = list(blocks(enumerate(lines, 1), Path("x.xml"), "<page>", "</page>"))
    assert pages == [(2, "<page>\n\n  a\n</page>"), (7, "<page>\nc")]


Build = Callable[[int], str]
HOSTILE: dict[str, tuple[Callable[[str], object], Build]] = {
    "external links": (plain, lambda size: "[http://" * size),
    "external links of spaces": (plain, lambda size: "[//" + " " * 8 * size),
    "headings": (plain, lambda size: "=" * 8 * size + "x"),
    "empty brackets": (plain, lambda size: "(" + " " * 8 * size + "x"),
    "references": (plain, lambda size: "<ref " * 2 * size),
    "lists of references": (plain, lambda size: "<references " * size),
    "code": (plain, lambda size: "<code " * 2 * size),
    "nested links": (plain, lambda size: "[[" * 4 * size + "x" * 4 * size + "]]" * 4 * size),
    "braces": (plain, lambda size: "{{" * 4 * size + "\n\nx" + "[[" * 4 * size),
    "titles": (page, lambda size: "<page><title>t</title>" + "<text" * 2 * size + "</page>"),
    "attributes": (extracted, lambda size: "<doc " + "a" * 8 * size + ">\n</doc>"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_markup_costs_linear_time(name: str) -> None:
    """Eight times the markup takes about eight times the processor's time, not 64 or 512 times."""
    parse, build = HOSTILE[name]
    short, long = (partial(parse, build(size)) for size in (2_000, 8 * 2_000))
    assert least_ratio(long, short, enough=24) < 24


def test_references_to_no_character() -> None:
    """A number too long for `int` is a replacement character, not a crash."""
    assert plain("a &#" + "1" * 5000 + "; b &#x" + "f" * 5000 + "; &#65;") == "a \ufffd b \ufffd A"
