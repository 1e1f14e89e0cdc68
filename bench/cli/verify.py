"""`bench verify`: re-hash everything."""

from __future__ import annotations

import sys
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from bench import results as result_store
from bench import upkeep
from bench.cli.options import results_option, store_option
from bench.cli.output import json_option, notice, print_json, table
from bench.store import Store


@click.command(name="verify")
@store_option
@results_option
@json_option
def command(store: Path, results: Path, as_json: bool) -> None:
    """Re-hash every artefact and result; name what is damaged. The next run makes damaged artefacts again.

    Exit status 1 if anything is damaged.
    """
    place = Store(store, notice)
    total = len(place.artefacts()) + len(result_store.result_files(results))
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("re-hashing", total=total)
        verdict = upkeep.verify(place, results, lambda: bar.advance(task))
    if as_json:
        faults = [{"path": str(fault.path), "found": fault.found} for fault in verdict.faults]
        print_json({"artefacts": verdict.artefacts, "results": verdict.results, "corrupt": faults})
    else:
        if verdict.faults:
            table("", ("damaged", "found"), [(str(fault.path), fault.found) for fault in verdict.faults])
        click.echo(
            f"{verdict.artefacts} artefacts and {verdict.results} results re-hashed, {len(verdict.faults)} faults"
            + ("; the next `bench run` makes damaged artefacts again" if verdict.faults else "")
        )
    if verdict.faults:
        raise click.exceptions.Exit(1)
