"""What a site must keep before it is written: numbers as in its files, links that lead somewhere, size, no network.

The pages are read back as text, not trusted for how they were made: a cell is held against the CSV beside it, a link
against the list of files. A table is checked where it names its file (`data-csv`); a column where its header names what
it shows (`data-k`): `score`, `interval`, `rank`, `seeds`, `t1` … for the tasks in their order.
"""

from __future__ import annotations

import csv
import html
import io
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence

from leaderboard import text
from leaderboard.assets import SCRIPT, STYLE, THEME

KIB = 1 << 10
BUDGETS = (
    (re.compile(r"(.*/)?suites/.*\.html"), 200 * KIB),
    (re.compile(r"(.*/)?index\.html"), 120 * KIB),
    (re.compile(r"(.*/)?runs/.*\.html"), 40 * KIB),
    (re.compile(r".*\.html"), 500 * KIB),
    (re.compile(re.escape(STYLE)), 20 * KIB),
    (re.compile(re.escape(SCRIPT)), 25 * KIB),
    (re.compile(r"(.*/)?data/.*\.js"), 300 * KIB),
)
"""The first that fits a file's path bounds its bytes, uncompressed."""

_TARGET = re.compile(rb'<(\w+)[^>]*?\s(href|src)="([^"]*)"')
_AWAY = re.compile(rb"\burl\(|@import|https?://(?!www\.w3\.org/)")  # names of XML languages are no addresses
_ID = re.compile(rb'\sid="([^"]*)"')
_TABLE = re.compile(r'<table[^>]*\sdata-csv="([^"]*)"(?:\sdata-base="([^"]*)")?[^>]*>(.*?)</table>', re.DOTALL)
_HEAD = re.compile(r"<thead>\s*<tr>(.*?)</tr>", re.DOTALL)
_ROW = re.compile(r"<tr data-id[^>]*>(.*?)</tr>", re.DOTALL)
_CELL = re.compile(r'<t[hd]((?:\s[a-z-]+(?:="[^"]*")?)*)>(.*?)</t[hd]>', re.DOTALL)
_KEY = re.compile(r'data-k="([^"]*)"')
_WIDE = re.compile(r'colspan="(\d+)"')
_HIDDEN = re.compile(r'<span class="hidden">.*?</span>|<span class="dot".*?</span>', re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_PARTS = re.compile(r"(?:<b>(.*?)</b> )?<i>(.*?)</i>")


def faults(files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield a sentence for everything in a site that must not be there.

    Args:
        files: content by path.
    """
    yield from _sizes(files)
    ids: dict[str, frozenset[bytes]] = {}
    for name, content in files.items():
        if name.endswith(".html"):
            yield from _links(name, content, files, ids)
            if b"data-csv" in content:
                yield from _numbers(name, content.decode(), files)
    for name in (STYLE, SCRIPT, THEME):
        if _AWAY.search(files.get(name, b"")):
            yield f"{name}: found an address, expected a file that fetches nothing"


def too_large(files: Mapping[str, bytes]) -> list[tuple[str, int, int]]:
    """Files over their budget: path, bytes, most."""
    found = []
    for name, content in files.items():
        most = next((most for pattern, most in BUDGETS if pattern.fullmatch(name)), None)
        if most is not None and len(content) > most:
            found.append((name, len(content), most))
    return found


def _sizes(files: Mapping[str, bytes]) -> Iterator[str]:
    """Say what is too large."""
    for name, size, most in too_large(files):
        yield f"{name}: would have {size:,} bytes, expected at most {most:,}"


def _links(name: str, content: bytes, files: Mapping[str, bytes], ids: dict[str, frozenset[bytes]]) -> Iterator[str]:
    """Say which links of a page lead nowhere, and what it would fetch from elsewhere."""
    here = posixpath.dirname(name)
    for tag, attribute, raw in set(_TARGET.findall(content)):
        target = html.unescape(raw.decode())
        if target.startswith(("http://", "https://", "mailto:")):
            if tag != b"a" or attribute != b"href":
                yield f"{name}: would fetch {target}, expected a file of the site"
            continue
        if target.startswith("data:,"):
            continue
        path, _, fragment = target.partition("#")
        meant = posixpath.normpath(posixpath.join(here, path)) if path else name
        if meant not in files:
            yield f"{name}: links to {target}, which is not there"
        elif fragment and "=" not in fragment and meant.endswith(".html"):
            if meant not in ids:
                ids[meant] = frozenset(_ID.findall(files[meant]))
            if fragment.encode() not in ids[meant]:
                yield f"{name}: links to {target}, where nothing has that name"


def _numbers(name: str, page: str, files: Mapping[str, bytes]) -> Iterator[str]:
    """Say which cells of a page's tables differ from their CSV."""
    for beside, base, inside in _TABLE.findall(page):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(name), html.unescape(beside)))
        lines = [line for line in files[path].decode().splitlines() if not line.startswith("# ")]
        told = list(csv.DictReader(io.StringIO("\n".join(lines) + "\n")))
        rows = {row["system"]: row for row in told}
        tasks = list(told[0])[list(told[0]).index("tied") + 1 :] if told else []
        head = _HEAD.search(inside)
        keys = [_key(attributes) for attributes, _ in _CELL.findall(head[1] if head else "")]
        count = sum(bool(re.fullmatch(r"t\d+", key)) for key in keys)
        columns = {f"t{place}": task for place, task in enumerate(tasks[len(tasks) - count :], 1)}
        for cells in map(_CELL.findall, _ROW.findall(inside)):
            system = _plain(cells[0][1])
            row = rows.get(text.cell(system))
            if row is None:
                yield f"{name}: shows {system}, which {path} has not"
                continue
            ground = rows.get(text.cell(html.unescape(base))) if base else None
            yield from _row(name, system, keys, cells, row, ground, columns)


def _row(
    name: str,
    system: str,
    keys: Sequence[str],
    cells: Sequence[tuple[str, str]],
    row: Mapping[str, str],
    ground: Mapping[str, str] | None,
    columns: Mapping[str, str],
) -> Iterator[str]:
    """Say which cells of a row differ from its line of the CSV."""
    place = 0
    for attributes, inside in cells:
        key = keys[place] if place < len(keys) else ""
        wide = _WIDE.search(attributes)
        place += int(wide[1]) if wide else 1
        if wide:
            continue
        expected = _expected(key, row, ground, columns)
        shown = _shown(inside)
        if expected is not None and shown != expected:
            yield f"{name}: shows {shown} for {system}, {key}; its CSV says {expected}"


def _expected(
    key: str, row: Mapping[str, str], ground: Mapping[str, str] | None, columns: Mapping[str, str]
) -> str | None:
    """What a cell must show by the CSV; None for a column that the CSV has not."""
    if key == "score":
        return text.number(_fraction(row["score"]))
    if key == "interval":
        return text.bounds(_fraction(row["low"]), _fraction(row["high"]))
    if key == "rank":
        return row["ranks"] or text.MISSING
    if key == "seeds":
        return str(len(row["seeds"].split()))
    if key not in columns:
        return None
    value = _fraction(row[columns[key]])
    other = _fraction(ground[columns[key]]) if ground else None
    if value is None or other is None:
        return text.number(value)
    return f"{text.signed(text.gap(value, other))} {text.number(value)}"


def _fraction(cell: str) -> float | None:
    """A cell of a CSV as a number; None where it is empty."""
    return float(cell) if cell else None


def _key(attributes: str) -> str:
    """What a header cell says of its column."""
    found = _KEY.search(attributes)
    return found[1] if found else ""


def _shown(inside: str) -> str:
    """What a cell shows: difference and value of the map, or its text without what is hidden."""
    parts = _PARTS.fullmatch(inside)
    return " ".join(filter(None, parts.groups())) if parts else _plain(inside)


def _plain(inside: str) -> str:
    """The text of a cell."""
    return html.unescape(_TAG.sub("", _HIDDEN.sub("", inside))).strip()
