"""A run against its judgements: one value per judged query and measure, and their means; averages over tasks.

House rule: the mean is over all judged queries; a query that the run misses, or for which it found nothing, counts 0.
It is decided here and nowhere else. Official scorers that do otherwise are brought by suites, under names of their own
(`bench.types.OfficialScorer`). Averages over tasks are unweighted, and a value that is not there is absent from the
mapping, never 0 or NaN.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat

from bench.core.errors import PluginError, UsageError
from bench.core.order import order
from bench.core.records import CleanRun
from bench.evaluation.measures.builtin import BUILTIN, Value
from bench.evaluation.measures.checks import judged
from bench.evaluation.measures.specs import MeasureSpec, check_cut
from bench.evaluation.measures.trec_type import computes, judge
from bench.types import Macro, Measure, Ranking, Run, Tie

Qrels = Mapping[str, Mapping[str, int]]
"""Grades by query and document (≥ 1 relevant; ≤ 0 judged, not relevant)."""


@dataclass(frozen=True)
class Scores:
    """The values of one run."""

    queries: tuple[str, ...]  # every judged query, in the order of the qrels
    values: Mapping[str, tuple[float, ...]]  # in [0, 1], by canonical measure name, in the order of `queries`

    @property
    def means(self) -> dict[str, float]:
        """The mean over all judged queries, by measure; the same number whatever the order of the queries."""
        return {name: math.fsum(values) / len(values) for name, values in self.values.items()}


@dataclass(frozen=True)
class Coverage:
    """How the queries of a run and of its judgements differ."""

    missing: tuple[str, ...]  # judged queries that the run does not name; each counts 0
    unexpected: tuple[str, ...]  # queries of the run that nobody judged; they are ignored


def evaluate(
    qrels: Qrels, run: Run, measures: Sequence[MeasureSpec], tie: Tie, extra: Mapping[str, Measure] = {}
) -> Scores:
    """Score a run, whose queries may be fewer than the judged ones.

    Args:
        qrels: grades by query and document.
        run: rankings by query; those of queries without judgements are ignored.
        measures: what to compute, e.g. `parse_many("nDCG@10 R@100")`.
        tie: under `trec` the measures are trec_eval's, as far as it has them, which sorts by score; under `list` they
            are those of `bench.evaluation.measures.builtin`, which trust the order of the ranking.
        extra: plugins' measures by name. They, and ours that trec_eval does not have, get the ranking in the order of
            the tie rule.

    Returns:
        A value for every judged query and measure; 0 for a query that the run misses.

    Example:
        `evaluate({"q": {"d1": 1}}, {"q": Ranking("q", ("d1",), (2.0,))}, [parse("RR@10")], "trec").means`
        is `{"RR@10": 1.0}`.

    Raises:
        UsageError: as `judged` does; on a measure that does not exist, lacks its cut or takes none.
        PluginError: if a plugin's measure fails or gives something else than a number in [0, 1].
    """
    if not measures:
        raise UsageError("no measure to compute; name one, e.g. nDCG@10")
    for measure in measures:
        if measure.name not in BUILTIN and measure.name not in extra:
            raise UsageError(f"unknown measure {measure}; there are {', '.join([*BUILTIN, *extra])}")
        check_cut(measure, str(measure))
    rankings = judged(qrels, run, tie)
    by_trec_eval = [measure for measure in measures if tie != "list" and computes(measure)]
    by_value = [measure for measure in measures if measure not in by_trec_eval]
    values_by_query: dict[str, dict[str, float]] = judge(qrels, rankings, by_trec_eval) if by_trec_eval else {}
    if by_value:
        documents: dict[str, Sequence[str]] = {query: ranking.documents for query, ranking in rankings.items()}
        if tie != "list":  # such a ranking is in the order of its rule already
            for query, ranking in rankings.items():
                documents[query] = [ranking.documents[at] for at in order(ranking.documents, ranking.scores, tie)]
        for measure in by_value:
            builtin = BUILTIN.get(measure.name)
            value = builtin.value if builtin and builtin.value else _guarded(extra[measure.name])
            values_by_query[str(measure)] = {
                query: value(ranked, qrels[query], measure.cut) for query, ranked in documents.items() if len(ranked)
            }
    values = {name: tuple(map(values_by_query[name].get, qrels, repeat(0.0))) for name in map(str, measures)}
    return Scores(tuple(qrels), values)


def coverage(qrels: Mapping[str, object], run: Mapping[str, object]) -> Coverage:
    """Return the queries that the run misses and those of its own that nobody judged."""
    return Coverage(
        missing=tuple(query for query in qrels if query not in run),
        unexpected=tuple(query for query in run if query not in qrels),
    )


def without_identical(run: Run) -> dict[str, Ranking]:
    """Remove every document whose id is that of the query. The judgements stay as they are."""
    rankings = CleanRun(run) if isinstance(run, CleanRun) else dict(run)
    for query, ranking in run.items():
        if query in ranking.documents:
            pairs = [pair for pair in zip(ranking.documents, ranking.scores, strict=True) if pair[0] != query]
            documents, scores = tuple(name for name, _ in pairs), tuple(score for _, score in pairs)
            rankings[query] = Ranking(ranking.query, documents, scores)
    return rankings


def _guarded(plugin: Measure) -> Value:
    """Wrap a plugin's measure so that its faults become sentences."""

    def value(documents: Sequence[str], grades: Mapping[str, int], cut: int | None) -> float:
        subject = f"the plugin measure {MeasureSpec(plugin.name, cut)}"
        try:
            number = float(plugin.value(documents, grades, cut))
        except Exception as error:  # whatever a plugin raises
            fault = f"failed on a ranking of {len(documents)} documents: {type(error).__name__}: {error}"
            raise PluginError(f"{subject} {fault}") from error
        if not 0 <= number <= 1:
            raise PluginError(f"{subject} gave {number!r}, expected a number from 0 to 1")
        return number

    return value


def mean(values: Iterable[float]) -> float:
    """Return the unweighted mean, the same number whatever the order. Raises `UsageError` for no values."""
    numbers = list(values)
    if not numbers:
        raise UsageError("there is nothing to average; expected at least one value")
    return math.fsum(numbers) / len(numbers)


def macro(average: Macro, values: Mapping[str, float]) -> float | None:
    """Return the mean of an average's members, nested averages first; None unless every member is there.

    `values` are of one measure by task id, without `mini/` and its like. Raises `UsageError` for an average of nothing.
    """
    members = [macro(m, values) if isinstance(m, Macro) else values.get(m) for m in average.members]
    present = [value for value in members if value is not None]
    return mean(present) if len(present) == len(members) else None
