"""`bench sweep`: choose settings on dev questions."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from bench.cli import examples
from bench.cli.options import FOLDER, plan_options
from bench.cli.output import Lines, json_option, notice, print_json, print_table, warn_of_faiss
from bench.config.request import Request
from bench.evaluation.tables import duration
from bench.plugins import load
from bench.store.store import Store
from bench.studies.sweep import Ready, Sweep, prepare, run


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
    type=FOLDER,
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
    warn_of_faiss()
    plugins, store = load(), Store(request.store, notice)
    ready = prepare(request, trials, plugins, store)
    notice(*ready.warnings)
    if ready.plan.seconds > 1 and sys.stderr.isatty():
        notice(f"about {duration(ready.plan.seconds)} of work")
    with Lines(ready.plan.steps) as lines:
        sweeps = run(ready, plugins, store, lines, out)
    if as_json:
        stages = [{"stage": one["stage"], "state": one["state"]} for one in lines.outcomes]
        print_json({"sweeps": [_json(one, ready) for one in sweeps], "stages": stages})
        return
    for one in sweeps:
        print_table(one.table(ready.suite))
        for trial in one.trials:
            if trial.failed:
                click.echo(f"trial {trial.number} failed: {trial.failed}")
        click.echo(f"settings: {one.config}\nrecord: {one.record}\n")


def _json(found: Sweep, ready: Ready) -> dict[str, Any]:
    return {
        "method": found.method,
        "suite": ready.suite.name,
        "measure": ready.suite.primary,
        "trials": [asdict(trial) for trial in found.trials],
        "chosen": found.chosen,
        "config": str(found.config.resolve()),
        "record": str(found.record.resolve()),
    }
