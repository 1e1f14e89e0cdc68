"""Fusion of two or more rankings of one query: interpolation of scores, and reciprocal ranks.

Conventions: the rankings are of one query and in the task's order, best first. Ties follow `bench.core.order`; under
the rule `list`, which relies on positions, documents are ordered by their best rank in any of the rankings, then by
their next best, then by id: fusion knows no corpus, and so the order of the rankings does not matter either.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from bench.core.errors import UsageError
from bench.core.order import best
from bench.types import Ranking, Tie

Scale = Literal["none", "min-max"]
"""What is done to the scores of each ranking before they are mixed.

`min-max`: the lowest becomes 0, the highest 1; where all are equal, all become 0.
"""

CONSTANT = 60
"""Of reciprocal rank fusion. Source: Cormack, Clarke and Büttcher 2009, section 2."""


@dataclass(frozen=True)
class FusionPool:
    """Two rankings of one query over their common pool of documents, to be mixed by one weight or by many."""

    first: Ranking
    second: Ranking
    documents: Sequence[str]  # every document of either, in the order of ties under the rule `list`, `[n]`
    # scaled, of the first and of the second ranking, `[2, n]`; a document that one lacks has its lowest
    scores: npt.NDArray[np.float64]

    def mix(self, weight: float, k: int, tie: Tie) -> Ranking:
        """Rank the pool by (1 − weight) · first + weight · second; see `interpolate`."""
        if not 0 <= weight <= 1:
            raise UsageError(f"found the weight {weight}, expected a number from 0 (the first run) to 1 (the second)")
        if k < 1:
            raise UsageError(f"cannot keep the best {k} documents; expected a number of at least 1")
        if weight in (0, 1):
            ranking = self.second if weight else self.first
            return Ranking(ranking.query, tuple(ranking.documents[:k]), tuple(ranking.scores[:k]))
        return best(self.first.query, self.documents, (1 - weight) * self.scores[0] + weight * self.scores[1], k, tie)


def join(first: Ranking, second: Ranking, scale: Scale) -> FusionPool:
    """Bring two rankings to one pool and one scale. Raises `UsageError` for different queries or an unknown scale."""
    documents = _pool((first, second))
    place = {document: at for at, document in enumerate(documents)}
    scores = np.stack([_spread(ranking, place, scale) for ranking in (first, second)])
    return FusionPool(first, second, documents, scores)


def interpolate(first: Ranking, second: Ranking, weight: float, k: int, tie: Tie, scale: Scale) -> Ranking:
    """Rank by (1 − weight) · score in the first + weight · score in the second, and keep k documents.

    Args:
        first: one ranking of a query.
        second: another ranking of the same query.
        weight: 0 gives the first ranking itself, cut at k, and 1 the second. Between them the pool is that of both,
            and a document that one ranking lacks has the lowest score there, 0 if it is empty.
        k: documents to keep.
        tie: the order of equal scores.
        scale: what is done to the scores of each ranking first.

    Raises:
        UsageError: a weight outside 0 to 1, k below 1, rankings of different queries, or an unknown scale.

    Source: the hybrids of Pyserini (`HybridSearcher`) and of Mr. TyDi (Zhang et al. 2021): sparse + α · dense, min-max
    scaled, α tuned on development questions. Their α is weight / (1 − weight) here.
    """
    return join(first, second, scale).mix(weight, k, tie)


def reciprocal_rank(rankings: Sequence[Ranking], k: int, tie: Tie, constant: float = CONSTANT) -> Ranking:
    """Rank by the sum of 1 / (constant + rank) over the rankings that hold a document; ranks begin at 1.

    Raises `UsageError` for no ranking, rankings of different queries, k below 1 or a constant below 0.

    Source: Cormack, Clarke and Büttcher 2009, Reciprocal Rank Fusion.
    """
    if not constant >= 0:
        raise UsageError(f"found the constant {constant}, expected a number of at least 0, e.g. {CONSTANT}")
    documents = _pool(rankings)
    shares: dict[str, list[float]] = {document: [] for document in documents}
    for ranking in rankings:
        for rank, document in enumerate(ranking.documents, 1):
            shares[document].append(1 / (constant + rank))
    # The exact sum, rounded once, is the same whatever the order of the rankings.
    return best(rankings[0].query, documents, [math.fsum(shares[document]) for document in documents], k, tie)


def _pool(rankings: Sequence[Ranking]) -> list[str]:
    """Return every document of any ranking, by its best rank, its next best ones, and id."""
    queries = list(dict.fromkeys(ranking.query for ranking in rankings))
    if len(queries) != 1:
        raise UsageError(f"found rankings of {len(queries)} queries {queries}, expected those of one")
    ranks: dict[str, list[float]] = {}
    for ranking in rankings:
        for rank, document in enumerate(ranking.documents):
            ranks.setdefault(document, []).append(rank)
    lacking = [math.inf] * len(rankings)
    return sorted(ranks, key=lambda document: (sorted(ranks[document]) + lacking[len(ranks[document]) :], document))


def _spread(ranking: Ranking, place: dict[str, int], scale: Scale) -> npt.NDArray[np.float64]:
    """Return a ranking's scaled scores over the pool, `[n]`; its lowest for what it lacks."""
    if scale not in ("none", "min-max"):
        raise UsageError(f"found the scale {scale!r}, expected none or min-max")
    if not ranking.documents:
        return np.zeros(len(place))
    scores = np.asarray(ranking.scores, np.float64)
    lowest, width = scores.min(), np.ptp(scores)
    if scale == "min-max":
        scores, lowest = (scores - lowest) / (width or 1.0), np.float64(0)
    spread = np.full(len(place), lowest)
    spread[[place[document] for document in ranking.documents]] = scores
    return spread
