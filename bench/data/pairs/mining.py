"""Which passages of a ranking become hard negatives of a query: pure rules, that know no file and no search.

A passage may be a hard negative of a query if no judgement says, and no text suggests, that it answers the query.
Passages are numbers of a pool (`bench.data.pairs.pool`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from bench.core.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

POSITIVE, SAME_TEXT, SCORE, ENOUGH = "positive", "text of a positive", "score above the margin", "more than are kept"
"""Why a candidate is left out: it is judged to answer the query, or has the id of a passage that is; it says what such
a passage says; it scores too high to be trusted; the query has enough negatives."""
REASONS = (POSITIVE, SAME_TEXT, SCORE, ENOUGH)


@dataclass(frozen=True)
class JudgedPassages:
    """What is judged to answer a query."""

    rows: frozenset[int]  # numbers of its positives
    same_ids: frozenset[int]  # numbers of all passages that have the id of one of them
    texts: frozenset[int]  # fingerprints of what they say


@dataclass(frozen=True)
class MiningRules:
    """How negatives are chosen. Raises `UsageError` for ranks the wrong way round, nothing to keep, or no margin."""

    first: int  # rank of the first candidate, from 1; judged positives have ranks too
    last: int  # rank of the last candidate
    keep: int  # negatives of a query, at most
    margin: float | None = None  # times the best positive's score: candidates above are left out; None: none are

    def __post_init__(self) -> None:
        """Validate."""
        if not 1 <= self.first <= self.last or self.keep < 1 or (self.margin is not None and self.margin <= 0):
            raise UsageError(
                found=str(self), expected="ranks from 1 upwards, at least one negative to keep and a margin above 0"
            )


@dataclass(frozen=True)
class Mined:
    """What became of the candidates of a query."""

    rows: tuple[int, ...]  # its negatives, best first
    left_out: Mapping[str, int]  # candidates left out for each of `REASONS`


def choose(
    rows: Sequence[int],
    scores: Sequence[float],
    judged: JudgedPassages,
    texts: Sequence[int] | npt.NDArray[np.uint64],
    rules: MiningRules,
    best: Callable[[], float],
) -> Mined:
    """Choose the hard negatives of a query from its ranking, and return them in rank order.

    `rows` and falling `scores` have at most `rules.last` places; `texts` are fingerprints of the pool's passages;
    `best` returns the best score of a judged positive, and is called only where the ranking does not show it.
    """
    left_out: Counter[str] = Counter()
    negatives: list[int] = []
    ranked = next((score for row, score in zip(rows, scores, strict=True) if row in judged.rows), None)
    best_positive = cache(lambda: best() if ranked is None else ranked)
    for row, score in zip(rows[rules.first - 1 : rules.last], scores[rules.first - 1 : rules.last], strict=True):
        if row in judged.rows or row in judged.same_ids:
            left_out[POSITIVE] += 1
        elif int(texts[row]) in judged.texts:
            left_out[SAME_TEXT] += 1
        elif rules.margin is not None and (
            # a positive out of the ranking scores at most as its last passage
            (ranked is None and score > rules.margin * scores[-1]) or score > rules.margin * best_positive()
        ):
            left_out[SCORE] += 1
        elif len(negatives) == rules.keep:
            left_out[ENOUGH] += 1
        else:
            negatives.append(row)
    return Mined(tuple(negatives), left_out)
