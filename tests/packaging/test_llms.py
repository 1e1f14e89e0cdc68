"""The documentation site's llms.txt: made from the navigation and the pages, in the form of llmstxt.org."""

import json
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
import yaml

ROOT = Path(__file__).parents[2]


@pytest.fixture
def llms(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The script that writes it."""
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    yield import_module("llms")
    sys.modules.pop("llms", None)


NAV = """\
site_name: made
site_description: What it is
nav:
  - Start: index.md
  - Guide:
      - guide/one.md
      - Two: guide/two.md
  - End: end.md
"""
PAGES = {
    "index.md": "# Made\n\nIt is **made**\nof [texts](guide/one.md). More.\n",
    "guide/one.md": "# The first\n\nOn Mr. TyDi and `a.b`, as ever. Else not.\n\n## Part\n",
    "guide/two.md": "# Not shown\n\n`bench` is a command.",
    "end.md": "# End\n\nA question?\n\nNo.\n",
}


def write(folder: Path) -> tuple[Path, Path]:
    (folder / "mkdocs.yml").write_text(NAV)
    for name, text in PAGES.items():
        (folder / "pages" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "pages" / name).write_text(text)
    return folder / "mkdocs.yml", folder / "pages"


def test_the_form(llms: ModuleType, tmp_path: Path) -> None:
    """Title, quoted summary, sections of links: those without a heading together, titles from the pages."""
    assert llms.llms_txt(*write(tmp_path)) == (
        "# made\n\n> What it is.\n\n## Pages\n\n"
        "- [Start](index.html): It is made of texts.\n"
        "- [End](end.html): A question?\n\n## Guide\n\n"
        "- [The first](guide/one.html): On Mr. TyDi and `a.b`, as ever.\n"
        "- [Two](guide/two.html): `bench` is a command.\n"
    )


@pytest.mark.parametrize(
    "text", ["", "# Alone\n", "# A table\n\n| a | b |\n", "No heading.\n\nText.\n", "# X\n\n## Y\n\nZ."]
)
def test_a_page_without_a_first_sentence_is_named(llms: ModuleType, tmp_path: Path, text: str) -> None:
    """Nothing is made up for it."""
    config, folder = write(tmp_path)
    (folder / "end.md").write_text(text)
    with pytest.raises(ValueError, match=r"end\.md: found '.*', expected a heading and a paragraph"):
        llms.llms_txt(config, folder)


def test_of_the_real_pages(llms: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All pages of the navigation, each with a sentence, written where the site's builder copies it from."""
    pytest.importorskip("nbclient")
    pages = import_module("pages")

    def first_cell(path: Path) -> str:  # without running the others, which takes minutes
        return "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])

    monkeypatch.setattr(pages, "PAGES", tmp_path)
    monkeypatch.setattr(pages, "page", first_cell)
    pages.main()
    text = (tmp_path / "llms.txt").read_text(encoding="utf-8")
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    named = {name.removesuffix(".md") for name in re.findall(r"[\w/-]+\.md", str(nav))}
    assert set(re.findall(r"^- \[[^]]+\]\(([\w/-]+)\.html\): \S.{20,}[.:?]$", text, flags=re.MULTILINE)) == named
    for name in ("pages", "notebooks", "notebooks.run"):
        sys.modules.pop(name, None)
