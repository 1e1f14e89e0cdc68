"""BM25 as Lucene 8 and later scores it, on bm25s: every term's share of every score is computed when indexing.

    score(q, d) = Σ over t in q of ln(1 + (N − df + ½) / (df + ½)) · tf / (tf + k1 · (1 − b + b · dl / avgdl))

N: documents; df: documents with term t; tf: how often t stands in d; dl: tokens of d; avgdl: mean dl over all N. A term
that comes twice in the query counts twice. Lengths are exact, where Lucene rounds those above 40.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Literal

import bm25s
import numpy as np
import numpy.typing as npt

_BLOCK = 64  # scores of which only the highest decides whether all are looked at

Scores = npt.NDArray[np.float32] | npt.NDArray[np.float64]
Positions = npt.NDArray[np.intp]


def build(
    documents: Collection[Sequence[int]],
    terms: int,
    *,
    k1: float,
    b: float,
    dtype: Literal["float32", "float64"] = "float32",
) -> Lucene:
    """Compute every term's share of every document's score.

    Args:
        documents: the numbers of each document's tokens; passed through three times.
        terms: how many different terms there are; numbers are 0 to `terms` − 1.
        k1: how slowly repetitions of a term stop to count.
        b: how much long documents are marked down, 0 to 1.
        dtype: precision of the shares and of the scores.
    """
    engine = bm25s.BM25(k1=k1, b=b, method="lucene", dtype=dtype, backend="numba")
    engine.scores = engine.build_index_from_ids(range(terms), documents, show_progress=False)
    engine.vocab_dict = {}  # ours is beside the index, sorted, and never held as a whole
    return Lucene(engine)


class Lucene:
    """A built index that scores queries.

    Args:
        engine: a bm25s index with the shares.
    """

    def __init__(self, engine: Any) -> None:
        engine.activate_numba_scorer()  # bm25s does so by itself only where numba's compiler is switched off
        self._engine = engine

    def save(self, folder: Path) -> None:
        """Write it in bm25s' own format, without pickles. The bytes depend on the index and bm25s' version alone."""
        self._engine.save(folder, allow_pickle=False, show_progress=False)

    @classmethod
    def load(cls, folder: Path) -> Lucene:
        """Open what `save` wrote, memory-mapped."""
        return cls(bm25s.BM25.load(folder, mmap=True, load_vocab=False, allow_pickle=False))

    def scores(self, tokens: Sequence[int]) -> Scores:
        """Return the score of every document, `[documents]`, for a query's token numbers, with repetitions.

        Each score is summed in the order of the query's tokens, on one thread, so its bits are always the same.
        """
        scores: Scores = self._engine.get_scores_from_ids(tokens)
        return scores

    def matches(self, tokens: Sequence[int], k: int) -> tuple[Positions, Scores]:
        """Return positions, ascending, and scores of documents that hold a token; all that can be among the best k."""
        scores = self.scores(tokens)
        found = contenders(scores, k)
        return found, scores[found]


def contenders(scores: Scores, k: int) -> Positions:
    """Return the positions, ascending, of all positive scores that can be among the best k, ties included, and of more.

    Looking for the k-th best of all scores would take longer than to compute them. The k-th best among the maxima of
    blocks is found quickly and cannot be higher, since k blocks reach it.

    Args:
        scores: not negative, `[n]`.
        k: at least 1 (below, everything is returned, and refused where it is ranked).
    """
    maxima = scores[: len(scores) // _BLOCK * _BLOCK].reshape(-1, _BLOCK).max(axis=1)
    floor = np.partition(maxima, -k)[-k] if 0 < k <= len(maxima) else 0
    return np.flatnonzero(scores >= floor if floor > 0 else scores > 0)
