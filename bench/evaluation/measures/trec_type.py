"""Trec-type measures: one call into trec_eval's C code (pytrec_eval), which sorts by score itself.

Conventions: trec_eval reads scores as 32-bit floats, sorts them descending and equal ones by document id descending,
whatever the order of the ranking. A grade of at least 1 is relevant; gains are linear.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from operator import indexOf, itemgetter

import numpy as np

from bench.core.records import CleanRun
from bench.evaluation.measures.builtin import BUILTIN, relevant
from bench.evaluation.measures.specs import MeasureSpec
from bench.types import Ranking

_QUERIES_A_CALL = 25
"""Few, so that the copies that the C code reads stay in the processor's cache, and take no memory."""
_TIED, _LEAST = 2.0**-22, 2.0**-148
"""Scores that are one 32-bit float differ by less than this, relative and absolute."""


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
    table = _decisive if isinstance(run, CleanRun) else _whole
    for start in range(0, len(queries), _QUERIES_A_CALL):
        batch = {query: table(run[query], qrels[query]) for query in queries[start : start + _QUERIES_A_CALL]}
        raw |= evaluator.evaluate(batch)
    return {str(measure): _values(measure, raw, qrels) for measure in measures}


def _question(measure: MeasureSpec) -> str:
    """Return what trec_eval is asked, e.g. `ndcg_cut.10`."""
    builtin = BUILTIN[measure.name]
    if measure.cut is None or measure.name == "RR":
        return builtin.trec
    return f"{builtin.trec_cut}.{measure.cut}"


def _whole(ranking: Ranking, _: Mapping[str, int]) -> dict[str, float]:
    """Return the scores of all documents as Python's floats, the only numbers that the C code takes."""
    return dict(zip(ranking.documents, np.asarray(ranking.scores, np.float64).tolist(), strict=True))


def _decisive(ranking: Ranking, grades: Mapping[str, int]) -> dict[str, float]:
    """Return the scores of a clean ranking down to its last relevant document, and of all that may tie with that one.

    What trec_eval ranks below changes none of the measures, which look at the ranks of relevant documents alone.
    """
    documents, scores = ranking.documents, ranking.scores
    relevant_ids = {document for document, grade in grades.items() if grade >= 1}
    try:
        count = len(documents) - indexOf(map(relevant_ids.__contains__, reversed(documents)), True)
    except ValueError:  # none was found: any document will do
        return dict(zip(documents[:1], scores, strict=False))
    lowest = scores[count - 1]
    lowest -= abs(lowest) * _TIED + _LEAST
    while count < len(documents) and scores[count] >= lowest:
        count += 1
    return dict(zip(documents[:count], scores, strict=False))


def _values(
    measure: MeasureSpec, raw: Mapping[str, Mapping[str, float]], qrels: Mapping[str, Mapping[str, int]]
) -> dict[str, float]:
    """Turn trec_eval's answers into the measure, by query."""
    question = _question(measure).replace(".", "_")
    values = dict(zip(raw, map(itemgetter(question), raw.values()), strict=True))
    if measure.cut is not None and measure.name == "RR":
        # As trec_eval -M k: a first relevant document below rank k is not seen. 1/rank falls strictly with rank.
        return {query: value if value >= 1 / measure.cut else 0.0 for query, value in values.items()}
    if measure.cut is not None and measure.name == "Rcap":
        hits = {query: round(value * measure.cut) for query, value in values.items()}
        return {query: hit / min(relevant(qrels[query]), measure.cut) if hit else 0.0 for query, hit in hits.items()}
    return values
