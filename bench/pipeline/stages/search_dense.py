"""search: vectors of queries and of passages → run, among the whole corpus or each query's candidates."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.core.errors import StoreError
from bench.core.workspace import Workspace
from bench.pipeline import memory
from bench.pipeline.stages import read
from bench.pipeline.stages.encode import Encode
from bench.pipeline.stages.init import begun_size
from bench.pipeline.stages.pool import BuildPool
from bench.pipeline.stages.post import PostProcess
from bench.pipeline.stages.read import Read
from bench.pipeline.stages.search import RankingStage, write
from bench.retrieval.search import Similarity, VectorBlock, rank_candidates, search
from bench.retrieval.vectors import Vectors
from bench.store.stage import NOT_IN_KEY, Cost, Resources, Stage, named
from bench.types import Item, Json, Ranking


@dataclass(frozen=True, kw_only=True)
class DenseSearch(RankingStage):
    """Vectors of queries and passages → run."""

    name, code, libraries = "search", (1, 1), ("numpy",)
    passages: Stage
    queries: Stage
    subset: Read | BuildPool  # the queries' ids, and candidates where there are some
    similarity: Similarity
    device: str = field(default="cpu", metadata=NOT_IN_KEY)
    workers: int = field(default=1, metadata=NOT_IN_KEY)  # devices, or threads of the processor
    system_label: str = field(default="", metadata=NOT_IN_KEY)

    title = property(lambda self: f"{self.system_label} {self.subset.label}")
    cost = property(lambda self: Cost("search dense", self.subset.questions, 500.0))
    disk = property(lambda self: self.written(self.lines(self.subset.questions, self.passages.cost.units)))

    @property
    def resources(self) -> Resources:
        """Blocks of passages: mapped as they are, or copied where they are widened, scaled, or extended (`l2`)."""
        stored = self.passages.vectors if isinstance(self.passages, PostProcess) else self.passages
        unit = isinstance(self.passages, Encode) and self.passages.encoder_config.normalise
        scaled = self.similarity != "dot" and not unit
        widened = getattr(stored, "precision", "") == "float16"
        copies = 1 + max(widened, scaled) if self.similarity == "l2" else widened + scaled  # at a time
        shape = begun_size(self.passages)
        held = memory.searching(stored.cost.units, shape.width if shape else 0, copies, self.workers)
        return Resources(memory=held, device=self.device, processes=self.workers)

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        """Write `run.trec` as `search` does. The device changes no byte.

        Raises:
            StoreError: the vectors are not those of the subset's queries, or cannot be read.
            UsageError: the two were encoded by encoders of different widths, or a candidate is not in the corpus.
        """
        rules, subset = self.rules, folders["subset"]
        queries, passages, items = Vectors(folders["queries"]), Vectors(folders["passages"]), read.queries(subset)
        place = {name: row for row, name in enumerate(queries.ids)}
        if [item.id for item in items] != list(place):
            folder = folders["queries"]
            raise StoreError(
                f"{folder}: the vectors are not those of the queries of {subset}; `bench verify` says more"
            )
        candidates = read.candidates(subset)

        def rank(block: Sequence[Item]) -> Iterator[Ranking]:
            """Rank a block, one document deeper where one may be dropped."""
            ids = [item.id for item in block]
            rows = VectorBlock(ids, queries.matrix[[place[name] for name in ids]])
            k = rules.k + rules.drop_identical
            if candidates is None:
                return search(rows, passages, k, rules.tie, self.similarity, device=self.device, workers=self.workers)
            lists = {name: candidates[name] for name in ids if name in candidates}
            return rank_candidates(rows, passages, lists, k, rules.tie, self.similarity)

        return write(space, items, rank, rules, self.tag)


@dataclass(frozen=True, kw_only=True)
class MineDenseSearch(DenseSearch):
    """Vectors of a pool of training pairs → run of its queries."""

    name = "mine_search"
    subset: BuildPool = field(metadata=named("pool"))
