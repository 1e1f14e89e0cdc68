"""fuse: two runs of one subset → one, by interpolated scores or by reciprocal ranks."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.core.workspace import Workspace
from bench.data.formats.trec import read_run
from bench.evaluation.measures.evaluate import without_identical
from bench.pipeline.stages import read
from bench.pipeline.stages.read import Read
from bench.pipeline.stages.search import RUN, RankingOptions, RankingStage, write
from bench.retrieval.fusion import Scale, interpolate, reciprocal_rank
from bench.retrieval.settings import FuseConfig
from bench.store.stage import NOT_IN_KEY, OPTIONAL, Cost, Stage
from bench.types import Item, Json, Ranking, Run

WEIGHT = "weight.json"
"""What `weigh` writes: weight, scale, measure, and the measure's value by weight."""


@dataclass(frozen=True, kw_only=True)
class Fuse(RankingStage):
    """Two runs → one."""

    name, code = "fuse", 1
    first: Stage
    second: Stage
    subset: Read
    weight: Stage | None = field(default=None, metadata=OPTIONAL)  # None where it is given, or none is needed
    fuse: FuseConfig
    system_label: str = field(metadata=NOT_IN_KEY)

    title = property(lambda self: f"{self.system_label} {self.subset.title}")
    cost = property(lambda self: Cost("fuse", self.subset.questions, 1e4))

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        """Write `run.trec` as `search` does; a weight that was chosen brings the scale it was chosen for."""
        how, share, scale, rules = self.fuse.how, self.fuse.weight, self.fuse.scale, self.rules
        if "weight" in folders:
            share, scale = chosen(folders["weight"])
        ours, theirs = opened(folders["first"], rules), opened(folders["second"], rules)

        def rank(block: Sequence[Item]) -> Iterator[Ranking]:
            for query in block:
                first, second = ranking_of(ours, query.id), ranking_of(theirs, query.id)
                if share is None:
                    yield reciprocal_rank((first, second), rules.k, rules.tie)
                else:
                    yield interpolate(first, second, share, rules.k, rules.tie, scale)

        metadata = write(space, read.queries(folders["subset"]), rank, rules, self.tag)
        return {**metadata, "how": how, **({} if share is None else {"weight": share, "scale": scale})}


def opened(folder: Path, rules: RankingOptions) -> Run:
    """Read a run in the task's order, without the documents that the task leaves out. Raises `DataError`."""
    rankings = read_run(folder / RUN, rules.tie, may_be_empty=True)
    return without_identical(rankings) if rules.drop_identical else rankings


def ranking_of(rankings: Run, query: str) -> Ranking:
    """Return the ranking of a query; empty where the run has none."""
    return rankings.get(query) or Ranking(query, (), ())


def chosen(folder: Path) -> tuple[float, Scale]:
    """Read weight and scale from the artefact of `weigh`."""
    weight = json.loads((folder / WEIGHT).read_bytes())
    return weight["weight"], weight["scale"]
