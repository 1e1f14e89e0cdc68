"""The rows of all boards with their results, and the paths of the pages of rows and methods."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bench.core.files import digest
from bench.core.messages import shown
from bench.evaluation.results.format import Subset
from bench.evaluation.results.read import Result
from leaderboard.records import UNVERIFIED
from leaderboard.site.boards import Board, Row, Tree
from leaderboard.site.site import Site
from leaderboard.site.systems import System
from leaderboard.site.text import slug

_LONGEST, _LONG = 60, 300  # characters of an address, and of a value


@dataclass(frozen=True)
class Entry:
    """A row of a board and the results that it is made of."""

    board: Board
    row: Row
    system: System

    @property
    def results(self) -> tuple[Result, ...]:
        """The results of its seeds."""
        return self.system.results

    @property
    def inside(self) -> str:
        """The folder of its tree."""
        return self.board.tree.folder

    @cached_property
    def id(self) -> str:
        """Its name in addresses: stable as long as suite, regime, label and hash are."""
        identity = (self.board.suite, self.board.regime, self.row.system.label)
        plain = re.sub(r"[^a-z0-9]+", "-", "-".join(identity).lower()).strip("-")[:_LONGEST]
        mark = [] if self.row.verified else [UNVERIFIED]
        return f"{plain}-{digest([*identity, self.row.system.hash, *mark])[:8]}"

    @property
    def stem(self) -> str:
        """The path of its page, without the ending."""
        return f"{self.inside}runs/{self.id}"

    @property
    def method(self) -> str:
        """The path of its method's page, without the ending."""
        return f"{self.inside}methods/{slug(self.row.system.method)}"

    def subsets(self) -> Iterator[tuple[str, str, Subset, dict[str, Any]]]:
        """Yield task, subset, its model, and all of the first seed's file on it; unmodelled parts have any type."""
        raw = self.system.first.whole["tasks"]
        for task, subsets in self.system.first.content.tasks.items():
            for name, subset in subsets.items():
                yield task, name, subset, raw[task][name]

    def settings(self) -> list[tuple[str, str, str]]:
        """Return every setting with its value and its source; chosen ones precede defaults."""
        settings = [
            *self.row.system.settings,
            *(setting for _, _, subset, _ in self.subsets() for setting in subset.settings),
        ]
        rows = []
        for setting in settings:
            value = shown(setting.value)
            rows.append((setting.key, value if len(value) <= _LONG else f"{value[:_LONG]}…", setting.origin))
        return sorted(dict.fromkeys(rows), key=lambda row: row[2] == "default")


def by_tree(site: Site) -> dict[Tree, list[Entry]]:
    """Return every row of every board by its tree; proxies have their own."""
    trees: dict[str, tuple[Tree, list[Entry]]] = {}
    for board in site.boards:
        for row in board.all_rows:
            entry = Entry(board, row, board.systems[row.name])
            trees.setdefault(entry.inside, (board.tree, []))[1].append(entry)
    return dict(trees.values())


def by_board(entries: Sequence[Entry]) -> dict[tuple[str, str], list[Entry]]:
    """Return the rows of a tree by suite and setting."""
    boards: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in entries:
        boards[entry.board.suite, entry.board.regime].append(entry)
    return dict(boards)
