"""BM25 as the library rank_bm25 scores it: its class BM25Okapi, fed with our tokens.

    score(q, d) = Σ over t in q of idf(t) · tf · (k1 + 1) / (tf + k1 · (1 − b + b · dl / avgdl))
    idf(t) = ln(N − df + ½) − ln(df + ½), and where that is negative: epsilon · the mean of all terms' idf

The library keeps no files, so tokens are saved, and its index is built again when a search begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rank_bm25 import BM25Okapi

from methods.bm25.tokens import Tokens
from methods.bm25.vocabulary import Vocabulary, column

_TOKENS, _LENGTHS = "tokens.npy", "lengths.npy"


def write(tokens: Tokens, vocabulary: Vocabulary, folder: Path) -> None:
    """Write the tokens of all documents (int32) and the documents' lengths (int32)."""
    with (
        column(folder / _LENGTHS, np.int32, tokens.documents) as add_lengths,
        column(folder / _TOKENS, np.int32, tokens.tokens) as add_tokens,
    ):
        for number, shard in enumerate(tokens.shards()):
            add_lengths(shard.lengths)
            add_tokens(vocabulary.numbers(number)[shard.tokens])


class Okapi:
    """An index of the library that scores queries, made of the numbers of each document's tokens."""

    def __init__(self, documents: Sequence[Sequence[int]], *, k1: float, b: float, epsilon: float) -> None:
        self._library = BM25Okapi(documents, k1=k1, b=b, epsilon=epsilon)

    @classmethod
    def load(cls, folder: Path, *, k1: float, b: float, epsilon: float) -> Okapi:
        """Build it from what `write` wrote."""
        tokens = np.load(folder / _TOKENS, allow_pickle=False).tolist()
        ends = np.cumsum(np.load(folder / _LENGTHS, allow_pickle=False)).tolist()
        documents = [tokens[start:end] for start, end in zip([0, *ends], ends, strict=False)]
        return cls(documents, k1=k1, b=b, epsilon=epsilon)

    def matches(self, tokens: Sequence[int], k: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]:
        """Return positions, ascending, and scores (0 and less, too) of all documents that hold a token."""
        terms = set(tokens)
        holds_any = [any(token in counts for token in terms) for counts in self._library.doc_freqs]
        positions = np.flatnonzero(holds_any)
        return positions, self._library.get_scores(tokens)[positions]
