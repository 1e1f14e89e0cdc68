"""Checks of runs and of per-query values that need no judgements."""

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np

from bench.core.errors import UsageError
from bench.core.order import order
from bench.data.formats.faults import shown
from bench.data.formats.trec import read_run
from bench.evaluation.measures.aggregate import mean
from bench.evaluation.measures.specs import parse
from bench.evaluation.results.format import Leg, PerQuery, place, silent_place
from bench.types import Ranking, Run, Tie
from leaderboard.submissions.bundle import AGAIN, Candidate, Reasons, unpacked_file
from leaderboard.submissions.recompute import TOLERANCE

_GROWING = frozenset({"R", "RR", "Success", "answer-R", "Rkt"})
"""Measures that never decrease as their cut grows."""
_FIRST = frozenset({"RR@1", "P@1", "Success@1", "accuracy"})
"""Measures with one meaning: is the first document relevant?"""


def table_faults(where: tuple[str, str], about: Leg, table: PerQuery, reasons: Reasons) -> None:
    """Check the values of a leg (task and leg: `where`) against each other and against its means."""
    name, count = place("per-query", *where), len(table.queries)
    if not count == len(set(table.queries)) == about.queries:
        found = f"{count:,} queries, {len(set(table.queries)):,} of them different"
        reasons.add(name, found, f"each of the {about.queries:,} once", AGAIN)
    if strange := table.measures.keys() ^ about.measures.keys():
        found = f"{shown(min(strange))} in one of result.json and this file alone"
        reasons.add(name, found, "the same measures in both", AGAIN)
    columns = {measure: column for measure, column in table.measures.items() if measure not in strange}
    for measure, column in columns.items():
        if len(column) != count:
            reasons.add(name, f"{len(column):,} values of {shown(measure)}", f"{count:,}, one a query", AGAIN)
        elif count and abs(mean(column) - about.measures[measure]) > TOLERANCE:
            expected = f"{about.measures[measure]:.6f} as result.json says"
            reasons.add(name, f"a mean {shown(measure)} of {mean(column):.6f}", expected, AGAIN)
    whole = {measure: column for measure, column in columns.items() if len(column) == count}
    _between_measures(name, table.queries, whole, reasons)


def _between_measures(name: str, queries: list[str], columns: Mapping[str, list[float]], reasons: Reasons) -> None:
    for low, high in _growing(columns):
        for query, less, more in zip(queries, columns[low], columns[high], strict=True):
            if less > more + TOLERANCE:
                found = f"{low} = {less:.6f} above {high} = {more:.6f} for query {shown(query)}"
                reasons.add(name, found, "a measure that never falls as its cut grows", AGAIN)
                break
    for one, other in pairwise(sorted(_FIRST & columns.keys())):
        for query, left, right in zip(queries, columns[one], columns[other], strict=True):
            if abs(left - right) > TOLERANCE:
                found = f"{one} = {left:.6f} and {other} = {right:.6f} for query {shown(query)}"
                reasons.add(name, found, "the same value: both look at the first document alone", AGAIN)
                break


def _growing(names: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield neighbouring cuts of measures that never decrease."""
    families: dict[str, list[tuple[float, str]]] = {}
    for name in names:
        try:
            spec = parse(name)
        except UsageError:  # an unknown measure
            continue
        if spec.name in _GROWING:
            families.setdefault(spec.name, []).append((math.inf if spec.cut is None else spec.cut, name))
    for family in families.values():
        for (_, low), (_, high) in pairwise(sorted(family)):
            yield low, high


def read_checked_run(
    found: Candidate, where: tuple[str, str], about: Leg, table: PerQuery, reasons: Reasons
) -> Run | None:
    """Read a run and check its order: ranks 1 … n, scores that never increase, ties by the rule.

    Returns None if there is no run to score, with the fault in `reasons`; `table` names all queries.
    """
    name = place("runs", *where)
    raw = unpacked_file(found, name, reasons)
    if not raw:
        return None if raw is None else {}
    tie: Tie = "list" if about.protocol.get("tie") == "list" else "trec"
    with reasons.collect(name):
        read_run(found.folder / name, tie)  # columns, numbers, duplicate documents
    if reasons.count(name):
        return None
    run = _in_file_order(raw, name, reasons)
    asked, k = set(table.queries), about.protocol.get("k")
    for query, ranking in run.items():
        if query not in asked:
            reasons.add(name, f"query {shown(query)}", f"one of those in {place('per-query', *where)}", AGAIN)
        if isinstance(k, int) and len(ranking.documents) > k:
            found_ = f"{len(ranking.documents):,} documents of query {shown(query)}"
            reasons.add(name, found_, f"at most {k:,}, the depth that result.json declares", AGAIN)
        _order_faults(name, ranking, tie, reasons)
    silent = silent_place(*where)
    said = (found.folder / silent).read_bytes() if silent in found.content.files and not reasons.count(silent) else b""
    if ranked := run.keys() & set(said.decode("utf-8", "replace").splitlines()):
        reasons.add(silent, f"query {shown(min(ranked))}", "queries without a line in the run alone", AGAIN)
    return None if reasons.count(name) else run


def _in_file_order(raw: bytes, name: str, reasons: Reasons) -> dict[str, Ranking]:
    """Return the rankings of a well-formed run in file order; ranks that do not count 1 … n are faults."""
    table: dict[str, tuple[list[str], list[float]]] = {}
    for number, line in enumerate(raw.decode().split("\n"), 1):
        if not line.strip():
            continue
        query, _, document, rank, score, _ = line.split()
        documents, scores = table.setdefault(query, ([], []))
        if int(rank) != len(documents) + 1:
            expected = f"{len(documents) + 1}: ranks count from 1 in the order of the file"
            reasons.add(name, f"rank {rank} of query {shown(query)}", expected, AGAIN, number)
        documents.append(document)
        scores.append(float(score))
    return {
        query: Ranking(query, tuple(documents), tuple(np.asarray(scores, np.float32).tolist()))
        for query, (documents, scores) in table.items()
    }


def _order_faults(name: str, ranking: Ranking, tie: Tie, reasons: Reasons) -> None:
    """Refuse scores that increase, and documents of equal score in another order than the tie rule's."""
    for place_, (before, after) in enumerate(pairwise(ranking.scores), 2):
        if after > before:
            found = f"score {after} at rank {place_} of query {shown(ranking.query)}, after {before}"
            reasons.add(name, found, "scores that never increase", AGAIN)
            return
    ordered = order(ranking.documents, ranking.scores, tie)
    at = next((at for at, wanted in enumerate(ordered) if at != wanted), None)
    if at is not None:
        found = f"document {shown(ranking.documents[at])} at rank {at + 1} of query {shown(ranking.query)}"
        expected = f"{shown(ranking.documents[ordered[at]])}, which has the same score and comes before it ({tie})"
        reasons.add(name, found, expected, AGAIN)
