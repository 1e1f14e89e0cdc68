"""llms.txt: the documentation site as a list for language models, in the form of llmstxt.org."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from bench.data.corpora import sentences

SINGLE = "Pages"
"""Heading of the pages that the navigation puts under none."""


def llms_txt(config: Path, pages: Path) -> str:
    """Return title, summary and, by the navigation's headings, a link and the first sentence of each page.

    Args:
        config: mkdocs.yml.
        pages: the folder of the pages in Markdown.

    Raises:
        ValueError: a page does not begin with a heading and a paragraph.
    """
    settings = yaml.safe_load(config.read_text(encoding="utf-8"))
    sections: dict[str, list[str]] = {}
    for heading, title, name in _listed(settings["nav"]):
        first, sentence = _beginning(pages / name)
        link = f"- [{title or first}]({Path(name).with_suffix('.html').as_posix()}): {sentence}"
        sections.setdefault(heading or SINGLE, []).append(link)
    parts = [f"# {settings['site_name']}", f"> {settings['site_description']}."]
    for heading, links in sections.items():
        parts += [f"## {heading}", "\n".join(links)]
    return "\n\n".join(parts) + "\n"


def _listed(nav: list[Any], heading: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield the pages of the navigation: the heading above, the title there, or empty ones, and the file."""
    for item in nav:
        title, value = ("", item) if isinstance(item, str) else next(iter(item.items()))
        if isinstance(value, list):
            yield from _listed(value, title)
        else:
            yield heading, title, value


def _beginning(page: Path) -> tuple[str, str]:
    """Return the heading and the first sentence of a page, without the marks of links and bold type."""
    head, *rest = re.split(r"\n\s*\n", page.read_text(encoding="utf-8").strip(), maxsplit=2)
    if not head.startswith("# ") or not rest or not re.match(r"[\w`*\[“\"]", rest[0]):
        raise ValueError(f"{page}: found {(rest or [head])[0][:40]!r}, expected a heading and a paragraph")
    text = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", " ".join(rest[0].split())).replace("**", "")
    return head.removeprefix("# "), sentences.split(text, "en")[0]
