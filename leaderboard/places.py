"""Where the pages of a site lie: a tree for each kind of data, a page for each board, one name for each thing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leaderboard.tables import Board
from leaderboard.text import slug

FIRST = "official"
"""The kind of data whose pages stand at the root of the site."""
SETTINGS = ("unsupervised", "english", "multilingual", "few-shot")
"""In the order of the site."""
SUBSTITUTES = "substitutes/"
"""The folder, within a tree, of the pages of substitutes."""


@dataclass(frozen=True)
class Page:
    """A board and where its files lie.

    Args:
        board: the table.
        stem: path of its files in the site, without the ending.
    """

    board: Board
    stem: str

    @property
    def root(self) -> str:
        """The tree that it belongs to: empty, `mini/` (`mini-few-names/` and the like) or `local/`."""
        return root(self.board.data)

    @property
    def name(self) -> str:
        """File name without folder and ending."""
        return self.stem.rpartition("/")[2]

    def about(self) -> dict[str, Any]:
        """What a list of pages says of it."""
        board = self.board
        return {
            "page": f"{self.stem}.html",
            "suite": board.suite,
            "stands_for": board.stands_for or None,
            "setting": board.setting,
            "data": board.data,
            "measure": board.measure,
            "systems": len(board.rows) + len(board.incomplete),
            "best": board.best,
        }


def root(data: str) -> str:
    """The tree of a kind of data: empty for official data, `mini/`, `mini-few-names/`, `local/`."""
    return "" if data == FIRST else f"{data}/"


def folder(data: str, stands_for: str = "") -> str:
    """The folder of a kind of data and, within it, of substitutes: pages of neither kind mix with the others."""
    return f"{root(data)}{SUBSTITUTES if stands_for else ''}"


def suite_stem(suite: str, setting: str, data: str = FIRST, stands_for: str = "") -> str:
    """Where a suite's page in a setting lies, without the ending."""
    return f"{folder(data, stands_for)}suites/{slug(suite)}/{slug(setting)}"


def pages(boards: Sequence[Board]) -> list[Page]:
    """Say where each board lies; other data than official, and substitutes, have trees of their own."""
    return [Page(board, suite_stem(board.suite, board.setting, board.data, board.stands_for)) for board in boards]


def trees(boards: Sequence[Board]) -> list[tuple[str, bool]]:
    """The trees that have pages: kind of data, and whether of substitutes; that of official data always, and first."""
    return list(dict.fromkeys([(FIRST, False), *((board.data, bool(board.stands_for)) for board in boards)]))
