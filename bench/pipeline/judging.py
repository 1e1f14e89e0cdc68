"""The judgements of a task's subset, ready to score any run by: one place for runs of others and for their results."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.core.errors import BenchError, UsageError
from bench.data.formats.ids import Ids
from bench.evaluation.measures.evaluate import Qrels
from bench.evaluation.measures.specs import MeasureSpec
from bench.pipeline.graph import GraphBuilder
from bench.pipeline.stages import read, score, validate
from bench.store.graph import NullListener, closure, make
from bench.store.housekeeping import tidy
from bench.store.leases import leased
from bench.types import Run, Subset, Task

if TYPE_CHECKING:
    from bench.evaluation.measures.answers import Answered


@dataclass(frozen=True)
class SubsetIds:
    """The ids that a subset knows, and what messages call them."""

    queries: frozenset[str]
    queries_name: str
    documents: Callable[[Sequence[str]], list[bool]]
    documents_name: str


@dataclass(frozen=True)
class Judging:
    """What judges a subset."""

    protocol: score.Protocol
    judgements: Qrels
    answered: Answered | None  # answers and texts, for measures that look for them; None where there are none
    ids: SubsetIds
    reading: read.Read | None = None  # of the judgements; None where candidates were read without the store
    missing_measures: Mapping[str, str] = field(default_factory=dict)  # why measures of the task are left out, by name

    @property
    def queries(self) -> tuple[str, ...]:
        """Every judged query, in the order of the judgements."""
        return tuple(self.judgements or (self.answered.strings if self.answered else ()))

    def score(self, run: Run, queries: Collection[str] | None = None) -> score.Scored:
        """Score a run under the task's protocol, as `bench.pipeline.stages.score.score` does."""
        return score.score(self.judgements, run, self.protocol, self.answered, queries)


def judging(task: Task, subset: Subset, measures: Sequence[MeasureSpec], graph: GraphBuilder, unknown: str) -> Judging:
    """Read what judges a subset, through the store; the task's own checks run first and are kept there.

    `unknown` says what to do with judged documents that the corpus lacks: `refuse` or `keep`. Raises `UsageError` for
    files that are not there, `DataError` or `DataFaultsError` for malformed records.
    """
    protocol = graph.protocol(task, measures)
    if subset.candidates is not None:
        judgements, ids = _candidate_lists(subset)
        return Judging(protocol, judgements, None, ids)
    store, reading = graph.store, graph.read(task, subset, unknown)
    texts = graph.texts(subset.corpus) if protocol.by_answers else None
    items = closure([reading, *([texts] if texts else [])])
    with leased(store, [item.key for item in items]):
        tidy(store)
        for item in items:
            make(item, store, NullListener())
        folder = store.folder(reading)
        answered = score.answered(folder, protocol, store.folder(texts) if texts else None)
        ids = _whole_corpus(subset, store.folder(reading.corpus))
        return Judging(protocol, read.qrels(folder), answered, ids, reading)


def judging_what_can_be(
    task: Task, subset: Subset, measures: Sequence[MeasureSpec], graph: GraphBuilder, unknown: str
) -> Judging:
    """As `judging`; where only the passages' texts are missing, for the measures that need none."""
    try:
        return judging(task, subset, measures, graph, unknown)
    except BenchError as error:
        protocol = graph.protocol(task, measures)
        if not (protocol.by_answers and protocol.by_documents):
            raise
        result = judging(task, subset, protocol.by_documents, graph, unknown)
        reason = str(error)
        return replace(result, missing_measures={str(measure): reason for measure in protocol.by_answers})


def _candidate_lists(subset: Subset) -> tuple[dict[str, dict[str, int]], SubsetIds]:
    """Judgements and ids of a subset that gives candidates; no text is read, for scoring needs none."""
    if subset.qrels is None:
        raise UsageError("found candidates without judgements of documents, expected both")
    rows = list(subset.qrels.read())
    read.published(subset, len({row.query for row in rows}), len(rows))
    judgements: dict[str, dict[str, int]] = {}
    for row in rows:
        judgements.setdefault(row.query, {})[row.document] = row.grade
    lists = list(subset.candidates.read()) if subset.candidates else []
    documents = {name for row in lists for name in row.documents}
    queries = frozenset(row.query for row in lists)
    names = (
        f"the {len(queries):,} queries of {subset.qrels.name}",
        f"the {len(documents):,} candidates of {subset.qrels.name}",
    )
    return judgements, SubsetIds(
        queries, names[0], lambda identifiers: [name in documents for name in identifiers], names[1]
    )


def _whole_corpus(subset: Subset, corpus: Path) -> SubsetIds:
    """Ids of a subset that searches a corpus."""
    queries, ids = frozenset(item.id for item in subset.queries.read()), Ids.load(corpus / validate.IDS)
    names = f"the {len(queries):,} ids of {subset.queries.name}", f"the {len(ids):,} ids of {subset.corpus.items.name}"
    return SubsetIds(queries, names[0], ids.contains, names[1])
