"""`bench plan`: what `run` would do."""

from dataclasses import asdict, replace
from typing import Any

import click

from bench.cli.options import plan_options
from bench.cli.output import file_count, json_option, notice, print_json, size_text, sizes_text, table
from bench.cli.run_file import Save, takes_file
from bench.cli.sections import SectionedCommand
from bench.config.request import Request
from bench.core.errors import UsageError
from bench.core.files import unread
from bench.core.network import offline
from bench.data.fetching.local_files import bytes_to_fetch, local_files
from bench.data.fetching.official import roots
from bench.evaluation.tables import duration
from bench.pipeline.experiment import largest_quotas, pretrainings
from bench.pipeline.plan import Plan, plan
from bench.pipeline.resources import machine, needs
from bench.plugins import load
from bench.store.store import Store


@click.command(name="plan", cls=SectionedCommand)
@plan_options
@click.option("--devices", metavar="NxNAME", help="Of a machine that need not be here: 8xA100, rtx3090, 4xcpu.")
@takes_file
@json_option
def command(request: Request, as_json: bool, save: Save | None) -> None:
    """Say what `bench run` with the same options would do: what is cached, what would run, how long it takes.

    Nothing is run; only checksums of input files are remembered in the store. With --devices, say what
    pretraining (with --suite also tuning, encoding, search, re-ranking) takes there, before anything is fetched.
    """
    if request.devices is not None:
        if save:
            raise UsageError(found="--save next to --devices", expected="one of them")
        _elsewhere(request, as_json)
        return
    ready = plan(request, load(), Store(request.store, notice))
    if save:
        save.write([cell.suite for cell in ready.cells])
    size, missing = ready.profile, _missing_suites(request, ready)
    if as_json:
        estimates = ("state", "runs", "seconds", "guessed", "unknown")
        steps = [
            {
                "stage": step.stage.name,
                "title": step.stage.title,
                "key": step.stage.key,
                **{name: getattr(step, name) for name in estimates},
                "identity": step.stage.identity(),
            }
            for step in ready.steps
        ]
        names = ("name", "data", "backbone", "budget", "device", "hours")
        print_json(
            {
                "profile": {name: getattr(size, name) for name in names},
                "steps": steps,
                "seconds": ready.seconds,
                "not_applicable": [asdict(cell) for cell in ready.refused],
                "warnings": list(ready.warnings),
                "missing": missing,
            }
        )
        return
    rows = []
    for step in ready.steps:
        state = "cached" if step.state == "cached" else "not needed"
        if step.runs:
            state = "damaged, runs again" if step.state == "corrupt" else "runs"
        estimate = "unknown" if step.unknown else duration(step.seconds)
        rows.append((step.stage.name, step.stage.title, state, estimate))
    table("", ("stage", "what", "state", "estimate"), rows, numbers=("estimate",))
    for cell in ready.refused:
        click.echo(f"not applicable: {cell.system} on {cell.suite}: {cell.reason}")
    notice(*ready.warnings)
    runs = sum(step.runs for step in ready.steps)
    unknown = f", and {n} of unknown length" if (n := sum(step.unknown for step in ready.steps)) else ""
    for name, row in missing.items():
        to_fetch = sizes_text(row["bytes_left"], row["files_left_of_unknown_size"])
        count, command_line = file_count(row["files"]), f"bench data fetch {row['asked']}"
        click.echo(f"not here: {count} of {name}, {to_fetch} to fetch; type: {command_line}")
    click.echo(
        f"profile {size.name}: {runs} of {len(ready.steps)} stages to run, {duration(ready.seconds)}{unknown}"
        f"{_guesses(ready)}"
    )


def _guesses(ready: Plan) -> str:
    """Return how much of the time is guessed, for want of anything like it in the store."""
    guessed = [step for step in ready.steps if step.runs and step.guessed]
    if not guessed:
        return ""
    seconds, stages = sum(step.seconds for step in guessed), sum(step.runs for step in ready.steps)
    part, whole = duration(seconds), duration(ready.seconds)
    share = "" if len(guessed) == stages else f"{'nearly all' if part == whole else part} of it "
    return f"; {share}a rough guess, since nothing like it has run in this store"


def _missing_suites(request: Request, ready: Plan) -> dict[str, dict[str, Any]]:
    """Return the official files that the plan needs and that are not here, by suite."""
    missing: dict[str, dict[str, Any]] = {}
    for suite in {cell.suite.name: cell.suite for cell in ready.cells if cell.data == "official"}.values():
        cells = [cell for cell in ready.cells if cell.suite.name == suite.name]
        tasks = dict.fromkeys(task.id.removeprefix(f"{suite.name}/") for cell in cells for task in cell.tasks)
        tasks_known = tuple(task for task in tasks if task in suite.task_names("official"))
        files = local_files(suite, roots(request.data_dir), tasks_known) if tasks_known else ()
        if absent := [file for file in files if not (file.complete or file.local)]:
            task_option = (
                "" if len(tasks_known) == len(suite.task_names("official")) else f" --task {','.join(tasks_known)}"
            )
            missing[suite.name] = {"files": len(absent), **bytes_to_fetch(absent), "asked": suite.name + task_option}
    return missing


def _elsewhere(request: Request, as_json: bool) -> None:
    """Print what a request takes on the machine of --devices: its pretraining, with suites all its encoders do."""
    on = machine(request.devices or "")
    if on.name != "cpu":  # every device is used
        sets = (f"compute.processes={on.count}", f"compute.shard_workers={on.count}")
        request = replace(request, sets=(*sets, *request.sets))
    plugins, store = load(), Store(request.store, notice)
    with offline(), unread():
        if request.suites:
            planned = plan(request, plugins, store)
            size, stages = planned.profile, [step.stage for step in planned.steps]
        else:
            quotas = largest_quotas(request.each().values(), plugins)
            parts = [pretrainings(part, plugins, store, quotas) for part in request.each().values()]
            size, stages = parts[0][0], [*{stage.key: stage for _, part in parts for stage in part}.values()]
    resources = list(needs(stages, on))
    if as_json:
        print_json({"profile": size.name, "devices": asdict(on), "stages": [asdict(stage) for stage in resources]})
        return
    rows = [
        (
            *(stage.stage, stage.title, *(f"{count:.2g}" if count else "" for count in (stage.tokens, stage.flops))),
            f"{stage.hours:,.1f}" if stage.hours else "unknown",
            *(size_text(int(count)) if count else "" for count in (stage.memory, stage.disk)),
            size_text(int(stage.download)) + f" and {file_count(stage.unknown)}" * bool(stage.unknown)
            if stage.download
            else "",
        )
        for stage in resources
    ]
    columns = ("stage", "what", "tokens", "operations", "hours", "memory a device", "disk", "to fetch")
    table(f"profile {size.name} on {on.count} x {on.name}", columns, rows, numbers=columns[2:])
    unknown = sum(not stage.hours for stage in resources)
    more = f", and {unknown} stages of unknown length" if unknown else ""
    hint = "" if request.suites else "; encoding and search: --suite NAME"
    click.echo(
        f"{sum(stage.hours for stage in resources):,.0f} hours{more}; estimates from settings and constants alone{hint}"
    )
