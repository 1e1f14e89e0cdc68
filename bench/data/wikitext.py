"""Articles of Wikipedia dumps as users have them: MediaWiki XML, and what wikiextractor makes of it.

Conventions: a *block* is what one page or article looks like in its file, lines joined by line feeds. A block that ends
with its file, before its own end, is handed on as it is, and refused by whoever reads it.

Of MediaWiki's markup `plain` keeps running text only. Dropped: comments, references, templates and parameters, tables,
files and categories, headings, mathematics and code, every other tag (its content stays), signs of lists and of
emphasis. A link gives its label, or else its target. Nothing is expanded: numbers and names that a template would have
written are missing from their sentences.
"""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import NamedTuple

from bench.data.faults import RecordError, shown
from bench.data.rows import Block, Lines


class Article(NamedTuple):
    """A page as its file gives it.

    Attributes:
        id: the page's number.
        title: as readers see it.
        text: paragraphs, one a line.
    """

    id: str
    title: str
    text: str


_DOC = re.compile(r"<doc\s([^>]*)>\n?(.*?)\n?</doc>\s*", re.DOTALL)
_ATTRIBUTE = re.compile(r'(\w+)="([^"]*)"')


def extracted(block: str) -> Article:
    """Read one `<doc id="…" title="…">` of wikiextractor; its first line is the title and is left out.

    Raises:
        RecordError: it has no end.
    """
    match = _DOC.fullmatch(block)
    if not match:
        raise RecordError(f"{shown(block.partition(chr(10))[0])} without its </doc>", "a whole document", _AGAIN)
    named = {key: html.unescape(value) for key, value in _ATTRIBUTE.findall(match[1])}
    title = named.get("title", "")
    head, _, rest = match[2].partition("\n")
    return Article(named.get("id", ""), title, rest if html.unescape(head).strip() == title else match[2])


_AGAIN = "fetch it again"
_PAGE_ID = re.compile(r"<id>(\d+)</id>")
_PAGE_TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)
_PAGE_TEXT = re.compile(r"<text[^>]*>(.*?)</text>", re.DOTALL)
_SPACE = re.compile(r"<ns>\s*(-?\d+)\s*</ns>")


def page(block: str) -> Article | None:
    """Read one `<page>` of a MediaWiki dump; None for a redirect and for what is no article (talk, user, template …).

    Raises:
        RecordError: it has no end or no title.
    """
    if not block.rstrip().endswith("</page>"):
        raise RecordError("<page> without its </page>", "a whole page", _AGAIN)
    space, title, number, text = (form.search(block) for form in (_SPACE, _PAGE_TITLE, _PAGE_ID, _PAGE_TEXT))
    if title is None:
        raise RecordError("<page> without a <title>", "one title a page")
    if "<redirect " in block or text is None or (space is not None and space[1] != "0"):
        return None
    return Article(number[1] if number else "", html.unescape(title[1]), plain(html.unescape(text[1])))


_WHOLE = re.compile(
    r"<!--.*?(?:-->|\Z)|<ref[^>/]*/>"
    r"|<(ref|math|chem|gallery|timeline|source|syntaxhighlight|score|code|pre|imagemap|templatestyles)\b[^>]*>"
    r".*?(?:</\1\s*>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_BRACES = re.compile(r"\{{2,}|\}{2,}|\{\||\|\}(?!\})")
_BRACKETS = re.compile(r"\[\[|\]\]")
_OUTSIDE = re.compile(r"\[(?:https?:|ftp:)?//[^\s\]]*\s*([^\]]*)\]")
_HEADING = re.compile(r"^=+.*=+\s*$", re.MULTILINE)
_LIST = re.compile(r"^[*#:;]+\s*", re.MULTILINE)
_EMPHASIS = re.compile(r"'{2,}")
_SWITCH = re.compile(r"__[A-Z]+__")
_EMPTY = re.compile(r"\(\s*[,;]?\s*\)|（\s*）")


def plain(markup: str) -> str:
    """Return the running text of MediaWiki markup (see the module's conventions), paragraphs on lines."""
    text = _outside_of_braces(_WHOLE.sub("", markup))
    text = _OUTSIDE.sub(r"\1", _links(text))
    for form in (_TAG, _HEADING, _LIST, _EMPHASIS, _SWITCH, _EMPTY):
        text = form.sub("", text)
    lines = (line.strip() for line in html.unescape(text).split("\n"))
    return "\n".join(line for line in lines if line)


def _outside_of_braces(text: str) -> str:
    """Drop templates and tables, however deep; what is never closed is dropped to the end of its paragraph."""
    kept: list[str] = []
    opened: list[int] = []
    at = 0
    for sign in _BRACES.finditer(text):
        if sign[0][0] == "{":
            if not opened:
                kept.append(text[at : sign.start()])
            opened += [sign.start()] * (len(sign[0]) // 2)  # {{{1}}} is a parameter, {{{{ two templates
        elif opened:
            del opened[-(len(sign[0]) // 2) :]
            at = sign.end()
    if opened:
        end = text.find("\n\n", opened[0])
        at = len(text) if end < 0 else end
    return "".join(kept) + _BRACES.sub("", text[at:])


def _links(text: str) -> str:
    """Replace links by their labels; files, categories and links to other languages are dropped, labels and all."""
    pieces: list[list[str]] = [[]]
    at = 0
    for sign in _BRACKETS.finditer(text):
        pieces[-1].append(text[at : sign.start()])
        at = sign.end()
        if sign[0] == "[[":
            pieces.append([])
        elif len(pieces) > 1:
            inner = "".join(pieces.pop())
            pieces[-1].append(_label(inner))
    pieces[-1].append(text[at:])
    return "".join(piece for level in pieces for piece in level)


def _label(link: str) -> str:
    """What a reader sees of the inside of `[[…]]`: of `a|b` b, of `File:a|…` (or any word and colon) nothing."""
    target, bar, label = link.partition("|")
    if target.startswith(":"):
        return label or target[1:]
    if re.match(r"[^\W\d_][\w -]*:\S", target):
        return ""
    return label.rpartition("|")[2] if bar else target


def blocks(rows: Lines, where: Path, first: str, last: str) -> Lines:
    """Cut lines into blocks that begin with a line beginning with `first` and end with one that has `last`.

    Lines between blocks are passed over. Blank lines stay inside a block.

    Raises:
        DataError: a block is too long for memory.
    """
    block = Block(where)
    for number, line in rows:
        if block or line.lstrip().startswith(first):
            block.add(number, line.lstrip() if not block else line)
            if last in line:
                yield from block.take()
    yield from block.take()
