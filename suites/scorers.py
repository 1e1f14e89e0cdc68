"""The benchmarks' own scorers where they depart from the house's rules, shown with ours under their names.

Conventions: all values are fractions, also where the official script prints per cent. Insertion order in the official
Python scorers is the order of the ranking here. Where the official code stops with an exception, `UndefinedError` is
raised.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from bench import Ranking, Run, UsageError
from bench.suites import (
    MeasureSpec,
    OfficialScorer,
    Qrels,
    average_precision,
    evaluate,
    judge,
    judged,
    mean,
    order,
    precision,
    reciprocal_rank,
    relevant,
    without_identical,
)

BEIR_CUTS = (1, 3, 5, 10, 100, 1000)
"""BEIR's default cuts."""


class UndefinedError(UsageError):
    """A number that the official code does not give either: it stops with an exception on this input."""


def beir(qrels: Qrels, run: Run, ks: Sequence[int] = BEIR_CUTS) -> dict[str, float]:
    """Return NDCG@k, MAP@k, Recall@k and P@k as BEIR's evaluator gives them: pytrec_eval's, rounded to 5 digits.

    Args:
        qrels: query → document → grade.
        run: query → ranking. BEIR leaves out documents with the id of the query: see `without_identical`.
        ks: the cuts.

    Returns:
        Means over the queries in both run and judgements, e.g. `{"NDCG@10": 0.41321, …}`; ties go by document id,
        descending.

    Raises:
        UndefinedError: run and judgements share no query.
        UsageError: as `judged` does.
    """
    rankings = judged(qrels, run, "trec")
    names = {"NDCG": "nDCG", "MAP": "AP", "Recall": "R", "P": "P"}
    specs = {f"{theirs}@{k}": MeasureSpec(ours, k) for theirs, ours in names.items() for k in ks}
    values = judge(qrels, rankings, tuple(specs.values()))
    if not all(values.values()):
        raise UndefinedError("BEIR's scorer has nothing to average: the run names no judged query")
    return {name: round(mean(values[str(spec)].values()), 5) for name, spec in specs.items()}


def beir_capped_recall(qrels: Qrels, run: Run, ks: Sequence[int] = BEIR_CUTS) -> dict[str, float]:
    """Return R_cap@k of BEIR's `recall_cap`: over all judged queries, equal scores as they come, rounded to 5 digits.

    Raises `UndefinedError` if a query of the run has no relevant document.
    """
    empty = [query for query in run if query in qrels and not relevant(qrels[query])]
    if empty:
        raise UndefinedError(
            f"BEIR's R_cap is not defined for queries without a relevant document; there are {len(empty)}, "
            f"e.g. {empty[0]!r}; use Rcap, which counts them as 0"
        )
    means = evaluate(qrels, sorted_by_score(qrels, run), [MeasureSpec("Rcap", k) for k in ks], "list").means
    return {f"R_cap@{k}": round(means[f"Rcap@{k}"], 5) for k in ks}


def sorted_by_score(qrels: Qrels, run: Run) -> dict[str, Ranking]:
    """Return the judged rankings sorted by score, equal scores in their order, as BEIR's custom scorers sort."""
    rankings = {}
    for query, ranking in judged(qrels, run, "list").items():
        documents, scores = ranking.documents, ranking.scores
        by_score = order(documents, scores, "list")
        rankings[query] = Ranking(query, [documents[at] for at in by_score], [scores[at] for at in by_score])
    return rankings


def mrtydi_ccp(qrels: Qrels, run: Run, k: int = 100) -> dict[str, float]:
    """Return MRR@k and Recall@k of CCP's Mr.TyDi script: list order; any grade is relevant; missing queries count 0."""
    rows = {query: dict.fromkeys(grades, 1) for query, grades in qrels.items()}
    means = evaluate(rows, run, (MeasureSpec("RR", k), MeasureSpec("R", k)), "list").means
    return {f"MRR@{k}": means[f"RR@{k}"], f"Recall@{k}": means[f"R@{k}"]}


def lareqa_ap20(qrels: Qrels, run: Run) -> float:
    """Return mAP@20 of LAReQA: the mean over all questions, in list order; a missing question counts 0."""
    return evaluate(qrels, run, (MeasureSpec("AP", 20),), "list").means["AP@20"]


def askubuntu(ranked_labels: Iterable[Sequence[int]]) -> dict[str, float]:
    """Return MAP, MRR, P@1 and P@5 of AskUbuntu (Lei et al.).

    Args:
        ranked_labels: of each query, the labels of its candidates in the order of the ranking, 1 for a positive one.
            Queries without a positive one are left out.
    """
    queries = [{str(rank): label for rank, label in enumerate(labels)} for labels in ranked_labels if any(labels)]
    measures: Mapping[str, Callable[[dict[str, int]], float]] = {
        "MAP": lambda labels: average_precision(list(labels), labels, None),
        "MRR": lambda labels: reciprocal_rank(list(labels), labels, None),
        "P@1": lambda labels: precision(list(labels), labels, 1),
        "P@5": lambda labels: precision(list(labels), labels, min(5, len(labels))),
    }
    return {name: mean(map(value, queries)) if queries else 0.0 for name, value in measures.items()}


def askubuntu_of_run(qrels: Qrels, run: Run) -> dict[str, float]:
    """Return `askubuntu` of rankings of candidates; the script sees only what the rankings hold."""
    rankings = judged(qrels, run, "list").items()
    return askubuntu(
        [int(qrels[query].get(document, 0) >= 1) for document in ranking.documents] for query, ranking in rankings
    )


def predicted_questions(values: Mapping[str, Mapping[str, float]], run: Run) -> dict[str, float]:
    """Return R@Nkt as `eval_xor_retrieve.py` averages: over the counted questions that have a prediction.

    A question whose ranking is empty has one, and is a miss. No value where no question has a prediction.

    Args:
        values: measure → query → value.
        run: query → ranking, the predictions.
    """
    means = {}
    for measure, by_query in values.items():
        predicted = [value for query, value in by_query.items() if query in run]
        if predicted and measure.endswith("kt"):
            means[f"{measure} (XOR)"] = sum(predicted) / len(predicted)
    return means


def _labelled(
    name: str, label: str, compute: Callable[[Qrels, Run], Mapping[str, float]], *, named_only: bool = False
) -> OfficialScorer:
    """Return a scorer whose values are labelled, without those that the official code does not give either."""

    def values(qrels: Qrels, run: Run) -> dict[str, float]:
        try:
            return {f"{measure} ({label})": value for measure, value in compute(qrels, run).items()}
        except UndefinedError:
            return {}

    return OfficialScorer(name, values, named_only=named_only)


_SCORERS = (
    _labelled("beir", "BEIR", lambda qrels, run: beir(qrels, without_identical(run), (10, 100)), named_only=True),
    _labelled("beir-capped", "BEIR", lambda qrels, run: beir_capped_recall(qrels, without_identical(run), (100,))),
    _labelled("mrtydi-ccp", "CCP", mrtydi_ccp),
    _labelled("lareqa", "LAReQA", lambda qrels, run: {"mAP@20": lareqa_ap20(qrels, run)}),
    _labelled("askubuntu", "AskUbuntu", askubuntu_of_run),
    OfficialScorer("xor-asked", answers=predicted_questions, named_only=True),  # `xor` left out empty rankings
)
OFFICIAL: Mapping[str, OfficialScorer] = MappingProxyType({scorer.name: scorer for scorer in _SCORERS})
"""What `suites.common.ScoringProtocol.official` names.

Where the official code stops with an exception (on an empty run, or R_cap for a query without a relevant document),
there is no value; the function behind it says why (`UndefinedError`).
"""
