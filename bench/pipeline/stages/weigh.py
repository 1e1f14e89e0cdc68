"""weigh: two runs on development questions → the weight by which they are best interpolated."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.core.files import canonical, write_bytes
from bench.core.workspace import Workspace
from bench.pipeline.stages import read
from bench.pipeline.stages.fuse import WEIGHT, opened, ranking_of
from bench.pipeline.stages.read import Read
from bench.pipeline.stages.score import Protocol, Score, answered, score
from bench.pipeline.stages.search import RankingOptions
from bench.pipeline.stages.texts import StoreTexts
from bench.retrieval.fusion import Scale, join
from bench.store.stage import FLATTEN_IN_KEY, NOT_IN_KEY, OPTIONAL, Cost, Stage
from bench.types import Json

GRID = tuple(step / 20 for step in range(21))
"""Weights that are tried: 0 to 1 by 0.05.

Source: ours; Mr. TyDi's script has weights of two decimals, which a few hundred questions do not separate.
"""


@dataclass(frozen=True, kw_only=True)
class TuneFusionWeight(Stage):
    """Two runs on dev questions → the best weight."""

    name, code = "weigh", (1, Score.code)
    first: Stage
    second: Stage
    subset: Read  # the dev questions
    texts: StoreTexts | None = field(default=None, metadata=OPTIONAL)  # of the passages, where answers are looked for
    rules: RankingOptions = field(metadata=FLATTEN_IN_KEY)
    scale: Scale  # of the scores before they are mixed
    protocol: Protocol = field(metadata=NOT_IN_KEY)
    system_label: str = field(metadata=NOT_IN_KEY)

    title = property(lambda self: f"{self.system_label} {self.subset.title}")
    cost = property(lambda self: Cost("weigh", self.subset.questions, 1e2))

    @property
    def library_versions(self) -> dict[str, Json]:
        return dict(self.protocol.libraries())

    def choices(self) -> dict[str, Json]:
        measure = self.protocol.measures[0]
        brought = self.protocol.brought(measure)
        selection: dict[str, Json] = {
            "grid": list(GRID),
            "measure": str(measure),
            **({"extra": brought} if brought else {}),
        }
        return {**super().choices(), **selection}

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        """Write `weight.json`: the weight whose fused run has the highest mean of the protocol's first measure.

        The grid has both end points, which are the two runs themselves, so that on these questions the fused run is at
        least as good as either. Raises as `score` does, and `DataError` for a run that cannot be read.
        """
        protocol, rules, subset = self.protocol, self.rules, folders["subset"]
        measure = protocol.measures[0]
        narrow = replace(protocol, measures=(measure,), official=())
        ours, theirs, qrels = opened(folders["first"], rules), opened(folders["second"], rules), read.qrels(subset)
        joints = [
            join(ranking_of(ours, query.id), ranking_of(theirs, query.id), self.scale) for query in read.queries(subset)
        ]
        judges = answered(subset, narrow, folders.get("texts"))
        values = {}
        for weight in GRID:
            runs = {joint.first.query: joint.mix(weight, rules.k, rules.tie) for joint in joints}
            scored = score(qrels, runs, narrow, judges)
            values[weight] = scored.scores.means[str(measure)]
            space.advance(len(joints))
        weighed: dict[str, Json] = {
            "weight": best_of(values),
            "measure": str(measure),
            "scale": self.scale,
            "queries": len(joints),
            "values": {str(weight): value for weight, value in values.items()},
        }
        write_bytes(space.out / WEIGHT, canonical(weighed))
        return weighed


def best_of(values: Mapping[float, float]) -> float:
    """Return the weight of the highest value; among equal ones that nearest to 0 or 1, then the lower."""
    highest = max(values.values())
    level = [weight for weight, value in values.items() if value == highest]
    return min(level, key=lambda weight: (round(min(weight, 1 - weight), 9), weight))
