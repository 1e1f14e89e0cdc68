"""`bench plan`: what `run` would do."""

from dataclasses import asdict

import click

from bench.cli.options import plan_options
from bench.cli.output import json_option, notice, print_json, table
from bench.config.request import Request
from bench.evaluation.tables import duration
from bench.pipeline.plan import plan
from bench.plugins import load
from bench.store.store import Store


@click.command(name="plan")
@plan_options
@json_option
def command(request: Request, as_json: bool) -> None:
    """Say what `bench run` with the same options would do: what is cached, what would run, how long it takes.

    Nothing is run; only checksums of input files are remembered in the store.
    """
    found = plan(request, load(), Store(request.store, notice))
    size = found.profile
    if as_json:
        steps = [
            {
                "stage": step.stage.name,
                "title": step.stage.title,
                "key": step.stage.key,
                "state": step.state,
                "runs": step.runs,
                "seconds": step.seconds,
                "identity": step.stage.identity(),
            }
            for step in found.steps
        ]
        names = ("name", "data", "backbone", "budget", "device", "hours")
        print_json(
            {
                "profile": {name: getattr(size, name) for name in names},
                "steps": steps,
                "seconds": found.seconds,
                "not_applicable": [asdict(cell) for cell in found.refused],
                "warnings": list(found.warnings),
            }
        )
        return
    rows = [
        (step.stage.name, step.stage.title, _fate(step.state, step.runs), duration(step.seconds))
        for step in found.steps
    ]
    table("", ("stage", "what", "state", "estimate"), rows, numbers=("estimate",))
    for cell in found.refused:
        click.echo(f"not applicable: {cell.system} on {cell.suite}: {cell.reason}")
    notice(*found.warnings)
    runs = sum(step.runs for step in found.steps)
    guessed = sum(step.seconds for step in found.steps if step.guessed)
    unknown = f", {duration(guessed)} of them by rough guess: nothing like it has run in this store" if guessed else ""
    click.echo(
        f"profile {size.name} ({size.hours}): {runs} of {len(found.steps)} stages to run, "
        f"{duration(found.seconds)}{unknown}"
    )


def _fate(state: str, runs: bool) -> str:
    if runs:
        return "damaged, runs again" if state == "corrupt" else "runs"
    return "cached" if state == "cached" else "not needed"
