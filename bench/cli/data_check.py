"""`bench data check`: checksums and counts of official files."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import click

from bench.cli import examples
from bench.cli import local_files as shown
from bench.cli.local_files import LANGUAGES, examined, file_count, official, size, unpublished
from bench.cli.options import data_dir_option, store_option
from bench.cli.output import Lines, json_option, notice, print_json, table
from bench.data.fetching.local_files import LocalFile
from bench.data.fetching.official import roots
from bench.plugins import load
from bench.store.graph import steps
from bench.store.store import Store
from bench.studies.inspection import Inspected, carry_out, prepare, read_first_documents

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
def command(data_dir: Path | None, store: Path, as_json: bool, **selection: Any) -> None:
    """Compare official files with what was published: sizes and checksums, then counts, by really reading.

    Every corpus, question and judgement is read as a run reads it, and what is found is kept in the store for runs.
    Of a corpus to pretrain on, the first document of each language is read.
    Exit status 1 if anything is missing or wrong.
    """
    suite, place = official(**selection, places=roots(data_dir)), Store(store, notice)
    files = examined(suite.files, reread=True)
    if suite.suite is None:
        legs = read_first_documents(suite.corpus) if suite.corpus else []
    else:
        prepared = prepare(suite.suite, suite.task_names, data_dir, load(), place)
        with Lines(steps([stage for _, stage in prepared if stage], place)) as lines:
            legs = carry_out(prepared, place, lines)
    faults = sum(_VERDICTS[item.state] != "ok" for item in files) + sum(item.verdict != "ok" for item in legs)
    if as_json:
        files_json = [{**shown.as_json(item), "verdict": _VERDICTS[item.state]} for item in files]
        legs_json = [{**asdict(item), "reason": item.reason or None} for item in legs]
        print_json({"suite": suite.name, "faults": faults, "files": files_json, "legs": legs_json})
    else:
        _print(files, legs)
        read = f"{len(legs)} leg{'s' * (len(legs) != 1)} of tasks" if suite.suite else f"{len(legs)} languages"
        click.echo(f"{suite.name}: {file_count(len(files))} and {read} checked, {faults} faults")
        unpublished(files)
        if any(item.state == "damaged" for item in files):
            click.echo(f"`bench data fetch {suite.name}` fetches damaged files again")
    if faults:
        raise click.exceptions.Exit(1)


def _print(files: Sequence[LocalFile], legs: Sequence[Inspected]) -> None:
    if files:
        rows = [
            (
                item.release.path,
                _VERDICTS[item.state],
                size(item.size),
                item.basis or "nothing was published" * item.path.is_file(),
                item.reason,
            )
            for item in files
        ]
        table("", ("file", "verdict", "size", "compared with", "reason"), rows, numbers=("size",))
        click.echo()
    counts = list(dict.fromkeys(kind for item in legs for kind in item.counts))
    rows_read = [
        (
            f"{item.task}{' ' + item.leg if item.leg else ''}",
            item.verdict,
            *(f"{item.counts[kind]:,}" if kind in item.counts else "" for kind in counts),
            item.reason if row == 0 or item.reason != legs[row - 1].reason else "as above" * bool(item.reason),
        )
        for row, item in enumerate(legs)
    ]
    table("", ("task", "verdict", *counts, "reason"), rows_read, numbers=counts)
    click.echo()
