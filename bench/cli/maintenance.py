"""`bench doctor`, `gc`, `verify`, `completion` and `skill`: this machine, its store, the shell, and agents."""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path

import click
from click.shell_completion import get_completion_class

from bench.cli import bench, examples
from bench.cli.options import data_dir_option, results_option, store_option
from bench.cli.output import json_option, notice, print_json, table
from bench.core.errors import UsageError
from bench.core.messages import unknown_name

_MEGA = 1_000_000
SHELLS = ("bash", "zsh", "fish")


@click.command(name="doctor")
@store_option
@data_dir_option
@json_option
def doctor(store: Path, data_dir: Path | None, as_json: bool) -> None:
    """Examine this machine: versions, devices, plugins, data, store. Exit status 1 if something fails."""
    from bench.studies.doctor import report

    examination = report(store, data_dir)
    if as_json:
        print_json(examination.as_dict())
    else:
        for title, diagnoses in examination.sections.items():
            rows = [(row.state, row.name, row.value, row.remedy) for row in diagnoses]
            table(title, ("", "what", "found", "what to do"), rows)
    if examination.state == "fail":
        raise click.exceptions.Exit(1)


@click.command(name="gc")
@store_option
@results_option
@click.option(
    "--older-than",
    "days",
    type=click.FloatRange(min=0),
    default=14.0,
    show_default=True,
    metavar="DAYS",
    help="Keep what was made within so many days; with 0, only what results and running commands need is kept.",
)
@click.option("--dry-run", is_flag=True, help="List what would be removed, and remove nothing.")
@json_option
def gc(store: Path, results: Path, days: float, dry_run: bool, as_json: bool) -> None:
    """Remove artefacts that no result in --results needs, and what killed runs left behind.

    A folder of results that is not there is refused: without it no artefact would be needed. To keep none, name an
    empty folder.
    """
    from bench.evaluation import results as result_store
    from bench.store import housekeeping
    from bench.store.store import Store

    stage_store = Store(store, notice)
    if not results.is_dir() and stage_store.artefacts():
        raise UsageError(
            where=results,
            found="no such folder",
            expected="the results that artefacts are kept for",
            hint="name it by --results; an empty folder keeps none",
        )
    garbage = list(housekeeping.garbage(stage_store, result_store.keys(results), days))
    if not dry_run:
        with stage_store.writing(f"removing what nobody needs from {store}"):
            garbage = housekeeping.remove(stage_store, garbage, lambda: result_store.keys(results))
    total = sum(item.size for item in garbage)
    if as_json:
        rows = [{"path": str(item.path), "reason": item.reason, "bytes": item.size} for item in garbage]
        print_json({"removed": [] if dry_run else rows, "garbage": rows, "bytes": total, "dry_run": dry_run})
        return
    if garbage:
        lines = [(str(item.path.relative_to(store)), f"{item.size / _MEGA:,.1f}", item.reason) for item in garbage]
        table("", ("what", "MB", "why"), lines, numbers=("MB",))
    verb = "would free" if dry_run else "freed"
    click.echo(f"{verb} {total / _MEGA:,.1f} MB in {len(garbage)} places of {store}")


@click.command(name="verify")
@store_option
@results_option
@json_option
def verify(store: Path, results: Path, as_json: bool) -> None:
    """Re-hash every artefact and result; name what is damaged. The next run computes damaged artefacts again.

    Of store and results one may be absent, which is said.

    Exit status 1 if anything is damaged.
    """
    from rich.console import Console
    from rich.progress import Progress

    from bench.evaluation import results as result_store
    from bench.store import housekeeping
    from bench.store.store import Store

    if not store.is_dir() and not results.is_dir():
        raise UsageError(
            where=f"{store} and {results}",
            found="no such folders",
            expected="a store or results",
            hint="name them by --store and --results",
        )
    for folder in (folder for folder in (store, results) if not folder.is_dir()):
        notice(f"{folder}: no such folder")
    stage_store, files = Store(store, notice), result_store.result_files(results)
    artefacts = len(stage_store.artefacts())
    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task("re-hashing", total=artefacts + len(files))
        faults = housekeeping.verify(stage_store, lambda: bar.advance(task))
        for path in files:
            faults += result_store.faults(path)
            bar.advance(task)
    if as_json:
        corrupt = [{"path": str(fault.path), "found": fault.found} for fault in faults]
        print_json({"artefacts": artefacts, "results": len(files), "corrupt": corrupt})
    else:
        if faults:
            table("", ("damaged", "found"), [(str(fault.path), fault.found) for fault in faults])
        click.echo(
            f"{artefacts} artefacts and {len(files)} results re-hashed, {len(faults)} faults"
            + ("; the next `bench run` makes damaged artefacts again" if faults else "")
        )
    if faults:
        raise click.exceptions.Exit(1)


@click.command(
    name="completion",
    epilog=examples(
        "bash: bench completion bash > ~/.local/share/bash-completion/completions/bench",
        "zsh:  bench completion zsh > ~/.zfunc/_bench",
        "fish: bench completion fish > ~/.config/fish/completions/bench.fish",
    ),
)
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print the script that completes `bench` in a shell."""
    complete = get_completion_class(shell)
    if complete is None:
        raise unknown_name("completion", shell, SHELLS)
    click.echo(complete(bench, {}, "bench", "_BENCH_COMPLETE").source())


@click.command(
    name="skill", epilog=examples("mkdir -p skills/retrieval-bench", "bench skill > skills/retrieval-bench/SKILL.md")
)
def skill() -> None:
    """Print what a coding agent must know to use this harness, in the form of a skill file (SKILL.md)."""
    click.echo(files("bench.cli").joinpath("skill.md").read_text(encoding="utf-8"), nl=False)
