"""`bench gc`: remove what no result rests on."""

from pathlib import Path
from typing import Any

import click

from bench.cli.options import results_option, store_option
from bench.cli.output import json_option, notice, print_json, table
from bench.evaluation.results import keys
from bench.store import housekeeping
from bench.store.store import Store

_MEGA = 1_000_000


@click.command(name="gc")
@store_option
@results_option
@click.option(
    "--older-than",
    "days",
    type=click.FloatRange(min=0),
    default=14.0,
    show_default=True,
    metavar="DAYS",
    help="Spare what was made within so many days; 0 spares nothing but what results, and runs at work, rest on.",
)
@click.option("--dry-run", is_flag=True, help="List what would go, remove nothing.")
@json_option
def command(store: Path, results: Path, days: float, dry_run: bool, as_json: bool) -> None:
    """Remove artefacts that no result in --results rests on, and what killed runs have left."""
    place = Store(store, notice)
    found = list(housekeeping.garbage(place, keys(results), days))
    if not dry_run:
        with place.writing(f"removing what nobody needs from {store}"):
            found = housekeeping.remove(place, found, lambda: keys(results))
    verb = "would free" if dry_run else "freed"
    total = sum(item.size for item in found)
    if as_json:
        rows: list[dict[str, Any]] = [
            {"path": str(item.path), "reason": item.reason, "bytes": item.size} for item in found
        ]
        print_json({"removed": [] if dry_run else rows, "garbage": rows, "bytes": total, "dry_run": dry_run})
        return
    if found:
        rows_text = [(str(item.path.relative_to(store)), f"{item.size / _MEGA:,.1f}", item.reason) for item in found]
        table("", ("what", "MB", "why"), rows_text, numbers=("MB",))
    click.echo(f"{verb} {total / _MEGA:,.1f} MB in {len(found)} places of {store}")
