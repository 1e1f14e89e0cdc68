"""`bench leaderboard init` and `schema`: a repository that takes results in, and the format that they have."""

from pathlib import Path

import click

from bench.cli import examples
from bench.cli.options import FOLDER
from bench.cli.output import json_option, print_json


@click.command(name="init", epilog=examples("bench leaderboard init my-board"))
@click.argument("folder", metavar="DIR", type=FOLDER)
@json_option
def init_command(folder: Path, as_json: bool) -> None:
    """Write a repository for a leaderboard: results by pull request, checked and published by workflows.

    DIR may be a repository already; nothing in it is overwritten.
    """
    from leaderboard.submissions.repository import init

    files = init(folder)
    if as_json:
        print_json({"folder": str(folder.resolve()), "files": list(files)})
        return
    for file in files:
        click.echo(folder / file)
    click.echo(f"next: cd {folder} && git init && bench run --method bm25 --suite beir --results results")


@click.command(
    name="pack", epilog=examples("bench leaderboard pack results/…/seed-0 --url https://my.site/ --out packed")
)
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--out", type=FOLDER, required=True, help="Folder of the copy.")
@click.option("--url", default="", metavar="PREFIX", help="What the addresses of larger runs begin with: https://…/.")
@json_option
def pack_command(folder: Path, out: Path, url: str, as_json: bool) -> None:
    """Copy a result to hand in; runs of more than 1 MB stay behind, named by their address and checksum."""
    from leaderboard.submissions.pack import pack

    packed = pack(folder, out, url)
    if as_json:
        print_json({"path": str(packed.path.resolve()), "remote": packed.aside})
        return
    click.echo(f"packed: {packed.path}")
    for name, address in packed.aside.items():
        click.echo(f"put {folder / name} at {address}")


@click.command(name="schema", epilog=examples("bench leaderboard schema > result.schema.json"))
def schema_command() -> None:
    """Print the format of result files and their bundles as JSON Schema."""
    from bench.evaluation.results.format import rendered

    click.echo(rendered(), nl=False)
