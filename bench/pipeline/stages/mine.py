"""mine: training pairs + a ranking of their pool → the same pairs with hard negatives from it."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import groupby
from pathlib import Path

import numpy as np

from bench.core.errors import StoreError
from bench.core.files import canonical
from bench.core.workspace import Workspace
from bench.data.pairs.mining import REASONS, MiningRules, choose
from bench.data.pairs.pool import Pool
from bench.data.pairs.stored_pairs import StoredPairs, write_pairs
from bench.pipeline.stages.index import MineIndex
from bench.pipeline.stages.pairs import StorePairs
from bench.pipeline.stages.pool import BuildPool, question
from bench.pipeline.stages.search import RUN, MineSearch
from bench.pipeline.stages.search_dense import MineDenseSearch
from bench.retrieval.search import Exact, Similarity
from bench.retrieval.vectors import Vectors
from bench.store.stage import NOT_IN_KEY, OPTIONAL, Cost, Stage, named
from bench.types import Json, Retriever, Tie, TrainingPair

TIE: Tie = "list"
"""Order of equal scores in rankings that are mined: passages as they come in the pairs."""
_BLOCK = 1024  # pairs a part; never part of the bytes
_EVERYTHING = 2**31 - 1

Scores = Callable[[int, Sequence[int]], float]
"""(number of a pair, passages of the pool, at least one) → the best score of its query with them."""
Ranked = tuple[Sequence[int], Sequence[float]]
"""Passages of the pool, best first, and their scores."""


@dataclass(frozen=True, kw_only=True)
class Mine(Stage):
    """Pairs + rankings of their pool → pairs with hard negatives.

    No input rests on a task: judgements of tests cannot come near what is mined.
    """

    name, code = "mine", 1
    unit = "pairs"
    pairs: StorePairs
    pool: BuildPool
    ranking: MineSearch | MineDenseSearch = field(metadata=named("run"))
    index: MineIndex | None = field(default=None, metadata=OPTIONAL)
    queries: Stage | None = field(default=None, metadata=OPTIONAL)
    passages: Stage | None = field(default=None, metadata=OPTIONAL)
    rules: MiningRules = field(metadata=NOT_IN_KEY)
    system_label: str = field(metadata=NOT_IN_KEY)

    title = property(lambda self: f"{self.system_label} {self.pool.pairs_name}")
    cost = property(lambda self: Cost("mine", self.pairs.cost.units, 3e3))

    def choices(self) -> dict[str, Json]:
        rules = self.rules
        choices = {"from": rules.first, "to": rules.last, "keep": rules.keep, "margin": rules.margin}
        return {**super().choices(), **choices}

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        if isinstance(self.ranking, MineSearch):
            scores = by_retriever(self.ranking.index.retriever(), folders["index"], folders["pairs"])
        else:
            scores = by_vectors(folders["queries"], folders["passages"], self.ranking.similarity)
        return run(space, folders["pairs"], folders["pool"], folders["ranking"], self.rules, scores)


def run(
    work: Workspace, pairs: Path, pool: Path, ranking: Path, rules: MiningRules, scores: Scores
) -> Mapping[str, Json]:
    """Write the pairs, in their order, with what was mined in place of the negatives that they had.

    Nothing but the pairs says what answers a query. `ranking` is a search of the pool of those pairs, `rules.last`
    deep, under the tie rule `TIE`; `scores` are asked for positives that it lacks, under a margin alone. Facts count
    candidates left out by reason, and mined negatives by query language. Raises `StoreError` for another ranking.
    """
    stored, passages = StoredPairs(pairs), Pool(pool)
    parts = _parts(work, len(stored), ranking / RUN, passages, rules, scores)
    left_out: Counter[str] = Counter()
    mined: Counter[str] = Counter()
    without = 0

    def renewed() -> Iterator[TrainingPair]:
        """Hand on each pair with its new negatives, counted on the way."""
        nonlocal without
        numbers = iter(range(len(stored)))
        for part in parts:
            mined_block = json.loads(part.read_bytes())
            left_out.update(mined_block["left_out"])
            for rows, number in zip(mined_block["rows"], numbers, strict=False):
                pair = stored[number]
                mined[pair.query.language] += len(rows)
                without += not rows
                yield replace(pair, negatives=tuple(map(passages.passage, rows)))

    written = write_pairs(work.out, renewed())
    return {
        "pairs": written,
        "mined": sum(mined.values()),
        "without": without,
        "left_out": {reason: left_out[reason] for reason in REASONS},
        "languages": dict(sorted(mined.items())),
    }


def by_vectors(queries: Path, passages: Path, similarity: Similarity) -> Scores:
    """Return what scores positives by vectors of the pairs' queries and the pool, as `bench.retrieval.search` does."""
    query_vectors = Vectors(queries)
    exact = Exact(Vectors(passages), similarity)

    def best(number: int, rows: Sequence[int]) -> float:
        return float(exact.scores(query_vectors.matrix[number], np.asarray(rows, np.int64)).max())

    return best


def by_retriever(retriever: Retriever, index: Path, pairs: Path) -> Scores:
    """Return what scores positives by a retriever: it ranks all that match; those that do not score 0."""
    stored = StoredPairs(pairs)

    def best(number: int, rows: Sequence[int]) -> float:
        (ranking,) = retriever.search(index, [question(number, stored[number])], _EVERYTHING, TIE)
        names = set(map(str, rows))
        positive_scores = (
            score for name, score in zip(ranking.documents, ranking.scores, strict=True) if name in names
        )
        return float(np.float32(next(positive_scores, 0.0)))  # as a run has it

    return best


def _parts(work: Workspace, count: int, run: Path, pool: Pool, rules: MiningRules, scores: Scores) -> list[Path]:
    """Choose the negatives of all pairs, block by block; finished blocks are passed over."""
    with run.open("rb") as lines:
        rankings, parts = _rankings(lines), []
        following = next(rankings, None)
        for start in range(0, count, _BLOCK):
            end, block_rankings = min(start + _BLOCK, count), dict[int, Ranked]()
            while following is not None and following[0] < end:
                block_rankings[following[0]], following = following[1], next(rankings, None)
            make = partial(_block, range(start, end), block_rankings, pool, rules, scores)
            parts.append(work.parts.get(f"{start:09d}.json", make))
            work.advance(end - start)
    if following is not None:
        raise StoreError(f"{run}: found a ranking of pair {following[0]}, which is not there; `bench verify` says more")
    return parts


def _rankings(lines: Iterable[bytes]) -> Iterator[tuple[int, Ranked]]:
    """Stream the rankings of a run in the order of their queries, which are numbers of pairs."""
    for number, group in groupby((line.split() for line in lines), key=lambda columns: int(columns[0])):
        rows = list(group)
        scores: list[float] = np.asarray([columns[4] for columns in rows]).astype(np.float32).tolist()  # as they were
        yield number, ([int(columns[2]) for columns in rows], scores)


def _block(numbers: range, rankings: Mapping[int, Ranked], pool: Pool, rules: MiningRules, scores: Scores) -> bytes:
    """Choose the negatives of some pairs; return them, and why others were left out, as JSON."""
    left_out: Counter[str] = Counter()
    rows = []
    for number in numbers:
        judged = pool.judged(number)
        best = partial(scores, number, sorted(judged.rows))
        choice = choose(*rankings.get(number, ((), ())), judged, pool.texts, rules, best)
        left_out.update(choice.left_out)
        rows.append(choice.rows)
    return canonical({"rows": rows, "left_out": dict(left_out)})
