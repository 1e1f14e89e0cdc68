"""Articles of Wikipedia dumps as users have them: MediaWiki XML, and what wikiextractor makes of it.

Conventions: a *block* is what one page or article looks like in its file, lines joined by line feeds.

Of MediaWiki's markup `plain` keeps running text only. Dropped: comments, references, templates and parameters, tables,
files and categories, headings, mathematics and code, every other tag (its content stays), signs of lists and of
emphasis. A link gives its label, or else its target. Nothing is expanded: numbers and names that a template would have
written are missing from their sentences.
"""

import html
import re
from typing import NamedTuple

from bench.data.formats.faults import RecordError, shown


class WikiArticle(NamedTuple):
    """A page as its file gives it."""

    id: str  # the page's number
    title: str  # as readers see it
    text: str  # paragraphs, one a line


_FETCH_AGAIN = "fetch it again"
_ATTRIBUTE = re.compile(r'\b(\w+)="([^"]*)"')
_HUGE = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{8,});?")
"""References to characters beyond Unicode, which `html.unescape` would turn into numbers of any length."""


def _unescaped(text: str) -> str:
    """Return text with its character references replaced; one that names no character becomes U+FFFD."""
    return html.unescape(_HUGE.sub("\ufffd", text))


def extracted(block: str) -> WikiArticle:
    """Parse one `<doc id="…" title="…">` without its first line, the title. Raises `RecordError` without an end."""
    head, closed, body = block.partition(">")
    text, end, tail = body.rpartition("</doc>")
    if not (closed and end and not tail.strip()):
        raise RecordError(f"{shown(block.partition(chr(10))[0])} without its </doc>", "a whole document", _FETCH_AGAIN)
    attributes = {key: _unescaped(value) for key, value in _ATTRIBUTE.findall(head)}
    title, text = attributes.get("title", ""), text.removeprefix("\n").removesuffix("\n")
    first, _, following = text.partition("\n")
    return WikiArticle(attributes.get("id", ""), title, following if _unescaped(first).strip() == title else text)


_PAGE_ID = re.compile(r"<id>(\d+)</id>")
_SPACE = re.compile(r"<ns>\s*(-?\d+)\s*</ns>")


def page(block: str) -> WikiArticle | None:
    """Parse one `<page>` of a dump; None where it is no article. Raises `RecordError` without an end or a title."""
    if not block.rstrip().endswith("</page>"):
        raise RecordError("<page> without its </page>", "a whole page", _FETCH_AGAIN)
    title, text = _element(block, "<title", "</title>"), _element(block, "<text", "</text>")
    if title is None:
        raise RecordError("<page> without a <title>", "one title a page")
    space, number = _SPACE.search(block), _PAGE_ID.search(block)
    if "<redirect " in block or text is None or (space is not None and space[1] != "0"):
        return None
    return WikiArticle(number[1] if number else "", _unescaped(title), plain(_unescaped(text)))


def _element(block: str, start: str, end: str) -> str | None:
    """Return the content of the first element that begins with `start` and ends with `end`, None without one."""
    at = block.find(start)
    first = block.find(">", at) + 1 if at >= 0 else 0
    last = block.find(end, first) if first else -1
    return block[first:last] if last >= 0 else None


# Every pattern is linear in its input: no two quantifiers that take the same characters follow one another, and
# none that may run to the end of the text begins at more than one place.
_DROPPED = re.compile(
    r"<!--.*?(?:-->|\Z)|<ref[^<>/]*/>"
    r"|<(ref|math|chem|gallery|timeline|source|syntaxhighlight|score|code|pre|imagemap|templatestyles)\b[^<>]*>"
    r".*?(?:</\1\s*>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_HEADING = re.compile(r"=.*=")
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_BRACES = re.compile(r"\{{2,}|\}{2,}|\{\||\|\}(?!\})")
_BRACKETS = re.compile(r"\[\[|\]\]")
_OUTSIDE = re.compile(r"\[(?:https?:|ftp:)?//[^\s\]]*+\s*+([^\]]*+)\]")
_LIST = re.compile(r"^[*#:;]+\s*", re.MULTILINE)
_EMPHASIS = re.compile(r"'{2,}")
_SWITCH = re.compile(r"__[A-Z]+__")
_EMPTY = re.compile(r"\(\s*+(?:[,;]\s*+)?\)|（\s*+）")
_DEEPEST = 16
"""Links within links that are followed; only captions of files hold any."""


def plain(markup: str) -> str:
    """Return the running text of MediaWiki markup (see the module's conventions), paragraphs on lines."""
    text = _links(_outside_of_braces(_DROPPED.sub("", markup)))
    head, bracket, tail = text.rpartition("]")  # behind the last bracket no link can end, so none is looked for
    text = _TAG.sub("", _OUTSIDE.sub(r"\1", head + bracket) + tail)
    text = "\n".join(line for line in text.split("\n") if not _HEADING.fullmatch(line.rstrip()))
    for form in (_LIST, _EMPHASIS, _SWITCH, _EMPTY):
        text = form.sub("", text)
    return "\n".join(line.strip() for line in _unescaped(text).split("\n") if line.strip())


def _outside_of_braces(text: str) -> str:
    """Drop templates and tables, however deep; what is never closed is dropped to the end of its paragraph."""
    pieces: list[str] = []
    opened: list[int] = []
    at = 0
    for sign in _BRACES.finditer(text):
        if sign[0][0] == "{":
            if not opened:
                pieces.append(text[at : sign.start()])
            opened += [sign.start()] * (len(sign[0]) // 2)  # {{{1}}} is a parameter, {{{{ two templates
        elif opened:
            del opened[-(len(sign[0]) // 2) :]
            at = sign.end()
    if opened:
        end = text.find("\n\n", opened[0])
        at = len(text) if end < 0 else end
    return "".join(pieces) + _BRACES.sub("", text[at:])


def _links(text: str) -> str:
    """Replace links by their labels; files, categories and links to other languages are dropped, labels and all."""
    pieces: list[list[str]] = [[]]
    at = 0
    for sign in _BRACKETS.finditer(text):
        pieces[-1].append(text[at : sign.start()])
        at = sign.end()
        if sign[0] == "[[" and len(pieces) <= _DEEPEST:
            pieces.append([])
        elif sign[0] == "]]" and len(pieces) > 1:
            inner = "".join(pieces.pop())
            pieces[-1].append(_label(inner))
    pieces[-1].append(text[at:])
    return "".join(piece for level in pieces for piece in level)


def _label(link: str) -> str:
    """Return what a reader sees of the inside of `[[…]]`: of `a|b` b, of `File:a|…` (or any word and colon) nothing."""
    target, bar, label = link.partition("|")
    if target.startswith(":"):
        return label or target[1:]
    if re.match(r"[^\W\d_][\w -]*:\S", target):
        return ""
    return label.rpartition("|")[2] if bar else target
