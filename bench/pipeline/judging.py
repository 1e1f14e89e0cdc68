"""The judgements of a task's leg, ready to score any run by: one place for runs of others and for their results."""

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
from bench.types import Leg, Run, Task

if TYPE_CHECKING:
    from bench.evaluation.measures.answers import Answered


@dataclass(frozen=True)
class LegIds:
    """The ids that a leg knows, and what messages call them."""

    queries: frozenset[str]
    queries_name: str
    documents: Callable[[Sequence[str]], list[bool]]
    documents_name: str


@dataclass(frozen=True)
class Judging:
    """What judges a leg."""

    protocol: score.Protocol
    judgements: Qrels
    answered: Answered | None  # answers and texts, for measures that look for them; None where there are none
    ids: LegIds
    lacking: Mapping[str, str] = field(default_factory=dict)  # why measures of the task are left out, by name

    @property
    def queries(self) -> tuple[str, ...]:
        """Every judged query, in the order of the judgements."""
        return tuple(self.judgements or (self.answered.strings if self.answered else ()))

    def score(self, run: Run, queries: Collection[str] | None = None) -> score.Scored:
        """Score a run under the task's protocol, as `bench.pipeline.stages.score.score` does."""
        return score.score(self.judgements, run, self.protocol, self.answered, queries)


def judging(task: Task, leg: Leg, measures: Sequence[MeasureSpec], graph: GraphBuilder, unknown: str) -> Judging:
    """Read what judges a leg, through the store; the task's own checks run first and are kept there.

    `unknown` says what to do with judged documents that the corpus lacks: `refuse` or `keep`. Raises `UsageError` for
    files that are not there, `DataError` or `DataFaultsError` for malformed records.
    """
    protocol = graph.protocol(task, measures)
    if leg.candidates is not None:
        judgements, ids = _candidate_lists(leg)
        return Judging(protocol, judgements, None, ids)
    store, reading = graph.store, graph.read(task, leg, unknown)
    texts = graph.texts(leg.corpus) if protocol.by_answers else None
    items = closure([reading, *([texts] if texts else [])])
    with leased(store, [item.key for item in items]):
        tidy(store)
        for item in items:
            make(item, store, NullListener())
        folder = store.folder(reading)
        answered = score.answered(folder, protocol, store.folder(texts) if texts else None)
        ids = _whole_corpus(leg, store.folder(reading.corpus))
        return Judging(protocol, read.qrels(folder), answered, ids)


def judging_what_can_be(
    task: Task, leg: Leg, measures: Sequence[MeasureSpec], graph: GraphBuilder, unknown: str
) -> Judging:
    """As `judging`; where only the passages' texts are missing, for the measures that need none."""
    try:
        return judging(task, leg, measures, graph, unknown)
    except BenchError as error:
        protocol = graph.protocol(task, measures)
        if not (protocol.by_answers and protocol.by_documents):
            raise
        result = judging(task, leg, protocol.by_documents, graph, unknown)
        reason = str(error)
        return replace(result, lacking={str(measure): reason for measure in protocol.by_answers})


def _candidate_lists(leg: Leg) -> tuple[dict[str, dict[str, int]], LegIds]:
    """Judgements and ids of a leg that gives candidates; no text is read, for scoring needs none."""
    if leg.qrels is None:
        raise UsageError("found candidates without judgements of documents, expected both")
    rows = list(leg.qrels.read())
    read.published(leg, len({row.query for row in rows}), len(rows))
    judgements: dict[str, dict[str, int]] = {}
    for row in rows:
        judgements.setdefault(row.query, {})[row.document] = row.grade
    lists = list(leg.candidates.read()) if leg.candidates else []
    documents = {name for row in lists for name in row.documents}
    queries = frozenset(row.query for row in lists)
    names = (
        f"the {len(queries):,} queries of {leg.qrels.name}",
        f"the {len(documents):,} candidates of {leg.qrels.name}",
    )
    return judgements, LegIds(
        queries, names[0], lambda identifiers: [name in documents for name in identifiers], names[1]
    )


def _whole_corpus(leg: Leg, corpus: Path) -> LegIds:
    """Ids of a leg that searches a corpus."""
    queries, ids = frozenset(item.id for item in leg.queries.read()), Ids.load(corpus / validate.IDS)
    names = f"the {len(queries):,} ids of {leg.queries.name}", f"the {len(ids):,} ids of {leg.corpus.items.name}"
    return LegIds(queries, names[0], ids.contains, names[1])
