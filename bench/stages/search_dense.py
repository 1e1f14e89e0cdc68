"""search: vectors of queries and of passages → run, among the whole corpus or each query's candidates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.encoding.vectors import Vectors
from bench.errors import StoreError
from bench.search import candidates as among
from bench.search.dense import Backend, Block, Similarity, search
from bench.stages import read
from bench.stages.search import Rules, write
from bench.types import Item, Json, Ranking
from bench.workspace import Workspace

VERSION = 1


def run(
    work: Workspace,
    queries: Path,
    passages: Path,
    leg: Path,
    rules: Rules,
    similarity: Similarity,
    tag: str,
    device: str = "cpu",
    backend: Backend = "auto",
) -> Mapping[str, Json]:
    """Write `run.trec` as `bench.stages.search.run` does. Neither device nor backend changes a byte.

    Args:
        work: where to; advances by queries.
        queries: the artefact of `encode` for the leg's queries.
        passages: the artefact of `encode` for the corpus.
        leg: the artefact of `read`; where it has candidates, each query is answered among its own.
        rules: of the task.
        similarity: `dot` or `cos`.
        tag: last column of the run.
        device: where torch searches.
        backend: who searches (`bench.search.dense.search`).

    Raises:
        StoreError: the vectors are not those of the leg's queries, or cannot be read.
        UsageError: the two were encoded by encoders of different widths, or a candidate is not in the corpus.
    """
    asked, found, items = Vectors(queries), Vectors(passages), read.queries(leg)
    place = {name: row for row, name in enumerate(asked.ids)}
    if [item.id for item in items] != list(place):
        raise StoreError(f"{queries}: the vectors are not those of the queries of {leg}; `bench verify` tells more")
    given = read.candidates(leg)

    def rank(block: Sequence[Item]) -> Iterator[Ranking]:
        """Rank a block, one document deeper where one may be dropped."""
        ids = [item.id for item in block]
        rows = Block(ids, asked.matrix[[place[name] for name in ids]])
        k = rules.k + rules.drop_identical
        if given is None:
            return search(rows, found, k, rules.tie, similarity, backend, device)
        lists = {name: given[name] for name in ids if name in given}
        return among.rank(rows, found, lists, k, rules.tie, similarity)

    return write(work, items, rank, rules, tag)
