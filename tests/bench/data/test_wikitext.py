"""Wikipedia's markup and files, against text written out by hand."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.data.corpora.documents import blocks
from bench.data.corpora.wikitext import WikiArticle, extracted, page, plain
from bench.data.formats.faults import RecordError


@pytest.mark.parametrize(
    ("markup", "expected"),
    [
        ("'''Ada''' was ''bold''.", "Ada was bold."),
        ("A [[link]], a [[Target page|label]], [[cat]]s.", "A link, a label, cats."),
        ("x {{a|{{b|{{{1|d}}}}}|c}} y", "x  y"),
        ("x {{{{a}}}} y {{b|}} z", "x  y  z"),
        ("{| class=x\n|-\n| cell {{t|}}\n|}\nAfter.", "After."),
        ("x[[File:A.png|thumb|A [[nested]] caption]]y", "xy"),
        ("[[Category:Cats]]\n[[de:Katze]]\n[[:Category:Cats|cats]]", "cats"),
        ("[[Star Trek: Voyager]] and [[3:10 to Yuma]]", "Star Trek: Voyager and 3:10 to Yuma"),
        ("a<ref name=x>note [[y]]</ref>b<ref name=x/>c<!-- no\nno -->d", "abcd"),
        ("a <b>b</b><br/> c", "a b c"),
        ("E <math>x < y</math> f", "E  f"),
        ("== Head ==\nText\n=== Sub ===\n* one\n## two\n: three", "Text\none\ntwo\nthree"),
        ("See [https://a.b/c the page] or [//x.y].", "See the page or ."),
        ("a&nbsp;b &lt;c&gt; &amp;", "a\xa0b <c> &"),
        ("Ada ({{lang|x}}) wrote.", "Ada  wrote."),
        ("never closed {{a b\n\nNext.", "never closed \nNext.".replace(" \n", "\n")),
        ("stray }} and ]] stay out", "stray  and  stay out"),
        ("open [[link", "open link"),
        ("__NOTOC__x", "x"),
    ],
)
def test_running_text(markup: str, expected: str) -> None:
    """What readers see, paragraph by paragraph; what is dropped leaves its blanks to the sentence splitter."""
    assert plain(markup) == expected


PAGE = """<page>
    <title>Tom &amp; Jerry</title>
    <ns>0</ns>
    <id>17</id>
    <revision>
      <id>99</id>
      <text bytes="9" xml:space="preserve">'''Tom''' &lt;ref&gt;x&lt;/ref&gt; ran.
{{stub}}</text>
    </revision>
  </page>"""


def test_page() -> None:
    """Number of the page (not of the revision), title and text."""
    assert page(PAGE) == WikiArticle("17", "Tom & Jerry", "Tom  ran.")


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


def test_broken_pages() -> None:
    """A page that the file cuts off, and one without a title."""
    with pytest.raises(RecordError, match="<page> without its </page>"):
        page(PAGE.removesuffix("</page>"))
    with pytest.raises(RecordError, match="<page> without a <title>"):
        page(PAGE.replace("title>", "t>"))


def test_extracted() -> None:
    """The first line is left out where it repeats the title."""
    block = '<doc id="12" url="https://x?curid=12" title="A &quot;B&quot;">\nA "B"\n\nText.\nMore.\n</doc>'
    assert extracted(block) == WikiArticle("12", 'A "B"', "\nText.\nMore.")
    assert extracted('<doc id="1" title="T">\nText.\n</doc>') == WikiArticle("1", "T", "Text.")
    with pytest.raises(RecordError, match="without its </doc>"):
        extracted('<doc id="12" title="A">\nText.')


def test_blocks() -> None:
    """What stands between blocks is passed over; a block without end is handed on."""
    lines = ["<top>", " <page>", "", "  a", "</page>", "b", "<page>", "c"]
    found = list(blocks(enumerate(lines, 1), Path("x.xml"), "<page>", "</page>"))
    assert found == [(2, "<page>\n\n  a\n</page>"), (7, "<page>\nc")]


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

    def seconds(size: int) -> float:
        text, found = build(size), []
        for _ in range(5):
            began = time.process_time()
            parse(text)
            found.append(time.process_time() - began)
        return min(found)

    assert seconds(8 * 400) < 24 * max(seconds(400), 2e-5)


def test_references_to_no_character() -> None:
    """A number too long for `int` is a replacement character, not a crash."""
    assert plain("a &#" + "1" * 5000 + "; b &#x" + "f" * 5000 + "; &#65;") == "a \ufffd b \ufffd A"
