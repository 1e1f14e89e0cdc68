"""weigh: two runs on development questions → the weight by which they are best interpolated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.core.errors import UsageError
from bench.core.files import canonical, write_bytes
from bench.core.workspace import Workspace
from bench.pipeline.stages import read
from bench.pipeline.stages.fuse import WEIGHT, of, opened
from bench.pipeline.stages.read import Read
from bench.pipeline.stages.score import Protocol, Score, answered, score
from bench.pipeline.stages.search import Rules
from bench.pipeline.stages.texts import StoreTexts
from bench.retrieval.fusion import Joint, Scale, join
from bench.store.stage import IDLE, OPTIONAL, SPREAD, Cost, Stage
from bench.types import Json, Ranking

GRID = tuple(step / 20 for step in range(21))
"""Weights that are tried: 0 to 1 by 0.05.

Source: ours; Mr. TyDi's script has weights of two decimals, which a few hundred questions do not tell apart.
"""


@dataclass(frozen=True, kw_only=True)
class Weigh(Stage):
    """Two runs on dev questions → the best weight.

    Args:
        first: one run.
        second: the other.
        leg: the dev questions.
        texts: of the passages, where answers are looked for.
        rules: of the task.
        scale: of the scores before they are mixed.
        protocol: how the dev questions are scored.
        who: the system.
    """

    name, code = "weigh", (1, Score.code)
    first: Stage
    second: Stage
    leg: Read
    texts: StoreTexts | None = field(default=None, metadata=OPTIONAL)
    rules: Rules = field(metadata=SPREAD)
    scale: Scale
    protocol: Protocol = field(metadata=IDLE)
    who: str = field(metadata=IDLE)

    @property
    def title(self) -> str:
        return f"{self.who} {self.leg.title}"

    @property
    def cost(self) -> Cost:
        return Cost("weigh", self.leg.questions, 1e2)

    def identity(self) -> dict[str, Json]:
        measure = self.protocol.measures[0]
        brought = self.protocol.brought(measure)
        chosen: dict[str, Json] = {
            "grid": list(GRID),
            "measure": str(measure),
            "libraries": self.protocol.libraries(),
            **({"extra": brought} if brought else {}),
        }
        return {**super().identity(), **chosen}

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        places = folders["first"], folders["second"], folders["leg"]
        return run(space, *places, self.protocol, self.rules, scale=self.scale, texts=folders.get("texts"))


def run(
    work: Workspace,
    first: Path,
    second: Path,
    leg: Path,
    protocol: Protocol,
    rules: Rules,
    grid: Sequence[float] = GRID,
    scale: Scale = "min-max",
    texts: Path | None = None,
) -> Mapping[str, Json]:
    """Write `weight.json`: the weight whose fused run has the highest mean of the protocol's first measure.

    The grid has both end points, which are the two runs themselves, so that on these questions the fused run is at
    least as good as either. Among equally good weights that nearest to an end point is taken, which changes one of the
    runs least, and of two such ones the lower.

    Args:
        work: where to; advances by queries, counted anew for each weight.
        first: the artefact that holds one run.
        second: likewise.
        leg: the artefact of `read` of the development questions.
        protocol: how they are scored.
        rules: of the task: a fused run has `k` documents.
        grid: weights of the second run that are tried, 0 and 1 among them.
        scale: of the scores before they are mixed.
        texts: the artefact of `texts`, for measures that look for answers.

    Returns:
        What `weight.json` holds: weight, measure, scale, queries, and values by weight.

    Raises:
        UsageError: a grid without an end point, with a weight twice or outside 0 to 1, or what
            `bench.pipeline.stages.score.score` refuses.
        DataError: a run cannot be read.
    """
    tried = checked(grid)
    measure = protocol.measures[0]
    narrow = replace(protocol, measures=(measure,), official=())
    ours, theirs, qrels = opened(first, rules), opened(second, rules), read.qrels(leg)
    joints = [join(of(ours, query.id), of(theirs, query.id), scale) for query in read.queries(leg)]
    judges = answered(leg, narrow, texts)
    values = {}
    for weight in tried:
        scored = score(qrels, _mixed(joints, weight, rules), narrow, judges)
        values[weight] = scored.scores.means[str(measure)]
        work.advance(len(joints))
    found: dict[str, Json] = {
        "weight": best_of(values),
        "measure": str(measure),
        "scale": scale,
        "queries": len(joints),
        "values": {str(weight): value for weight, value in values.items()},
    }
    write_bytes(work.out / WEIGHT, canonical(found))
    return found


def checked(grid: Sequence[float]) -> tuple[float, ...]:
    """Return the weights in ascending order.

    Raises:
        UsageError: 0 or 1 is lacking, a weight stands twice, or is outside 0 to 1.
    """
    ordered = tuple(sorted(float(weight) for weight in grid))
    if not ordered or ordered[0] != 0 or ordered[-1] != 1 or len(set(ordered)) != len(ordered):
        raise UsageError(f"found the weights {list(ordered)}, expected different ones from 0 to 1, both among them")
    return ordered


def best_of(values: Mapping[float, float]) -> float:
    """Return the weight of the highest value; among equal ones that nearest to 0 or 1, then the lower."""
    highest = max(values.values())
    level = [weight for weight, value in values.items() if value == highest]
    return min(level, key=lambda weight: (round(min(weight, 1 - weight), 9), weight))


def _mixed(joints: Sequence[Joint], weight: float, rules: Rules) -> dict[str, Ranking]:
    """The fused run of one weight."""
    return {joint.first.query: joint.mix(weight, rules.k, rules.tie) for joint in joints}
