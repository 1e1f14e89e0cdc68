"""What is new: the day on which each row first stood on the site, and a feed of the newest (Atom, RFC 4287).

Results hold no date, so that the same store gives the same bytes. A row's day is that of the first build that showed
it: the list of a site keeps it, and the next build in the same place reads it there.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

from bench.fsio import digest
from leaderboard import text
from leaderboard.heat import every
from leaderboard.kit import Site
from leaderboard.places import Page
from leaderboard.tables import Board, Row
from leaderboard.telling import title

MOST = 50
"""Rows that a feed names."""
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True)
class Entry:
    """A new row.

    Args:
        id: of the row, which stays.
        day: on which it first stood on the site, ISO 8601.
        title: system, suite, setting and score.
        page: where it stands, from the root of the site.
    """

    id: str
    day: str
    title: str
    page: str


def row_id(board: Board, row: Row) -> str:
    """What tells a row apart: its data, suite, setting, system and seeds."""
    return digest([board.data, board.suite, board.version, board.setting, row.system.hash, list(row.seeds)])


def days(site: Site) -> dict[str, str]:
    """The day of every row, known from an older site or else this build's; empty where days are not named."""
    found = {}
    for board in site.boards:
        for row in every(board):
            name = row_id(board, row)
            day = site.days.get(name, site.built)
            if _DAY.fullmatch(day):
                found[name] = day
    return found


def entries(site: Site, here: Sequence[Page]) -> list[Entry]:
    """The rows of some pages, the newest first."""
    known = days(site)
    found = []
    for page in here:
        for row in every(page.board):
            name = row_id(page.board, row)
            if name in known:
                score = f": {text.number(row.score)} {page.board.measure}" if row.score is not None else ""
                said = f"{row.name} on {title(page.board)}, {page.board.setting}{score}"
                found.append(Entry(name, known[name], text.visible(said), f"{page.stem}.html"))
    return sorted(found, key=lambda one: (one.day, one.title), reverse=True)


def feed(folder: str, news: Sequence[Entry], built: str) -> bytes:
    """Write the newest rows as an Atom feed; its links are relative to it.

    Args:
        folder: of the feed in the site, with a slash behind where it is not the root.
        news: the newest first.
        built: the day of the build.
    """
    lines = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        f"<title>{escape(_heading(folder))}</title>",
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


def _heading(folder: str) -> str:
    """Title of a tree's feed, which says of other data what they are."""
    return "retrieval-bench: new rows" + (f" ({folder.strip('/')})" if folder else "")
