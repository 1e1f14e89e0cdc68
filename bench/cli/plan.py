"""`bench plan`: what `run` would do."""

from dataclasses import asdict, replace

import click

from bench.cli.local_files import counted
from bench.cli.local_files import size as amount
from bench.cli.options import plan_options
from bench.cli.output import json_option, notice, print_json, table
from bench.config.request import Request
from bench.core.network import offline
from bench.evaluation.tables import duration
from bench.pipeline.experiment import pretrainings
from bench.pipeline.plan import plan
from bench.pipeline.resources import machine, needs
from bench.plugins import load
from bench.store.store import Store


@click.command(name="plan")
@plan_options
@click.option("--devices", metavar="NxNAME", help="Of a machine that need not be here: 8xA100, rtx3090, 4xcpu.")
@json_option
def command(request: Request, as_json: bool) -> None:
    """Say what `bench run` with the same options would do: what is cached, what would run, how long it takes.

    Nothing is run; only checksums of input files are remembered in the store. With --devices, say what the pretraining
    takes on such a machine, before anything is fetched: hours, memory, disk, download, operations.
    """
    if request.devices is not None:
        _elsewhere(request, as_json)
        return
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


def _elsewhere(request: Request, as_json: bool) -> None:
    """Print what the pretraining of a request takes on the machine of --devices."""
    on = machine(request.devices or "")
    if on.name != "cpu":  # every device is used
        request = replace(request, sets=(f"compute.processes={on.count}", *request.sets))
    with offline():
        size, stages = pretrainings(request, load(), Store(request.store, notice))
    found = list(needs(stages, on))
    if as_json:
        print_json({"profile": size.name, "devices": asdict(on), "stages": [asdict(one) for one in found]})
        return
    rows = [
        (
            *(one.stage, one.title, f"{one.tokens:.2g}", f"{one.flops:.2g}" if one.flops else "", f"{one.hours:,.1f}"),
            *(amount(int(count)) if count else "" for count in (one.memory, one.disk)),
            amount(int(one.download)) + f" and {counted(one.unknown)}" * bool(one.unknown) if one.download else "",
        )
        for one in found
    ]
    columns = ("stage", "what", "tokens", "operations", "hours", "memory a device", "disk", "to fetch")
    table(f"profile {size.name} on {on.count} x {on.name}", columns, rows, numbers=columns[2:])
    click.echo(f"{sum(one.hours for one in found):,.0f} hours; estimates from settings and constants alone")
