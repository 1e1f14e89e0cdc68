"""`bench reproduce`: reproduce a row from its result file, and compare both."""

import shlex
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from bench.cli import examples
from bench.cli.options import FOLDER, data_dir_option, offline_option
from bench.cli.output import Lines, json_option, notice, print_json, table
from bench.core.errors import UsageError
from bench.evaluation.command import words
from bench.evaluation.results import RESULT, Published, Result
from bench.evaluation.results.read import result
from bench.evaluation.tables import duration, percent
from bench.plugins import load
from bench.store.store import Store
from bench.studies.reproduce.differences import PerQuery, ReproducedValue, Reproduction, compare
from bench.studies.reproduce.replay import Replay, ReplayOptions, prepared, replay

_FAILED = 1


@click.command(
    name="reproduce",
    epilog=examples(
        "bench reproduce results/mini/mrtydi/unsupervised/bm25-c04f5266/seed-0/result.json",
        "bench reproduce RESULT_FILE --dry-run",
        "bench reproduce RESULT_FILE --corpus path/to/documents --out again --json",
    ),
)
@click.argument("file", type=click.Path(path_type=Path, exists=True), metavar="RESULT_FILE")
@click.option(
    "--store",
    type=FOLDER,
    help="Folder of stage outputs; what it holds is not computed again. Default: one that is removed afterwards.",
)
@click.option(
    "--out", type=FOLDER, help="Folder of results that the row is written to. Default: one that is removed afterwards."
)
@click.option("--corpus", metavar="PATH", help="What the row was pretrained on, where its file does not hold it.")
@click.option("--backbone", metavar="ID", help="Where the training starts, in place of what the file names.")
@click.option("--rerank", metavar="MODEL", help="The re-ranker, where it is a folder.")
@click.option(
    "--task", "tasks", multiple=True, metavar="FOLDER", help="A folder that the row was tested on. Repeatable."
)
@click.option("--set", "sets", multiple=True, metavar="KEY=VALUE", help="One setting, above the file's. Repeatable.")
@click.option("--device", default="auto", show_default=True, metavar="NAME", help="auto: the kind that the file names.")
@data_dir_option
@offline_option
@click.option("--dry-run", is_flag=True, help="Say what would run and what differs already; run nothing.")
@json_option
def command(file: Path, store: Path | None, out: Path | None, dry_run: bool, as_json: bool, **given: Any) -> None:
    """Reproduce a row from its result file and say OK, close or differs (exit status 0, 0 and 1).

    OK: every number is the same to the last digit, as the same data, settings, libraries and machine give it. close:
    no mean is off by more than 0.1 points, and other libraries or another machine are what can explain it. Whatever
    differs is named: settings, versions, data, seed, libraries, machine.
    """
    path = file / RESULT if file.is_dir() else file
    content, theirs = _read(path)
    with _folder(store, "store") as stages, _folder(out, "results") as results:
        plugins, kept = load(), Store(stages, notice)
        ready = prepared(content, ReplayOptions(stages, results, **given), plugins, kept)
        notice(*ready.plan.warnings)
        if dry_run:
            _print_plan(content, ready, as_json)
            return
        with Lines(ready.plan.steps) as lines:
            done = replay(ready, plugins, kept, lines)
        ran = [outcome for outcome in lines.outcomes if outcome["state"] == "ran"]
        ours, values = _read(done.path)
        report = compare(content, ours, theirs, values)
        about = {"stages_run": len(ran), "stages_reused": len(ready.plan.steps) - len(ran)}
        _print_report(report, about, path, done if out else None, as_json)
    if report.verdict == "differs":
        raise click.exceptions.Exit(_FAILED)


@contextmanager
def _folder(given: Path | None, name: str) -> Iterator[Path]:
    if given is not None:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="bench-reproduce-") as scratch:
        yield Path(scratch) / name


def _read(path: Path) -> tuple[Mapping[str, Any], PerQuery]:
    """Read a result file, checked as the site checks results, and the per-query values next to it."""
    if path.name != RESULT or not path.is_file():
        raise UsageError(where=str(path), found="no result", expected=f"a file {RESULT} with its bundle next to it")
    found = result(path)
    values = [name for name in found.content.files if name.startswith("per-query/")]
    if not all((path.parent / name).is_file() for name in values):
        notice("the per-query values are not next to the file, so only means are compared")
        return found.whole, {}
    return found.whole, _per_query(found)


def _per_query(found: Result) -> PerQuery:
    values: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for task, legs in found.content.tasks.items():
        for leg in legs:
            table = found.per_query(task, leg)
            values[task, leg] = {
                name: dict(zip(table.queries, column, strict=True)) for name, column in table.measures.items()
            }
    return values


def _print_plan(content: Mapping[str, Any], ready: Replay, as_json: bool) -> None:
    said = shlex.join(words([content], whole=False))
    runs = [step for step in ready.plan.steps if step.runs]
    if as_json:
        stages = [{"stage": step.stage.name, "title": step.stage.title} for step in runs]
        about = {"command": said, "seconds": round(ready.plan.seconds, 1), "stages": stages}
        print_json({"dry_run": True, **about, "causes": [asdict(cause) for cause in ready.causes]})
        return
    click.echo(f"row: {said}")
    for cause in ready.causes:
        click.echo(f"differs already: {cause.sentence}")
    reused = len(ready.plan.steps) - len(runs)
    click.echo(f"would run {len(runs)} stages, about {duration(ready.plan.seconds)}, and reuse {reused}")


def _print_report(
    report: Reproduction, about: Mapping[str, int], path: Path, done: Published | None, as_json: bool
) -> None:
    if as_json:
        values = [{**asdict(value), "off": value.off, "same": value.same} for value in report.values]
        print_json(
            {
                "verdict": report.verdict,
                "why": report.sentence,
                "values": values,
                "causes": [asdict(cause) for cause in report.causes],
                **about,
                "file": str(path.resolve()),
                "result_file": str(done.path.resolve()) if done else None,
            }
        )
        return
    columns = ("task", "measure", "file", "here", "off", "queries changed")
    rows = [_line(value) for value in report.values]
    table("percent", columns, rows, numbers=columns[2:])
    click.echo(f"{report.verdict}: {report.sentence}")
    for cause in report.causes:
        click.echo(f"  {cause.kind}: {cause.sentence}")
    click.echo(f"{about['stages_run']} stages run, {about['stages_reused']} taken from the store")
    if not about["stages_run"]:
        notice("nothing was computed anew: the store held it all; without --store everything is made again")
    if done:
        click.echo(f"result: {done.path}")


def _line(value: ReproducedValue) -> tuple[str, ...]:
    changed = "—" if value.changed is None else f"{value.changed:,} of {value.queries:,}"
    off = "—" if value.off is None else "0" if value.same else f"{100 * value.off:+.4f}"
    name = f"{value.task} {value.leg}".strip()
    sides = ("—" if one is None else percent(one) for one in (value.theirs, value.ours))
    return name, value.measure, *sides, off, changed
