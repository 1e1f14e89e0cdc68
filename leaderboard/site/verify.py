"""Check a site before it is written: numbers as in its files, working links, bounded size, no network.

The pages are parsed as text, independent of how they were made: a cell is compared with its CSV, a link with the list
of files. A table is checked where it names its file (`data-csv`); a column by the key of its
header (`data-k`), as `leaderboard.site.columns` declares it; `t1` … are the tasks in their order.
"""

import csv
import html
import io
import posixpath
import re
from collections.abc import Iterator, Mapping

from bench.evaluation.tables import points, spreadsheet_text
from leaderboard.site import text
from leaderboard.site.columns import page_column
from leaderboard.site.render import SCRIPT, STYLE, THEME

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


def errors(files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield a sentence for every error of a site, given the content of its files by path."""
    for name, size, most in too_large(files):
        yield f"{name}: would have {size:,} bytes, expected at most {most:,}"
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
    """Return the files over their budget: path, bytes, and the most that they may have."""
    over = []
    for name, content in files.items():
        most = next((most for pattern, most in BUDGETS if pattern.fullmatch(name)), None)
        if most is not None and len(content) > most:
            over.append((name, len(content), most))
    return over


def _links(name: str, content: bytes, files: Mapping[str, bytes], ids: dict[str, frozenset[bytes]]) -> Iterator[str]:
    """Yield the dead links of a page, and what it would fetch from elsewhere."""
    for tag, attribute, raw in set(_TARGET.findall(content)):
        target = html.unescape(raw.decode())
        if target.startswith(("http://", "https://", "mailto:")):
            if tag != b"a" or attribute != b"href":
                yield f"{name}: would fetch {target}, expected a file of the site"
            continue
        if target.startswith("data:,"):
            continue
        path, _, fragment = target.partition("#")
        linked = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
        if linked not in files:
            yield f"{name}: links to {target}, which is not there"
        elif fragment and "=" not in fragment and linked.endswith(".html"):
            if linked not in ids:
                ids[linked] = frozenset(_ID.findall(files[linked]))
            if fragment.encode() not in ids[linked]:
                yield f"{name}: links to {target}, where nothing has that name"


def _numbers(name: str, page: str, files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the cells of a page's tables that their CSV files contradict."""
    for source, base, table in _TABLE.findall(page):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(name), html.unescape(source)))
        # Other ends of lines than these two, such as U+2028, are part of a cell.
        lines = [line for line in files[path].decode().replace("\r\n", "\n").split("\n") if not line.startswith("# ")]
        records = list(csv.DictReader(io.StringIO("\n".join(lines), newline="")))
        rows = {row["system"]: row for row in records}
        tasks = list(records[0])[list(records[0]).index("tied") + 1 :] if records else []
        head = _HEAD.search(table)
        matches = (_KEY.search(attributes) for attributes, _ in _CELL.findall(head[1] if head else ""))
        keys = [match[1] if match else "" for match in matches]
        count = sum(bool(re.fullmatch(r"t\d+", key)) for key in keys)
        columns = {f"t{number}": task for number, task in enumerate(tasks[len(tasks) - count :], 1)}
        base_row = rows.get(spreadsheet_text(html.unescape(base))) if base else None
        for cells in map(_CELL.findall, _ROW.findall(table)):
            system = _plain(cells[0][1])
            row = rows.get(spreadsheet_text(system))
            if row is None:
                yield f"{name}: shows {system}, which {path} has not"
                continue
            position = 0  # of a cell's column; cells over several columns are left out
            for attributes, content in cells:
                key, wide = keys[position] if position < len(keys) else "", _WIDE.search(attributes)
                position += int(wide[1]) if wide else 1
                expected = None if wide else _expected(key, row, base_row, columns)
                parts = _PARTS.fullmatch(content)  # difference and value of the map
                shown = " ".join(filter(None, parts.groups())) if parts else _plain(content)
                if expected is not None and shown != expected:
                    yield f"{name}: shows {shown} for {system}, {key}; its CSV says {expected}"


def _expected(
    key: str, row: Mapping[str, str], base: Mapping[str, str] | None, columns: Mapping[str, str]
) -> str | None:
    """Return what a cell must show by the CSV; None for a column that the CSV lacks."""
    column = page_column(key)
    if column is not None:
        return column.by_csv(row)
    if key not in columns:
        return None
    cells = [row[columns[key]], base[columns[key]] if base else ""]
    value, reference = (float(cell) if cell else None for cell in cells)
    if value is None or reference is None:
        return text.number(value)
    return f"{points(text.gap(value, reference), sign=True)} {text.number(value)}"


def _plain(content: str) -> str:
    return html.unescape(_TAG.sub("", _HIDDEN.sub("", content))).strip()
