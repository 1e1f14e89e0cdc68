"""first_rank: vectors or index + judgements → rank of each query's first relevant passage among all passages.

Of vectors no ranking is kept: the passages before the first relevant one are counted. One is before it if its score is
higher, in the one arithmetic of scores (`bench.retrieval.search.Exact`), or equal and before it by the tie rule
(`bench.core.order`). Products in float32 decide most passages, since they are off by less than a bound; only those
within the bound are scored again. So the rank is the one that a search of the whole corpus would give.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from bench.core.errors import UsageError
from bench.core.files import canonical, write_bytes
from bench.core.order import order
from bench.core.workspace import Workspace
from bench.data.formats.ids import Ids
from bench.data.formats.trec import read_run
from bench.evaluation.measures.log_rank import log_rank
from bench.pipeline.stages import read
from bench.pipeline.stages.read import Read
from bench.pipeline.stages.search import EVERYTHING, RUN, RankingStage, Search
from bench.pipeline.stages.search import among as among_candidates
from bench.pipeline.stages.search_dense import DenseSearch
from bench.pipeline.stages.validate import IDS, Validate
from bench.retrieval.search import (
    Double,
    Exact,
    Matrix,
    Numbers,
    Similarity,
    VectorBlock,
    VectorRows,
    as_products,
    product_bounds,
    rank_candidates,
)
from bench.retrieval.vectors import Vectors
from bench.store.fingerprinted import Fingerprinted
from bench.store.stage import NOT_IN_KEY, OPTIONAL, Cost, Stage
from bench.types import Candidates, Item, Json, Tie

RANKS = "first-ranks.json.gz"
_QUERIES, _PASSAGES = 256, 1 << 15
"""Of a block of products, 32 MiB."""
_RESCORED = 1 << 13  # passages that are scored again at a time
_FEW_TIES = 1 << 10  # ties of which ids are compared one by one


@dataclass(frozen=True)
class FirstRanks:
    """What a `first_rank` artefact holds, a query at each place."""

    queries: tuple[str, ...]  # every judged query, in the order of the judgements
    ranks: tuple[int | None, ...]  # of the first relevant passage, from 1; None where none is ranked
    among: tuple[int, ...]  # passages that are ranked

    @property
    def values(self) -> tuple[float, ...]:
        """LogRank by query."""
        return tuple(map(log_rank, self.ranks, self.among))


def first_ranks_in(folder: Path) -> FirstRanks:
    """Read a `first_rank` artefact."""
    content = json.loads(gzip.decompress((folder / RANKS).read_bytes()))
    return FirstRanks(*(tuple(content[name]) for name in ("queries", "ranks", "among")))


@dataclass(frozen=True, kw_only=True)
class FirstRank(Stage):
    """Vectors or index + judgements → ranks of the first relevant passages.

    Of vectors it is counted; a method that searches by itself is asked for all that match, where its run has no
    relevant passage, and passages that do not match come after those, in the order of the tie rule.
    """

    name, code = "first_rank", 1
    ranking: RankingStage
    subset: Read
    checked: Validate
    corpus: Fingerprinted[Item]
    passages: Stage | None = field(default=None, metadata=OPTIONAL)
    queries: Stage | None = field(default=None, metadata=OPTIONAL)
    index: Stage | None = field(default=None, metadata=OPTIONAL)
    encoder: Stage | None = field(default=None, metadata=OPTIONAL)
    system_label: str = field(default="", metadata=NOT_IN_KEY)

    @classmethod
    def of_ranking(cls, ranking: RankingStage, subset: Read, label: str, notes: Mapping[str, Json]) -> FirstRank:
        """Return the count for a ranking.

        Raises:
            UsageError: runs that are fused or re-ranked, or queries that documents do not judge.
        """
        where = f"{label} on {subset.label}"
        if subset.qrels is None:
            raise UsageError(
                where=where,
                found="questions that are judged by answers",
                expected="judged documents, whose rank is counted",
            )
        common: dict[str, Any] = {"subset": subset, "checked": subset.corpus, "corpus": subset.corpus.corpus}
        common |= {"ranking": ranking, "system_label": label, "notes": notes}
        if isinstance(ranking, DenseSearch):
            return cls(passages=ranking.passages, queries=ranking.queries, **common)
        if isinstance(ranking, Search):
            return cls(index=ranking.index, encoder=getattr(ranking, "encoder", None), **common)
        raise UsageError(
            where=where,
            found="a run that is made of others",
            expected="a system that ranks all passages by itself, fused with nothing and not re-ranked",
        )

    title = property(lambda self: f"{self.system_label} {self.subset.title}")
    cost = property(lambda self: Cost("first_rank", self.subset.questions, 300.0))
    resources = property(lambda self: self.ranking.resources)

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        """Write `first-ranks.json.gz`."""
        subset, rules = folders["subset"], self.ranking.rules
        relevant = {
            query: {
                name for name, grade in grades.items() if grade >= 1 and not (rules.drop_identical and name == query)
            }
            for query, grades in read.qrels(subset).items()
        }
        ids, candidates = Ids.load(folders["checked"] / IDS), read.candidates(subset)
        among = {query: len(ids) for query in relevant}
        if candidates is not None:
            among = {query: len(candidates[query].documents) for query in relevant}
        elif rules.drop_identical:
            among = {
                query: among[query] - identical
                for query, identical in zip(among, ids.contains(list(among)), strict=True)
            }
        if isinstance(self.ranking, DenseSearch):
            ranks = self._of_vectors(folders, relevant, candidates)
        else:
            ranks = self._of_index(folders, relevant, candidates)
        # a corpus of nothing but the query itself has nothing to rank
        result = FirstRanks(tuple(relevant), tuple(map(ranks.get, relevant)), tuple(max(1, n) for n in among.values()))
        content: dict[str, Json] = {"queries": result.queries, "ranks": result.ranks, "among": result.among}
        write_bytes(space.out / RANKS, gzip.compress(canonical(content), mtime=0))
        space.advance(len(relevant))
        return {
            "queries": len(relevant),
            "without_rank": sum(rank is None for rank in result.ranks),
            "passages": len(ids),
            "log_rank": fmean(result.values),
        }

    def _of_vectors(
        self, folders: Mapping[str, Path], relevant: Mapping[str, set[str]], candidates: dict[str, Candidates] | None
    ) -> dict[str, int]:
        assert isinstance(self.ranking, DenseSearch)  # noqa: S101 (for the type checker)
        queries, passages = Vectors(folders["queries"]), Vectors(folders["passages"])
        rules, similarity = self.ranking.rules, self.ranking.similarity
        if candidates is None:
            return first_ranks(queries, passages, relevant, rules.tie, similarity, drop_identical=rules.drop_identical)
        listed = [place for place, query in enumerate(queries.ids) if query in candidates]
        block = VectorBlock([queries.ids[place] for place in listed], queries.matrix[listed])
        rankings = rank_candidates(block, passages, candidates, EVERYTHING, rules.tie, similarity)
        return _first({ranking.query: ranking.documents for ranking in rankings}, relevant, rules.drop_identical)

    def _of_index(
        self, folders: Mapping[str, Path], relevant: Mapping[str, set[str]], candidates: dict[str, Candidates] | None
    ) -> dict[str, int]:
        assert isinstance(self.ranking, Search)  # noqa: S101 (for the type checker)
        rules = self.ranking.rules
        run = read_run(folders["ranking"] / RUN, rules.tie, may_be_empty=True)
        ranks = _first({query: ranking.documents for query, ranking in run.items()}, relevant, rules.drop_identical)
        items = [item for item in read.queries(folders["subset"]) if relevant[item.id] and item.id not in ranks]
        if not items:
            return ranks
        retriever, places = self.ranking.index.retriever(folders), dict[str, int]()
        for ranking in retriever.search(folders["index"], items, EVERYTHING, rules.tie):
            query, relevant_ids = ranking.query, relevant[ranking.query]
            if candidates is not None:
                listed = among_candidates(ranking, candidates[query], replace(rules, k=EVERYTHING)).documents
            else:
                listed = ranking.documents
            if hit := _first({query: listed}, relevant, rules.drop_identical):
                ranks |= hit
            elif candidates is None:
                places = places or self._places(rules.tie)
                if in_corpus := [places[name] for name in relevant_ids if name in places]:
                    target = min(in_corpus)
                    excluded = {query} - set(listed) if rules.drop_identical else set[str]()
                    skipped = rules.drop_identical and query in listed
                    behind = sum(places[name] < target for name in [*listed, *(excluded & places.keys())])
                    ranks[query] = 1 + len(listed) - skipped + target - behind
        return ranks

    def _places(self, tie: Tie) -> dict[str, int]:
        """Return the place of each passage among passages that all tie."""
        names: Iterable[str] = (item.id for item in self.checked.suite_corpus.items.read())
        return {name: place for place, name in enumerate(sorted(names, reverse=True) if tie == "trec" else names)}


def _first(
    rankings: Mapping[str, Sequence[str]], relevant: Mapping[str, set[str]], drop_identical: bool
) -> dict[str, int]:
    """Return the rank of the first relevant document of each ranking that has one."""
    ranks = {}
    for query, documents in rankings.items():
        candidates = (name for name in documents if not (drop_identical and name == query))
        rank = next((rank for rank, name in enumerate(candidates, 1) if name in relevant.get(query, ())), None)
        if rank is not None:
            ranks[query] = rank
    return ranks


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
