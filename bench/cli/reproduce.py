"""`bench reproduce`: reproduce a row from its result file, and compare both."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.cli import examples
from bench.cli.options import FOLDER, data_dir_option, offline_option, result_seeds_option, results_option
from bench.cli.output import Reporter, json_option, notice, print_json, progress_options, stage_count, table
from bench.cli.sections import SectionedCommand
from bench.config.request import Request
from bench.core.errors import UsageError
from bench.core.scratch import scratch_folder
from bench.evaluation.tables import duration, percent

if TYPE_CHECKING:
    from bench.evaluation.results import Published
    from bench.studies.reproduce.differences import PerQuery, Reproduction
    from bench.studies.reproduce.replay import Replay

_FAILED = 1


@click.command(
    name="reproduce",
    cls=SectionedCommand,
    epilog=examples(
        "bench reproduce results/mini/mrtydi/unsupervised/bm25-c04f5266/seed-0/result.json",
        "bench reproduce crop --suite mrtydi --seed 0",
        "bench reproduce hf:me/crop-mini",
        "bench reproduce RESULT_FILE --dry-run",
        "bench reproduce RESULT_FILE --corpus path/to/documents --out again --json",
        "bench reproduce --references beir",
    ),
)
@click.argument("names", nargs=-1, metavar="RESULT_FILE | LABEL | hf:USER/NAME | [SUITE|PRESET]...")
@click.option("--suite", "-s", metavar="NAME", help="Of a label: only its results on this suite.")
@result_seeds_option
@results_option
@click.option(
    "--references",
    is_flag=True,
    help="Run the presets with expected scores (`bench list presets`), of these suites or names, instead of a row.",
)
@click.option(
    "--store",
    type=FOLDER,
    help="Folder of stage outputs; what it holds is not computed again. Default: one that is removed afterwards.",
)
@click.option(
    "--out", type=FOLDER, help="Folder of results that the row is written to. Default: one that is removed afterwards."
)
@click.option("--corpus", metavar="PATH", help="What the row was pretrained on, if its file does not contain it.")
@click.option("--backbone", metavar="ID", help="Where training starts, instead of what the file names.")
@click.option("--rerank", metavar="MODEL", help="The re-ranker, if it is a folder.")
@click.option(
    "--task", "tasks", multiple=True, metavar="FOLDER", help="A folder that the row was tested on. Repeatable."
)
@click.option(
    "--set", "sets", multiple=True, metavar="KEY=VALUE", help="One setting, which overrides the file's. Repeatable."
)
@click.option("--device", default="auto", show_default=True, metavar="NAME", help="auto: the kind that the file names.")
@data_dir_option
@offline_option
@click.option("--dry-run", is_flag=True, help="Say what would run and what differs already; run nothing.")
@progress_options
@json_option
def command(
    names: tuple[str, ...],
    suite: str | None,
    seeds: tuple[int, ...],
    results: Path,
    references: bool,
    store: Path | None,
    out: Path | None,
    dry_run: bool,
    progress: Reporter,
    as_json: bool,
    **options: Any,
) -> None:
    """Reproduce a row from its result file and say OK, close or differs (exit status 0, 0 and 1).

    OK: every number is the same to the last digit, as with the same data, settings, libraries and machine. close: no
    mean differs by more than 0.1 points, and other libraries or another machine can explain that. Everything that
    differs is named: settings, versions, data, seed, libraries, machine.

    With --references: run the presets with expected scores, and compare. close: within the preset's tolerance for other
    machines. What cannot be run here, because data or a model is missing, is skipped with the reason.
    """
    from bench.plugins import load
    from bench.store.store import Store
    from bench.studies.reproduce.differences import compare
    from bench.studies.reproduce.replay import ReplayOptions, prepared, replay

    if references:
        if typed := "--suite" if suite else "--seed" if seeds else "":
            raise UsageError(found=f"{typed} with --references", expected="a label", hint="presets name their own")
        _references(names, store, out, dry_run, progress, as_json, **options)
        return
    path = _path(names, suite, seeds, results)
    content, theirs = _read(path)
    with _folder(store, "store") as stages, _folder(out, "results") as replayed:
        plugins, stage_store = load(), Store(stages, notice)
        ready = prepared(content, ReplayOptions(stages, replayed, **options), plugins, stage_store)
        notice(*ready.plan.warnings)
        if dry_run:
            _print_plan(content, ready, as_json)
            return
        with progress(ready.plan.steps) as lines:
            published = replay(ready, plugins, stage_store, lines)
        ran = [outcome for outcome in lines.outcomes if outcome["state"] == "ran"]
        ours, values = _read(published.path)
        report = compare(content, ours, theirs, values)
        counts = {"stages_run": len(ran), "stages_reused": len(ready.plan.steps) - len(ran)}
        _print_report(report, counts, path, published if out else None, as_json)
    if report.verdict == "differs":
        raise click.exceptions.Exit(_FAILED)


def _path(names: Sequence[str], suite: str | None, seeds: Sequence[int], results: Path) -> Path:
    """Return the result file that was named by its path or by a label. Raises `UsageError` for none or several."""
    from bench.evaluation.results import RESULT
    from bench.evaluation.results.read import is_path, one_of, only
    from bench.studies.publication import SCHEME, results_on_hub

    name, file = names[0] if len(names) == 1 else "", Path(names[0] if names else "")
    if name.startswith(SCHEME):
        return one_of(name, results_on_hub(name), suite, seeds)
    typed_as_path = is_path(name) or "/" in name
    if not name or (typed_as_path and not file.exists()):
        raise UsageError(
            where="RESULT_FILE",
            found=" ".join(names) or "nothing",
            expected="a result file that is there, or the label of a row in --results",
            hint="or type --references to run presets with expected scores",
        )
    if not typed_as_path:
        return only(name, results, suite, seeds)
    if typed := "--suite" if suite else "--seed" if seeds else "":
        raise UsageError(found=f"{typed} with a path", expected="a label", hint="the file is one result already")
    return file / RESULT if file.is_dir() else file


@contextmanager
def _folder(folder: Path | None, name: str) -> Iterator[Path]:
    if folder is not None:
        yield folder
        return
    with scratch_folder("reproduce") as scratch:
        yield scratch / name


def _read(path: Path) -> tuple[Mapping[str, Any], PerQuery]:
    """Read a result file, checked as the site checks results, and the per-query values next to it."""
    from bench.evaluation.results import RESULT
    from bench.evaluation.results.read import result

    if path.name != RESULT or not path.is_file():
        raise UsageError(where=str(path), found="no result", expected=f"a file {RESULT} with its bundle next to it")
    content = result(path)
    values = [name for name in content.content.files if name.startswith("per-query/")]
    if not all((path.parent / name).is_file() for name in values):
        notice("the per-query values are not next to the file, so only means are compared")
        return content.whole, {}
    per_query: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for task, subset in ((task, subset) for task, subsets in content.content.tasks.items() for subset in subsets):
        stored = content.per_query(task, subset)
        columns = stored.measures.items()
        per_query[task, subset] = {name: dict(zip(stored.queries, column, strict=True)) for name, column in columns}
    return content.whole, per_query


def _print_plan(content: Mapping[str, Any], ready: Replay, as_json: bool) -> None:
    from bench.evaluation.command import run_command

    command_line = shlex.join(run_command([content], whole=False))
    runs = [step for step in ready.plan.steps if step.runs]
    if as_json:
        stages = [{"stage": step.stage.name, "title": step.stage.title} for step in runs]
        summary = {"command": command_line, "seconds": round(ready.plan.seconds, 1), "stages": stages}
        print_json({"dry_run": True, **summary, "causes": [asdict(cause) for cause in ready.causes]})
        return
    click.echo(f"row: {command_line}")
    for cause in ready.causes:
        click.echo(f"differs already: {cause.sentence}")
    reused = len(ready.plan.steps) - len(runs)
    click.echo(f"would run {stage_count(len(runs))}, about {duration(ready.plan.seconds)}, and reuse {reused}")


def _print_report(
    report: Reproduction, counts: Mapping[str, int], path: Path, published: Published | None, as_json: bool
) -> None:
    if as_json:
        values = [{**asdict(value), "off": value.off, "same": value.same} for value in report.values]
        print_json(
            {
                "verdict": report.verdict,
                "why": report.sentence,
                "values": values,
                "causes": [asdict(cause) for cause in report.causes],
                **counts,
                "file": str(path.resolve()),
                "result_file": str(published.path.resolve()) if published else None,
            }
        )
        return
    columns = ("task", "measure", "file", "here", "off", "queries changed")
    rows = []
    for value in report.values:
        changed = "—" if value.changed is None else f"{value.changed:,} of {value.queries:,}"
        off = "0" if value.same else _off(value.off)
        means = ("—" if mean is None else percent(mean) for mean in (value.theirs, value.ours))
        rows.append((f"{value.task} {value.subset}".strip(), value.measure, *means, off, changed))
    table("percent", columns, rows, numbers=columns[2:])
    click.echo(f"{report.verdict}: {report.sentence}")
    for cause in report.causes:
        click.echo(f"  {cause.kind}: {cause.sentence}")
    click.echo(f"{stage_count(counts['stages_run'])} run, {counts['stages_reused']} taken from the store")
    if not counts["stages_run"]:
        notice("nothing was computed anew: the store held it all; without --store everything is made again")
    if published:
        click.echo(f"result: {published.path}")


def _references(
    names: Sequence[str],
    store: Path | None,
    out: Path | None,
    dry_run: bool,
    progress: Reporter,
    as_json: bool,
    **options: Any,
) -> None:
    """Check reference scores. Raises `UsageError` where none could be run."""
    from bench.plugins import load
    from bench.store.store import Store
    from bench.studies.reproduce.replay import check_references, references

    plugins = load()
    selected = references(plugins, names)
    if odd := [f"--{name}" for name in ("corpus", "rerank", "tasks") if options.pop(name)]:
        raise UsageError(where=odd[0], found="--references", expected="a result file", hint="presets name their own")
    if dry_run:
        columns = ("preset", "suite", "values")
        rows = [(preset.name, suite, len(preset.expects[suite])) for preset, suite in selected]
        if as_json:
            print_json({"dry_run": True, "references": [dict(zip(columns, row, strict=True)) for row in rows]})
        else:
            table("references", columns, [tuple(map(str, row)) for row in rows], numbers=columns[2:])
        return
    with _folder(store, "store") as stages, _folder(out, "results") as results:
        request = Request(store=stages, results=results, **options)
        checks = list(
            check_references(selected, request, plugins, Store(stages, notice), lambda ready: progress(ready.steps))
        )
    if as_json:
        print_json({"references": [{**asdict(item), "off": item.off} for item in checks]})
    else:
        titles = ("preset", "suite", "task", "measure", "expected", "here", "off", "verdict")
        lines = [
            (
                *(item.preset, item.suite, item.name, item.measure),
                *(percent(item.expected), percent(item.found), _off(item.off), item.verdict),
            )
            for item in checks
            if item.found is not None
        ]
        table("percent", titles, lines, numbers=titles[4:7])
        skipped = [f"skipped {item.preset} on {item.suite}: {item.reason}" for item in checks if not item.measure]
        notice(*dict.fromkeys(skipped))
        counts = Counter(item.verdict for item in checks)
        click.echo(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    if all(item.verdict == "skipped" for item in checks):
        raise UsageError(f"no reference could be run: {checks[0].reason}")
    if any(item.verdict == "differs" for item in checks):
        raise click.exceptions.Exit(_FAILED)


def _off(off: float | None) -> str:
    from bench.studies.reproduce.differences import EXACT

    return "—" if off is None else "0" if abs(off) <= EXACT else f"{100 * off:+.4f}"
