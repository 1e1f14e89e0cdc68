"""`bench sweep`, `few-shot` and `ablate`: grids of settings, and what is read from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.cli import examples
from bench.cli.options import FOLDER, plan_options
from bench.cli.output import Reporter, json_option, notice, print_json, print_table, progress_options, warn_of_faiss
from bench.cli.run import fail_where_nothing_applied, run_with_progress
from bench.cli.sections import SectionedCommand, no_file
from bench.config.request import Request
from bench.core.errors import StoreError, UsageError
from bench.core.files import explain, write_bytes
from bench.core.messages import canonical, unknown
from bench.evaluation.tables import as_csv

if TYPE_CHECKING:
    from bench.pipeline.run import Outcome
    from bench.plugins import Plugins
    from bench.store.store import Store
    from bench.studies.ablation import Ablation


@click.command(
    name="sweep",
    cls=SectionedCommand,
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
    help="Settings to try for every method; the first is what runs without a sweep.",
)
@click.option(
    "--space",
    "spaces",
    multiple=True,
    metavar="KEY=VALUES",
    help="What a setting is drawn from, in place of the methods' own: learning_rate=2e-5..5e-4 (logarithmic where "
    "both are above 0), or warm_up=0.05,0.1, or window=none,2,4 with none for unset. Repeatable.",
)
@click.option(
    "--out",
    type=FOLDER,
    default=Path("sweeps"),
    show_default=True,
    help="Folder of sweeps: SUITE/METHOD.toml for --config, and SUITE/METHOD.json with every trial.",
)
@plan_options
@progress_options
@json_option
def sweep(request: Request, trials: int, spaces: tuple[str, ...], out: Path, progress: Reporter, as_json: bool) -> None:
    """Choose each method's settings on a suite's dev questions, with as many trials for every method.

    Settings are drawn uniformly at random, with --seed, from each method's own space (`bench show METHOD`) or from
    --space; what --set or --config fixes stays fixed. The highest average of the suite's headline measure wins.
    Finished trials are kept in the store: the same command resumes, and more trials extend fewer. Test questions are
    not read.
    """
    from bench.plugins import load
    from bench.store.store import Store
    from bench.studies import sweep as sweeps

    warn_of_faiss()
    plugins, store = load(), Store(request.store, notice)
    ready = sweeps.prepare(request, trials, plugins, store, spaces)
    notice(*ready.warnings)
    progress.announce(ready.plan.seconds)
    with progress(ready.plan.steps) as lines:
        by_method, failed = sweeps.run(ready, plugins, store, lines, out)
    if as_json:
        stages = [{"stage": stage["stage"], "state": stage["state"]} for stage in lines.outcomes]
        rows = [
            {
                "method": item.method,
                "suite": ready.suite.name,
                "measure": ready.suite.primary,
                "trials": [asdict(trial) for trial in item.trials],
                "chosen": item.chosen,
                "config": str(item.config.resolve()),
                "record": str(item.record.resolve()),
            }
            for item in by_method
        ]
        print_json({"sweeps": rows, "failed": failed, "stages": stages})
        return
    for item in by_method:
        print_table(item.table(ready.suite))
        for trial in item.trials:
            if trial.failed:
                click.echo(f"trial {trial.number} failed: {trial.failed}")
        click.echo(f"settings: {item.config}\nrecord: {item.record}\n")
    for name, reason in failed.items():
        click.echo(f"{name}: {reason}")


@click.command(
    name="few-shot",
    cls=SectionedCommand,
    epilog=examples(
        "bench few-shot --method msm --suite beir --task scifact --data official --shots 0,100,300,all",
        "bench few-shot --method bm25,msm --suite mrtydi --task sw --regime multilingual --shots 0,50,all --seed 0,1,2",
    ),
)
@click.option(
    "--shots",
    default="0,100,300,all",
    show_default=True,
    metavar="NUMBERS",
    help="Training pairs, comma-separated; 0: as pretrained, all: as many as there are.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.svg",
    help="The plot; its numbers are written next to it as .csv. Default: shots/TASK-REGIME.svg.",
)
@plan_options
@progress_options
@json_option
def few_shot(request: Request, shots: str, out: Path | None, progress: Reporter, as_json: bool) -> None:
    """Fine-tune systems on more and more training pairs, and draw the curve.

    The regime is few-shot unless --regime names another; with several fine-tunings the last one is cut short. Pairs are
    sampled with the seed; a larger number of pairs includes those of a smaller one. Stages that several numbers share
    are computed once. With all pairs, or none, results are those of `bench run`; those of other numbers are written
    next to the results folder, in RESULTS-shots/NUMBER.
    """
    from bench.evaluation.svg import line_chart
    from bench.plugins import load
    from bench.store.store import Store
    from bench.studies import grid

    warn_of_faiss()
    outcomes = _run_shots(grid.requests(request, grid.numbers(shots)), load(), Store(request.store, notice), progress)
    curve = grid.curve(outcomes)
    plot = out or Path("shots") / f"{curve.stem}.svg"
    csv_file = plot.with_suffix(".csv")
    for path, text in ((plot, line_chart(curve.chart())), (csv_file, as_csv(curve.records()))):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(path, text.encode())
        except OSError as error:
            reason = f"{explain(error)}; all runs are finished and kept: name another place by --out"
            raise StoreError(f"cannot write {path}: {reason}") from error
    failed = [
        {"system": failure.cell.system.label, "seed": failure.cell.seed, "shots": number, "reason": failure.reason}
        for number, outcome in outcomes.items()
        for failure in outcome.failed
    ]
    if as_json:
        files = {"plot": str(plot.resolve()), "csv": str(csv_file.resolve())}
        print_json({"curve": asdict(curve), "failed": failed, **files})
        return
    print_table(curve.table())
    for failure in failed:
        click.echo(
            f"failed: {failure['system']} (seed {failure['seed']}, {failure['shots']} pairs): {failure['reason']}"
        )
    click.echo(f"plot: {plot}\nnumbers: {csv_file}")


def _run_shots(requests: dict[str, Request], plugins: Plugins, store: Store, progress: Reporter) -> dict[str, Outcome]:
    """Plan every number of pairs before any work, then run them; a notice that several give is printed once."""
    from bench.pipeline.plan import plan
    from bench.studies import grid

    plans = {number: plan(request, plugins, store) for number, request in requests.items()}
    grid.drawable(plans)
    refused = {
        f"not applicable: {item.system} on {item.suite} in regime {item.regime}: {item.reason}"
        for ready in plans.values()
        for item in ready.refused
    }
    notice(*dict.fromkeys(text for ready in plans.values() for text in ready.warnings), *sorted(refused))
    outcomes = dict(grid.run_requests(requests, plugins, store, lambda ready: progress(ready.steps)))
    published = [result for outcome in outcomes.values() for result in outcome.published]
    notice(*dict.fromkeys(text for result in published for text in result.notices))
    return outcomes


@click.command(
    name="ablate",
    cls=SectionedCommand,
    epilog=examples(
        "bench ablate crop --vary method.temperature=0.02,0.1 --vary method.pairs=32,64 --suite mrtydi --seed 0,1,2",
        "bench ablate",
        "bench ablate ccp/table5 --set budget.tokens=300000",
        "bench ablate --method msm --seed 0,1,2",
    ),
)
@click.argument("names", nargs=-1, metavar="[METHOD | METHOD/PRESET]...")
@click.option(
    "--vary",
    "typed",
    multiple=True,
    metavar="KEY=A,B",
    help="Values of a setting to try next to the method's own, one setting at a time. Repeatable.",
)
@click.option("--full", is_flag=True, help="All combinations of what is varied.")
@plan_options
@progress_options
@json_option
def ablate(
    request: Request, names: tuple[str, ...], typed: tuple[str, ...], full: bool, progress: Reporter, as_json: bool
) -> None:
    """Vary settings of a method, or run ablation tables (presets that are grids).

    With --vary each value is a system of its own, tested against the unchanged method; p values are corrected for all
    variants together. KEY is whatever --set takes.

    Without --vary, the named tables are run (or those of --method, or all), each on its own suite and task unless
    --suite is given, and printed next to the paper's numbers, with the share of pairs of cells that have the same
    order. `bench list presets` lists the tables.
    """
    if typed:
        _vary(replace(request, methods=(*request.methods, *names)), typed, full, progress, as_json)
        return
    if full:
        raise UsageError(
            found="--full without --vary", expected="both", hint="bench ablate METHOD --vary KEY=A,B --full"
        )
    _run_tables(request, names, progress, as_json)


def _vary(request: Request, typed: Sequence[str], full: bool, progress: Reporter, as_json: bool) -> None:
    """Run a method with its variants, and print what each gains."""
    from bench.pipeline.plan import plan
    from bench.plugins import load
    from bench.store.store import Store
    from bench.studies import variations as variants

    plugins, store = load(), Store(request.store, notice)
    request = variants.with_variants(request, typed, plugins, full=full)
    count, seeds = len(request.varied), ",".join(map(str, request.seeds or (0,)))
    notice(f"{request.methods[0]} and {count} variant{'s'[: count != 1]} of it, seed{'s'[: ',' in seeds]} {seeds}")
    variants.check(plan(request, plugins, store))
    outcome, _ = run_with_progress(request, plugins, store, progress)
    fail_where_nothing_applied(outcome)
    tables = variants.variations(outcome, request)
    failed = _failed(outcome)
    if as_json:
        objects = [table.as_json() for table in tables]
        rows = {key: [row for item in objects for row in item[key]] for key in ("variants", "gains")}
        skipped = [asdict(cell) for cell in outcome.plan.refused]
        results = {"results": list(outcome.rows), "macro": list(outcome.macro)}
        print_json({**rows, **results, "failed": failed, "not_applicable": skipped})
        return
    for table in tables:
        print_table(table.table())
    for cell in outcome.plan.refused:
        click.echo(f"not applicable: {cell.system} on {cell.suite}: {cell.reason}")
    for failure in failed:
        click.echo(f"failed: {failure['system']} (seed {failure['seed']}): {failure['reason']}")


def _failed(outcome: Outcome) -> list[dict[str, Any]]:
    """Return the trainings of a grid that failed, as `--json` has them."""
    return [
        {"system": failure.cell.system.label, "seed": failure.cell.seed, "reason": failure.reason}
        for failure in outcome.failed
    ]


def _run_tables(request: Request, presets: tuple[str, ...], progress: Reporter, as_json: bool) -> None:
    """Run presets that are grids, and print each next to the paper's numbers."""
    from bench.plugins import load
    from bench.store.store import Store
    from bench.studies.ablation import ablations

    if request.preset:
        raise UsageError(f"found --preset {request.preset}; name it as an argument: bench ablate {request.preset}")
    plugins, store = load(), Store(request.store, notice)
    outcomes: list[Outcome] = []
    laid_out: list[Ablation] = []
    failed: list[dict[str, Any]] = []
    requests, refused = _plan_grids(presets, request, plugins, store)
    for name, reason in refused.items():
        notice(f"{name} is passed over: {reason}")
    for name, of_grid in requests.items():
        outcome, _ = run_with_progress(of_grid, plugins, store, progress)
        outcomes.append(outcome)
        tables = ablations(outcome)
        laid_out += tables
        for cell in outcome.plan.refused:
            notice(f"not applicable: {cell.system} on {cell.suite}: {cell.reason}")
        failed += [{"preset": name, **failure} for failure in _failed(outcome)]
        if not as_json:
            for table in tables:
                print_table(table.table())
            for failure in outcome.failed:
                click.echo(f"failed: {failure.cell.system.label} (seed {failure.cell.seed}): {failure.reason}")
    if as_json:
        skipped = [{"preset": name, "reason": reason} for name, reason in refused.items()]
        rows = [table.as_json() for table in laid_out]
        print_json({"ablations": rows, "failed": failed, "not_applicable": skipped})
    fail_where_nothing_applied(*outcomes)


def _plan_grids(
    typed: tuple[str, ...], request: Request, plugins: Plugins, store: Store
) -> tuple[dict[str, Request], dict[str, str]]:
    """Plan the grids that were typed, by default all, before any work.

    Returns:
        What to run, by `METHOD/PRESET`, and why others cannot.

    Raises:
        UsageError: an unknown name, no grid at all, or none that can run.
    """
    from bench.config.grids import grids
    from bench.pipeline.plan import plan

    owners = [plugins.method(name) for name in request.methods or sorted(plugins.methods)]
    by_name = {canonical(name): name for method in owners for name in grids(method)}
    for name in typed:
        if name.endswith(".toml"):
            raise no_file("ablate", name)
        if canonical(name) not in by_name:
            varied = f" {_varying(name)}" if canonical(name) in plugins.methods else ""
            raise UsageError(unknown("grid", name, [*by_name.values()]) + varied)
    if not by_name:
        raise UsageError(
            f"found no grid among the presets of {', '.join(method.name for method in owners)}; `bench list presets` "
            f"lists all presets. {_varying(owners[0].name)}"
        )
    names = list(dict.fromkeys(by_name[canonical(name)] for name in typed)) or [*by_name.values()]
    requests: dict[str, Request] = {}
    refused: dict[str, str] = {}
    for name in names:
        of_grid = replace(request, methods=(name.partition("/")[0],), preset=name)
        try:
            plan(of_grid, plugins, store)
        except UsageError as error:
            refused[name] = f"{str(error).rstrip('.')}; or name another suite by --suite"
            if len(names) == 1:
                raise
        else:
            requests[name] = of_grid
    if not requests:
        raise UsageError("\n".join(f"{name}: {reason}" for name, reason in refused.items()))
    return requests, refused


def _varying(method: str) -> str:
    """Return the sentence that says how settings of a method are varied."""
    return f"To vary its settings: bench ablate {method} --vary KEY=A,B"
