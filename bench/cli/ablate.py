"""`bench ablate`: the papers' ablation tables, run here, with the direction next to the paper's."""

from dataclasses import replace
from typing import Any

import click

from bench.cli import examples
from bench.cli.options import plan_options
from bench.cli.output import json_option, notice, print_json, print_table
from bench.cli.run import carry_through
from bench.config.grids import grids
from bench.config.request import Request
from bench.core.errors import UsageError
from bench.core.messages import canonical, unknown
from bench.pipeline.plan import plan
from bench.plugins import Plugins, load
from bench.store.store import Store
from bench.studies.ablation import Ablation, ablations


@click.command(
    name="ablate",
    epilog=examples(
        "bench ablate", "bench ablate ccp/table5 --set budget.tokens=300000", "bench ablate --method msm --seed 0,1,2"
    ),
)
@click.argument("presets", nargs=-1, metavar="[METHOD/PRESET]...")
@plan_options
@json_option
def command(request: Request, presets: tuple[str, ...], as_json: bool) -> None:
    """Run ablation tables (presets that are grids): those named, those of --method, or all that there are.

    Each runs on its own suite and task unless --suite is given, and is printed next to the paper's numbers with the
    share of pairs of cells that come in the same order, whatever it says. `bench list presets` lists them.
    """
    if request.preset:
        raise UsageError(f"found --preset {request.preset}; name it as an argument: bench ablate {request.preset}")
    plugins, store = load(), Store(request.store, notice)
    found: list[Ablation] = []
    failed: list[dict[str, Any]] = []
    asked, refused = _ready(_wanted(presets, request.methods, plugins), request, plugins, store)
    for name, reason in refused.items():
        notice(f"{name} is passed over: {reason}")
    for name, one in asked.items():
        outcome, _ = carry_through(one, plugins, store)
        laid = ablations(outcome)
        found += laid
        for cell in outcome.plan.refused:
            notice(f"not applicable: {cell.system} on {cell.suite}: {cell.reason}")
        failed += [
            {"preset": name, "system": miss.cell.system.label, "seed": miss.cell.seed, "reason": miss.reason}
            for miss in outcome.failed
        ]
        if not as_json:
            for each in laid:
                print_table(each.table())
            for miss in outcome.failed:
                click.echo(f"failed: {miss.cell.system.label} (seed {miss.cell.seed}): {miss.reason}")
    if as_json:
        skipped = [{"preset": name, "reason": reason} for name, reason in refused.items()]
        print_json({"ablations": [one.as_json() for one in found], "failed": failed, "not_applicable": skipped})


def _ready(
    names: list[str], request: Request, plugins: Plugins, store: Store
) -> tuple[dict[str, Request], dict[str, str]]:
    """Plan every grid before any work; return what to run, and why others cannot. Raises `UsageError` if none can."""
    asked: dict[str, Request] = {}
    refused: dict[str, str] = {}
    for name in names:
        one = replace(request, methods=(name.partition("/")[0],), preset=name)
        try:
            plan(one, plugins, store)
        except UsageError as error:
            refused[name] = f"{str(error).rstrip('.')}; or name another suite by --suite"
            if len(names) == 1:
                raise
        else:
            asked[name] = one
    if not asked:
        raise UsageError("\n".join(f"{name}: {reason}" for name, reason in refused.items()))
    return asked, refused


def _wanted(names: tuple[str, ...], methods: tuple[str, ...], plugins: Plugins) -> list[str]:
    """The grids that were asked for, with their methods. Raises `UsageError` for an unknown name, or no grid at all."""
    owners = [plugins.method(name) for name in methods or sorted(plugins.methods)]
    every = [name for method in owners for name in grids(method)]
    if names:
        known = {canonical(name): name for name in every}
        for name in names:
            if canonical(name) not in known:
                raise UsageError(unknown("grid", name, every))
        return list(dict.fromkeys(known[canonical(name)] for name in names))
    if not every:
        raise UsageError(
            f"found no grid among the presets of {', '.join(method.name for method in owners)}; `bench list presets` "
            "lists all presets"
        )
    return every
