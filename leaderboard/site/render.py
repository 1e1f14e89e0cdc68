"""Templates → pages: what all pages share, links that are resolved when every file is known, the style and the script.

A family of pages is a function `files(site, renderer) -> Iterator[(path, bytes)]`; `leaderboard.build.FAMILIES` lists
them. Templates link to pages of other families by `link(path, label)`: where a build lacks the page, the label stays
plain. Such links are marks of control characters, which no value can bring into a page (`text.escape_controls` shows
them by their code points), until `resolve_links` turns them into links.

The style and the script are partials of `static/css` and `static/js`, joined in name order without margins and lines of
comment; partials therefore hold no string over several lines. The theme has a script of its own, which runs before the
page is drawn.
"""

import posixpath
import re
from collections.abc import Callable, Collection, Iterator
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from bench.core.publications import mark
from bench.evaluation.tables import MISSING, chance_text, duration, points
from leaderboard.site import text
from leaderboard.site.boards import OFFICIAL, Tree
from leaderboard.site.captions import banner
from leaderboard.site.site import Site
from leaderboard.site.text import escape_controls

NAV = (
    ("Suites", "index.html#suites"),
    ("Methods", "methods/index.html"),
    ("Compare", "compare/index.html"),
    ("Reported", "reported.html"),
    ("Ablations", "ablations/index.html"),
    ("Curves", "curves/index.html"),
    ("Cost", "cost.html"),
    ("Protocols", "protocols/index.html"),
    ("Glossary", "glossary.html"),
)
"""Links of every page, as far as this build has the pages."""
_SHARED = {"Reported", "Ablations", "Curves", "Protocols", "Glossary"}  # every tree leads to the same page


class Renderer:
    """Fills templates, which know the site as `site`: every value is escaped, a missing one is an error."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.empty: set[str] = set()  # pages that hold nothing of ours yet, to which no navigation leads
        self._environment = Environment(
            loader=PackageLoader("leaderboard"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=escape_controls,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
        )
        self._environment.filters |= {
            "away": text.away,
            "duration": duration,
            "fraction": text.fraction,
            "mark": mark,
            "number": text.number,
            "place": text.place,
            "plural": text.plural,
            "slug": text.slug,
            "markdown": text.markdown,
            "points": points,
            "chance": chance_text,
        }
        self._environment.globals |= {"bounds": text.bounds, "missing": MISSING, "link": link}

    def page(self, template: str, stem: str, *, title: str, of: Tree = OFFICIAL, **values: Any) -> "Page":
        """Fill a template that extends `base.html`.

        Args:
            template: its file name.
            stem: the path of the page in the site, without the ending.
            title: of the page.
            of: the tree of the page, which decides its banner and its home page.
            values: what the template shows, by name.

        Returns:
            The path of the page, and the page; its links are marks that `resolve_links` resolves.
        """
        up, first = "../" * stem.count("/"), Tree(of.data).folder
        folders = dict.fromkeys(_SHARED, "") | {"Suites": first}  # substitutes are on the first page of their data
        common = {
            "title": title,
            "stem": stem,
            "data": of.data,
            "proxy_for": of.proxy_for,
            "site": self.site,
            "up": up,
            "style": STYLE,
            "script": SCRIPT,
            "theme": THEME,
            "home": f"{up}{first}index.html",
            "nav": [(name, f"{folders.get(name, of.folder)}{path}") for name, path in NAV],
            "banner": banner(of.data, of.proxy_for),
        }
        return f"{stem}.html", self._environment.get_template(template).render(**common, **values).encode()


Page = tuple[str, bytes]
"""The path of a file in the site, and its content."""
Files = Iterator[Page]
Family = Callable[[Site, Renderer], Files]


_OPEN, _MIDDLE, _CLOSE = "\x01", "\x02", "\x03"
_MARK = re.compile(f"{_OPEN}([^{_MIDDLE}]*){_MIDDLE}([^{_CLOSE}]*){_CLOSE}".encode())
_ALWAYS, _IF_PAGE = "1", "0"


def link(path: str, label: object, *, bare: bool = True) -> Markup:
    """Link to a path from the root of the site, which may have a fragment, if the build has the page.

    Where it does not, show the label without a link if `bare`, else nothing; a label of `Markup` is not escaped.
    """
    escaped_label = escape(escape_controls(label))
    target = escape(escape_controls(path))
    mode = _ALWAYS if bare else _IF_PAGE
    return Markup(f"{_OPEN}{target}{_MIDDLE}{mode}{escaped_label}{_CLOSE}")  # noqa: S704 (both parts are escaped above)


def resolve_links(page: str, content: bytes, files: Collection[str], empty: Collection[str] = ()) -> bytes:
    """Turn the marks in the HTML of a page into links or plain labels.

    Args:
        page: its path in the site.
        content: the page.
        files: all paths of the site.
        empty: pages that links without a bare label do not lead to either.
    """
    if _OPEN.encode() not in content:
        return content
    folder_of_page = posixpath.dirname(page) or "."

    def resolve(match: re.Match[bytes]) -> bytes:
        path, mode, label = match[1].decode(), match[2][:1].decode(), match[2][1:]
        target, mark, fragment = path.partition("#")
        if target not in files or (mode == _IF_PAGE and target in empty):
            return label if mode == _ALWAYS else b""
        relative = posixpath.relpath(target, folder_of_page)
        current = b' aria-current="page"' if target == page and not fragment else b""
        return b'<a href="%s"%s>%s</a>' % (f"{relative}{mark}{fragment}".encode(), current, label)

    return _MARK.sub(resolve, content)


STYLE, SCRIPT, THEME = "static/style.css", "static/script.js", "static/theme.js"


def assets() -> dict[str, bytes]:
    """Return the shared files by their path; the script is one function, so that its names stay its own."""
    script = f'"use strict";\n(function () {{\n{_joined("js")}}})();\n'
    theme = resources.files("leaderboard").joinpath(THEME).read_bytes()
    return {STYLE: _joined("css").encode(), SCRIPT: script.encode(), THEME: theme}


def _joined(kind: str) -> str:
    """All partials of a kind, in the order of their names."""
    parts = resources.files("leaderboard").joinpath("static", kind).iterdir()
    partials = sorted((part for part in parts if part.name.endswith(f".{kind}")), key=lambda part: part.name)
    lines = (line.strip() for part in partials for line in part.read_text(encoding="utf-8").splitlines())
    return "".join(f"{line}\n" for line in lines if line and not line.startswith("//"))
