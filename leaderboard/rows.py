"""The rows of all boards with the results that they are made of, and where the pages of rows, methods and pairs lie."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from bench.fairness import Side
from bench.fsio import digest
from bench.wording import shown
from leaderboard.kit import Site
from leaderboard.places import folder
from leaderboard.read import Result
from leaderboard.systems import System, grouped
from leaderboard.tables import Board, Row
from leaderboard.text import slug

_LONGEST, _LONG = 60, 300  # characters of an address, and of a value


@dataclass(frozen=True)
class Entry:
    """A row of a board and the results that it is made of.

    Args:
        board: the table.
        row: in it.
        system: results, one a seed.
    """

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
        return f"{plain}-{digest([*about, self.row.system.hash])[:8]}"

    @property
    def stem(self) -> str:
        """Where its page lies, without the ending."""
        return f"{self.inside}runs/{self.id}"

    @property
    def method(self) -> str:
        """Where its method's page lies, without the ending."""
        return f"{self.inside}methods/{slug(self.row.system.method)}"

    @cached_property
    def contents(self) -> tuple[dict[str, Any], ...]:
        """All that its result files hold, also what the format leaves free: its types are nobody's promise.

        The files were checked when the site read them; parts that are not of the kind that is wanted are for the
        caller to pass over (`part`).
        """
        return tuple(json.loads(result.path.read_bytes()) for result in self.results)

    @cached_property
    def side(self) -> Side:
        """What fairness is judged by: the checked parts of the results, and free ones that are of the right kind."""
        return Side(self.row.name, [_said(*pair) for pair in zip(self.results, self.contents, strict=True)])

    def legs(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield task, leg and all that the first seed's file says of it; dev tasks are left out."""
        held = self.contents[0]["tasks"]
        for task, legs in self.system.first.content.tasks.items():
            for leg in legs:
                yield task, leg, held[task][leg]

    def settings(self) -> list[tuple[str, str, str]]:
        """Every setting with its value and the layer that set it: first what was chosen, then what is as by default."""
        rows = [(one.key, short(one.value), one.origin) for one in self.row.system.settings]
        for _, _, leg in self.legs():
            own = leg.get("settings")
            rows += [
                (str(one.get("key"))[:_LONG], short(one.get("value")), str(one.get("origin"))[:_LONG])
                for one in (own if isinstance(own, list) else ())
                if isinstance(one, dict)
            ]
        return sorted(dict.fromkeys(rows), key=lambda row: row[2] == "default")


def entries(site: Site) -> list[Entry]:
    """Every row of every board, in the order of the site."""
    groups: dict[tuple[str, str, str], list[Result]] = defaultdict(list)
    for result in site.results:
        about = result.content.tested()
        if about.tasks:
            groups[about.data, about.suite.name, about.setting].append(replace(result, content=about))
    found = []
    for board in site.boards:
        systems = {one.name: one for one in grouped(groups[board.data, board.suite, board.setting])[0]}
        found += [Entry(board, row, systems[row.name]) for row in (*board.rows, *board.incomplete)]
    return found


def of_trees(every: Sequence[Entry]) -> dict[tuple[str, str], list[Entry]]:
    """The rows by kind of data and by the folder of their tree, which tells substitutes apart."""
    found: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for one in every:
        found[one.board.data, one.inside].append(one)
    return dict(found)


def compare_stem(board: Board) -> str:
    """Where the pairs of a board have their page, without the ending."""
    return f"{folder(board.data, board.stands_for)}compare/{slug(f'{board.suite}-{board.setting}')}"


def short(value: Any) -> str:
    """A value as a person would type it, cut where it is long."""
    said = shown(value)
    return said if len(said) <= _LONG else f"{said[:_LONG]}…"


def part(value: Any, key: str) -> dict[str, Any]:
    """A mapping inside a mapping; empty where there is none of that kind."""
    inner = value.get(key) if isinstance(value, Mapping) else None
    return dict(inner) if isinstance(inner, Mapping) else {}


def _said(result: Result, whole: Mapping[str, Any]) -> dict[str, Any]:
    """A result as `bench.fairness` reads it."""
    content, free = result.content, part(whole, "system")
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
                name: {
                    "queries": leg.queries,
                    "protocol": leg.protocol,
                    "facts": {"train": part(leg.facts, "train")},
                }
                for name, leg in legs.items()
            }
            for task, legs in content.tasks.items()
        },
    }
