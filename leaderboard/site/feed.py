"""New rows: the day on which each row first appeared on the site, and a feed of the newest (Atom, RFC 4287).

Results hold no date, so that the same store gives the same bytes. A row's day is that of the first build that showed
it: the list of a site keeps it, and the next build in the same place reads it there.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from bench.core.files import digest
from bench.evaluation.tables import visible
from leaderboard.site import text
from leaderboard.site.boards import Board, Row
from leaderboard.site.captions import title
from leaderboard.site.site import Page, Site

MOST = 50
"""Rows that a feed names."""
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True)
class NewRow:
    """A new row."""

    id: str  # of the row, which stays
    day: str  # of its first appearance on the site, ISO 8601
    title: str  # system, suite, setting and score
    page: str  # its path, from the root of the site


def row_id(board: Board, row: Row) -> str:
    """Return the identity of a row: a digest of its data, suite, setting, system and seeds."""
    return digest([board.data, board.suite, board.version, board.setting, row.system.hash, list(row.seeds)])


def day(site: Site, board: Board, row: Row) -> str:
    """The day of a row, known from an older site or else this build's; empty where days are not named."""
    found = site.days.get(row_id(board, row), site.built)
    return found if _DAY.fullmatch(found) else ""


def days(site: Site) -> dict[str, str]:
    """The day of every row that has one."""
    every = {row_id(board, row): day(site, board, row) for board in site.boards for row in board.every}
    return {name: found for name, found in every.items() if found}


def new_rows(site: Site, here: Sequence[Page]) -> list[NewRow]:
    """The rows of some pages, the newest first."""
    known = days(site)
    found = []
    for page in here:
        for row in page.board.every:
            name = row_id(page.board, row)
            if name in known:
                score = f": {text.number(row.score)} {page.board.measure}" if row.score is not None else ""
                said = f"{row.name} on {title(page.board)}, {page.board.setting}{score}"
                found.append(NewRow(name, known[name], visible(said), f"{page.stem}.html"))
    return sorted(found, key=lambda one: (one.day, one.title), reverse=True)


def feed(folder: str, news: Sequence[NewRow], built: str) -> bytes:
    """Write rows, the newest first, as an Atom feed; its links are relative to its folder, empty or ending in `/`."""
    tree = folder.strip("/")
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        f"<title>retrieval-bench: new rows{escape(f' ({tree})') if tree else ''}</title>",
        f"<id>urn:sha256:{digest(['feed', folder])}</id>",
        f"<updated>{max([built, *(one.day for one in news)])}T00:00:00Z</updated>",
        "<author><name>retrieval-bench</name></author>",
        '<link rel="self" href="feed.xml"/>',
        '<link rel="alternate" href="index.html"/>',
    ]
    for one in news[:MOST]:
        link = quoteattr(one.page.removeprefix(folder))
        lines += [
            "<entry>",
            f"<title>{escape(one.title)}</title>",
            f"<id>urn:sha256:{one.id}</id>",
            f"<updated>{one.day}T00:00:00Z</updated>",
            f'<link rel="alternate" href={link}/>',
            "</entry>",
        ]
    return ("\n".join([*lines, "</feed>"]) + "\n").encode()
