"""`bench plan`: what `run` would do."""

from __future__ import annotations

import click

from bench.cli.options import plan_options
from bench.cli.output import duration, json_option, notice, print_json, table
from bench.pipeline import plan
from bench.plugins import load
from bench.request import Request
from bench.store import Store


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
                "stage": step.node.recipe.stage,
                "title": step.node.recipe.title,
                "key": step.node.key,
                "state": step.state,
                "runs": step.runs,
                "seconds": step.seconds,
            }
            for step in found.steps
        ]
        refused = [
            {"system": cell.system, "suite": cell.suite, "setting": cell.setting, "reason": cell.reason}
            for cell in found.refused
        ]
        profile = {"name": size.name, "data": size.data, "backbone": size.backbone, "budget": size.budget}
        print_json(
            {
                "profile": {**profile, "device": size.device, "hours": size.hours},
                "steps": steps,
                "seconds": found.seconds,
                "not_applicable": refused,
                "warnings": list(found.warnings),
            }
        )
        return
    rows = [
        (step.node.recipe.stage, step.node.recipe.title, _fate(step.state, step.runs), duration(step.seconds))
        for step in found.steps
    ]
    table("", ("stage", "what", "state", "estimate"), rows, numbers=("estimate",))
    for cell in found.refused:
        click.echo(f"not applicable: {cell.system} on {cell.suite}: {cell.reason}")
    for sentence in found.warnings:
        notice(sentence)
    runs = sum(step.runs for step in found.steps)
    click.echo(
        f"profile {size.name} ({size.hours}): {runs} of {len(found.steps)} stages to run, {duration(found.seconds)}"
    )


def _fate(state: str, runs: bool) -> str:
    """What becomes of a stage, in a word or two."""
    if runs:
        return "damaged, runs again" if state == "corrupt" else "runs"
    return "cached" if state == "cached" else "not needed"
