"""Links to pages that a build may or may not have: written as marks, settled when all files are known.

A family of pages links to another's without knowing whether it is built. The marks are control characters, which no
value can bring into a page (`leaderboard.text.finished` shows them by their code points).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection

from markupsafe import Markup, escape

from leaderboard.text import finished

_OPEN, _MIDDLE, _CLOSE = "\x01", "\x02", "\x03"
_MARK = re.compile(f"{_OPEN}([^{_MIDDLE}]*){_MIDDLE}([^{_CLOSE}]*){_CLOSE}".encode())
_ALWAYS, _IF_THERE = "1", "0"


def link(path: str, label: object, *, bare: bool = True) -> Markup:
    """Link to a page of the site if the build has it.

    Args:
        path: from the root of the site, with a fragment if one is meant.
        label: text; HTML made by us (`Markup`) stays.
        bare: show the label without a link where the page does not exist; else show nothing.
    """
    shown = escape(finished(label))
    target = escape(finished(path))
    kept = _ALWAYS if bare else _IF_THERE
    return Markup(f"{_OPEN}{target}{_MIDDLE}{kept}{shown}{_CLOSE}")  # noqa: S704 (both parts are escaped above)


def settled(page: str, content: bytes, files: Collection[str]) -> bytes:
    """Turn the marks of a page into links or plain labels.

    Args:
        page: its path in the site.
        content: its HTML.
        files: paths of all files of the site.
    """
    if _OPEN.encode() not in content:
        return content
    here = posixpath.dirname(page)

    def one(found: re.Match[bytes]) -> bytes:
        path, kept, label = found[1].decode(), found[2][:1].decode(), found[2][1:]
        target, mark, fragment = path.partition("#")
        if target not in files:
            return label if kept == _ALWAYS else b""
        away = posixpath.relpath(target, here or ".")
        current = b' aria-current="page"' if target == page and not fragment else b""
        return b'<a href="%s"%s>%s</a>' % (f"{away}{mark}{fragment}".encode(), current, label)

    return _MARK.sub(one, content)
