"""What new results do to the boards of a site: systems that come and go, and ranks that move, as plain text.

The workflow of a pull request runs `python -m leaderboard.submissions.changes BEFORE AFTER` on the site as it was and
as it would be. A folder that is not there is a site without boards.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from bench.evaluation.tables import visible
from leaderboard.build import LIST
from leaderboard.site import text

Ranked = Mapping[str, tuple[str, str]]
"""Score and rank interval by system, as pages print them."""


def changes(before: Path, after: Path) -> Iterator[str]:
    """Yield a line for every board that differs between two sites, and below it one for every row that does."""
    old, new = _boards(before), _boards(after)
    for name in sorted({*old, *new}):
        rows = list(_rows(old.get(name, {}), new.get(name, {})))
        if rows:
            yield name
            yield from (f"  {row}" for row in rows)


def _rows(old: Ranked, new: Ranked) -> Iterator[str]:
    for system in dict.fromkeys([*new, *old]):
        if system not in old:
            yield f"{system}: new, {new[system][0]}, rank {new[system][1]}"
        elif system not in new:
            yield f"{system}: removed, was {old[system][0]}, rank {old[system][1]}"
        elif old[system] != new[system]:
            (score, rank), (score_now, rank_now) = old[system], new[system]
            moved = f"rank {rank} → {rank_now}" if rank != rank_now else f"rank {rank}"
            yield f"{system}: {f'{score} → {score_now}, ' if score != score_now else ''}{moved}"


def _boards(site: Path) -> dict[str, Ranked]:
    """Read the boards of a site from its files, by kind of data, suite and setting."""
    if not (site / LIST).is_file():
        return {}
    pages: list[dict[str, Any]] = json.loads((site / LIST).read_text(encoding="utf-8"))["pages"]
    found: dict[str, Ranked] = {}
    for page in pages:
        board = json.loads((site / page["page"]).with_suffix(".json").read_text(encoding="utf-8"))
        name = f"{page['suite']}, {page['setting']}, {page['data']} data"
        found[name] = {
            visible(row["system"]): (text.number(row["score"]), text.place(row["ranks"] and tuple(row["ranks"])))
            for row in board["rows"]
        }
    return found


if __name__ == "__main__":
    for line in list(changes(*map(Path, sys.argv[1:3]))) or ["No rank changes."]:
        click.echo(line)
