"""`bench leaderboard`: build a static site, export its tables, start a repository for one, pack results for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.cli import CommandGroup, examples
from bench.cli.leaderboard_add import CACHE, add_command, check_command
from bench.cli.options import FILE, FOLDER, records_option, results_option, store_option
from bench.cli.output import json_option, notice, print_json, table
from bench.core.errors import StoreError, UsageError
from bench.core.files import explain, write_bytes
from bench.core.installed import own_package
from bench.core.publications import marked

if TYPE_CHECKING:
    from bench.core.publications import Reported

_LISTED = 20  # tasks that a notice lists
_FORMATS = ("csv", "json", "parquet", "latex", "markdown", "html", "mteb", "model-index", "every-eval-ever")


@click.group(name="leaderboard", cls=CommandGroup)
def command() -> None:
    """Build, check and share a site of results: plain HTML that needs no server."""
    own_package("leaderboard")  # refuses another package of that name with a sentence


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
    """Build a static site from a results folder: a page, a CSV and a JSON file for each suite and regime."""
    from bench.plugins import load
    from leaderboard.build import build
    from leaderboard.records import Records, now
    from leaderboard.site.site import Catalogue

    plugins = load()
    methods = {name: owned.value for name, owned in plugins.methods.items()}
    catalogue = Catalogue(methods, {name: owned.value for name, owned in plugins.suites.items()})
    today = now().partition("T")[0]
    site = build(results, out, catalogue, today, store / CACHE, runs=with_runs, records=Records(records))
    notice(*(f"{bundle} is left out: {reason}" for bundle, reason in site.omitted.items()))
    start = (site.folder / "index.html").resolve()
    if as_json:
        summary = {"site": str(start), "pages": list(site.pages), "files": site.files, "bytes": site.bytes}
        omitted = [{"place": bundle, "why": reason} for bundle, reason in site.omitted.items()]
        print_json(summary | ({"left_out": omitted} if omitted else {}))
        return
    rows = [
        (
            page["page"],
            marked(page["data"], page.get("proxy_for", "")),
            page["measure"],
            str(page["systems"]),
            ", ".join(page["best"]) or "—",
        )
        for page in site.pages
    ]
    table("", ("page", "data", "measure", "systems", "best or tied with it"), rows, numbers=("systems",))
    click.echo(f"site: {start}")


@command.command(
    name="export",
    epilog=examples(
        "bench leaderboard export mrtydi/unsupervised --format latex",
        "bench leaderboard export mini/mrtydi/english --format markdown --out table.md",
        "bench leaderboard export reported/msm/table-3 --format csv",
        "bench leaderboard export all --format parquet --out all.parquet",
        "bench leaderboard export all --format model-index --system msm",
    ),
)
@click.argument("table", metavar="TABLE")
@click.option("--format", "kind", type=click.Choice(_FORMATS), default="csv", show_default=True, help="What to write.")
@click.option("--system", metavar="LABEL", help="Only the rows of this system (mteb, model-index).")
@click.option(
    "--out", type=FILE, help="File, or folder where a format has several; without it one file goes to stdout."
)
@results_option
@records_option
def export_command(
    table: str, kind: str, system: str | None, out: Path | None, results: Path, records: Path | None
) -> None:
    """Write a table of the leaderboard for other programs.

    TABLE is a board, [DATA/]SUITE/REGIME (mrtydi/unsupervised, mini/mrtydi/english); every number of one kind of
    data in long form, [DATA/][substitutes/]all; or what a paper printed, reported/PAPER[/TABLE]. Tables of mini data,
    of folders of yours and of substitutes say so in every format and never hold official rows.
    """
    from bench.plugins import load
    from leaderboard.records import Records
    from leaderboard.site.export import export
    from leaderboard.site.hub import without_mteb_task
    from leaderboard.site.text import listed

    reported: tuple[Reported, ...] = ()
    suites = {name: owned.value for name, owned in load().suites.items()}
    if table.partition("/")[0] == "reported":
        reported = tuple(row for suite in suites.values() if suite.reported for row in suite.reported())
    files = export(table, kind, results, reported, system=system, records=Records(records), suites=suites)
    if kind == "mteb" and (tasks := without_mteb_task(files.values())):
        notice(f"mteb has no task for {listed(tasks, _LISTED)}: it reads their files, but loads no task for them")
    if out is None:
        if len(files) > 1:
            raise UsageError(f"found {len(files)} files to write, expected --out FOLDER for them, or --system LABEL")
        click.echo(next(iter(files.values())), nl=False)
        return
    try:
        for name, content in files.items():
            path = out / name if kind in ("mteb", "every-eval-ever") else out
            path.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(path, content)
    except OSError as error:
        raise StoreError(f"cannot write {out}: {explain(error)}; fix that or choose another place by --out") from error
    click.echo(f"{len(files)} {'file' if len(files) == 1 else 'files'}: {out}", err=True)


@command.command(
    name="init",
    epilog=examples(
        "bench leaderboard init my-board", "bench leaderboard init my-board --build https://…/retrieval_bench-….whl"
    ),
)
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--build", default="", metavar="URL|FILE", help="The wheel that its workflows install, by its checksum.")
@json_option
def init_command(folder: Path, build: str, as_json: bool) -> None:
    """Write a repository for a leaderboard: results by pull request, checked and published by workflows.

    DIR may be a repository already; nothing in it is overwritten.
    """
    from leaderboard.submissions.repository import init

    files = init(folder, build)
    if as_json:
        print_json({"folder": str(folder.resolve()), "files": list(files)})
        return
    for file in files:
        click.echo(folder / file)
    click.echo(f"next: cd {folder} && git init && bench run --method bm25 --suite beir --results results")


@command.command(
    name="pack", epilog=examples("bench leaderboard pack results/…/seed-0 --url https://my.site/ --out packed")
)
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--out", type=FOLDER, required=True, help="Folder of the copy.")
@click.option("--url", default="", metavar="PREFIX", help="What the addresses of larger runs begin with: https://…/.")
@json_option
def pack_command(folder: Path, out: Path, url: str, as_json: bool) -> None:
    """Copy a result for submission; runs of more than 1 MB stay behind, named by their address and checksum."""
    from bench.evaluation.results import RESULT
    from leaderboard.submissions.pack import pack

    uploads, path = pack(folder, out, url), out / RESULT
    if as_json:
        print_json({"path": str(path.resolve()), "remote": uploads})
        return
    click.echo(f"packed: {path}")
    for name, address in uploads.items():
        click.echo(f"put {folder / name} at {address}")


@command.command(name="schema", epilog=examples("bench leaderboard schema > result.schema.json"))
def schema_command() -> None:
    """Print the format of result files and their bundles as JSON Schema."""
    from bench.evaluation.results.format import rendered

    click.echo(rendered(), nl=False)


for _command in (add_command, check_command):
    command.add_command(_command)
