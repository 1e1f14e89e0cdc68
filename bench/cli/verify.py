"""`bench verify`: re-hash everything."""

import sys
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from bench.cli.options import results_option, store_option
from bench.cli.output import json_option, notice, print_json, table
from bench.evaluation import results as result_store
from bench.store import housekeeping
from bench.store.store import Store


@click.command(name="verify")
@store_option
@results_option
@json_option
def command(store: Path, results: Path, as_json: bool) -> None:
    """Re-hash every artefact and result; name what is damaged. The next run makes damaged artefacts again.

    Exit status 1 if anything is damaged.
    """
    place, files = Store(store, notice), result_store.result_files(results)
    artefacts = len(place.artefacts())
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("re-hashing", total=artefacts + len(files))
        faults = housekeeping.verify(place, lambda: bar.advance(task))
        for path in files:
            faults += result_store.faults(path)
            bar.advance(task)
    if as_json:
        corrupt = [{"path": str(fault.path), "found": fault.found} for fault in faults]
        print_json({"artefacts": artefacts, "results": len(files), "corrupt": corrupt})
    else:
        if faults:
            table("", ("damaged", "found"), [(str(fault.path), fault.found) for fault in faults])
        click.echo(
            f"{artefacts} artefacts and {len(files)} results re-hashed, {len(faults)} faults"
            + ("; the next `bench run` makes damaged artefacts again" if faults else "")
        )
    if faults:
        raise click.exceptions.Exit(1)
