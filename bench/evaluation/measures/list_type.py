"""List-type measures: small functions that trust the order of the list and never read a score.

Conventions: every function takes the ranked document ids (best first), the grades of that query by document id, and a
cut (None: the whole list), and returns a number in [0, 1]. A grade of at least 1 is relevant. Where nothing is
relevant, everything is 0. A document that is listed twice keeps both ranks and counts at the first only; the official
scorers of LAReQA and Mewsli-X agree on this.

The signature is that of `bench.types.Measure.value`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

Value = Callable[[Sequence[str], Mapping[str, int], int | None], float]


def gains(documents: Sequence[str], grades: Mapping[str, int], cut: int | None) -> list[int]:
    """Return the grade at each rank down to the cut: 0 for what is not relevant and for a document listed before."""
    first_seen: set[str] = set()
    grades_by_rank = []
    for document in documents[:cut]:
        grades_by_rank.append(0 if document in first_seen else max(grades.get(document, 0), 0))
        first_seen.add(document)
    return grades_by_rank


def relevant(grades: Mapping[str, int]) -> int:
    """Count the relevant documents."""
    return sum(grade >= 1 for grade in grades.values())


def reciprocal_rank(documents: Sequence[str], grades: Mapping[str, int], cut: int | None) -> float:
    """1 / rank of the first relevant document within the cut, else 0."""
    ranks = (rank for rank, gain in enumerate(gains(documents, grades, cut), start=1) if gain)
    return 1 / next(ranks, math.inf)


def precision(documents: Sequence[str], grades: Mapping[str, int], cut: int | None) -> float:
    """Relevant documents within the cut / cut, also where the list is shorter. Without a cut: / length of the list."""
    return _ratio(_hits(documents, grades, cut), len(documents) if cut is None else cut)


def success(documents: Sequence[str], grades: Mapping[str, int], cut: int | None) -> float:
    """1 if a relevant document is within the cut, else 0."""
    return float(any(gains(documents, grades, cut)))


def accuracy(documents: Sequence[str], grades: Mapping[str, int], cut: int | None) -> float:  # noqa: ARG001 (it has none)
    """1 if the first document is relevant, else 0: `success` at 1."""
    return success(documents, grades, 1)


def recall(documents: Sequence[str], grades: Mapping[str, int], cut: int | None) -> float:
    """Relevant documents within the cut / all relevant ones."""
    return _ratio(_hits(documents, grades, cut), relevant(grades))


def capped_recall(documents: Sequence[str], grades: Mapping[str, int], cut: int | None) -> float:
    """Relevant documents within the cut / as many as could be there: min(relevant, cut)."""
    return _ratio(_hits(documents, grades, cut), _reachable(grades, cut))


def average_precision(documents: Sequence[str], grades: Mapping[str, int], cut: int | None) -> float:
    """Sum of the precision at each relevant rank within the cut / min(relevant, cut).

    Source: LAReQA's official scorer. trec_eval's `map_cut` divides by all relevant documents instead.
    """
    hits, total = 0, 0.0
    for rank, gain in enumerate(gains(documents, grades, cut), start=1):
        if gain:
            hits += 1
            total += hits / rank
    return _ratio(total, _reachable(grades, cut))


def ndcg(documents: Sequence[str], grades: Mapping[str, int], cut: int | None) -> float:
    """Discounted gain / that of the ideal order, with linear gains and the discount log2(rank + 1), as trec_eval."""
    ideal = sorted((grade for grade in grades.values() if grade >= 1), reverse=True)
    return _ratio(_discounted(gains(documents, grades, cut)), _discounted(ideal[:cut]))


LIST_TYPE: Mapping[str, Value] = MappingProxyType(
    {
        "nDCG": ndcg,
        "R": recall,
        "RR": reciprocal_rank,
        "AP": average_precision,
        "P": precision,
        "Success": success,
        "Rcap": capped_recall,
        "accuracy": accuracy,
    }
)
"""The functions by canonical name, one for every measure of `bench.evaluation.measures.specs.BUILTIN`."""


def _hits(documents: Sequence[str], grades: Mapping[str, int], cut: int | None) -> int:
    return sum(gain >= 1 for gain in gains(documents, grades, cut))


def _reachable(grades: Mapping[str, int], cut: int | None) -> int:
    """Count the relevant documents that a ranking of that depth can hold."""
    return relevant(grades) if cut is None else min(relevant(grades), cut)


def _discounted(ranked_gains: Sequence[int]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(ranked_gains, start=1))


def _ratio(part: float, total: float) -> float:
    """Divide, where nothing can be found: 0."""
    return part / total if total else 0.0
