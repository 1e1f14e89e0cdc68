"""The one module that decides order: which document comes before which, and which survive a cut.

Conventions: a higher score is better. Positions index the candidates as they were given, which is corpus order or, for
a run file, the order of its ranks. Two tie rules (`bench.types.Tie`):

- `trec`: what trec_eval does. Scores are cast to 32-bit floats and sorted descending; ties are broken by document id,
  descending in byte order of UTF-8 (`d2` before `d10`). Ranks and positions count for nothing.
- `list`: what list-type scorers trust. Scores keep their precision and are sorted descending; ties are broken by
  position.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bench.core.errors import UsageError
from bench.core.messages import unknown_name
from bench.core.records import Ranking, Tie

Scores = Sequence[float] | npt.NDArray[np.floating]
"""One number per candidate."""

Floats = npt.NDArray[np.float32] | npt.NDArray[np.float64]


def cast_scores(scores: Scores, tie: Tie) -> Floats:
    """Return the scores `[n]` in the precision in which they are compared; `UsageError` for one not finite."""
    if tie not in ("trec", "list"):
        raise unknown_name("tie rule", tie, ("trec", "list"))
    values, kind = np.asarray(scores), np.float32 if tie == "trec" else np.float64
    if values.dtype != kind:
        with np.errstate(over="ignore"):  # an overflow becomes an infinity, which is refused below in words
            values = values.astype(kind)
    if not np.isfinite(values).all():
        at = int(np.argmin(np.isfinite(values)))
        digits = "32-bit " if tie == "trec" else ""
        raise UsageError(
            where=f"candidate {at + 1} of {len(values)}",
            found=f"the score {float(scores[at])!r}",
            expected=f"a finite {digits}number",
            hint="leave out documents that have no score",
        )
    return values


def order(documents: Sequence[str], scores: Scores, tie: Tie) -> list[int]:
    """Return the permutation that puts candidates (unique ids) in the task's order. Raises as `cast_scores`."""
    _same_length(documents, scores)
    ranked: list[int] = _ordered(documents, cast_scores(scores, tie), np.arange(len(documents)), tie).tolist()
    return ranked


def best(query: str, documents: Sequence[str], scores: Scores, k: int, tie: Tie) -> Ranking:
    """Rank the candidates of one query and keep the best k; ties at the cut follow the same rule.

    Only ids of candidates that score as high as the k-th are looked up. Under `trec` the ranking's scores are 32-bit
    values. Raises `UsageError` for another number of scores, one that is not finite, or k below 1.
    """
    top, values = best_positions(documents, scores, k, tie)
    return Ranking(query, tuple(map(documents.__getitem__, top.tolist())), tuple(values.tolist()))


def best_positions(documents: Sequence[str], scores: Scores, k: int, tie: Tie) -> tuple[npt.NDArray[np.intp], Floats]:
    """Return the positions and scores of what `best` keeps, in order; only ids of candidates that tie are looked up."""
    _same_length(documents, scores)
    values = cast_scores(scores, tie)
    top = _ordered(documents, values, top_k_positions(values, k), tie)[:k]
    return top, values[top]


def top_k_positions(scores: npt.NDArray[np.floating], k: int) -> npt.NDArray[np.intp]:
    """Return the positions, ascending, of all comparable scores at least the k-th best: k, or more where ties cross it.

    Raises `UsageError` if k is below 1.
    """
    if k < 1:
        raise UsageError(where="k", found=f"{k}", expected="a number of at least 1")
    if k >= len(scores):
        return np.arange(len(scores))
    last = len(scores) - k
    return np.flatnonzero(scores >= np.partition(scores, last)[last])


def _ordered(
    documents: Sequence[str], values: Floats, positions: npt.NDArray[np.intp], tie: Tie
) -> npt.NDArray[np.intp]:
    """Sort positions (ascending on entry) by score, then by the tie rule."""
    # Under `trec` the order of equals is made below, so that the quickest sort will do.
    positions = positions[np.argsort(-values[positions], kind="stable" if tie == "list" else "quicksort")]
    if tie == "trec":
        sorted_values, first, last = values[positions], 0, -1
        for at in [*(sorted_values[1:] == sorted_values[:-1]).nonzero()[0].tolist(), len(positions)]:
            if at != last:  # a tie from `first` to `last` has ended
                if last > 0:  # Python compares strings by code point, which is the byte order of UTF-8
                    tied = positions[first : last + 1].tolist()
                    positions[first : last + 1] = sorted(tied, key=documents.__getitem__, reverse=True)
                first = at
            last = at + 1
    return positions


def _same_length(documents: Sequence[str], scores: Scores) -> None:
    if len(documents) != len(scores):
        raise UsageError(found=f"{len(scores)} scores for {len(documents)} documents", expected="one score a document")
