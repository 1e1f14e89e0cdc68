"""The rows of all boards with their results, and the paths of the pages of rows and methods."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bench.core.files import digest
from bench.core.messages import shown
from bench.evaluation.compare.fairness import ComparedSystem
from bench.evaluation.results.format import Leg
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
        """Its name in addresses: stable as long as suite, setting, label and hash are."""
        identity = (self.board.suite, self.board.setting, self.row.system.label)
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

    @cached_property
    def side(self) -> ComparedSystem:
        """The row for the fairness checks: validated parts of its results, and free ones of the expected types."""
        contents = []
        for result in self.results:
            content, raw = result.content, part(result.whole, "system")
            system = content.system.model_dump() | {"deterministic": raw.get("deterministic") is True}
            system |= {name: value for name in ("contract", "corpus", "tuning") if (value := part(raw, name))}
            tasks = {
                task: {
                    name: {"queries": leg.queries, "protocol": leg.protocol}
                    | {"facts": {"train": part(leg.facts, "train")}}
                    for name, leg in legs.items()
                }
                for task, legs in content.tasks.items()
            }
            heading = {"data": content.data, "setting": content.setting, "seed": content.seed}
            contents.append({"system": system, "suite": content.suite.model_dump(), **heading, "tasks": tasks})
        return ComparedSystem(self.row.name, contents)

    def legs(self) -> Iterator[tuple[str, str, Leg, dict[str, Any]]]:
        """Yield task, leg, its model, and all of the first seed's file on it, where unmodelled parts have any type."""
        raw = self.system.first.whole["tasks"]
        for task, legs in self.system.first.content.tasks.items():
            for name, leg in legs.items():
                yield task, name, leg, raw[task][name]

    def settings(self) -> list[tuple[str, str, str]]:
        """Return every setting with its value and its source; chosen ones precede defaults."""
        settings = [*self.row.system.settings, *(setting for _, _, leg, _ in self.legs() for setting in leg.settings)]
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
        boards[entry.board.suite, entry.board.setting].append(entry)
    return dict(boards)


def part(value: Any, key: str) -> dict[str, Any]:
    """Return a mapping inside a mapping; empty if there is no mapping at the key."""
    inner = value.get(key) if isinstance(value, Mapping) else None
    return dict(inner) if isinstance(inner, Mapping) else {}
