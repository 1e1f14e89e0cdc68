"""`bench shots`: few-shot curves."""

from pathlib import Path

import click

from bench.cli import examples
from bench.cli.options import plan_options
from bench.cli.output import Lines, json_option, notice, print_json, print_table, warn_of_faiss
from bench.config.request import Request
from bench.core.errors import StoreError
from bench.core.files import explain, write_bytes
from bench.evaluation.svg import line_chart
from bench.evaluation.tables import as_csv
from bench.pipeline.plan import plan
from bench.pipeline.run import Outcome, run
from bench.plugins import Plugins, load
from bench.store.store import Store
from bench.studies.few_shot import chart, curve, drawable, numbers, records, requests, table


@click.command(
    name="shots",
    epilog=examples(
        "bench shots --method msm --suite beir --task scifact --data official --shots 0,100,300,all",
        "bench shots --method bm25,msm --suite mrtydi --task sw --setting multilingual --shots 0,50,all --seed 0,1,2",
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
    help="The plot; the numbers lie next to it as .csv. Default: shots/TASK-SETTING.svg.",
)
@plan_options
@json_option
def command(request: Request, shots: str, out: Path | None, as_json: bool) -> None:
    """Tune systems on more and more training pairs, and draw what they come to.

    The setting is few-shot unless --setting names another; with several fine-tunings the last one is cut short. Pairs
    are drawn at random with the seed, those of a smaller number among those of a larger one. What the numbers have in
    common is made once. Results of all pairs and of none are those of `bench run`; those of other numbers lie next to
    the results folder, in RESULTS-shots/NUMBER.
    """
    warn_of_faiss()
    plugins, store = load(), Store(request.store, notice)
    outcomes = _outcomes(requests(request, numbers(shots)), plugins, store)
    found = curve(outcomes)
    plot = out or Path("shots") / f"{found.stem}.svg"
    csv_file = plot.with_suffix(".csv")
    _write(plot, line_chart(chart(found)))
    _write(csv_file, as_csv(records(found)))
    failed = [
        {"system": one.cell.system.label, "seed": one.cell.seed, "shots": number, "reason": one.reason}
        for number, outcome in outcomes.items()
        for one in outcome.failed
    ]
    if as_json:
        files = {"plot": str(plot.resolve()), "csv": str(csv_file.resolve())}
        print_json({"curve": found.as_json(), "failed": failed, **files})
        return
    print_table(table(found))
    for miss in failed:
        click.echo(f"failed: {miss['system']} (seed {miss['seed']}, {miss['shots']} pairs): {miss['reason']}")
    click.echo(f"plot: {plot}\nnumbers: {csv_file}")


def _outcomes(asked: dict[str, Request], plugins: Plugins, store: Store) -> dict[str, Outcome]:
    """Plan every number of pairs before any work, then run one after the other; what all say is said once."""
    plans = {number: plan(one, plugins, store) for number, one in asked.items()}
    drawable(plans)
    refused = {
        f"not applicable: {one.system} on {one.suite} in setting {one.setting}: {one.reason}"
        for ready in plans.values()
        for one in ready.refused
    }
    notice(*dict.fromkeys(part for ready in plans.values() for part in ready.warnings), *sorted(refused))
    outcomes = {}
    for number, one in asked.items():
        ready = plan(one, plugins, store)  # anew, since the numbers before have made what is shared
        with Lines(ready.steps) as lines:
            outcomes[number] = run(one, plugins, store, lines, ready)
    notice(*dict.fromkeys(part for one in outcomes.values() for done in one.published for part in done.notices))
    return outcomes


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, text.encode())
    except OSError as error:
        raise StoreError(
            f"cannot write {path}: {explain(error)}; all runs are finished and kept: name another place by --out"
        ) from error
