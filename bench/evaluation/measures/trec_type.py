"""Trec-type measures: one call into trec_eval's C code (pytrec_eval), which sorts by score itself.

Conventions: trec_eval reads scores as 32-bit floats, sorts them descending and equal ones by document id descending,
whatever the order of the ranking. A grade of at least 1 is relevant; gains are linear.
"""

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from bench.core.records import CleanRun
from bench.evaluation.measures.builtin import BUILTIN, relevant
from bench.evaluation.measures.specs import MeasureSpec
from bench.types import Ranking

_QUERIES_A_CALL = 25
"""Few, so that the copies that the C code reads stay in the processor's cache, and take no memory."""


def computes(measure: MeasureSpec) -> bool:
    """Return whether trec_eval computes a measure with that cut, or without one."""
    builtin = BUILTIN.get(measure.name)
    return bool(builtin and (builtin.trec if measure.cut is None else builtin.trec_cut))


def judge(
    qrels: Mapping[str, Mapping[str, int]], run: Mapping[str, Ranking], measures: Sequence[MeasureSpec]
) -> dict[str, dict[str, float]]:
    """Return the values of measures that trec_eval computes, by canonical name and query.

    They are for exactly the queries that pytrec_eval answers for.
    Those are the queries with a ranking (also an empty one) and at least one judgement. `qrels` and `run` must have
    passed `bench.evaluation.measures.checks.judged`: the C code crashes on ids that UTF-8 cannot write, and is silently
    wrong on others.
    """
    # Imported here because it is needed by nobody who only parses measures.
    import pytrec_eval

    # Negative grades become 0, which changes no measure here; the C code dies where all are below -1.
    grades_from_zero = qrels
    if min(chain.from_iterable(grades.values() for grades in qrels.values()), default=0) < 0:
        grades_from_zero = {
            query: {document: max(grade, 0) for document, grade in grades.items()} for query, grades in qrels.items()
        }
    raw: dict[str, dict[str, float]] = {}
    evaluator = pytrec_eval.RelevanceEvaluator(grades_from_zero, {_question(measure) for measure in measures})
    queries = list(run)
    floats = tuple if isinstance(run, CleanRun) else _floats
    for start in range(0, len(queries), _QUERIES_A_CALL):
        batch = {
            query: dict(zip(run[query].documents, floats(run[query].scores), strict=True))
            for query in queries[start : start + _QUERIES_A_CALL]
        }
        raw |= evaluator.evaluate(batch)
    return {str(measure): _values(measure, raw, qrels) for measure in measures}


def _question(measure: MeasureSpec) -> str:
    """Return what trec_eval is asked, e.g. `ndcg_cut.10`."""
    builtin = BUILTIN[measure.name]
    if measure.cut is None or measure.name == "RR":
        return builtin.trec
    return f"{builtin.trec_cut}.{measure.cut}"


def _floats(scores: Sequence[float]) -> list[float]:
    """Return scores as Python's floats, the only numbers that the C code takes."""
    numbers: list[float] = np.asarray(scores, np.float64).tolist()
    return numbers


def _values(
    measure: MeasureSpec, raw: Mapping[str, Mapping[str, float]], qrels: Mapping[str, Mapping[str, int]]
) -> dict[str, float]:
    """Turn trec_eval's answers into the measure, by query."""
    question = _question(measure).replace(".", "_")
    values = {query: answers[question] for query, answers in raw.items()}
    if measure.cut is not None and measure.name == "RR":
        # As trec_eval -M k: a first relevant document below rank k is not seen. 1/rank falls strictly with rank.
        return {query: value if value >= 1 / measure.cut else 0.0 for query, value in values.items()}
    if measure.cut is not None and measure.name == "Rcap":
        hits = {query: round(value * measure.cut) for query, value in values.items()}
        return {query: hit / min(relevant(qrels[query]), measure.cut) if hit else 0.0 for query, hit in hits.items()}
    return values
