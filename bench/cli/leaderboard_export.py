"""`bench leaderboard export`: any table of the site as a file for other programs and other boards."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.cli import examples
from bench.cli.options import FILE, records_option, results_option
from bench.cli.output import notice
from bench.core.errors import StoreError, UsageError
from bench.core.files import explain, write_bytes
from bench.plugins import load

if TYPE_CHECKING:
    from bench.core.publications import Reported
    from leaderboard.site.export import Files

_NAMED = 20  # tasks that a notice lists
_FORMATS = ("csv", "json", "parquet", "latex", "markdown", "html", "mteb", "model-index", "every-eval-ever")


@click.command(
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

    TABLE is a board, [DATA/]SUITE/SETTING (mrtydi/unsupervised, mini/mrtydi/english); every number of one kind of
    data in long form, [DATA/][substitutes/]all; or what a paper printed, reported/PAPER[/TABLE]. Tables of mini data,
    of folders of yours and of substitutes say so in every format and never hold official rows.
    """
    from leaderboard.records import Records
    from leaderboard.site.export import export

    reported: tuple[Reported, ...] = ()
    if table.partition("/")[0] == "reported":
        suites = [owned.value for owned in load().suites.values()]
        reported = tuple(row for suite in suites if suite.reported for row in suite.reported())
    _write(export(table, kind, results, reported, system=system, records=Records(records)), kind, out)


def _write(files: Files, kind: str, out: Path | None) -> None:
    """Write one file to a place or to stdout, several into a folder; say what mteb has no name for."""
    from leaderboard.site.hub import without_name
    from leaderboard.site.text import listed

    if kind == "mteb" and (unnamed := without_name(files.values())):
        notice(f"mteb has no task for {listed(unnamed, _NAMED)}: it reads their files, but loads no task for them")
    if out is None:
        if len(files) > 1:
            raise UsageError(f"found {len(files)} files to write, expected --out FOLDER for them, or --system LABEL")
        click.echo(next(iter(files.values())), nl=False)
        return
    try:
        for name, content in files.items():
            place = out / name if kind in ("mteb", "every-eval-ever") else out
            place.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(place, content)
    except OSError as error:
        raise StoreError(f"cannot write {out}: {explain(error)}; mend that or choose another place by --out") from error
    click.echo(f"{len(files)} {'file' if len(files) == 1 else 'files'}: {out}", err=True)
