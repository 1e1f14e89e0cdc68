"""The rows of all boards with their results, and the paths of the pages of rows, methods and pairs."""

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
from leaderboard.site.boards import Board, Row
from leaderboard.site.site import Site, folder
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
        """One a seed."""
        return self.system.results

    @property
    def inside(self) -> str:
        """The folder of its tree."""
        return folder(self.board.data, self.board.stands_for)

    @cached_property
    def id(self) -> str:
        """Its name in addresses: stable as long as suite, setting, label and hash are."""
        about = (self.board.suite, self.board.setting, self.row.system.label)
        plain = re.sub(r"[^a-z0-9]+", "-", "-".join(about).lower()).strip("-")[:_LONGEST]
        mark = [] if self.row.state.verified else [UNVERIFIED]
        return f"{plain}-{digest([*about, self.row.system.hash, *mark])[:8]}"

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
        return ComparedSystem(self.row.name, list(map(_fairness_content, self.results)))

    def legs(self) -> Iterator[tuple[str, str, Leg, dict[str, Any]]]:
        """Yield task, leg, its model, and all of the first seed's file on it, where unmodelled parts have any type."""
        whole = self.system.first.whole["tasks"]
        for task, legs in self.system.first.content.tasks.items():
            for name, leg in legs.items():
                yield task, name, leg, whole[task][name]

    def settings(self) -> list[tuple[str, str, str]]:
        """Return every setting with its value and its source; chosen ones precede defaults."""
        every = [*self.row.system.settings, *(one for _, _, leg, _ in self.legs() for one in leg.settings)]
        rows = [(one.key, short(one.value), one.origin) for one in every]
        return sorted(dict.fromkeys(rows), key=lambda row: row[2] == "default")


def entries(site: Site) -> list[Entry]:
    """Return every row of every board, in the order of the site."""
    return [Entry(board, row, board.systems[row.name]) for board in site.boards for row in board.every]


def of_trees(every: Sequence[Entry]) -> dict[tuple[str, str], list[Entry]]:
    """Return the rows by kind of data and by the folder of their tree; substitutes have their own."""
    found: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for one in every:
        found[one.board.data, one.inside].append(one)
    return dict(found)


def compare_stem(board: Board) -> str:
    """Return the path of the page of a board's pairs, without the ending."""
    return f"{folder(board.data, board.stands_for)}compare/{slug(f'{board.suite}-{board.setting}')}"


def short(value: Any) -> str:
    """Return a value as a person would type it, cut if it is long."""
    said = shown(value)
    return said if len(said) <= _LONG else f"{said[:_LONG]}…"


def part(value: Any, key: str) -> dict[str, Any]:
    """Return a mapping inside a mapping; empty if there is no mapping at the key."""
    inner = value.get(key) if isinstance(value, Mapping) else None
    return dict(inner) if isinstance(inner, Mapping) else {}


def _fairness_content(result: Result) -> dict[str, Any]:
    """Return a result as `bench.evaluation.compare.fairness` reads it."""
    content, free = result.content, part(result.whole, "system")
    system = content.system.model_dump()
    system |= {"deterministic": free.get("deterministic") is True}
    system |= {name: found for name in ("contract", "corpus", "tuning") if (found := part(free, name))}
    return {
        "system": system,
        "suite": content.suite.model_dump(),
        "data": content.data,
        "setting": content.setting,
        "seed": content.seed,
        "tasks": {
            task: {
                name: {"queries": leg.queries, "protocol": leg.protocol, "facts": {"train": part(leg.facts, "train")}}
                for name, leg in legs.items()
            }
            for task, legs in content.tasks.items()
        },
    }
