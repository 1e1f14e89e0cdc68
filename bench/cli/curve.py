"""`bench curve`: pretrainings as curves over their budget, on dev questions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench.cli import examples
from bench.cli.options import FOLDER, plan_options
from bench.cli.output import Reporter, json_option, notice, print_json, print_table, progress_options, warn_of_faiss
from bench.cli.run_file import Save, takes_file_or_methods
from bench.cli.sections import SectionedCommand
from bench.config.request import Request
from bench.core.errors import StoreError
from bench.core.files import explain, write_bytes
from bench.evaluation.tables import as_csv

if TYPE_CHECKING:
    from bench.evaluation.learning_curves.figure import LearningCurves
    from bench.evaluation.learning_curves.trainings import CurveFile
    from bench.plugins import Plugins
    from bench.store.store import Store
    from bench.studies.curve import CurvePlan


@click.command(
    name="curve",
    cls=SectionedCommand,
    epilog=examples(
        "bench curve crop,ict --suite mrtydi --seed 0,1,2",
        "bench curve bm25,crop,ict --suite mrtydi --task ko,sw --set curve.points=6 --set curve.cool=0.2",
        "bench curve experiment.toml",
    ),
)
@click.option(
    "--axis",
    type=click.Choice(["tokens", "steps", "flops", "seconds"]),
    default="tokens",
    show_default=True,
    help="What curves are drawn against: tokens, steps, floating-point operations, or seconds of the device.",
)
@click.option(
    "--forecast",
    type=float,
    metavar="TIMES",
    help="Also forecast scores at so many times the budget, with a check of how good such forecasts are.",
)
@click.option(
    "--out",
    type=FOLDER,
    metavar="DIR",
    help="Folder of curves: drawings, numbers, and a file for each training run. Default: RESULTS/curves.",
)
@plan_options
@progress_options
@takes_file_or_methods
@json_option
def command(
    request: Request,
    progress: Reporter,
    axis: str,
    forecast: float | None,
    out: Path | None,
    as_json: bool,
    save: Save | None,
) -> None:
    """Score pretrainings at points of their budget, and draw the curves.

    METHOD is a method or several, comma-separated; also a folder of checkpoint-N from elsewhere, whose checkpoints are
    drawn by their steps (--axis steps). FILE.toml is as for bench run. Points are at 1/128, 1/64, … of the budget and
    at its end (curve.points, 8 unless set); with curve.cool also branches whose rate falls to 0, which approximate
    training with a smaller budget. Each is scored on a suite's dev questions, by its headline measure and by LogRank: 1
    − log2(rank of the first relevant passage) / log2(passages + 1). Test questions are not read. --regime tunes every
    point before it is scored.
    """
    from bench.evaluation.learning_curves.trainings import FOLDER as CURVES
    from bench.plugins import load
    from bench.store.store import Store
    from bench.studies import curve as study

    warn_of_faiss()
    study.refuse_drawing(axis, forecast)
    plugins, store = load(), Store(request.store, notice)
    ready = study.prepare(request, plugins, store)
    if save:
        save.write([cell.suite for cell in ready.plan.cells])
    folder = out or request.results / CURVES
    files = carried_out(ready, plugins, store, progress, folder)
    kept = [str(file.write(folder).resolve()) for file in files]
    (curves,) = study.curves(files, axis, forecast)
    drawings = _write(curves, folder)
    if as_json:
        written = {name: str(path.resolve()) for name, path in drawings.items()}
        print_json({**curves.as_json(), "left_out": list(ready.left_out), "files": written, "kept": kept})
        return
    for measure in curves.measures:
        click.echo(curves.picture(measure))
        click.echo()
    for measure in curves.measures:
        print_table(curves.table(measure))
    for sentence in (*(sentence for part in curves.compared for sentence in part.brief), *curves.remarks):
        click.echo(sentence)
    for name, path in drawings.items():
        click.echo(f"{name}: {path}")
    click.echo(f"training runs: {folder}")


def carried_out(
    ready: CurvePlan, plugins: Plugins, store: Store, progress: Reporter, out: Path | None
) -> list[CurveFile]:
    """Print notices, and carry out a plan with progress; errors are those of `bench.studies.curve.run`, as is `out`."""
    from bench.studies import curve as study

    notice(*ready.plan.warnings, *ready.left_out)
    progress.announce(ready.plan.seconds)
    with progress(ready.plan.steps) as lines:
        return study.run(ready, plugins, store, lines, out)


def _write(curves: LearningCurves, folder: Path) -> dict[str, Path]:
    """Write drawings and numbers; return the files by what they are. Raises `StoreError`."""
    stem, contents = curves.scoring.stem, dict[str, tuple[Path, str]]()
    for measure in curves.measures:
        ending = "" if measure == curves.scoring.measure else f"-{measure.lower()}"
        contents[f"plot of {measure}"] = folder / f"{stem}{ending}.svg", curves.svg(measure).svg
    contents["numbers"] = folder / f"{stem}.csv", as_csv(curves.records())
    for path, text in contents.values():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(path, text.encode())
        except OSError as error:
            reason = f"{explain(error)}; all training runs are kept: choose another folder with --out"
            raise StoreError(f"cannot write {path}: {reason}") from error
    return {name: path for name, (path, _) in contents.items()}
