"""A row as BibTeX: what it is, and what is cited next to it, whatever its label holds."""

import html
import re
from dataclasses import replace

import pytest

from leaderboard.site.bibtex import bibtex
from leaderboard.site.rows import by_tree
from leaderboard.site.site import Catalogue
from tests.leaderboard.conftest import Build, Publisher, method_of, site_of, suite_of

HOSTILE = r"x}}, author={Eve}}%@misc{y, \input{z} $#&_~^\{ \}\" = {"


def parsed(text: str) -> dict[str, dict[str, str]]:
    """Read entries as BibTeX does: a value ends where its braces are closed, whatever stands before a brace."""
    entries: dict[str, dict[str, str]] = {}
    while text := text.lstrip():
        head = re.match(r"@misc\{([\w-]+),", text)
        assert head is not None, text
        fields = entries[head[1]] = {}
        text = text[head.end() :].lstrip()
        while not text.startswith("}"):
            name = re.match(r"(\w+) = \{", text)
            assert name is not None, text
            depth, at = 1, name.end()
            while depth:
                depth += {"{": 1, "}": -1}.get(text[at], 0)
                at += 1
            fields[name[1]] = text[name.end() : at - 1].removeprefix("{").removesuffix("}")
            assert text[at] == ","
            text = text[at + 1 :].lstrip()
        text = text[1:]
    return entries


def rows(publish_result: Publisher, label: str, shown: Catalogue, **more: object) -> dict[str, dict[str, str]]:
    """Publish a row with two seeds; return its entries by key, but its own by the empty one."""
    for seed in (0, 1):
        path = publish_result(label, {"made/a": {"": [0.25, 0.5]}}, seed=seed, **more)
    site = replace(site_of(next(part for part in path.parents if part.name == "results"), shown), built="2026-11-27")
    ((entry,),) = by_tree(site).values()
    entries = parsed(bibtex(entry, site))
    return {"": entries.pop(entry.id), **entries}


CITED = Catalogue(
    {"crop": method_of("crop", citation="Gao & Callan, 100 % of it.")},
    {"made": suite_of("made", "Made-Up", citation="A. Author 2020.")},
)


def test_what_it_says(publish_result: Publisher) -> None:
    """System, suite, regime, data, seeds, hash, version of the harness, year of the build; then what they cite."""
    entries = rows(publish_result, "crop", CITED, subset={"harness": "0.2.0"})
    row = entries.pop("")
    assert row["title"].startswith("crop on ")
    assert "unsupervised" in row["title"]
    assert (row["howpublished"], row["year"]) == ("retrieval-bench 0.2.0", "2026")
    assert re.fullmatch(r"official data, 2 seeds: 0, 1, system [0-9a-f]{8,64}", row["note"])
    assert entries == {
        "method-crop": {"title": "crop", "note": r"Gao \& Callan, 100 \% of it."},
        "suite-made": {"title": "Made-Up", "note": "A. Author 2020."},
    }


def test_nothing_is_cited_that_is_not_known(publish_result: Publisher) -> None:
    """Without plugins, or with those that name no paper, the row stands alone."""
    assert [*rows(publish_result, "crop", Catalogue())] == [""]


def test_a_substitute_is_marked(publish_result: Publisher) -> None:
    """The title says that its numbers are not those of the benchmark."""
    heading = {"suite": {"name": "made", "version": "1", "title": "Made", "proxy_for": "mrtydi"}}
    assert "substitute for mrtydi" in rows(publish_result, "crop", Catalogue(), heading=heading)[""]["title"]


@pytest.mark.parametrize("label", [HOSTILE, "}", "{", "\\}", 'a" # "b', "%", "a,b = {c}"])
def test_a_label_ends_no_entry(publish_result: Publisher, label: str) -> None:
    """Braces are balanced for BibTeX, which knows no escapes, and LaTeX finds no command of the label's."""
    (row,) = rows(publish_result, label, Catalogue(), system={"method": "crop"}).values()
    assert set(row) == {"title", "howpublished", "year", "note"}
    assert r"\input" not in row["title"]
    assert not re.search(r"(?<!\\)[%#&$_]", row["title"].partition(" on ")[0])


def test_it_is_on_the_rows_page(publish_result: Publisher, site: Build) -> None:
    """Escaped for HTML, and whole."""
    publish_result(HOSTILE, {"made/a": {"": [0.25, 0.5]}}, system={"method": "crop"})
    (page,) = (text.decode() for name, text in site().items() if name.startswith("runs/"))
    shown = html.unescape(page.partition('aria-label="BibTeX"><code>')[2].partition("</code>")[0])
    assert len(parsed(shown)) == 1
