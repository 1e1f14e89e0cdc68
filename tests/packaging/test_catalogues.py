"""The lists of methods, suites and corpora on the documentation site."""

import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def pages(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The script that writes the pages."""
    pytest.importorskip("nbclient")
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "docs"))
    yield import_module("pages")
    for name in ("pages", "notebooks", "notebooks.run"):
        sys.modules.pop(name, None)


def test_a_catalogue_is_no_table(pages: ModuleType) -> None:
    """Text has the whole width, on a phone too: a heading with its link, a sentence, the facts that are known."""
    rows = {"bm25": ("Words | in common.", 4, "MIT.", "—"), "crop": ("Two spans.", 0, "MIT", "Nobody 2020.")}
    assert list(pages.catalogue(("what", "presets", "licence", "paper"), rows)) == [
        "## [bm25](bm25.md)",
        "Words | in common.",
        "presets: 4 · licence: MIT",
        "## [crop](crop.md)",
        "Two spans.",
        "licence: MIT · paper: Nobody 2020",
    ]


def test_pages_keep_links_to_those_beside_them(pages: ModuleType) -> None:
    """Where they are written to one folder; links elsewhere in the repository are words, pictures and the web stay."""
    text = "[a](b.md#c), [d](e.md), [f](../g.md), [h](i.md/j), [k](https://l.md), ![m](n.svg)"
    assert pages.without_links(text, beside=True) == "[a](b.md#c), [d](e.md), f, h, [k](https://l.md), ![m](n.svg)"
    assert pages.without_links(text) == "a, d, f, h, [k](https://l.md), ![m](n.svg)"
