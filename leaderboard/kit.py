"""What every page is made from, and how a template becomes a file.

A family of pages is a function `files(site, renderer) -> Iterator[(path, bytes)]`; `leaderboard.page.FAMILIES` lists
them. What a site shows of methods and suites is handed to it as plain data (`Shown`), so nothing here imports plugins.

Templates link to pages of other families by `link(path, label)`: where a build lacks the page, the label stays plain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from bench.publications import Reported
from bench.scoring.significance import chance_text, points
from bench.substitutes import mark
from bench.types import Preset
from leaderboard import text
from leaderboard.assets import SCRIPT, STYLE, THEME
from leaderboard.links import link
from leaderboard.places import FIRST, folder
from leaderboard.read import Result
from leaderboard.tables import Board

WORDS = {
    "mini": "Mini data: made up by the embedded world. These numbers show that the code works; they say nothing about "
    "real languages and stand beside no official number.",
    "local": "Local data: folders of the user's own. Nothing is asserted of them, and these numbers stand beside no "
    "official number.",
}
"""The banner of data that is not official."""
NAV = (
    ("Suites", "index.html#suites"),
    ("Methods", "methods/index.html"),
    ("Compare", "compare/index.html"),
    ("Reported", "reported.html"),
    ("Ablations", "ablations/index.html"),
    ("Cost", "cost.html"),
    ("Protocols", "protocols/index.html"),
)
"""What every page leads to, where this build has it."""
_SHARED = {"Reported", "Ablations", "Protocols"}  # of papers and suites, so every tree leads to the same page


@dataclass(frozen=True)
class MethodShown:
    """What the site says of a method.

    Args:
        name: canonical.
        version: of the plugin's method.
        summary: one sentence.
        citation: of the paper, empty where there is none.
        card: Markdown.
        presets: by name; those with cells are grids, with the paper's numbers.
    """

    name: str
    version: str
    summary: str
    citation: str
    card: str
    presets: Mapping[str, Preset] = field(default_factory=dict)


@dataclass(frozen=True)
class SuiteShown:
    """What the site says of a suite.

    Args:
        name: canonical.
        title: as people write it.
        primary: headline measure.
        card: protocol card, Markdown.
        citation: of the benchmark.
        licences: of its files, each once.
        stands_for: the benchmark that it is a substitute for, empty for a benchmark itself.
        reported: what papers printed.
    """

    name: str
    title: str
    primary: str
    card: str
    citation: str
    licences: tuple[str, ...] = ()
    stands_for: str = ""
    reported: tuple[Reported, ...] = ()


@dataclass(frozen=True)
class Shown:
    """Methods and suites by name, as the installed plugins tell of them; empty where none was asked."""

    methods: Mapping[str, MethodShown] = field(default_factory=dict)
    suites: Mapping[str, SuiteShown] = field(default_factory=dict)


@dataclass(frozen=True)
class Site:
    """All that a site is made from.

    Args:
        results: checked results, dev tasks included.
        boards: tables of them, in the order of the site.
        shown: what plugins tell.
        built: the day, ISO 8601; empty where no page shall name one.
        days: of the first build that showed a row, by the row's id (`leaderboard.feed`).
        runs: result files and runs are copied beside the rows' pages.
    """

    results: tuple[Result, ...]
    boards: tuple[Board, ...]
    shown: Shown = field(default_factory=Shown)
    built: str = ""
    days: Mapping[str, str] = field(default_factory=dict)
    runs: bool = False


def banner(data: str, stands_for: str = "") -> str:
    """What stands above a page of other data than official, and above that of a substitute; empty elsewhere."""
    said = mark(stands_for)
    return " ".join(filter(None, (WORDS.get(data.partition("-")[0], ""), said and f"{said[0].upper()}{said[1:]}.")))


class Renderer:
    """Fills templates: every value is escaped, a missing one is an error.

    Args:
        site: what the pages are made from; templates know it as `site`.
    """

    def __init__(self, site: Site) -> None:
        self.site = site
        self._environment = _environment()

    def page(
        self, template: str, stem: str, *, title: str, data: str = FIRST, stands_for: str = "", **given: Any
    ) -> bytes:
        """Fill a template that extends `base.html`.

        Args:
            template: its file name.
            stem: path of the page in the site, without the ending; links go through `up`, which leads to the root.
            title: of the page.
            data: kind of data, which decides the banner and the home page.
            stands_for: the benchmark that a substitute stands for.
            **given: what the template shows.
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


Files = Iterator[tuple[str, bytes]]
Family = Callable[[Site, Renderer], Files]


def _environment() -> Environment:
    """The templates with their filters."""
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
        "duration": text.duration,
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
    environment.globals |= {"bounds": text.bounds, "missing": text.MISSING, "link": link}
    return environment
