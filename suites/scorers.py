"""The benchmarks' own scorers where they depart from the house's rules, shown with ours under their names.

Conventions: all values are fractions, also where the official script prints per cent. `ranked` lists hold the best
first. Insertion order in the official Python scorers is the order of the ranking here. Where the official code stops
with an exception, `UndefinedError` is raised.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from bench import Measure, Ranking, Run, UsageError
from bench.suites import (
    Coverage,
    MeasureSpec,
    OfficialScorer,
    Qrels,
    Tokenise,
    average_precision,
    coverage,
    evaluate,
    judge,
    judged,
    mean,
    order,
    precision,
    reciprocal_rank,
    relevant,
    tokens_to_answer,
    without_identical,
)
from suites.readers.xor import counted

BEIR_CUTS = (1, 3, 5, 10, 100, 1000)
"""BEIR's default cuts."""

MEWSLIX_LANGUAGES = ("ar", "de", "en", "es", "fa", "ja", "pl", "ro", "ta", "tr", "uk")
"""The languages of Mewsli-X's macro average, fixed by its scorer."""


class UndefinedError(UsageError):
    """A number that the official code does not give either: it stops with an exception on this input."""


def beir(qrels: Qrels, run: Run, ks: Sequence[int] = BEIR_CUTS, ignore_identical_ids: bool = True) -> dict[str, float]:
    """NDCG@k, MAP@k, Recall@k and P@k as BEIR's evaluator gives them: pytrec_eval's, rounded to 5 digits.

    The mean is over queries in both run and judgements, ties go by document id descending. Raises `UndefinedError` if
    they share no query; `UsageError` as `judged` does.
    """
    rankings = judged(qrels, without_identical(run) if ignore_identical_ids else run, "trec")
    names = {"NDCG": "nDCG", "MAP": "AP", "Recall": "R", "P": "P"}
    asked = {f"{theirs}@{k}": MeasureSpec(ours, k) for theirs, ours in names.items() for k in ks}
    found = judge(qrels, rankings, tuple(asked.values()))
    if not all(found.values()):
        raise UndefinedError("BEIR's scorer has nothing to average: the run names no judged query")
    return {name: round(mean(found[str(spec)].values()), 5) for name, spec in asked.items()}


def beir_mrr(qrels: Qrels, run: Run, ks: Sequence[int] = BEIR_CUTS) -> dict[str, float]:
    """MRR@k of BEIR's custom scorers (`mrr`)."""
    return _beir_custom("MRR", "RR", qrels, run, ks)


def beir_capped_recall(qrels: Qrels, run: Run, ks: Sequence[int] = BEIR_CUTS) -> dict[str, float]:
    """R_cap@k of BEIR's `recall_cap`; `UndefinedError` if a query has no relevant document."""
    empty = [query for query in run if query in qrels and not relevant(qrels[query])]
    if empty:
        raise UndefinedError(
            f"BEIR's R_cap is not defined for queries without a relevant document; there are {len(empty)}, "
            f"e.g. {empty[0]!r}; use Rcap, which counts them as 0"
        )
    return _beir_custom("R_cap", "Rcap", qrels, run, ks)


def beir_accuracy(qrels: Qrels, run: Run, ks: Sequence[int] = BEIR_CUTS) -> dict[str, float]:
    """Accuracy@k of BEIR's custom scorers (`top_k_accuracy`): is any relevant document among the first k?"""
    return _beir_custom("Accuracy", "Success", qrels, run, ks)


def beir_hole(qrels: Qrels, run: Run, ks: Sequence[int] = BEIR_CUTS) -> dict[str, float]:
    """Hole@k of BEIR's custom scorers (`hole`): the share of the first k that nobody judged for any query."""
    annotated = {document for grades in qrels.values() for document in grades}

    def holes(documents: Sequence[str], _: Mapping[str, int], cut: int | None) -> float:
        return precision(documents, dict.fromkeys(set(documents) - annotated, 1), cut)

    return _beir_custom("Hole", "Hole", qrels, run, ks, {"Hole": Measure("Hole", holes, "unjudged among k / k")})


def mrtydi_ccp(qrels: Qrels, run: Run, k: int = 100) -> dict[str, float]:
    """MRR@k and Recall@k of CCP's Mr.TyDi script: list order, any grade is relevant, a missing query counts 0."""
    rows = {query: dict.fromkeys(grades, 1) for query, grades in qrels.items()}
    means = evaluate(rows, run, (MeasureSpec("RR", k), MeasureSpec("R", k)), "list").means
    return {f"MRR@{k}": means[f"RR@{k}"], f"Recall@{k}": means[f"R@{k}"]}


def lareqa_ap20(qrels: Qrels, run: Run) -> float:
    """mAP@20 of LAReQA: the mean over all questions, in list order; a missing question counts 0."""
    return evaluate(qrels, run, (MeasureSpec("AP", 20),), "list").means["AP@20"]


@dataclass(frozen=True)
class MewsliX:
    """What Mewsli-X's scorer says."""

    macro: float  # mean over the eleven languages; one without a file of predictions counts 0
    mrr: Mapping[str, float]  # MRR@20 (which is mAP@20: one gold entity a mention) by language
    coverage: Mapping[str, Coverage]


def mewslix(gold: Mapping[str, Mapping[str, str]], predictions: Mapping[str, Mapping[str, Sequence[str]]]) -> MewsliX:
    """Score entity predictions as XTREME-R's Mewsli-X script: list order, first 20, duplicates occupy ranks.

    Both are by language and mention, gold ids stripped. Raises `UsageError` if a language has no gold mention.
    """
    mrr, covered = {}, {}
    for language in MEWSLIX_LANGUAGES:
        meant, found = gold.get(language, {}), predictions.get(language, {})
        if not meant:
            raise UsageError(f"Mewsli-X: there is no gold mention for language {language!r}; all eleven must be there")
        ranks = (reciprocal_rank(found.get(name, ()), {entity.strip(): 1}, 20) for name, entity in meant.items())
        mrr[language], covered[language] = mean(ranks), coverage(meant, found)
    return MewsliX(mean(mrr.values()), mrr, covered)


def askubuntu(ranked_labels: Iterable[Sequence[int]]) -> dict[str, float]:
    """MAP, MRR, P@1 and P@5 of AskUbuntu (Lei et al.) from labels (1 positive) by rank; none without a positive."""
    queries = [{str(rank): label for rank, label in enumerate(labels)} for labels in ranked_labels if any(labels)]
    measures: Mapping[str, Callable[[dict[str, int]], float]] = {
        "MAP": lambda labels: average_precision(list(labels), labels, None),
        "MRR": lambda labels: reciprocal_rank(list(labels), labels, None),
        "P@1": lambda labels: precision(list(labels), labels, 1),
        "P@5": lambda labels: precision(list(labels), labels, min(5, len(labels))),
    }
    return {name: mean(map(value, queries)) if queries else 0.0 for name, value in measures.items()}


def xor_retrieve(
    data: Iterable[Mapping[str, Any]], predictions: Iterable[Mapping[str, Any]], budget: int, tokenise: Tokenise
) -> dict[str, Any]:
    """Score predictions as XOR-Retrieve's script does, from the records of its two files.

    `data` are questions with `id` and `answers`, `predictions` have `id` (CCP's script: `q_id`), `lang`, which counts,
    and `ctxs`, texts best first; `budget` is in tokens of `tokenise`. What is predicted for an unknown question, or one
    none of whose answers count, leaves every number; so does a question without prediction.

    Returns `per_language` (`count`, `hit`, and `score` in per cent), `macro_avg` (their mean), and `per_item` (None for
    what leaves the numbers). Raises `UsageError`: a record lacks a key, or no prediction counts.
    """
    accepted = {_key(row, "question", "id"): counted(_key(row, "question", "answers")) for row in data}
    items: dict[str, bool | None] = {}
    hits: dict[str, list[bool]] = {}
    for row in predictions:
        question = _key(row, "prediction", "id", "q_id")
        language, passages = _key(row, "prediction", "lang"), _key(row, "prediction", "ctxs")
        answers = accepted.get(question, ())
        items[question] = tokens_to_answer(answers, passages, budget, tokenise) is not None if answers else None
        if answers:
            hits.setdefault(language, []).append(bool(items[question]))
    if not hits:
        raise UsageError(
            "XOR-Retrieve's scorer has nothing to average: found no prediction for a question with an answer other "
            "than yes or no; expected the ids of the data file"
        )
    languages = {
        language: {"count": len(found), "hit": sum(found), "score": 100 * sum(found) / len(found)}
        for language, found in hits.items()
    }
    average = mean(float(values["score"]) for values in languages.values())
    return {"per_language": languages, "macro_avg": average, "per_item": items}


def named_questions(values: Mapping[str, Mapping[str, float]], run: Run) -> dict[str, float]:
    """R@Nkt as `eval_xor_retrieve.py` averages: over the counted questions that the predictions name.

    A question that was asked and found nothing is named, and is a miss. Nothing where none is named.
    """
    found = {}
    for measure, by_query in values.items():
        named = [value for query, value in by_query.items() if query in run]
        if named and measure.endswith("kt"):
            found[f"{measure} (XOR)"] = sum(named) / len(named)
    return found


def _shown(
    name: str, label: str, compute: Callable[[Qrels, Run], Mapping[str, float]], *, named_only: bool = False
) -> OfficialScorer:
    """Return a scorer whose values are labelled, without those that the official code does not give either."""

    def values(qrels: Qrels, run: Run) -> dict[str, float]:
        try:
            found = compute(qrels, run)
        except UndefinedError:
            return {}
        return {f"{measure} ({label})": value for measure, value in found.items()}

    return OfficialScorer(name, values, named_only=named_only)


_SCORERS = (
    _shown("beir", "BEIR", lambda qrels, run: beir(qrels, run, (10, 100)), named_only=True),
    _shown("beir-capped", "BEIR", lambda qrels, run: beir_capped_recall(qrels, without_identical(run), (100,))),
    _shown("beir-custom", "BEIR", lambda qrels, run: _beir_others(qrels, without_identical(run), (10, 100))),
    _shown("mrtydi-ccp", "CCP", mrtydi_ccp),
    _shown("lareqa", "LAReQA", lambda qrels, run: {"mAP@20": lareqa_ap20(qrels, run)}),
    _shown("askubuntu", "AskUbuntu", lambda qrels, run: askubuntu(_labels(qrels, run))),
    OfficialScorer("xor-asked", answers=named_questions, named_only=True),  # `xor` left out who found nothing
)
OFFICIAL: Mapping[str, OfficialScorer] = MappingProxyType({scorer.name: scorer for scorer in _SCORERS})
"""What `suites.common.Rules.official` names.

Where the official code stops with an exception (on an empty run, or R_cap for a query without a relevant document),
there is no value; the function behind it says why (`UndefinedError`).
"""


def _beir_others(qrels: Qrels, run: Run, ks: Sequence[int]) -> dict[str, float]:
    """Return the custom measures that are always defined."""
    return beir_mrr(qrels, run, ks) | beir_accuracy(qrels, run, ks) | beir_hole(qrels, run, ks)


def _beir_custom(
    name: str, ours: str, qrels: Qrels, run: Run, ks: Sequence[int], extra: Mapping[str, Measure] = {}
) -> dict[str, float]:
    """Compute a measure of ours as BEIR's custom scorers: over all judged queries, list rule, rounded to 5 digits."""
    ranked = {query: _sorted(ranking) for query, ranking in judged(qrels, run, "list").items()}
    means = evaluate(qrels, ranked, [MeasureSpec(ours, k) for k in ks], "list", extra).means
    return {f"{name}@{k}": round(means[f"{ours}@{k}"], 5) for k in ks}


def _sorted(ranking: Ranking) -> Ranking:
    documents, scores = ranking.documents, ranking.scores
    by_score = order(documents, scores, "list")
    return Ranking(ranking.query, [documents[at] for at in by_score], [scores[at] for at in by_score])


def _labels(qrels: Qrels, run: Run) -> Iterator[list[int]]:
    """Yield the labels of each ranking of candidates; the script sees only what the ranking holds."""
    for query, ranking in judged(qrels, run, "list").items():
        yield [int(qrels[query].get(document, 0) >= 1) for document in ranking.documents]


def _key(row: Mapping[str, Any], what: str, *names: str) -> Any:
    """Return the value of the first of these keys that is there. Raises `UsageError`."""
    for name in names:
        if name in row:
            return row[name]
    listed = " or ".join(f'"{name}"' for name in names)
    raise UsageError(f"found a {what} with the keys {sorted(row)}, expected {listed} among them")
