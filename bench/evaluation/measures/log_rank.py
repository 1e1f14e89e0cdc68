"""LogRank: a measure of single questions that still moves where the official one is 0, for curves of trainings.

It is 1 − log2(rank of the first relevant passage) / log2(N + 1), N the number of passages that are ranked: 1 at rank 1,
and 0 where no relevant passage is among them. Unlike a loss it means the same for every method, whatever its vectors
are compared by, and is defined for those without vectors.
"""

import math

LOG_RANK = "LogRank"


def log_rank(rank: int | None, among: int) -> float:
    """Return LogRank of a question.

    Args:
        rank: of the first relevant passage, from 1; None where none is ranked.
        among: passages that are ranked, at least 1.

    >>> log_rank(1, 7), log_rank(2, 7), log_rank(None, 7)
    (1.0, 0.6666666666666667, 0.0)
    """
    return 0.0 if rank is None else 1 - math.log2(rank) / math.log2(among + 1)
