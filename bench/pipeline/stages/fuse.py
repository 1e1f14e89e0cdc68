"""fuse: two runs of one leg → one, by interpolated scores or by reciprocal ranks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from bench.config.sections import FuseConfig
from bench.core.errors import UsageError
from bench.core.workspace import Workspace
from bench.data.formats.trec import read_run
from bench.evaluation.measures.evaluate import without_identical
from bench.pipeline.stages import read
from bench.pipeline.stages.read import Read
from bench.pipeline.stages.search import RUN, Rules, write
from bench.retrieval.fusion import Scale, interpolate, reciprocal_rank
from bench.store.stage import IDLE, OPTIONAL, SPREAD, Cost, Stage
from bench.types import Item, Json, Ranking, Run

WEIGHT = "weight.json"
"""What `weigh` writes: weight, scale, measure, and the measure's value by weight."""

How = Literal["interpolate", "rrf"]


@dataclass(frozen=True, kw_only=True)
class Fuse(Stage):
    """Two runs → one.

    Args:
        first: one run.
        second: the other.
        leg: the queries.
        weight: the choice of the weight; None where it is given, or there is none.
        rules: of the task.
        fuse: how.
        tag: last column of the run.
        who: the system.
    """

    name, code = "fuse", 1
    first: Stage
    second: Stage
    leg: Read
    weight: Stage | None = field(default=None, metadata=OPTIONAL)
    rules: Rules = field(metadata=SPREAD)
    fuse: FuseConfig
    tag: str
    who: str = field(metadata=IDLE)

    @property
    def title(self) -> str:
        return f"{self.who} {self.leg.title}"

    @property
    def cost(self) -> Cost:
        return Cost("fuse", self.leg.questions, 1e4)

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        given, share = self.fuse, folders.get("weight", self.fuse.weight)
        places = folders["first"], folders["second"], folders["leg"]
        return run(space, *places, given.how, share, self.rules, self.tag, given.scale)


def run(
    work: Workspace,
    first: Path,
    second: Path,
    leg: Path,
    how: How,
    weight: Path | float | None,
    rules: Rules,
    tag: str,
    scale: Scale = "min-max",
) -> Mapping[str, Json]:
    """Write `run.trec` as `bench.pipeline.stages.search.run` does.

    Args:
        work: where to; advances by queries.
        first: the artefact that holds one run, e.g. BM25's.
        second: likewise, e.g. an encoder's.
        leg: the artefact of `read`; its queries are fused, rankings of others are left out.
        how: `interpolate` (`bench.retrieval.fusion.interpolate`) or `rrf` (`bench.retrieval.fusion.reciprocal_rank`).
        weight: of the second run: a number, or the artefact of `weigh`. None for `rrf`, which has none.
        rules: of the task.
        tag: last column of the run.
        scale: of scores that are interpolated; a weight that was chosen brings the scale that it was chosen for.

    Returns:
        What `bench.pipeline.stages.search.run` returns, how, and the weight and scale of an interpolation.

    Raises:
        UsageError: interpolation without a weight, `rrf` with one, or a weight outside 0 to 1.
        DataError: a run cannot be read.
    """
    if how not in ("interpolate", "rrf"):
        raise UsageError(f"found the fusion {how!r}, expected interpolate or rrf")
    if (weight is None) != (how == "rrf"):
        needs = "none, since it looks at ranks alone" if how == "rrf" else "a number from 0 to 1, or what `weigh` chose"
        raise UsageError(f"fusion by {how}: found the weight {weight}, expected {needs}")
    share, scale = chosen(weight) if isinstance(weight, Path) else (weight, scale)
    ours, theirs = opened(first, rules), opened(second, rules)

    def rank(block: Sequence[Item]) -> Iterator[Ranking]:
        """Fuse the rankings of a block."""
        for query in block:
            one, other = of(ours, query.id), of(theirs, query.id)
            if share is None:
                yield reciprocal_rank((one, other), rules.k, rules.tie)
            else:
                yield interpolate(one, other, share, rules.k, rules.tie, scale)

    facts = write(work, read.queries(leg), rank, rules, tag)
    return {**facts, "how": how, **({} if share is None else {"weight": share, "scale": scale})}


def opened(folder: Path, rules: Rules) -> Run:
    """Read the run of an artefact in the task's order, without the documents that the task leaves out.

    Raises:
        DataError: it cannot be read.
    """
    rankings = read_run(folder / RUN, rules.tie, may_be_empty=True)
    return without_identical(rankings) if rules.drop_identical else rankings


def of(rankings: Run, query: str) -> Ranking:
    """The ranking of a query; empty where the run has none."""
    return rankings.get(query) or Ranking(query, (), ())


def chosen(folder: Path) -> tuple[float, Scale]:
    """Read weight and scale from the artefact of `weigh`."""
    found = json.loads((folder / WEIGHT).read_bytes())
    return found["weight"], found["scale"]
