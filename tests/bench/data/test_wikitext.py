"""Wikipedia's markup and files, against text written out by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.data import wikitext
from bench.data.faults import RecordError
from bench.data.wikitext import Article, blocks, extracted, page, plain


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
    assert page(PAGE) == Article("17", "Tom & Jerry", "Tom  ran.")


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
    assert extracted(block) == Article("12", 'A "B"', "\nText.\nMore.")
    assert extracted('<doc id="1" title="T">\nText.\n</doc>') == Article("1", "T", "Text.")
    with pytest.raises(RecordError, match="without its </doc>"):
        extracted('<doc id="12" title="A">\nText.')


def test_blocks() -> None:
    """What stands between blocks is passed over; a block without end is handed on."""
    lines = ["<top>", " <page>", "", "  a", "</page>", "b", "<page>", "c"]
    found = list(blocks(enumerate(lines, 1), Path("x.xml"), "<page>", "</page>"))
    assert found == [(2, "<page>\n\n  a\n</page>"), (7, "<page>\nc")]


def test_braces_that_never_close_cost_no_time() -> None:
    """A page full of them is read in linear time: 400,000 of them well within the test's time limit."""
    assert wikitext.plain("{{" * 200_000 + "\n\nx" + "[[" * 200_000).strip() == "x"
