"""What new results do to the boards of a site: systems that come and go, and ranks that move, as plain text.

The workflow of a pull request runs `python -P -m leaderboard.submissions.changes BEFORE AFTER` on the site as it was
and as it would be. A folder that is not there is a site without boards.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from bench.core.messages import visible
from leaderboard.build import LIST
from leaderboard.site import text

Ranked = Mapping[str, tuple[str, str]]
"""Score and rank interval by system, as pages print them."""


def changes(before: Path, after: Path) -> Iterator[str]:
    """Yield a line for every board that differs between two sites, and below it one for every row that does."""
    old_boards, new_boards = _boards(before), _boards(after)
    for name in sorted({*old_boards, *new_boards}):
        old, new = old_boards.get(name, {}), new_boards.get(name, {})
        rows = []
        for system in dict.fromkeys([*new, *old]):
            old_row, new_row = old.get(system), new.get(system)
            if new_row is None and old_row is not None:
                rows.append(f"  {system}: removed, was {old_row[0]}, rank {old_row[1]}")
            elif new_row is not None and old_row is None:
                rows.append(f"  {system}: new, {new_row[0]}, rank {new_row[1]}")
            elif new_row is not None and old_row is not None and old_row != new_row:
                score = f"{old_row[0]} → {new_row[0]}, " if old_row[0] != new_row[0] else ""
                rank = f"{old_row[1]} → {new_row[1]}" if old_row[1] != new_row[1] else new_row[1]
                rows.append(f"  {system}: {score}rank {rank}")
        if rows:
            yield name
            yield from rows


def _boards(site: Path) -> dict[str, Ranked]:
    """Read the boards of a site from its files, by kind of data, suite and regime."""
    if not (site / LIST).is_file():
        return {}
    pages: list[dict[str, Any]] = json.loads((site / LIST).read_text(encoding="utf-8"))["pages"]
    boards: dict[str, Ranked] = {}
    for page in pages:
        board = json.loads((site / page["page"]).with_suffix(".json").read_text(encoding="utf-8"))
        name = f"{page['suite']}, {page['regime']}, {page['data']} data"
        boards[name] = {
            visible(row["system"]): (text.number(row["score"]), text.place(row["ranks"] and tuple(row["ranks"])))
            for row in board["rows"]
        }
    return boards


if __name__ == "__main__":
    for line in list(changes(*map(Path, sys.argv[1:3]))) or ["No rank changes."]:
        click.echo(line)
