"""The commands as functions, for notebooks and scripts: what they return shows itself, and errors are the same.

Like the command line they read `$BENCH_DATA` and `$BENCH_STORE`; folders are paths or strings.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from bench.cli.compare_formats import FRACTIONS, records, tables
from bench.cli.run import run_with_progress
from bench.config.request import Names, Request, RequestOptions, assignments, parse_seeds, store_folder
from bench.core.network import offline
from bench.evaluation.compare.comparison import Compared, CompareOptions
from bench.evaluation.compare.comparison import compare as compare_results
from bench.evaluation.figures import Bar, intervals
from bench.evaluation.results.scores import Results, load_results
from bench.evaluation.tables import as_html
from bench.pipeline import plan as planning
from bench.pipeline import run as pipeline
from bench.pipeline.plan import Plan
from bench.pipeline.run import Outcome
from bench.plugins import load
from bench.store.graph import NullListener
from bench.store.store import Store
from bench.studies.export import Exported, export_found, from_name
from bench.studies.external import External, score_run
from bench.types import Tie

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from bench.evaluation.learning_curves.figure import LearningCurves
    from bench.studies.race import Race

__all__ = ["Comparisons", "Results", "compare", "curve", "export", "load_results", "plan", "race", "run", "score"]

Folder = Path | str

warnings.filterwarnings("ignore", "IProgress not found")  # tqdm's, where libraries' bars in a cell lack ipywidgets


def plan(
    methods: Request | Names = None,
    suites: Names = None,
    *,
    plugins: Sequence[object] = (),
    **options: Unpack[RequestOptions],
) -> Plan:
    """Say what `run` would do; arguments as there. Raises as `bench.pipeline.plan.plan` does."""
    request = _request(methods, suites, options)
    with offline(request.offline):
        return planning.plan(request, load(extra=plugins), Store(request.store))


def run(
    methods: Request | Names = None,
    suites: Names = None,
    *,
    quiet: bool = False,
    plugins: Sequence[object] = (),
    **options: Unpack[RequestOptions],
) -> Outcome:
    """Run methods on suites, with progress unless `quiet`, and return the scored subsets.

    For instance `bench.run("bm25,msm", "mrtydi", task=["sw", "fi"], seed=1, set={"budget.tokens": 100_000})`.

    Args:
        methods: names, or a whole `Request`, which takes no options then.
        suites: names.
        quiet: print nothing, notices included.
        plugins: modules or objects with hooks, e.g. a method that is written in a notebook.
        options: those of `bench run` in Python's spelling, typed by `RequestOptions`; one value or a list.

    Raises:
        BenchError: as the command fails; see `bench.pipeline.run.run`.
    """
    request = _request(methods, suites, options)
    with offline(request.offline):
        loaded, store = load(extra=plugins), Store(request.store)
        if quiet:
            return pipeline.run(request, loaded, store, NullListener())
        return run_with_progress(request, loaded, store)[0]


def curve(
    methods: Request | Names = None,
    suites: Names = None,
    *,
    axis: Literal["tokens", "steps", "flops", "seconds"] = "tokens",
    forecast: float | None = None,
    out: Folder | None = None,
    quiet: bool = False,
    plugins: Sequence[object] = (),
    **options: Unpack[RequestOptions],
) -> LearningCurves:
    """Score pretrainings at points of their budget on dev questions, as `bench curve` does, and return the curves.

    For instance `bench.curve("crop,ict", "mrtydi", seed="0-2", set={"curve.points": 6}).plot()`.

    Args:
        methods: names, or a whole `Request`, which takes no options then.
        suites: the name of one.
        axis: what curves are drawn against.
        forecast: how many times the budget scores are forecast at, with a check; default: no forecast.
        out: folder that a file of each training is written to; default: none is written.
        quiet: print nothing, notices included.
        plugins: modules or objects with hooks, e.g. a method that is written in a notebook.
        options: those of `bench run` in Python's spelling, typed by `RequestOptions`; one value or a list.

    Raises:
        BenchError: as the command fails; see `bench.studies.curve.prepare` and `run`.
    """
    from bench.cli.curve import carried_out
    from bench.cli.output import Reporter
    from bench.studies import curve as study

    study.refuse_drawing(axis, forecast)
    request = _request(methods, suites, options)
    with offline(request.offline):
        loaded, store = load(extra=plugins), Store(request.store)
        ready, folder = study.prepare(request, loaded, store), Path(out) if out else None
        if quiet:
            files = study.run(ready, loaded, store, NullListener(), folder)
        else:
            files = carried_out(ready, loaded, store, Reporter(), folder)
    if folder:
        for file in files:
            file.write(folder)
    (curves,) = study.curves(files, axis, forecast)
    return curves


def race(
    methods: Request | Names = None,
    suites: Names = None,
    *,
    guess: bool = True,
    quiet: bool = False,
    plugins: Sequence[object] = (),
    **options: Unpack[RequestOptions],
) -> Race:
    """Race pretrainings on dev questions, as `bench race` does, and return how it ended.

    For instance `bench.race("crop,ict,contriever", "mrtydi", task="ko,sw", seed="0-7")`.

    Args:
        methods: names, two or more, or a whole `Request`, which takes no options then.
        suites: the name of one.
        guess: drop methods by a forecast at a quarter of the budget, which is no test.
        quiet: print nothing, notices included.
        plugins: modules or objects with hooks, e.g. a method that is written in a notebook.
        options: those of `bench run` in Python's spelling, typed by `RequestOptions`; one value or a list.

    Raises:
        BenchError: as the command fails; see `bench.studies.race.prepare` and `Race.advanced`.
    """
    from bench.cli.output import Reporter
    from bench.cli.race import carried_out
    from bench.studies import race as study

    request = _request(methods, suites, options)
    with offline(request.offline):
        loaded, store = load(extra=plugins), Store(request.store)
        ready = study.prepare(request, loaded, store, guess=guess)
        if not quiet:
            return carried_out(ready, loaded, store, Reporter())
        while not ready.is_over:
            ready = ready.advanced(ready.todo(store), loaded, store, NullListener())
        return ready


def _request(methods: Request | Names, suites: Names, options: RequestOptions) -> Request:
    return methods if isinstance(methods, Request) else Request.from_options(methods, suites, **options)


class Comparisons(tuple[Compared, ...]):
    """Comparisons, one for each regime and kind of data in which all systems have results."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Say each."""
        return "\n".join(map(repr, self))

    def _repr_html_(self) -> str:
        return "".join(as_html(table) for compared in self for table in tables(compared, by_task=False))

    def frame(self) -> pd.DataFrame:
        """Return a line for each pair over all tasks, then for each task; names of fractions end in `_fraction`."""
        import pandas as pd

        frame = pd.DataFrame([row for compared in self for row in records(compared)])
        return frame.rename(columns={name: f"{name}_fraction" for name in FRACTIONS})

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the gains over the own start with their intervals, of the first comparison; without gains its pairs.

        Args:
            ax: matplotlib's axes to draw on; default: new ones.

        Raises:
            UsageError: matplotlib is not installed.
        """
        compared = self[0]
        tests = sorted(compared.gains or compared.tests, key=lambda test: -test.comparison.difference)
        bars = [
            Bar(
                test.first if compared.gains else test.pair,
                100 * test.comparison.difference,
                *(None if end is None else 100 * end for end in (test.comparison.low, test.comparison.high)),
            )
            for test in tests
        ]
        about = "gain over the own start" if compared.gains else "difference"
        names = [compared.metadata["suite"], compared.metadata["regime"], f"{about}, {compared.measure} points"]
        return intervals(" · ".join(names), bars, ax)


def compare(
    *systems: Folder,
    suite: str,
    results: Folder = "results",
    data: str | None = None,
    regime: str | None = None,
    measure: str | None = None,
    by_task: bool = True,
    queries: int = 0,
    data_dir: Folder | None = None,
    next: bool = False,
    seed: int | str | Sequence[int] | None = None,
) -> Comparisons:
    """Test systems against each other on the results of a folder, as `bench compare` does.

    Args:
        systems: labels, `LABEL:REGIME`, or paths to result files.
        suite: whose results are compared.
        results: the folder.
        data: kind of data (`official`, `mini`, `local`); default: all.
        regime: for names that give none; default: all.
        measure: canonical name; default: the suite's headline.
        by_task: also test every task by itself.
        queries: number of largest gains and losses to list for each pair.
        data_dir: folder with the official layouts, from which the texts of queries are read.
        next: say what would decide open differences.
        seed: only results of these seeds, and of systems that no seed changes; default: all.

    Raises:
        UsageError: as `bench.evaluation.compare.comparison.compare` does.
    """
    folder = Path(data_dir) if data_dir else None
    compare_options = CompareOptions(data, regime, measure, by_task, queries, folder, next, parse_seeds(seed))
    return Comparisons(compare_results([*map(str, systems)], Path(results), load().suite(suite), compare_options))


def score(
    run: Folder,
    qrels: Folder | None = None,
    *,
    measures: str | Sequence[str] | None = None,
    tie: Tie | None = None,
    suite: str | None = None,
    task: Folder | None = None,
    subset: str | None = None,
    data: str | None = None,
    data_dir: Folder | None = None,
    sets: Mapping[str, Any] | Sequence[str] = (),
    store: Folder | None = None,
) -> External:
    """Score a TREC run file against judgements, or against a task, as `bench score` does.

    Args:
        run: the run file, or `candidates` for the official order of a task that gives them.
        qrels: judgements: TREC qrels or a BEIR .tsv.
        measures: names, or one string with blanks between them; default with a task: its own.
        tie: with `qrels`: order of equal scores, `trec` or `list`; default: `trec`.
        suite: in place of `qrels`: score against a task of this suite, under its protocol.
        task: the task, or a folder.
        subset: of the task, where it has several.
        data: `official` or `mini`; default: the default profile's.
        data_dir: folder of official data.
        sets: settings of the harness.
        store: folder that keeps what the checks of a task found; default: `$BENCH_STORE`, else `store`.

    Raises:
        UsageError: as `bench.studies.external.score_run` does.
    """
    return score_run(
        Path(run),
        load(),
        Store(Path(store or store_folder())),
        qrels=Path(qrels) if qrels else None,
        measures=measures if isinstance(measures, str) else " ".join(measures or ()) or None,
        tie=tie,
        suite=suite,
        task=str(task) if task else None,
        subset=subset,
        data=data,
        data_dir=Path(data_dir) if data_dir else None,
        sets=assignments(sets),
    )


def export(
    system: Folder, out: Folder, *, suite: str | None = None, results: Folder = "results", store: Folder | None = None
) -> Exported:
    """Write an encoder for transformers and sentence-transformers with a model card, as `bench export` does.

    `system` is a label, a result file or its folder, or the key of an artefact.
    """
    place = Store(Path(store or store_folder()))
    return export_found(lambda: from_name(str(system), Path(results), place, suite), Path(out), place, load())
