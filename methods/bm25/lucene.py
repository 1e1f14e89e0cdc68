"""BM25 as Lucene 8 and later scores it: every term's share of every score is computed when indexing, as bm25s does.

    score(q, d) = Σ over t in q of ln(1 + (N − df + ½) / (df + ½)) · tf / (tf + k1 · (1 − b + b · dl / avgdl))

N: documents; df: documents with term t; tf: how often t occurs in d; dl: tokens of d; avgdl: mean dl over all N. A term
that comes twice in the query counts twice. Lengths are exact, where Lucene rounds those above 40.

The index lies in shards of documents. N, df and avgdl are always those of the whole corpus, so a share, and with it
every score, has the same bits in one shard and in many, and they are the bits of bm25s' own index.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, Literal, Self

import numba
import numpy as np
import numpy.typing as npt

from bench import canonical, private_cache_folder
from methods.bm25.tokens import Ends, Numbers, Postings, Tokens
from methods.bm25.vocabulary import Vocabulary, column

_GROUP = 64  # scores that are skipped where the highest of them is too low
_SHARDS = "shards.json"
_COLUMNS = {"numbers.npy": np.int32, "starts.npy": np.int64, "documents.npy": np.int32, "shares.npy": np.float32}

Scores = npt.NDArray[np.float32] | npt.NDArray[np.float64]
Positions = npt.NDArray[np.intp]
Precision = Literal["float32", "float64"]


@dataclass(frozen=True)
class Formula:
    """All that a share depends on, besides the term and the document."""

    k1: float
    b: float
    documents: int  # N
    mean: float  # avgdl
    dtype: Precision = "float32"  # of the shares and of the scores

    def shares(self, postings: Postings, lengths: Numbers, frequencies: Numbers) -> Scores:
        """Compute the shares of a shard, one a posting, as bm25s does: the idf rounded first, all else last."""
        distinct, place = np.unique(frequencies, return_inverse=True)  # few, so the logarithm can be the C library's
        weights = [math.log(1 + (self.documents - df + 0.5) / (df + 0.5)) for df in distinct.tolist()]
        idf = np.repeat(np.array(weights, self.dtype)[place], postings.frequencies)
        norms = self.k1 * ((1 - self.b) + self.b * lengths / self.mean)
        shares: Scores = (idf * (postings.counts / (norms[postings.documents] + postings.counts))).astype(self.dtype)
        return shares


@dataclass(frozen=True)
class Shares:
    """The shares of a shard."""

    documents: int  # how many it has
    numbers: Numbers  # of its terms, ascending, `[terms]`
    starts: Ends  # where the documents of each term begin, and where all end, `[terms + 1]`
    places: Numbers  # the documents of the terms, by their places in the shard, `[starts[-1]]`
    shares: Scores  # of these documents' scores, as many

    @classmethod
    def from_postings(
        cls, postings: Postings, lengths: Numbers, numbers: Numbers, frequencies: Numbers, formula: Formula
    ) -> Self:
        """Compute the shares; `lengths` and `numbers` are the shard's, `frequencies` those of the whole corpus."""
        shares = formula.shares(postings, lengths, frequencies[numbers])
        return cls(len(lengths), numbers, postings.starts, postings.documents, shares)

    def term_places(self, tokens: Numbers) -> Positions:
        """Return the places among its terms of those tokens that it has, in their order, with repetitions."""
        places: Positions = np.searchsorted(self.numbers, tokens)
        inside = places < len(self.numbers)
        places, tokens = places[inside], tokens[inside]
        present: Positions = places[self.numbers[places] == tokens]
        return present

    def add(self, terms: Positions, scores: Scores) -> None:
        """Add the shares of tokens, one token after the other, to the scores of its documents."""
        # Places are never negative: numba would ask that of each, which doubles the time.
        _compiled(_add)(terms, self.starts, self.places.view(np.uint32), self.shares, scores)


def build(
    documents: Sequence[Sequence[int]], terms: int, *, k1: float, b: float, dtype: Precision = "float32"
) -> Lucene:
    """Compute an index of one shard in memory.

    Args:
        documents: numbers of each document's tokens, from 0 to `terms` − 1.
        terms: number of terms.
        k1: how slowly repetitions of a term stop to count.
        b: how much documents longer than the mean are marked down.
        dtype: of shares and scores.

    Example:
        >>> build([[0, 1], [1, 1, 2]], 3, k1=0.9, b=0.4).scores([0])  # of both documents
        array([0.37918335, 0.        ], dtype=float32)
    """
    lengths = np.array([len(document) for document in documents], np.int32)
    postings = Postings.from_documents(lengths, np.array(list(chain.from_iterable(documents)), np.int32), terms)
    formula = Formula(k1, b, len(lengths), float(lengths.mean()), dtype)
    numbers = np.arange(terms, dtype=np.int32)
    return Lucene([Shares.from_postings(postings, lengths, numbers, postings.frequencies, formula)])


def write(tokens: Tokens, vocabulary: Vocabulary, folder: Path, *, k1: float, b: float) -> None:
    """Write the index of a corpus: `shards.json` and four columns, shard after shard. Memory holds one shard.

    The columns are `numbers.npy` (int32) and `starts.npy` (int64), of terms, `documents.npy` (int32) and `shares.npy`
    (float32), of postings: the fields of `Shares`.

    Args:
        tokens: of the corpus.
        vocabulary: numbers and frequencies of its terms.
        folder: where the files are written.
        k1: as in `build`.
        b: as in `build`.
    """
    formula = Formula(k1, b, tokens.documents, tokens.tokens / tokens.documents)
    terms, postings = sum(vocabulary.sizes), int(vocabulary.frequencies.sum(dtype=np.int64))
    counts = terms, terms + len(vocabulary.sizes), postings, postings
    table: list[list[int]] = []
    with ExitStack() as stack:
        adders = [
            stack.enter_context(column(folder / name, dtype, count))
            for (name, dtype), count in zip(_COLUMNS.items(), counts, strict=True)
        ]
        for number, shard in enumerate(tokens.shards()):
            numbers, frequencies = vocabulary.numbers(number), vocabulary.frequencies
            contributions = Shares.from_postings(shard.postings(), shard.lengths, numbers, frequencies, formula)
            for add, values in zip(
                adders,
                (contributions.numbers, contributions.starts, contributions.places, contributions.shares),
                strict=True,
            ):
                add(values)
            table.append([contributions.documents, len(contributions.numbers), len(contributions.shares)])
    (folder / _SHARDS).write_bytes(canonical({"documents_terms_postings": table}))


class Lucene:
    """An index of at least one shard, in the order of the corpus, that scores queries."""

    def __init__(self, shards: Sequence[Shares]) -> None:
        self._shards = shards
        self._firsts = list(accumulate((shard.documents for shard in shards), initial=0))
        self._sums = np.empty(max(shard.documents for shard in shards), shards[0].shares.dtype)

    @classmethod
    def load(cls, folder: Path) -> Lucene:
        """Open what `write` wrote, memory-mapped."""
        table = json.loads((folder / _SHARDS).read_bytes())["documents_terms_postings"]
        columns = [np.asarray(np.load(folder / name, mmap_mode="r", allow_pickle=False)) for name in _COLUMNS]
        shards, term, posting = [], 0, 0
        for number, (documents, terms, postings) in enumerate(table):
            numbers, starts = columns[0][term : term + terms], columns[1][term + number :][: terms + 1]
            places, shares = (values[posting : posting + postings] for values in columns[2:])
            shards.append(Shares(documents, numbers, starts, places, shares))
            term, posting = term + terms, posting + postings
        return cls(shards)

    def scores(self, tokens: Sequence[int]) -> Scores:
        """Return the score of every document, `[documents]`, summed in the order of the query's tokens."""
        scores = np.zeros(self._firsts[-1], self._sums.dtype)
        for first, shard_scores in self._scored_shards(tokens):
            scores[first : first + len(shard_scores)] = shard_scores
        return scores

    def matches(self, tokens: Sequence[int], k: int) -> tuple[Positions, Scores]:
        """Return positions, ascending, and scores of documents that hold a token; all that can be among the best k."""
        positions, scores = list[Positions](), list[Scores]()
        for first, shard_scores in self._scored_shards(tokens):
            best = contenders(shard_scores, k)
            positions.append(best + first if first else best)
            scores.append(shard_scores[best])
        if len(positions) == 1:
            return positions[0], scores[0]
        return np.concatenate([np.empty(0, np.intp), *positions]), np.concatenate([self._sums[:0], *scores])

    def _scored_shards(self, tokens: Sequence[int]) -> Iterator[tuple[int, Scores]]:
        """Yield the scores of the documents of each shard that has a token, until the next, and where the first is."""
        query = np.asarray(tokens, np.int32)
        for first, shard in zip(self._firsts, self._shards, strict=False):
            terms = shard.term_places(query)
            if len(terms):
                scores = self._sums[: shard.documents]
                scores.fill(0)
                shard.add(terms, scores)
                yield first, scores


def contenders(scores: Scores, k: int) -> Positions:
    """Return where the positive scores are that can be among the best k, ties included; and maybe some more.

    The k-th best among maxima of groups is found quickly, and k groups reach it.

    Args:
        scores: of all documents, none negative, `[documents]`.
        k: number of documents in demand; below 1: all positive scores.

    Returns:
        Positions, ascending.
    """
    bits = scores.view(f"i{scores.itemsize}")  # no score is negative: such floats are ordered as their bits are
    groups = len(bits) // _GROUP
    maxima = bits[: groups * _GROUP].reshape(_GROUP, groups).max(axis=0)  # a column is a group: all go at once
    floor = np.partition(maxima, -k)[-k] if 0 < k <= groups else 0
    if floor <= 0:
        return np.flatnonzero(bits > 0)
    positions: Positions = _compiled(_reaching)(bits, np.flatnonzero(maxima >= floor), groups, floor)
    return positions


@cache
def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile for this machine: once, where the user has a folder for what is compiled."""
    folder, config = private_cache_folder("numba"), vars(numba.config)
    before = config["CACHE_DIR"]
    config["CACHE_DIR"] = str(folder or "")  # read when a function is wrapped; its default may be open to others
    compiled: Callable[..., Any] = numba.njit(function, cache=folder is not None)
    config["CACHE_DIR"] = before
    return compiled


def _add(terms: Positions, starts: Ends, places: npt.NDArray[np.uint32], shares: Scores, scores: Scores) -> None:
    for term in terms:
        documents, added = places[starts[term] : starts[term + 1]], shares[starts[term] : starts[term + 1]]
        for at in range(len(documents)):
            scores[documents[at]] += added[at]


def _reaching(scores: npt.NDArray[np.integer], columns: Positions, groups: int, floor: int) -> Positions:
    """Return the positions, ascending, of scores in some columns and after the last row that reach the floor."""
    tail = _GROUP * groups
    reaching, count = np.empty(len(columns) * _GROUP + len(scores) - tail, np.intp), 0
    for first in range(0, tail, groups):
        for group in columns:
            if scores[first + group] >= floor:
                reaching[count] = first + group
                count += 1
    for at in range(tail, len(scores)):
        if scores[at] >= floor:
            reaching[count] = at
            count += 1
    return reaching[:count].copy()
