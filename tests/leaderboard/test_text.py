"""How the site writes: nothing that is shown can act, nothing that is named can leave its folder."""

import json
import re

import pytest

from leaderboard.site.text import (
    bounds,
    gap,
    json_for_page,
    listed,
    markdown,
    micro,
    number,
    place,
    plural,
    slug,
)


def test_numbers_and_sentences() -> None:
    """Percent, a true minus, a dash for what is missing, zero without sign; counts agree with nouns, lists end in and.

    Differences are those of millionths, so that page, file and script print one number.
    """
    shown = " ".join(number(value) for value in (0.4794, 1.0, 0.0, -0.0004, -0.021, None))
    assert shown == "47.9 100.0 0.0 0.0 −2.1 —"
    assert bounds(0.468, 0.49) == "[46.8, 49.0]"
    assert bounds(None, None) == place(None) == "—"
    assert (place((3, 3)), place((1, 2))) == ("3", "1–2")
    assert (plural(1, "query", "queries"), plural(8661, "query", "queries")) == ("1 query", "8,661 queries")
    assert [listed(list(names)) for names in ("a", "ab", "abc")] == ["a", "a and b", "a, b and c"]
    assert listed(list("abcd"), 2) == "a, b and 2 more"
    assert gap(0.4794004, 0.3490001) == 0.1304
    assert gap(0.1, 0.3) == -0.2
    assert micro(0.1 + 0.2) == 300_000


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "A", "..", "", "x" * 200, "CON\0", "ไทย", "a_b"])
def test_a_file_name_cannot_leave_its_folder(name: str) -> None:
    """Only a-z, 0-9 and hyphens are left; what that loses, a hash tells apart."""
    file_name = slug(name)
    assert re.fullmatch(r"[a-z0-9-]{1,100}", file_name)
    assert re.search(r"-[0-9a-f]{8}$", file_name)
    assert slug("mrtydi-unsupervised") == "mrtydi-unsupervised"
    assert len({slug(name) for name in ("a-b", "a_b", "A-b", "a--b", "a b")}) == 5
    assert slug("x" * 80) == "x" * 80, "a plain name of 80 characters is its own file name"
    assert re.fullmatch(r"x{80}-[0-9a-f]{8}", slug("x" * 81)), "a longer one is cut and told apart"


def test_markdown_of_a_card() -> None:
    """Headings go below the page's own, tables keep their sides; HTML, pictures and other links become text."""
    html = markdown("# One\n\n| a | b |\n|---|---:|\n| 1 | `2` |\n\n*x* [paper](https://example.org/a?b=1&c=2)\n")
    assert "<h3>One</h3>" in html
    assert '<td class="to-right"><code>2</code></td>' in html
    assert '<em>x</em> <a href="https://example.org/a?b=1&amp;c=2">paper</a>' in html
    assert "style=" not in html
    hostile = (
        "<script>alert(1)</script>\n\n<img src=x onerror=alert(1)>\n\n[a](javascript:alert(1)) [b](data:text/html,x) "
        "[c](../../x.html) ![d](https://example.org/d.png)\n\n```\n</code><script>\n```\n\n[e]: file:///etc/passwd\n\n[e]"
    )
    html = markdown(hostile)
    assert set(re.findall(r"<(\w+)", html)) <= {"p", "a", "code", "pre"}
    assert re.findall(r'(?:href|src)="([^"]*)"', html) == ["https://example.org/d.png"], "a link, no picture"


def test_data_in_a_page_cannot_end_their_element() -> None:
    """And are the same when read."""
    content = {"a": "</script><!--<script>&\u2028\x01", "b": [None, 1, "é"]}
    written = json_for_page(content)
    assert not set("<>&\u2028\x01é") & set(written)
    assert json.loads(written) == content
    with pytest.raises(ValueError, match="JSON compliant"):
        json_for_page([float("nan")])
