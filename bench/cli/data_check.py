"""`bench data check`: checksums and counts of official files."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import click

from bench.cli import examples
from bench.cli import local_files as shown
from bench.cli.local_files import LANGUAGES, counted, examined, official, size, unpublished
from bench.cli.options import data_dir_option, store_option
from bench.cli.output import Lines, json_option, notice, print_json, table
from bench.data.fetching.local_files import LocalFile
from bench.data.fetching.official import roots
from bench.plugins import load
from bench.store.graph import steps
from bench.store.store import Store
from bench.studies.inspection import Inspected, begun, carry_out, prepare

_VERDICTS: dict[str, Literal["ok", "missing", "wrong"]] = {
    "present": "ok",
    "packed": "missing",
    "partial": "missing",
    "damaged": "wrong",
    "missing": "missing",
}


@click.command(
    name="check",
    epilog=examples(
        "bench data check tatoeba", "bench data check beir --task scifact", "bench data check xor-retrieve"
    ),
)
@click.argument("name", metavar="SUITE|CORPUS")
@click.option(
    "--task", "tasks", metavar="NAMES", help="Only these tasks and the files that they need, comma-separated."
)
@LANGUAGES
@data_dir_option
@store_option
@json_option
def command(data_dir: Path | None, store: Path, as_json: bool, **named: Any) -> None:
    """Compare official files with what was published: sizes and checksums, then counts, by really reading.

    Every corpus, question and judgement is read as a run reads it, and what is found is kept in the store for runs.
    Of a corpus to pretrain on, the first document of each language is read.
    Exit status 1 if anything is missing or wrong.
    """
    suite, place = official(**named, places=roots(data_dir)), Store(store, notice)
    files = examined(suite.files, again=True)
    if suite.suite is None:
        legs = begun(suite.corpus) if suite.corpus else []
    else:
        prepared = prepare(suite.suite, suite.asked, data_dir, load(), place)
        with Lines(steps([stage for _, stage in prepared if stage], place)) as lines:
            legs = carry_out(prepared, place, lines)
    faults = sum(_VERDICTS[one.state] != "ok" for one in files) + sum(one.verdict != "ok" for one in legs)
    if as_json:
        files_json = [{**shown.as_json(one), "verdict": _VERDICTS[one.state]} for one in files]
        legs_json = [{**asdict(one), "reason": one.reason or None} for one in legs]
        print_json({"suite": suite.name, "faults": faults, "files": files_json, "legs": legs_json})
    else:
        _print(files, legs)
        read = f"{len(legs)} leg{'s' * (len(legs) != 1)} of tasks" if suite.suite else f"{len(legs)} languages"
        click.echo(f"{suite.name}: {counted(len(files))} and {read} checked, {faults} faults")
        unpublished(files)
        if any(one.state == "damaged" for one in files):
            click.echo(f"`bench data fetch {suite.name}` fetches damaged files again")
    if faults:
        raise click.exceptions.Exit(1)


def _basis(holding: LocalFile) -> str:
    return holding.basis or ("nothing was published" if holding.path.is_file() else "")


def _print(files: Sequence[LocalFile], legs: Sequence[Inspected]) -> None:
    if files:
        rows = [(one.release.path, _VERDICTS[one.state], size(one.size), _basis(one), one.reason) for one in files]
        table("", ("file", "verdict", "size", "compared with", "reason"), rows, numbers=("size",))
        click.echo()
    counts = list(dict.fromkeys(kind for one in legs for kind in one.counts))
    rows_read = [
        (
            f"{one.task}{' ' + one.leg if one.leg else ''}",
            one.verdict,
            *(f"{one.counts[kind]:,}" if kind in one.counts else "" for kind in counts),
            one.reason if at == 0 or one.reason != legs[at - 1].reason else "as above" * bool(one.reason),
        )
        for at, one in enumerate(legs)
    ]
    table("", ("task", "verdict", *counts, "reason"), rows_read, numbers=counts)
    click.echo()
