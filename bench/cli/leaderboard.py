"""`bench leaderboard build`: a static site from a results folder."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.cli import CommandGroup, examples
from bench.cli.leaderboard_add import KEPT, add_command, check_command
from bench.cli.leaderboard_export import export_command
from bench.cli.leaderboard_init import init_command, pack_command, schema_command
from bench.cli.options import FILE, records_option, results_option, store_option
from bench.cli.output import json_option, notice, print_json, table
from bench.core.publications import marked
from bench.plugins import Plugins, load, own_package

if TYPE_CHECKING:
    from leaderboard.site.site import Shown


@click.group(name="leaderboard", cls=CommandGroup)
def command() -> None:
    """Pages to read and to send: plain HTML that needs no server."""
    own_package("leaderboard")  # refuses another package of that name with a sentence


for _other in (add_command, check_command, export_command, init_command, pack_command, schema_command):
    command.add_command(_other)


@command.command(name="build", epilog=examples("bench leaderboard build --results results --out site"))
@results_option
@click.option(
    "--out",
    type=FILE,
    default=Path("site"),
    show_default=True,
    help="Folder of the site; an older site there is replaced.",
)
@store_option
@records_option
@click.option(
    "--with-runs",
    is_flag=True,
    help="Copy the bundles with their runs too, so that readers can recompute; many times the size.",
)
@json_option
def build_command(results: Path, out: Path, store: Path, records: Path | None, with_runs: bool, as_json: bool) -> None:
    """Build a static site from a results folder: a page, a CSV and a JSON file for each suite and setting."""
    from leaderboard.build import build
    from leaderboard.records import Records, now

    today, kept = now().partition("T")[0], store / KEPT
    site = build(results, out, _shown(load()), today, kept, runs=with_runs, records=Records(records))
    notice(*(f"{one.place} is left out: {one.why}" for one in site.left))
    start = (site.folder / "index.html").resolve()
    if as_json:
        about = {"site": str(start), "pages": list(site.pages), "files": site.files, "bytes": site.bytes}
        print_json(about | ({"left_out": [asdict(one) for one in site.left]} if site.left else {}))
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


def _shown(plugins: Plugins) -> Shown:
    """Return methods and suites of the installed plugins, as plain data."""
    from leaderboard.site.site import MethodShown, Shown, SuiteShown

    methods = {
        name: MethodShown(name, one.version, one.summary, one.citation, one.card(), one.presets, one.licence, one.code)
        for name, one in ((name, owned.value) for name, owned in plugins.methods.items())
    }
    files = {name: one.value.releases() if one.value.releases else () for name, one in plugins.suites.items()}
    suites = {
        name: SuiteShown(
            name=name,
            title=one.title,
            primary=one.primary,
            card=one.card(),
            citation=one.citation,
            licences=tuple(dict.fromkeys([one.licence, *(release.licence for release in files[name])])),
            stands_for=one.stands_for,
            reported=tuple(one.reported()) if one.reported else (),
        )
        for name, one in ((name, owned.value) for name, owned in plugins.suites.items())
    }
    return Shown(methods, suites)
