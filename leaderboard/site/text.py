"""Formats of the site: numbers, names of files and suites, inert text, Markdown without HTML.

A suite has its own name only where it was run whole, else the tasks behind the numbers: `BEIR` is the name of 26 tasks,
so one of them is headed `BEIR: SciFact`, and many `Tatoeba (14 of 112 tasks)`. Data other than official have their kind
in the name (`mini/beir`), and a user's own folders are never a whole suite.
"""

import hashlib
import json
import math
import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from bench.core.messages import bare, visible
from bench.evaluation.results.format import SuiteAbout
from bench.evaluation.results.read import FloatArray
from bench.evaluation.tables import DIGITS, MISSING, points
from bench.types import Suite

NAMED = 3
"""Tasks that a heading names; of more, it has the number."""


def fraction(value: float) -> float:
    """Round a number to what files hold: more digits are noise, and not the same on every machine.

    Pages print from the rounded number, so that none of them differs from its file.
    """
    return round(value, DIGITS)


def micro(value: float) -> int:
    """A fraction in millionths, which is what files hold of it: page data are whole numbers."""
    return round(1_000_000 * value)


def micros(column: FloatArray) -> list[int | None]:
    """Return a column of fractions in millionths; None for NaN."""
    return [None if math.isnan(value) else int(value) for value in np.rint(1_000_000 * column).tolist()]


def gap(value: float, base: float) -> float:
    """The difference of two fractions as files hold them."""
    return (micro(value) - micro(base)) / 1_000_000


def number(value: float | None) -> str:
    """Print a fraction in percent with one decimal, `—` for what is not there."""
    return MISSING if value is None else points(fraction(value))


def bounds(low: float | None, high: float | None) -> str:
    """Print an interval in percent: `[46.8, 49.0]`, `—` for what is not there."""
    return MISSING if low is None or high is None else f"[{number(low)}, {number(high)}]"


def place(ranks: tuple[int, int] | None) -> str:
    """Print a rank interval: `3`, `1–2`, `—` for a row without rank."""
    if ranks is None:
        return MISSING
    first, last = ranks
    return f"{first}" if first == last else f"{first}–{last}"


def plural(count: int, noun: str, plural_noun: str = "") -> str:
    """Print a count with thousands separated and its noun: `1 query`, `8,661 queries`."""
    return f"{count:,} {noun if count == 1 else plural_noun or noun + 's'}"


def listed(names: Sequence[str], most: int | None = None) -> str:
    """Join names as a sentence does: `a`, `a and b`, `a, b and c`; beyond `most` of them, `a, b and 7 more`."""
    more = 0 if most is None else len(names) - most
    names = [*names[:most], f"{more} more"] if more > 0 else list(names)
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Make names different from each other: the second of one name gets a number."""
    return tuple(
        name if names[:index].count(name) == 0 else f"{name} ({names[:index].count(name) + 1})"
        for index, name in enumerate(names)
    )


def slug(name: str) -> str:
    """Return a file name of `a-z 0-9 -` that cannot leave its folder; a hash keeps changed names distinct."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:80]
    if plain and plain == name:
        return plain
    return f"{plain or 'x'}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def away(address: str) -> Markup:
    """Return a link out of the site, without what all such addresses begin with; text alone if it is no address."""
    shown = visible(re.sub(r"^https?://(www\.)?(github\.com/)?", "", address))
    return Markup('<a href="{}">{}</a>').format(address, shown) if shown != address else Markup("{}").format(shown)


def escape_controls(value: object) -> object:
    """Return a value as a page shows it: control characters of text made visible, our own HTML unchanged."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def json_for_page(content: Any) -> Markup:
    """Write JSON for a `script` element: ASCII without `<`, `>` and `&`."""
    raw = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for char in "<>&":
        raw = raw.replace(char, f"\\u{ord(char):04x}")
    return Markup(raw)  # noqa: S704 (nothing in it can end the element)


def markdown(text: str, *, headings: int = 2) -> Markup:
    """Render a card: CommonMark with tables, no pictures, links to the web alone; HTML is shown as text.

    Headings go down by as many levels as the page's own need.
    """
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    parser.validateLink = lambda url: url.startswith(("https://", "http://"))  # type: ignore[method-assign] # its documented way
    tokens = parser.parse(visible(text.replace("\r\n", "\n").replace("\t", "    ")))
    for token in tokens:
        if token.type in {"heading_open", "heading_close"}:
            token.tag = f"h{min(6, int(token.tag[1:]) + headings)}"
        if token.type == "th_open":
            token.attrSet("scope", "col")
        if align := token.attrs.pop("style", None):  # the site's policy allows no style attributes
            token.attrSet("class", str(align).replace("text-align:", "to-"))
    return Markup(parser.renderer.render(tokens, parser.options, {}))  # noqa: S704 (the renderer escapes all text)


def suite_heading(
    about: SuiteAbout, data: str, plugin: Suite | None, scored: Collection[str], run: Collection[str]
) -> str:
    """Return the heading of numbers on a suite.

    Args:
        about: the suite, as results have it.
        data: the kind of data.
        plugin: the suite of that name; None where it is not installed, so that nobody knows what it is made of.
        scored: ids of the tasks that the numbers are of; for an average its members.
        run: ids of all tasks that were run, those of the suite's other averages as well.

    Example:
        >>> about = SuiteAbout(name="beir", version="1", title="BEIR")
        >>> suite_heading(about, "official", None, ["beir/scifact"], ["beir/scifact"])
        'BEIR: scifact'
    """
    name = about.title if data == "official" else f"{data}/{about.name}"
    kind = data.partition("-")[0]  # all embedded worlds have the tasks of the first
    whole = plugin.task_names(kind) if plugin and kind in plugin.data else ()
    if whole and {*whole} <= {_name(task, about) for task in run}:
        return name
    names = [_name(task, about) for task in sorted(scored)]
    if len(names) <= NAMED:
        return f"{name}: {listed([plugin.titles.get(task, task) if plugin else task for task in names])}"
    return f"{name} ({len(names)} of {len(whole)} tasks)" if whole else f"{name} ({len(names)} tasks)"


def _name(task: str, about: SuiteAbout) -> str:
    """Return a task's name without `mini/` (or its like) and the suite's name."""
    return bare(task).removeprefix(f"{about.name}/")
