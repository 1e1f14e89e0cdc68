"""Ranking by vectors among given candidates, where a task gives each query its own documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from bench.errors import UsageError
from bench.search.dense import Exact, Rows, Similarity
from bench.search.order import best
from bench.types import Candidates, Ranking, Tie


def rank(
    queries: Rows,
    passages: Rows,
    candidates: Mapping[str, Candidates],
    k: int,
    tie: Tie,
    similarity: Similarity,
) -> Iterator[Ranking]:
    """Yield one ranking per query, in order: its best k candidates.

    Args:
        queries: `[m, d]`.
        passages: `[n, d]`, every candidate among them.
        candidates: by query; under the tie rule `list` equal scores stand in the candidates' order.
        k: documents per query.
        tie: order of equal scores.
        similarity: `dot` or `cos`.

    Raises:
        UsageError: a query has no candidates, or a candidate is not among the passages.
    """
    wanted = {document for given in candidates.values() for document in given.documents}
    rows = {document: row for row, document in enumerate(passages.ids) if document in wanted}
    exact = Exact(passages, similarity)
    for name, query in zip(queries.ids, queries.matrix, strict=True):
        if name not in candidates:
            raise UsageError(f"query {name!r} has no candidates, expected a list for every query")
        documents = candidates[name].documents
        lacking = next((document for document in documents if document not in rows), None)
        if lacking is not None:
            raise UsageError(
                f"candidate {lacking!r} of query {name!r} is not in the corpus, expected one of its documents"
            )
        if not documents:
            yield Ranking(name, (), ())
            continue
        scores = exact.scores(query, np.asarray([rows[document] for document in documents], np.int64))
        yield best(name, documents, scores, k, tie)
