"""fuse: two runs of one leg → one, by interpolated scores or by reciprocal ranks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from bench.data.trec import read_run
from bench.errors import UsageError
from bench.scoring.official import without_identical
from bench.search.fusion import Scale, interpolate, reciprocal_rank
from bench.stages import read
from bench.stages.search import RUN, Rules, write
from bench.types import Item, Json, Ranking, Run
from bench.workspace import Workspace

VERSION = 1
WEIGHT = "weight.json"
"""What `weigh` writes: weight, scale, measure, and the measure's value by weight."""

How = Literal["interpolate", "rrf"]


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
    """Write `run.trec` as `bench.stages.search.run` does.

    Args:
        work: where to; advances by queries.
        first: the artefact that holds one run, e.g. BM25's.
        second: likewise, e.g. an encoder's.
        leg: the artefact of `read`; its queries are fused, rankings of others are left out.
        how: `interpolate` (`bench.search.fusion.interpolate`) or `rrf` (`bench.search.fusion.reciprocal_rank`).
        weight: of the second run: a number, or the artefact of `weigh`. None for `rrf`, which has none.
        rules: of the task.
        tag: last column of the run.
        scale: of scores that are interpolated; a weight that was chosen brings the scale that it was chosen for.

    Returns:
        What `bench.stages.search.run` returns, how, and the weight and scale of an interpolation.

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
