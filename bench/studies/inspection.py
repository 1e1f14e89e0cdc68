"""Read a suite's official data through: every subset's corpus, questions and judgements, with their published counts.

The stages `validate` and `read` do it, through the store: what they found is kept, and a run need not do it again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from bench.core.errors import BenchError, DataError, DataFaultsError, UsageError
from bench.data.corpora.named import NamedCorpus
from bench.pipeline.graph import GraphBuilder
from bench.pipeline.settings import resolve_run
from bench.pipeline.tasks import tasks_of
from bench.plugins import Plugins
from bench.store.graph import Listener, closure, make
from bench.store.stage import Stage
from bench.store.store import Store
from bench.types import DataRequest, Suite

Verdict = Literal["ok", "missing", "wrong"]


@dataclass(frozen=True)
class Inspected:
    """A subset, and what came of reading it."""

    task: str  # its id
    subset: str  # its name, empty where the task has one only
    verdict: Verdict  # `missing` where files are, `wrong` where they are not what was published
    # documents, queries, judgements, answers, as far as they were read
    counts: dict[str, int] = field(default_factory=dict)
    reason: str = ""  # in a sentence; empty where all is well


Inspection = Sequence[tuple[Inspected, Stage | None]]
"""Subsets to be read, each with its last stage, or with what is known already."""


def read_first_documents(corpus: NamedCorpus) -> list[Inspected]:
    """Read the first document of each language of a corpus."""
    inspected = []
    for part in corpus.parts:
        for language in part.languages:
            of_language = replace(corpus, parts=(replace(part, languages=(language,), weight=None),))
            try:
                first = next(of_language.source().read(), None)
            except (UsageError, DataError, DataFaultsError) as error:
                verdict: Verdict = "missing" if of_language.missing_error() else "wrong"
                inspected.append(Inspected(part.corpus.name, language, verdict, reason=str(error)))
                continue
            counts = {"documents": int(first is not None), "sentences": len(first.sentences) if first else 0}
            inspected.append(Inspected(part.corpus.name, language, "ok" if first else "wrong", counts))
    return inspected


def prepare(suite: Suite, names: Sequence[str], data_dir: Path | None, plugins: Plugins, store: Store) -> Inspection:
    """Find the subsets of tasks on official data; only checksums of files are read.

    Args:
        suite: the suite.
        names: tasks of it, without its prefix.
        data_dir: the folder of official data; None for the download cache.
        plugins: what is installed.
        store: where the stages that read them are kept.

    Returns:
        Each subset with the stage that reads it, or with its fault where it cannot even be loaded.
    """
    settings, harness_settings = resolve_run()
    builder = GraphBuilder(store, plugins.measures_by_name, harness_settings)
    inspection: list[tuple[Inspected, Stage | None]] = []
    for name in names:
        try:
            (task,) = tasks_of(suite, [f"{suite.name}/{name}"], DataRequest("official", data_dir))
        except (UsageError, DataError, DataFaultsError) as error:
            inspection.append((_fault(f"{suite.name}/{name}", "", error), None))
            continue
        for subset in task.subsets:
            try:
                stage: Stage = builder.read(task, subset, settings.data.unknown_ids)
            except (UsageError, DataError, DataFaultsError) as error:
                inspection.append((_fault(task.id, subset.name, error), None))
            else:
                inspection.append((Inspected(task.id, subset.name, "ok"), stage))
    return inspection


def execute(prepared: Inspection, store: Store, listener: Listener) -> list[Inspected]:
    """Read every subset, whatever fault others have.

    Args:
        prepared: as `prepare` returns it.
        store: where stages are kept.
        listener: hears of the stages at work.

    Returns:
        The subsets with their counts, or with the first fault.

    Raises:
        StoreError: the store cannot be written.
    """
    faults: dict[str, BenchError] = {}
    return [subset if last is None else _read(subset, last, store, listener, faults) for subset, last in prepared]


def _read(subset: Inspected, last: Stage, store: Store, listener: Listener, faults: dict[str, BenchError]) -> Inspected:
    """Make what a subset's last stage rests on, and it; a corpus that failed is not read again for every subset."""
    metadata: dict[str, Any] = {}
    for item in closure([last]):
        if item.key in faults:
            return _fault(subset.task, subset.subset, faults[item.key])
        ready = store.open(item)
        try:
            metadata |= (ready or make(item, store, listener)).metadata
        except (UsageError, DataError, DataFaultsError) as error:
            faults[item.key] = error
            return _fault(subset.task, subset.subset, error)
    kinds = ("documents", "queries", "judgements", "answers")
    return Inspected(subset.task, subset.subset, "ok", {kind: metadata[kind] for kind in kinds if kind in metadata})


def _fault(task: str, subset: str, error: BenchError) -> Inspected:
    """Return a subset that cannot be read: `missing` where typing or fetching mends it, `wrong` where a file does."""
    return Inspected(task, subset, "missing" if isinstance(error, UsageError) else "wrong", reason=str(error))
