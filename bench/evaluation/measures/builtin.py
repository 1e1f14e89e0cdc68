"""The measures that the harness brings, each declared where it is computed: names, formula, and trec_eval's own name.

Conventions: every function takes the ranked document ids (best first), the grades of that query by document id, and a
cut (None: the whole list), and returns a number in [0, 1]. It trusts the order of the list and never reads a score. A
grade of at least 1 is relevant. Where nothing is relevant, everything is 0. A document that is listed twice keeps both
ranks and counts at the first only; the official scorers of LAReQA and Mewsli-X agree on this.

The signature is that of `bench.types.Measure.value`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

Value = Callable[[Sequence[str], Mapping[str, int], int | None], float]


@dataclass(frozen=True, slots=True)
class Builtin:
    """A measure that the harness brings.

    Under the tie rule `trec`, trec_eval computes it where it has a name there; `value` does in all other cases.
    """

    name: str  # canonical, without the cut
    summary: str  # the formula in one line; `rel` is the number of documents with a grade of at least 1
    aliases: tuple[str, ...] = ()  # other spellings that are understood, compared without case
    needs_cut: bool = False  # it is not defined over the whole ranking
    # it may be asked with a cut; a measure that looks at the first document only has none to choose
    takes_cut: bool = True
    trec: str = ""  # trec_eval's name of it without a cut, empty where it has none
    trec_cut: str = ""  # the same with a cut
    value: Value | None = None  # None for a measure that is judged by answers instead of documents


BUILTIN: dict[str, Builtin] = {}
"""The harness's measures of judged documents by canonical name; `measure` adds to them."""

ANSWERS = {
    "answer-R": Builtin(
        "answer-R",
        "1 if a passage among the first k holds an accepted answer, token by token, else 0",
        aliases=("has-answer", "answer-recall"),
        needs_cut=True,
    ),
    "Rkt": Builtin(
        "Rkt",
        "1 if the first N thousand tokens of the ranked passages hold an accepted answer as it is, else 0",
        needs_cut=True,
    ),
}
"""Measures that look for accepted answers in the passages' texts; `R@2kt` and `R@5kt` are `Rkt` with cuts 2 and 5."""


def measure(
    name: str,
    summary: str,
    *,
    aliases: tuple[str, ...] = (),
    needs_cut: bool = False,
    takes_cut: bool = True,
    trec: str = "",
    trec_cut: str = "",
) -> Callable[[Value], Value]:
    """Declare the function below it as a measure; the arguments are the fields of `Builtin`."""

    def declare(value: Value) -> Value:
        BUILTIN[name] = Builtin(name, summary, aliases, needs_cut, takes_cut, trec, trec_cut, value)
        return value

    return declare


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


@measure(
    "nDCG",
    "sum of grade/log2(rank+1) over that of the ideal order; negative grades gain nothing",
    aliases=("nDCG_cut",),
    trec="ndcg",
    trec_cut="ndcg_cut",
)
def ndcg(documents: Sequence[str], grades: Mapping[str, int], cut: int | None) -> float:
    """Discounted gain / that of the ideal order, with linear gains and the discount log2(rank + 1), as trec_eval."""
    ideal = sorted((grade for grade in grades.values() if grade >= 1), reverse=True)
    return _ratio(_discounted(gains(documents, grades, cut)), _discounted(ideal[:cut]))


@measure("R", "relevant among the first k / rel", aliases=("Recall",), needs_cut=True, trec_cut="recall")
def recall(documents: Sequence[str], grades: Mapping[str, int], cut: int | None) -> float:
    """Relevant documents within the cut / all relevant ones."""
    return _ratio(_hits(documents, grades, cut), relevant(grades))


# trec_eval has it without a cut only; `bench.evaluation.measures.trec_type` applies the cut.
@measure(
    "RR",
    "1 / rank of the first relevant document, else 0",
    aliases=("MRR", "recip_rank"),
    trec="recip_rank",
    trec_cut="recip_rank",
)
def reciprocal_rank(documents: Sequence[str], grades: Mapping[str, int], cut: int | None) -> float:
    """1 / rank of the first relevant document within the cut, else 0."""
    ranks = (rank for rank, gain in enumerate(gains(documents, grades, cut), start=1) if gain)
    return 1 / next(ranks, math.inf)


@measure(
    "AP",
    "mean of P at each relevant rank; divided by rel (trec), at cut k by min(rel, k) (list)",
    aliases=("mAP", "map_cut"),
    trec="map",
    trec_cut="map_cut",
)
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


@measure("P", "relevant among the first k / k", aliases=("Precision",), needs_cut=True, trec_cut="P")
def precision(documents: Sequence[str], grades: Mapping[str, int], cut: int | None) -> float:
    """Relevant documents within the cut / cut, also where the list is shorter. Without a cut: / length of the list."""
    return _ratio(_hits(documents, grades, cut), len(documents) if cut is None else cut)


@measure(
    "Success",
    "1 if a relevant document is among the first k, else 0",
    aliases=("Hit", "hit_rate"),
    needs_cut=True,
    trec_cut="success",
)
def success(documents: Sequence[str], grades: Mapping[str, int], cut: int | None) -> float:
    """1 if a relevant document is within the cut, else 0."""
    return float(any(gains(documents, grades, cut)))


# trec_eval is asked for precision, of which `bench.evaluation.measures.trec_type` makes it.
@measure(
    "Rcap",
    "relevant among the first k / min(rel, k)",
    aliases=("R_cap", "Recall_cap"),
    needs_cut=True,
    trec_cut="P",
)
def capped_recall(documents: Sequence[str], grades: Mapping[str, int], cut: int | None) -> float:
    """Relevant documents within the cut / as many as could be there: min(relevant, cut)."""
    return _ratio(_hits(documents, grades, cut), _reachable(grades, cut))


@measure(
    "accuracy",
    "1 if the first document is relevant, else 0 (Success@1, as bitext retrieval calls it)",
    aliases=("acc",),
    takes_cut=False,
    trec="success.1",
)
def accuracy(documents: Sequence[str], grades: Mapping[str, int], cut: int | None) -> float:  # noqa: ARG001 (it has none)
    """1 if the first document is relevant, else 0: `success` at 1."""
    return success(documents, grades, 1)
