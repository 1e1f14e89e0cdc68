"""`bench leaderboard build`: a static site from a results folder."""

from __future__ import annotations

from pathlib import Path

import click

from bench.cli import examples
from bench.cli.options import results_option
from bench.cli.output import json_option, print_json, table
from bench.plugins import own_package
from bench.substitutes import marked


@click.group(name="leaderboard")
def command() -> None:
    """Pages to read and to send: plain HTML that needs no server."""


@command.command(
    name="build",
    epilog=examples("bench leaderboard build --results results --out site"),
)
@results_option
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("site"),
    show_default=True,
    help="Folder of the site; an older site there is replaced.",
)
@json_option
def build_command(results: Path, out: Path, as_json: bool) -> None:
    """Build a static site from a results folder: a page, a CSV and a JSON file for each suite and setting."""
    own_package("leaderboard")  # refuses a stranger's package of that name with a sentence
    from leaderboard.build import build

    site = build(results, out)
    start = (site.folder / "index.html").resolve()
    if as_json:
        print_json({"site": str(start), "pages": list(site.pages), "files": site.files, "bytes": site.bytes})
        return
    rows = [
        (
            page["page"],
            marked(page["data"], page.get("stands_for", "")),
            page["measure"],
            str(page["systems"]),
            ", ".join(page["best"]) or "—",
        )
        for page in site.pages
    ]
    table("", ("page", "data", "measure", "systems", "best or tied with it"), rows, numbers=("systems",))
    click.echo(f"site: {start}")
