"""score: run + judgements → measures, per query and averaged."""

from __future__ import annotations

import gzip
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.data.trec import read_run, write_run
from bench.fsio import canonical, write_bytes
from bench.scoring.evaluate import Scores, evaluate
from bench.scoring.measures import MeasureSpec
from bench.scoring.official import OFFICIAL, without_identical
from bench.stages import read
from bench.stages.search import RUN
from bench.types import Json, Measure, Ranking, Run, Tie
from bench.workspace import Workspace

VERSION = 1
SCORES, VALUES, CUT = "scores.json", "per-query.json.gz", "run.trec.gz"


@dataclass(frozen=True)
class Protocol:
    """How a task is scored.

    Args:
        measures: what is computed.
        tie: order of equal scores.
        drop_identical: leave out a document whose id equals the query id.
        official: official scorers that are shown beside ours.
        extra: measures that plugins bring, by name.
    """

    measures: tuple[MeasureSpec, ...]
    tie: Tie
    drop_identical: bool
    official: tuple[str, ...]
    extra: Mapping[str, Measure]

    @property
    def depth(self) -> int | None:
        """The deepest cut, or None where a measure has none."""
        cuts = [measure.cut for measure in self.measures]
        return None if None in cuts else max(cut for cut in cuts if cut is not None)


@dataclass(frozen=True)
class Scored:
    """A scored run.

    Args:
        scores: ours, per query.
        official: what the official scorers say where they do otherwise, by name.
    """

    scores: Scores
    official: Mapping[str, float]


def score(qrels: Mapping[str, Mapping[str, int]], rankings: Run, protocol: Protocol) -> Scored:
    """Score a run, from here or from elsewhere, under a task's protocol. Pure.

    Raises:
        UsageError: there is no judgement.
    """
    if protocol.drop_identical:
        rankings = without_identical(rankings)
    scores = evaluate(qrels, rankings, protocol.measures, protocol.tie, protocol.extra)
    official: dict[str, float] = {}
    for name in protocol.official:
        official.update(OFFICIAL[name](qrels, rankings))
    return Scored(scores, official)


def run(work: Workspace, search: Path, leg: Path, protocol: Protocol, tag: str) -> Mapping[str, Json]:
    """Write `scores.json` (means), `per-query.json.gz` (all judged queries), `run.trec.gz` (to the deepest cut).

    Args:
        work: where to.
        search: the artefact that holds `run.trec`.
        leg: the artefact of `read`.
        protocol: of the task.
        tag: last column of the cut run.
    """
    path = search / RUN
    rankings = (
        read_run(path, protocol.tie) if path.stat().st_size else {}
    )  # a run without any hit is a run all the same
    scored = score(read.qrels(leg), rankings, protocol)
    means: dict[str, Any] = {
        "queries": len(scored.scores.queries),
        "measures": scored.scores.means,
        "official": dict(scored.official),
    }
    write_bytes(work.out / SCORES, canonical(means))
    values = {name: list(column) for name, column in scored.scores.values.items()}
    table: dict[str, Json] = {"queries": list(scored.scores.queries), "measures": values}
    write_bytes(work.out / VALUES, gzip.compress(canonical(table), mtime=0))
    stream = io.BytesIO()
    write_run(stream, (_shallow(ranking, protocol.depth) for ranking in rankings.values()), tag)
    write_bytes(work.out / CUT, gzip.compress(stream.getvalue(), mtime=0))
    work.advance(len(scored.scores.queries))
    return means


def _shallow(ranking: Ranking, depth: int | None) -> Ranking:
    """The best `depth` of a ranking, all of it for None."""
    return Ranking(ranking.query, ranking.documents[:depth], ranking.scores[:depth])
