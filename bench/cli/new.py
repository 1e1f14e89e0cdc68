"""`bench new method NAME`: begin a plugin."""

from __future__ import annotations

from pathlib import Path

import click

from bench.cli import examples
from bench.cli.output import json_option, print_json
from bench.plugins import load
from bench.scaffold import new_method, package_of


@click.group(name="new")
def command() -> None:
    """Begin a plugin of your own."""


@command.command(name="method", epilog=examples("bench new method my-method", "bench new method my-method --out code"))
@click.argument("name")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    show_default="bench_NAME",
    help="Folder of the project; it must not be there yet, or be empty.",
)
@json_option
def method_command(name: str, out: Path | None, as_json: bool) -> None:
    """Write a package with a method that trains, is tested by the kit, and waits for your idea."""
    plugins = load()
    folder = out or Path(package_of(name))
    files = new_method(name, folder, {*plugins.methods, *plugins.suites})
    if as_json:
        print_json({"folder": str(folder.resolve()), "package": package_of(name), "files": list(files)})
        return
    for file in files:
        click.echo(folder / file)
    click.echo(f"next: pip install -e {folder} && bench check {name}")
