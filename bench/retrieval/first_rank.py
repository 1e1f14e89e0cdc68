"""The rank of each query's first relevant passage among all passages, by counting: no ranking is kept.

A passage is before the first relevant one if its score is higher, in the one arithmetic of scores
(`bench.retrieval.search.Exact`), or equal and before it by the tie rule (`bench.core.order`). Products in float32
decide most passages, since they are off by less than a bound; only those within the bound are scored again. So the rank
is the one that a search of the whole corpus would give.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

import numpy as np

from bench.core.order import order
from bench.retrieval.search import Double, Exact, Matrix, Numbers, Similarity, VectorRows, as_products, product_bounds
from bench.types import Tie

_QUERIES, _PASSAGES = 256, 1 << 15
"""Of a block of products, 32 MiB."""
_RESCORED = 1 << 13  # passages that are scored again at a time
_FEW_TIES = 1 << 10  # ties of which ids are compared one by one


class _TieOrder:
    """Which passages come before another by score and the tie rule; where many tie, ids are ordered once."""

    def __init__(self, ids: Sequence[str], tie: Tie) -> None:
        self.ids, self.tie = ids, tie

    def before(self, rows: Numbers, values: Matrix, row: int, score: float) -> int:
        """Count the rows, with their scores, that come before one."""
        ties = rows[values == score]
        if self.tie == "list":
            before = int((ties < row).sum())
        elif len(ties) > _FEW_TIES:
            before = int((self._places[ties] < self._places[row]).sum())
        else:
            before = sum(self.ids[row_of_tie] > self.ids[row] for row_of_tie in ties.tolist())
        return int((values > score).sum()) + before

    @cached_property
    def _places(self) -> Numbers:
        """The place of each passage among all by descending id, `[n]`."""
        names = list(self.ids)
        places = np.empty(len(names), np.int64)
        places[sorted(range(len(names)), key=names.__getitem__, reverse=True)] = np.arange(len(names))
        return places


def first_ranks(
    queries: VectorRows,
    passages: VectorRows,
    relevant: Mapping[str, Collection[str]],
    tie: Tie,
    similarity: Similarity,
    *,
    drop_identical: bool = False,
) -> dict[str, int]:
    """Return the rank of the first relevant passage, from 1; queries without one among the passages are left out.

    Args:
        queries: `[m, d]`.
        passages: `[n, d]`.
        relevant: relevant documents by query.
        tie: the order of equal scores.
        similarity: as in `bench.retrieval.search.search`.
        drop_identical: leave out of a query's ranking the passage whose id is the query's.

    Raises:
        UsageError: a score of a relevant passage is not finite.
    """
    exact, ordered = Exact(passages, similarity), _TieOrder(passages.ids, tie)
    excluded = set(queries.ids) if drop_identical else set()
    ids = excluded.union(*(relevant.get(query, ()) for query in queries.ids))
    rows = {name: row for row, name in enumerate(passages.ids) if name in ids}
    targets: list[tuple[int, int, float]] = []  # place of the query, row and score of its first relevant passage
    for at, query in enumerate(queries.ids):
        names = [name for name in relevant.get(query, ()) if name in rows and not (name == query and drop_identical)]
        names.sort(key=rows.__getitem__)
        if names:
            scores = exact.scores(queries.matrix[at], np.asarray([rows[name] for name in names], np.int64))
            first = order(names, scores, tie)[0]
            targets.append((at, rows[names[first]], float(scores[first])))
    ranks = {}
    for start in range(0, len(targets), _QUERIES):
        block = targets[start : start + _QUERIES]
        before = _before(block, queries, passages, exact, ordered)
        for (at, row, score), count in zip(block, before.tolist(), strict=True):
            query, itself = queries.ids[at], 0
            if drop_identical and query in rows:  # it was counted where it came before
                own_row = np.asarray([rows[query]], np.int64)
                itself = ordered.before(own_row, exact.scores(queries.matrix[at], own_row), row, score)
            ranks[query] = 1 + count - itself
    return ranks


def _before(
    targets: list[tuple[int, int, float]], queries: VectorRows, passages: VectorRows, exact: Exact, ordered: _TieOrder
) -> Numbers:
    """Count the passages before each target, `[len(targets)]`."""
    places = [at for at, _, _ in targets]
    vectors = np.ascontiguousarray(queries.matrix[places], np.float32)
    query_rows, scores = as_products(vectors, exact.similarity, "query"), np.asarray([score for _, _, score in targets])
    counts = np.zeros(len(targets), np.int64)
    for start in range(0, len(passages.ids), _PASSAGES):
        block = np.ascontiguousarray(passages.matrix[start : start + _PASSAGES], np.float32)
        passage_rows = as_products(block, exact.similarity, "passage")
        bounds: Double = product_bounds(query_rows, passage_rows, exact.similarity)
        products = query_rows @ passage_rows.T
        above = products > (scores + bounds)[:, None]
        counts += above.sum(1)
        doubtful = ~(above | (products < (scores - bounds)[:, None]))
        for number, (_, row, score) in enumerate(targets):
            rescored = start + np.flatnonzero(doubtful[number])
            for part in (rescored[at : at + _RESCORED] for at in range(0, len(rescored), _RESCORED)):
                values = exact.scores(vectors[number], part, float(bounds[number]))
                counts[number] += ordered.before(part, values, row, score)
    return counts
