"""Templates → pages: what all pages share, links that are settled when every file is known, the style and the script.

A family of pages is a function `files(site, renderer) -> Iterator[(path, bytes)]`; `leaderboard.build.FAMILIES` lists
them. Templates link to pages of other families by `link(path, label)`: where a build lacks the page, the label stays
plain. Such links are marks of control characters, which no value can bring into a page (`text.finished` shows them
by their code points), until `settled` turns them into links.

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
from leaderboard.site.captions import banner
from leaderboard.site.site import FIRST, Site, folder
from leaderboard.site.text import finished

NAV = (
    ("Suites", "index.html#suites"),
    ("Methods", "methods/index.html"),
    ("Compare", "compare/index.html"),
    ("Reported", "reported.html"),
    ("Ablations", "ablations/index.html"),
    ("Cost", "cost.html"),
    ("Protocols", "protocols/index.html"),
    ("Glossary", "glossary.html"),
)
"""Links of every page, as far as this build has the pages."""
_SHARED = {"Reported", "Ablations", "Protocols", "Glossary"}  # every tree leads to the same page


class Renderer:
    """Fills templates, which know the site as `site`: every value is escaped, a missing one is an error."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.empty: set[str] = set()  # pages that hold nothing of ours yet, to which no navigation leads
        self._environment = _environment()

    def page(
        self, template: str, stem: str, *, title: str, data: str = FIRST, stands_for: str = "", **given: Any
    ) -> bytes:
        """Fill a template that extends `base.html`, for a page at `stem`, its path without the ending.

        Links go through `up`, which leads to the root. The kind of data and the benchmark that a substitute stands for
        decide the banner and the home page; `given` is what the template shows.
        """
        up = "../" * stem.count("/")
        common = {
            "site": self.site,
            "up": up,
            "style": STYLE,
            "script": SCRIPT,
            "theme": THEME,
            "home": f"{up}{folder(data, stands_for)}index.html",
            "nav": [(name, f"{'' if name in _SHARED else folder(data, stands_for)}{path}") for name, path in NAV],
            "banner": banner(data, stands_for),
        }
        template_ = self._environment.get_template(template)
        return template_.render(title=title, data=data, stem=stem, stands_for=stands_for, **common, **given).encode()

    def file(self, template: str, stem: str, **given: Any) -> tuple[str, bytes]:
        """Return a page's path in the site and its content."""
        return f"{stem}.html", self.page(template, stem, **given)


Files = Iterator[tuple[str, bytes]]
Family = Callable[[Site, Renderer], Files]


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("leaderboard"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=text.finished,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
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
    environment.globals |= {"bounds": text.bounds, "missing": MISSING, "link": link}
    return environment


_OPEN, _MIDDLE, _CLOSE = "\x01", "\x02", "\x03"
_MARK = re.compile(f"{_OPEN}([^{_MIDDLE}]*){_MIDDLE}([^{_CLOSE}]*){_CLOSE}".encode())
_ALWAYS, _IF_THERE = "1", "0"


def link(path: str, label: object, *, bare: bool = True) -> Markup:
    """Link to a path from the root of the site, which may have a fragment, if the build has the page.

    Where it does not, show the label without a link if `bare`, else nothing; a label of `Markup` is not escaped.
    """
    shown = escape(finished(label))
    target = escape(finished(path))
    kept = _ALWAYS if bare else _IF_THERE
    return Markup(f"{_OPEN}{target}{_MIDDLE}{kept}{shown}{_CLOSE}")  # noqa: S704 (both parts are escaped above)


def settled(page: str, content: bytes, files: Collection[str], empty: Collection[str] = ()) -> bytes:
    """Turn the marks in the HTML of a page into links or plain labels; `files` are all paths of the site.

    Marks that show nothing where a page is missing show nothing of `empty` ones either.
    """
    if _OPEN.encode() not in content:
        return content
    here = posixpath.dirname(page)

    def one(found: re.Match[bytes]) -> bytes:
        path, kept, label = found[1].decode(), found[2][:1].decode(), found[2][1:]
        target, mark, fragment = path.partition("#")
        if target not in files or (kept == _IF_THERE and target in empty):
            return label if kept == _ALWAYS else b""
        away = posixpath.relpath(target, here or ".")
        current = b' aria-current="page"' if target == page and not fragment else b""
        return b'<a href="%s"%s>%s</a>' % (f"{away}{mark}{fragment}".encode(), current, label)

    return _MARK.sub(one, content)


STYLE, SCRIPT, THEME = "static/style.css", "static/script.js", "static/theme.js"


def assets() -> dict[str, bytes]:
    """Return the shared files by their path; the script is one function, so that its names stay its own."""
    script = f'"use strict";\n(function () {{\n{_joined("js")}}})();\n'
    theme = resources.files("leaderboard").joinpath(THEME).read_bytes()
    return {STYLE: _joined("css").encode(), SCRIPT: script.encode(), THEME: theme}


def _joined(kind: str) -> str:
    """All partials of a kind, in the order of their names."""
    parts = resources.files("leaderboard").joinpath("static", kind).iterdir()
    found = sorted((part for part in parts if part.name.endswith(f".{kind}")), key=lambda part: part.name)
    lines = (line.strip() for part in found for line in part.read_text(encoding="utf-8").splitlines())
    return "".join(f"{line}\n" for line in lines if line and not line.startswith("//"))
