"""The commands as functions, for notebooks and scripts: what they return shows itself, and errors are the same.

Like the command line they read `$BENCH_DATA` and `$BENCH_STORE`; folders are paths or strings.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.cli.compare_formats import records, tables
from bench.cli.run import run_with_progress
from bench.config.request import Names, Request, store_folder
from bench.core.network import offline
from bench.evaluation.compare.comparison import Compared, CompareOptions
from bench.evaluation.compare.comparison import compare as compare_results
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

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Comparisons", "Results", "compare", "export", "load_results", "plan", "run", "score"]

Folder = Path | str

warnings.filterwarnings("ignore", "IProgress not found")  # tqdm's, where libraries' bars in a cell lack ipywidgets


def plan(
    methods: Request | Names = None, suites: Names = None, *, plugins: Sequence[object] = (), **options: Any
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
    **options: Any,
) -> Outcome:
    """Run methods on suites, with progress unless `quiet`, and return the scored subsets.

    For instance `bench.run("bm25,msm", "mrtydi", tasks=["sw", "fi"], sets={"budget.tokens": 100_000})`.

    Args:
        methods: names, or a whole `Request`, which takes no options then.
        suites: names.
        quiet: print nothing, notices included.
        plugins: modules or objects with hooks, e.g. a method that is written in a notebook.
        options: the fields of `Request`, and `readout`, `processes` and `shard_workers` of `bench run`.

    Raises:
        BenchError: as the command fails; see `bench.pipeline.run.run`.
    """
    request = _request(methods, suites, options)
    with offline(request.offline):
        loaded, store = load(extra=plugins), Store(request.store)
        if quiet:
            return pipeline.run(request, loaded, store, NullListener())
        return run_with_progress(request, loaded, store)[0]


def _request(methods: Request | Names, suites: Names, options: dict[str, Any]) -> Request:
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
        """Return a line for each pair over all tasks, then for each task, fractions in full."""
        import pandas as pd

        return pd.DataFrame([row for compared in self for row in records(compared)])


def compare(*systems: Folder, suite: str, results: Folder = "results", **options: Any) -> Comparisons:
    """Test systems against each other on the results of a folder, as `bench compare` does.

    Args:
        systems: labels, `LABEL:REGIME`, or paths to result files.
        suite: whose results are compared.
        results: the folder.
        options: fields of `CompareOptions`: `data`, `regime`, `measure`, `queries`, `data_dir`.
    """
    compare_options = CompareOptions(**{"by_task": True, **options})
    return Comparisons(compare_results([*map(str, systems)], Path(results), load().suite(suite), compare_options))


def score(
    run: Folder, qrels: Folder | None = None, *, measures: str | Sequence[str] | None = None, **options: Any
) -> External:
    """Score a TREC run file against judgements (`qrels`), or a task (`suite` and `task`), as `bench score` does.

    `options` are those of the command: `tie` with `qrels`; `subset`, `data`, `data_dir`, `sets`, `store` with a task.
    """
    store = Store(Path(options.pop("store", None) or store_folder()))
    names = measures if isinstance(measures, str) else " ".join(measures or ())
    files = {name: Path(options[name]) for name in ("data_dir",) if options.get(name)}
    judged = Path(qrels) if qrels else None
    return score_run(Path(run), load(), store, qrels=judged, measures=names or None, **{**options, **files})


def export(
    system: Folder, out: Folder, *, suite: str | None = None, results: Folder = "results", store: Folder | None = None
) -> Exported:
    """Write an encoder for transformers and sentence-transformers with a model card, as `bench export` does.

    `system` is a label, a result file or its folder, or the key of an artefact.
    """
    place = Store(Path(store or store_folder()))
    return export_found(lambda: from_name(str(system), Path(results), place, suite), Path(out), place, load())
