"""Checks of runs and of per-query values that need no judgements."""

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise

import numpy as np

from bench.core.errors import UsageError
from bench.core.order import order
from bench.data.formats.faults import shown
from bench.data.formats.trec import read_run
from bench.evaluation.measures.evaluate import mean
from bench.evaluation.measures.specs import parse
from bench.evaluation.results.format import PerQuery, Subset, place, silent_place
from bench.types import Ranking, Run, Tie
from leaderboard.submissions.bundle import TAKE_UNCHANGED, Candidate, ValidationErrors, unpacked_file
from leaderboard.submissions.recompute import TOLERANCE

_GROWING = frozenset({"R", "RR", "Success", "answer-R", "Rkt"})
"""Measures that never decrease as their cut grows."""
_FIRST = frozenset({"RR@1", "P@1", "Success@1", "accuracy"})
"""Measures with one meaning: is the first document relevant?"""


def check_table(task_subset: tuple[str, str], subset: Subset, table: PerQuery, errors: ValidationErrors) -> None:
    """Check the per-query values of a subset against each other and against its means.

    Args:
        task_subset: the task and the name of the subset.
        subset: what the result file says of it.
        table: its values by measure, one a query.
        errors: receives every contradiction.
    """
    name, count = place("per-query", *task_subset), len(table.queries)
    if not count == len(set(table.queries)) == subset.queries:
        fault = f"{count:,} queries, {len(set(table.queries)):,} of them different"
        errors.add(name, fault, f"each of the {subset.queries:,} once", TAKE_UNCHANGED)
    if unshared := table.measures.keys() ^ subset.measures.keys():
        fault = f"{shown(min(unshared))} in one of result.json and this file alone"
        errors.add(name, fault, "the same measures in both", TAKE_UNCHANGED)
    columns = {}
    for measure, expected in subset.measures.items():
        column = table.measures.get(measure, [])
        if measure not in unshared and len(column) != count:
            errors.add(name, f"{len(column):,} values of {shown(measure)}", f"{count:,}, one a query", TAKE_UNCHANGED)
        elif measure not in unshared:
            columns[measure] = column
            if count and abs(mean(column) - expected) > TOLERANCE:
                fault = f"a mean {shown(measure)} of {mean(column):.6f}"
                errors.add(name, fault, f"{expected:.6f} as result.json says", TAKE_UNCHANGED)
    for low, high in _growing(columns):
        for query, less, more in zip(table.queries, columns[low], columns[high], strict=True):
            if less > more + TOLERANCE:
                fault = f"{low} = {less:.6f} above {high} = {more:.6f} for query {shown(query)}"
                errors.add(name, fault, "a measure that never falls as its cut grows", TAKE_UNCHANGED)
                break
    for first, second in pairwise(sorted(_FIRST & columns.keys())):
        for query, value, equal in zip(table.queries, columns[first], columns[second], strict=True):
            if abs(value - equal) > TOLERANCE:
                fault = f"{first} = {value:.6f} and {second} = {equal:.6f} for query {shown(query)}"
                errors.add(name, fault, "the same value: both look at the first document alone", TAKE_UNCHANGED)
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
    candidate: Candidate, task_subset: tuple[str, str], subset: Subset, table: PerQuery, errors: ValidationErrors
) -> Run | None:
    """Read a run and check its order: ranks 1 … n, scores that never increase, ties by the rule.

    Args:
        candidate: the submitted result.
        task_subset: the task and the name of the subset.
        subset: what the result file says of it; its protocol names depth and tie rule.
        table: its per-query values, which name all queries.
        errors: receives what is wrong.

    Returns:
        The run in the order of its file; None if there is none to score.
    """
    name = place("runs", *task_subset)
    raw = unpacked_file(candidate, name, errors)
    if not raw:
        return None if raw is None else {}
    tie: Tie = "list" if subset.protocol.get("tie") == "list" else "trec"
    with errors.collect(name):
        read_run(candidate.folder / name, tie)  # columns, numbers, duplicate documents
    if errors.count(name):
        return None
    run = _in_file_order(raw, name, errors)
    queries, depth = set(table.queries), subset.protocol.get("k")
    for query, ranking in run.items():
        if query not in queries:
            errors.add(
                name, f"query {shown(query)}", f"one of those in {place('per-query', *task_subset)}", TAKE_UNCHANGED
            )
        if isinstance(depth, int) and len(ranking.documents) > depth:
            fault = f"{len(ranking.documents):,} documents of query {shown(query)}"
            errors.add(name, fault, f"at most {depth:,}, the depth that result.json declares", TAKE_UNCHANGED)
        _check_order(name, ranking, tie, errors)
    silent = silent_place(*task_subset)
    if silent in candidate.content.files and not errors.count(silent):
        lines = (candidate.folder / silent).read_bytes().decode("utf-8", "replace").splitlines()
        if ranked := run.keys() & set(lines):
            errors.add(silent, f"query {shown(min(ranked))}", "queries without a line in the run alone", TAKE_UNCHANGED)
    return None if errors.count(name) else run


def _in_file_order(raw: bytes, name: str, errors: ValidationErrors) -> dict[str, Ranking]:
    """Return the rankings of a well-formed run in file order; ranks that do not count 1 … n are errors."""
    table: dict[str, tuple[list[str], list[float]]] = {}
    for number, line in enumerate(raw.decode().split("\n"), 1):
        if not line.strip():
            continue
        query, _, document, rank, score, _ = line.split()
        documents, scores = table.setdefault(query, ([], []))
        if int(rank) != len(documents) + 1:
            expected = f"{len(documents) + 1}: ranks count from 1 in the order of the file"
            errors.add(name, f"rank {rank} of query {shown(query)}", expected, TAKE_UNCHANGED, number)
        documents.append(document)
        scores.append(float(score))
    return {
        query: Ranking(query, tuple(documents), tuple(np.asarray(scores, np.float32).tolist()))
        for query, (documents, scores) in table.items()
    }


def _check_order(name: str, ranking: Ranking, tie: Tie, errors: ValidationErrors) -> None:
    """Refuse scores that increase, and documents of equal score in another order than the tie rule's."""
    for rank, (before, after) in enumerate(pairwise(ranking.scores), 2):
        if after > before:
            fault = f"score {after} at rank {rank} of query {shown(ranking.query)}, after {before}"
            errors.add(name, fault, "scores that never increase", TAKE_UNCHANGED)
            return
    documents = ranking.documents
    for rank, (position, document) in enumerate(zip(order(documents, ranking.scores, tie), documents, strict=True), 1):
        if position != rank - 1:
            fault = f"document {shown(document)} at rank {rank} of query {shown(ranking.query)}"
            expected = f"{shown(documents[position])}, which has the same score and comes before it ({tie})"
            errors.add(name, fault, expected, TAKE_UNCHANGED)
            return
