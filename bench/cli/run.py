"""`bench run`: the main job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from bench.cli import examples
from bench.cli.options import plan_options
from bench.cli.output import SHOWN, Reporter, json_option, notice, print_json, progress_options, warn_of_faiss
from bench.cli.run_file import Save, takes_file, typed_run
from bench.cli.sections import SectionedCommand
from bench.config.request import Request

if TYPE_CHECKING:
    from bench.evaluation.compare.conclusions import Conclusion, Group
    from bench.pipeline.plan import Plan
    from bench.pipeline.run import Outcome
    from bench.plugins import Plugins
    from bench.store.store import Store
    from bench.studies.ablation import Ablation


@click.command(
    name="run",
    cls=SectionedCommand,
    epilog=examples(
        "bench run --method bm25 --suite beir --task path/to/folder",
        "bench run --method bm25 --suite beir --task scifact,nfcorpus --data official",
        "bench run --preset ccp/table5",
        "bench run --method bm25,crop --suite mrtydi --seed 0,1,2 --save experiment.toml",
        "bench run experiment.toml",
    ),
)
@plan_options
@progress_options
@takes_file
@json_option
def command(request: Request, progress: Reporter, as_json: bool, save: Save | None) -> None:
    """Run methods on suites: train, search and score what the store does not hold yet.

    A preset that is a grid (`bench list presets`) runs every cell as a system of its own, on the grid's own suite and
    task where no suite is named, and prints our numbers next to the paper's.

    FILE.toml has these options as keys (method = ["bm25", "crop"]; set is a table), and tables [variants.NAME] of
    options that differ: each is run, with its settings in addition. Paths are relative to the file's folder. Next to a
    file you may type only options that do not change its rows: where, how fast, how verbosely.
    """
    from bench.cli.outcome import print_outcome
    from bench.evaluation.compare.conclusions import conclude
    from bench.pipeline.run import plan_for_run
    from bench.plugins import load
    from bench.store.store import Store
    from bench.studies.ablation import ablations

    warn_of_faiss()
    plugins, store = load(), Store(request.store, notice)
    ready = plan_for_run(request, plugins, store)
    if save:
        save.write([cell.suite for cell in ready.cells])
    outcome, ran = _carried_out(request, ready, plugins, store, progress)
    suites = {cell.suite.name: cell.suite for cell in outcome.plan.cells}
    conclusions = conclude([result.result for result in outcome.published], suites)
    grids = ablations(outcome)
    if as_json:
        print_json(_json(outcome, ran, conclusions, grids))
    else:
        print_outcome(outcome, ran, conclusions, grids)
    fail_where_nothing_applied(outcome)


def fail_where_nothing_applied(*outcomes: Outcome) -> None:
    """End with exit status 2 where every system was refused on every suite, so that a script sees that nothing ran."""
    if not any(outcome.plan.cells for outcome in outcomes):
        notice("nothing was run: none of these methods applies to these suites in these regimes")
        raise click.exceptions.Exit(2)


def run_with_progress(
    request: Request, plugins: Plugins, store: Store, progress: Reporter = SHOWN
) -> tuple[Outcome, list[dict[str, Any]]]:
    """Plan and run, print all notices, and return the outcome and the stages that were touched."""
    from bench.pipeline.run import plan_for_run

    warn_of_faiss()
    ready = plan_for_run(request, plugins, store)
    return _carried_out(request, ready, plugins, store, progress)


def _carried_out(
    request: Request, ready: Plan, plugins: Plugins, store: Store, progress: Reporter
) -> tuple[Outcome, list[dict[str, Any]]]:
    """Do what `run_with_progress` does with a plan."""
    from bench.cli.fetch_texts import download_text, first_task_text
    from bench.pipeline.downloads import fetched_by_libraries, refuse_large
    from bench.pipeline.first_look import LONG, first_tasks
    from bench.pipeline.run import run

    notice(*ready.warnings)
    downloads = fetched_by_libraries(ready.cells, [step.stage for step in ready.steps if step.runs], ask=True)
    refuse_large(downloads, typed_run())
    notice(*map(download_text, downloads))
    progress.announce(ready.seconds, "; `bench plan` says what")
    if ready.seconds > LONG:
        seconds = {step.stage.key: step.seconds for step in ready.steps}
        notice(*map(first_task_text, first_tasks(ready.cells, ready.subsets, seconds)))
    with progress(ready.steps) as lines:
        outcome = run(request, plugins, store, lines, ready)
    for result in outcome.published:
        notice(*result.notices)
    return outcome, lines.outcomes


def _json(
    outcome: Outcome, ran: list[dict[str, Any]], conclusions: Mapping[Group, Conclusion], grids: list[Ablation]
) -> dict[str, Any]:
    """Return the machine's view; `stages` lists every stage that this run touched or found ready."""
    by_key = {stage["key"]: stage for stage in ran}
    stages = [
        by_key.get(step.stage.key)
        or {
            "stage": step.stage.name,
            "title": step.stage.title,
            "key": step.stage.key,
            "state": "cached" if step.state == "cached" else "not needed",
            "seconds": 0.0,
        }
        for step in outcome.plan.steps
    ]
    return {
        "results": list(outcome.rows),
        "macro": list(outcome.macro),
        "gains": [test.row() for conclusion in conclusions.values() for test in conclusion.gains],
        "comparisons": [test.row() for conclusion in conclusions.values() for test in conclusion.pairs],
        "ablations": [grid.as_json() for grid in grids],
        "failed": [
            {
                "system": failure.cell.system.label,
                "seed": failure.cell.seed,
                "suite": failure.cell.suite.name,
                "reason": failure.reason,
            }
            for failure in outcome.failed
        ],
        "not_applicable": [asdict(cell) for cell in outcome.plan.refused],
        "stages": stages,
    }
