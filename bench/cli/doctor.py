"""`bench doctor`: examine this machine."""

from pathlib import Path

import click

from bench.cli.options import data_dir_option, store_option
from bench.cli.output import json_option, print_json, table
from bench.studies.doctor import report


@click.command(name="doctor")
@store_option
@data_dir_option
@json_option
def command(store: Path, data_dir: Path | None, as_json: bool) -> None:
    """Examine this machine: versions, devices, plugins, data, store. Exit status 1 if something fails."""
    found = report(store, data_dir)
    if as_json:
        print_json(found.as_dict())
    else:
        for section in found.sections:
            rows = [(row.state, row.name, row.value, row.remedy) for row in section.rows]
            table(section.title, ("", "what", "found", "what to do"), rows)
    if found.state == "fail":
        raise click.exceptions.Exit(1)
