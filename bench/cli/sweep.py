"""`bench sweep`: choose settings on dev questions."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from bench.cli import examples
from bench.cli.options import plan_options
from bench.cli.output import Lines, duration, json_option, notice, percent, print_json, table
from bench.installed import faiss_conflict
from bench.plugins import load
from bench.request import Request
from bench.store import Store
from bench.sweep import Ready, Sweep, prepare, run
from bench.wording import shown


@click.command(
    name="sweep",
    epilog=examples(
        "bench sweep --method bm25,crop --suite mrtydi --trials 8",
        "bench run --method bm25 --suite mrtydi --config sweeps/mrtydi/bm25.toml",
    ),
)
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    default=8,
    show_default=True,
    help="Settings to try for every method, the first of them as they are without a sweep.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("sweeps"),
    show_default=True,
    help="Folder of sweeps: SUITE/METHOD.toml for --config, and SUITE/METHOD.json with every trial.",
)
@plan_options
@json_option
def command(request: Request, trials: int, out: Path, as_json: bool) -> None:
    """Choose each method's settings on a suite's dev questions, with as many trials for every method.

    Each method is searched over its own space (`bench show METHOD`), plainly at random, by --seed; what --set or
    --config says stays fixed. The highest average of the suite's headline measure wins. Finished trials are kept in
    the store: the same command goes on where it was stopped, and more trials add to fewer. Test questions are not read.
    """
    conflict = faiss_conflict()
    if conflict:
        notice(conflict)
    plugins, store = load(), Store(request.store, notice)
    ready = prepare(request, trials, plugins, store)
    for sentence in ready.warnings:
        notice(sentence)
    if ready.plan.seconds > 1 and sys.stderr.isatty():
        notice(f"about {duration(ready.plan.seconds)} of work")
    with Lines(ready.plan.steps) as lines:
        sweeps = run(ready, plugins, store, lines, out)
    if as_json:
        stages = [{"stage": one["stage"], "state": one["state"]} for one in lines.outcomes]
        print_json({"sweeps": [_json(one, ready) for one in sweeps], "stages": stages})
        return
    for one in sweeps:
        _print(one, ready)


def _json(found: Sweep, ready: Ready) -> dict[str, Any]:
    """The machine's view of a method's sweep."""
    return {
        "method": found.method,
        "suite": ready.suite.name,
        "measure": ready.suite.primary,
        "trials": [asdict(trial) for trial in found.trials],
        "chosen": found.chosen,
        "config": str(found.config.resolve()),
        "record": str(found.record.resolve()),
    }


def _print(found: Sweep, ready: Ready) -> None:
    """A row a trial, the chosen one marked; then where the files are."""
    keys = list(dict.fromkeys(key for trial in found.trials for key in trial.values))
    rows = [
        (
            f"{trial.number}{' *' if trial.number == found.chosen else ''}",
            *(shown(trial.values[key]) if key in trial.values else "as it is" for key in keys),
            "failed" if trial.score is None else percent(trial.score),
            duration(trial.seconds),
        )
        for trial in found.trials
    ]
    measure = f"{ready.suite.primary} on dev, percent"
    columns = ("trial", *keys, measure, "time")
    table(f"{found.method} on {ready.suite.name}", columns, rows, numbers=(*keys, measure, "time"))
    for trial in found.trials:
        if trial.failed:
            click.echo(f"trial {trial.number} failed: {trial.failed}")
    click.echo(f"settings: {found.config}\nrecord: {found.record}\n")
