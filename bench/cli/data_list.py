"""`bench data list`: official files, and what of them is here."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from bench.cli import examples
from bench.cli import local_files as shown
from bench.cli.local_files import file_count, files_table, instructions, missing, size, sized
from bench.cli.options import data_dir_option
from bench.cli.output import json_option, print_json, table
from bench.data.fetching.local_files import LocalFile, local_files
from bench.data.fetching.official import roots
from bench.plugins import load
from bench.types import Suite


@click.command(name="list", epilog=examples("bench data list", "bench data list mrtydi", "bench data list --json"))
@click.argument("names", nargs=-1, metavar="[SUITE]...")
@data_dir_option
@json_option
def command(names: tuple[str, ...], data_dir: Path | None, as_json: bool) -> None:
    """Say which official files suites need, and which of them are here; without a name, one row a suite.

    Files are found by name and size; `bench data check` reads them. `partial`: its fetching was interrupted. `packed`:
    an archive that was not unpacked yet. `damaged`: not of its published size, or changed since it came.
    """
    plugins, places = load(), roots(data_dir)
    suites = [plugins.suite(name) for name in dict.fromkeys(names or sorted(plugins.suites))]
    files_by_suite = {suite.name: local_files(suite, places) for suite in suites}
    if as_json:
        print_json(
            {
                "places": [str(place) for place in places],
                "suites": [_json(suite, files_by_suite[suite.name]) for suite in suites],
            }
        )
        return
    click.echo(f"looked for in: {', then '.join(map(str, places))}\n")
    if names:
        for suite in suites:
            _print(suite, files_by_suite[suite.name])
    else:
        _overview(suites, files_by_suite)


def _totals(files: Sequence[LocalFile]) -> dict[str, Any]:
    counts = {"files": len(files), "complete": sum(file.complete for file in files)}
    return {**counts, "bytes_here": sum(file.size for file in files), **missing(files)}


def _json(suite: Suite, files: Sequence[LocalFile]) -> dict[str, Any]:
    return {
        "suite": suite.name,
        "stands_for": suite.stands_for or None,
        "licence": suite.licence,
        "totals": _totals(files),
        "files": [shown.as_json(file) for file in files],
    }


def _bytes_to_come(totals: dict[str, Any]) -> str:
    """Return the bytes that are not here yet."""
    return sized(totals["bytes_left"], totals["files_left_of_unknown_size"])


def _overview(suites: Sequence[Suite], files_by_suite: dict[str, tuple[LocalFile, ...]]) -> None:
    rows = []
    for suite in suites:
        totals = _totals(files_by_suite[suite.name])
        files = f"{totals['complete']} of {totals['files']}" if totals["files"] else "lists none"
        by_hand = sum(file.by_hand for file in files_by_suite[suite.name])
        to_come = _bytes_to_come(totals) if totals["files"] else ""
        rows.append((suite.name, files, size(totals["bytes_here"]), to_come, str(by_hand or ""), suite.licence))
    columns = ("suite", "files here", "size here", "to come", "by hand", "licence")
    table("", columns, rows, numbers=("size here", "to come", "by hand"))


def _print(suite: Suite, files: Sequence[LocalFile]) -> None:
    if not files:
        click.echo(f"{suite.name} lists no official files; `bench show {suite.name}` says what it reads\n")
        return
    totals = _totals(files)
    files_table(f"{suite.name}: {suite.licence}", files)
    size_here, to_come = size(totals["bytes_here"]), _bytes_to_come(totals)
    click.echo(f"{totals['complete']} of {file_count(len(files))}, {size_here} here; to come: {to_come}")
    instructions((file for file in files if file.by_hand), click.echo)
    click.echo()
