"""search: index + queries → run, in blocks of queries that outlive a kill."""

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from bench.core.errors import PluginError
from bench.core.files import atomic
from bench.core.order import best
from bench.core.workspace import Workspace
from bench.data.formats.trec import write_empty, write_run
from bench.pipeline import memory
from bench.pipeline.stages import read
from bench.pipeline.stages.index import EncoderIndex, Index, MineIndex
from bench.pipeline.stages.init import EncoderStage
from bench.pipeline.stages.pool import BuildPool
from bench.pipeline.stages.read import Read
from bench.store.stage import ENVIRONMENT, FLATTEN_IN_KEY, Cost, Resources, Stage
from bench.types import Candidates, Item, Json, Method, Ranking, Retriever, Tie

RUN = "run.trec"
EVERYTHING = 2**31 - 1
"""As many documents as there may be: the depth of a whole ranking."""
_BLOCK = 1024  # queries a part: a second or a few of work, and never part of the bytes
_RATE = 300.0  # queries a second
_LOADING = 0.4  # seconds
_QUESTION, _HIT, _PASSED = (
    100.0,
    1.2,
    1.2e-3,
)  # microseconds of BM25: each question, line written, passage of the corpus
_LINE = 21.0  # bytes of a line of a run without its tag: 18 in SciFact and NFCorpus, 37 in Mr. TyDi's gold passages


@dataclass(frozen=True)
class RankingOptions:
    """What the task says about a run."""

    k: int
    tie: Tie
    drop_identical: bool  # leave out a document whose id equals the query id

    def identity(self) -> dict[str, Json]:
        """Return all of it."""
        return {"k": self.k, "tie": self.tie, "drop_identical": self.drop_identical}


@dataclass(frozen=True, kw_only=True)
class RankingStage(Stage):
    """A stage that writes a run."""

    rules: RankingOptions = field(metadata=FLATTEN_IN_KEY)
    tag: str = field(metadata=ENVIRONMENT)  # last column of the run

    def lines(self, questions: float, passages: float) -> float:
        """Return how many lines a run of so many questions has, about."""
        return questions * min(self.rules.k, passages or self.rules.k)

    def written(self, lines: float) -> int:
        """Return the bytes of so many lines, about."""
        return int(lines * (_LINE + len(self.tag)))


def searching(method: Method, questions: float, k: int, passages: float, known: bool) -> Cost:
    """Return the cost of a search in questions: so many microseconds each, where the work of an index is known."""
    if not known:
        return Cost(f"search {method.name}", questions, _RATE, start=1.0)
    each = _QUESTION + _HIT * k + _PASSED * passages
    return Cost(f"search {method.name} by size", questions, 1e6, _LOADING, each=each)


@dataclass(frozen=True, kw_only=True)
class Search(RankingStage):
    """Index + subset → run of a method that searches by itself."""

    name, code = "search", 1
    index: Index
    subset: Read

    title = property(lambda self: f"{self.index.method.name} {self.subset.title}")

    @property
    def cost(self) -> Cost:
        method, passages = self.index.method, self.index.checked.passages
        known = method.footprint is not None and passages > 0
        return searching(method, self.subset.questions, self.rules.k, passages, known)

    @property
    def disk(self) -> int:
        return self.written(self.lines(self.subset.questions, self.index.checked.passages))

    @property
    def resources(self) -> Resources:
        """What the index takes when it is searched."""
        return Resources(memory=self.index.footprint.search_memory / memory.GIB)

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        return run(space, self.index.retriever(folders), folders["index"], folders["subset"], self.rules, self.tag)


@dataclass(frozen=True, kw_only=True)
class EncoderSearch(Search):
    """The same of a method that searches with a trained encoder."""

    index: EncoderIndex
    encoder: EncoderStage

    resources = property(lambda self: self.index.resources)


@dataclass(frozen=True, kw_only=True)
class MineSearch(RankingStage):
    """Index of a pool → run of its queries."""

    name, code = "mine_search", 1
    index: MineIndex
    pool: BuildPool  # the pool, which holds queries as a subset does

    title = property(lambda self: self.index.title)
    cost = property(lambda self: Cost(f"search {self.index.method.name}", self.pool.cost.units, _RATE))

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        return run(space, self.index.retriever(), folders["index"], folders["pool"], self.rules, self.tag)


def run(
    work: Workspace, retriever: Retriever, index: Path, subset: Path, rules: RankingOptions, tag: str
) -> Mapping[str, Json]:
    """Write `run.trec`: six columns, queries in their file's order, at most `k` documents each, tag = the system.

    `subset` holds what `read` writes.

    Raises:
        PluginError: the retriever broke its promise (order, unique ids, finite scores, one ranking per query).
    """
    candidates = read.candidates(subset)

    def rank(block: Sequence[Item]) -> Iterator[Ranking]:
        """Let the retriever search a block, one document deeper where one may be dropped."""
        if candidates is None:
            return retriever.search(index, block, rules.k + rules.drop_identical, rules.tie)
        full_rankings = retriever.search(index, block, EVERYTHING, rules.tie)
        return (among(ranking, candidates[ranking.query], rules) for ranking in full_rankings)

    return write(work, read.queries(subset), rank, rules, tag)


def write(
    work: Workspace,
    queries: Sequence[Item],
    rank: Callable[[Sequence[Item]], Iterator[Ranking]],
    rules: RankingOptions,
    tag: str,
) -> Mapping[str, Json]:
    """Write `run.trec`, whoever ranks, in blocks of queries that outlive a kill, and the queries that found nothing.

    `rank` turns a block of queries into rankings in their order, of `k` documents, and one more under `drop_identical`.

    Raises:
        PluginError: a ranking is not what `rank` promises, or unordered.
    """
    parts = []
    for start in range(0, len(queries), _BLOCK):
        block = queries[start : start + _BLOCK]
        parts.append(work.parts.get(f"{start:09d}.trec", partial(_lines, rank, block, rules, tag)))
        work.advance(len(block))
    rows, answered = 0, set[bytes]()
    with atomic(work.out / RUN) as stream:
        for part in parts:
            lines = part.read_bytes().splitlines(keepends=True)
            rows += len(lines)
            answered |= {line.split(b" ", 1)[0] for line in lines}
            stream.writelines(lines)
    write_empty(work.out / RUN, [item.id for item in queries if item.id.encode() not in answered])
    return {"queries": len(queries), "rows": rows, "k": rules.k}


def _lines(
    rank: Callable[[Sequence[Item]], Iterator[Ranking]], queries: Sequence[Item], rules: RankingOptions, tag: str
) -> bytes:
    """Rank one block; return its lines of the run file."""
    stream = io.BytesIO()
    write_run(stream, (_cut(ranking, rules) for ranking in _paired(rank(queries), queries)), tag)
    return stream.getvalue()


def among(ranking: Ranking, candidates: Candidates, rules: RankingOptions) -> Ranking:
    """Rank a query's candidates as a search of the whole corpus does; those that did not match at all come last."""
    scores = dict(zip(ranking.documents, ranking.scores, strict=True))
    last = min(0.0, *(scores[name] for name in candidates.documents if name in scores), 0.0)
    k = rules.k + rules.drop_identical
    return best(
        ranking.query, candidates.documents, [scores.get(name, last) for name in candidates.documents], k, rules.tie
    )


def _paired(rankings: Iterator[Ranking], queries: Sequence[Item]) -> Iterator[Ranking]:
    """Hold the retriever to one ranking per query, in order."""
    number = 0
    for number, ranking in enumerate(rankings, 1):
        if number > len(queries) or ranking.query != queries[number - 1].id:
            expected = repr(queries[number - 1].id) if number <= len(queries) else "no further one"
            raise PluginError(f"the retriever's ranking {number} is of query {ranking.query!r}, expected {expected}")
        yield ranking
    if number != len(queries):
        raise PluginError(f"the retriever gave {number} rankings for {len(queries)} queries, expected one each")


def _cut(ranking: Ranking, rules: RankingOptions) -> Ranking:
    """Leave out the query's own document where the task says so, and keep the best k."""
    pairs = list(zip(ranking.documents, ranking.scores, strict=True))
    if rules.drop_identical:
        pairs = [pair for pair in pairs if pair[0] != ranking.query]
    pairs = pairs[: rules.k]
    return Ranking(ranking.query, [document for document, _ in pairs], [score for _, score in pairs])
