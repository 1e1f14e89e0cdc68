"""Measures computed again from a bundle's run and the judgements, and held against what the result says.

The judgements are handed in by whoever can read the suites (`Judges`); nothing here knows one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bench.data.faults import shown
from bench.errors import BenchError
from bench.results import RESULT
from bench.scoring.evaluate import Scores, coverage
from bench.types import Macro, Run, Tie
from leaderboard.reasons import Reasons
from leaderboard.schema import Content, Leg, PerQuery, place

TOLERANCE = 1e-6
"""How far a number may lie from ours; ours are means of 64-bit numbers and come out the same anywhere."""

_OTHER = "hand in what `bench run` wrote with the judgements of the same release, or say why ours is wrong"


@dataclass(frozen=True)
class Recomputed:
    """What scoring a run again gave.

    Args:
        scores: our measures, per query.
        official: what official scorers say beside them.
    """

    scores: Scores
    official: Mapping[str, float]


@dataclass(frozen=True)
class Judged:
    """What judges a leg, as plain data.

    Args:
        queries: all judged queries.
        measures: what can be computed here.
        tie: order of equal scores.
        drop_identical: documents whose id is the query's are left out.
        depth: the deepest cut of the task's measures, None for a whole ranking.
        score: a run → its values.
        lacks: document ids → those that the corpus lacks.
        lacking: why measures of the task cannot be computed here, by name.
    """

    queries: Sequence[str]
    measures: Sequence[str]
    tie: Tie
    drop_identical: bool
    depth: int | None
    score: Callable[[Run], Recomputed]
    lacks: Callable[[Sequence[str]], list[str]]
    lacking: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class SuiteKnown:
    """What is known here of a suite.

    Args:
        title: how pages call it.
        primary: its headline measure.
        stands_for: the benchmark that it is a substitute for; empty for a benchmark itself.
        macros: its averages.
    """

    title: str
    primary: str
    stands_for: str
    macros: Sequence[Macro]


class Judges(Protocol):
    """Who hands in what judges a result, or says in a sentence why nothing here can."""

    def suite(self, content: Content) -> SuiteKnown | str:
        """What is known of a result's suite."""

    def leg(self, content: Content, task: str, leg: str) -> Judged | str:
        """What judges a leg of a result."""


@dataclass(frozen=True)
class Outcome:
    """What came of a leg.

    Args:
        recomputed: numbers that were computed again, by name.
        taken: why the others were not, by name.
    """

    recomputed: tuple[str, ...] = ()
    taken: Mapping[str, str] = field(default_factory=dict)


def nothing(about: Leg, why: str) -> Outcome:
    """The outcome of a leg of which no number can be computed again."""
    return Outcome(taken=dict.fromkeys([*about.measures, *about.official], why))


def recompute(
    where: tuple[str, str], about: Leg, table: PerQuery, run: Run, judged: Judged, reasons: Reasons
) -> Outcome:
    """Score a run again; whatever is otherwise than the result says becomes a reason.

    Args:
        where: task and leg.
        about: what the result says of the leg.
        table: its values per query.
        run: its run.
        judged: what judges it.
        reasons: takes the differences.
    """
    _protocol(where, about, judged, reasons)
    if not (_queries(where, table, judged, reasons) and _documents(where, run, judged, reasons)):
        return nothing(about, "see the reasons")
    try:
        ours = judged.score(run)
    except BenchError as error:
        return nothing(about, str(error))
    said = f"{where[0]} {where[1]}".strip()
    for name in judged.measures:
        if name not in about.measures:
            reasons.add(RESULT, f"no {name} of {said}", "every measure of the task", _OTHER)
        elif name in table.measures:
            _values(where, name, table, ours.scores, reasons)
    for name in ours.official.keys() & about.official.keys():
        if abs(ours.official[name] - about.official[name]) > TOLERANCE:
            found = f"{name} = {about.official[name]:.6f} of {said}"
            reasons.add(RESULT, found, f"{ours.official[name]:.6f}, as computed again", _OTHER)
    done = {*judged.measures, *ours.official}
    every = [*about.measures, *about.official]
    unknown = "nothing here computes it"
    return Outcome(
        tuple(name for name in every if name in done),
        {name: judged.lacking.get(name, unknown) for name in every if name not in done},
    )


def _protocol(where: tuple[str, str], about: Leg, judged: Judged, reasons: Reasons) -> None:
    """Hold the rules that the result names against the task's."""
    for name, expected in (("tie", judged.tie), ("drop_identical", judged.drop_identical)):
        if about.protocol.get(name) != expected:
            said = f"protocol {name} {shown(about.protocol.get(name))} of {' '.join(where).strip()}"
            reasons.add(RESULT, said, f"{expected!r}, the task's own", _OTHER)


def _queries(where: tuple[str, str], table: PerQuery, judged: Judged, reasons: Reasons) -> bool:
    """Hold the queries against the judged ones, none of which may be left out of a mean."""
    seen = coverage(dict.fromkeys(judged.queries), dict.fromkeys(table.queries))
    name = place("per-query", *where)
    if seen.missing:
        found = f"no value of {len(seen.missing):,} judged queries, e.g. {shown(seen.missing[0])}"
        reasons.add(name, found, f"one for each of the {len(judged.queries):,}, 0 where nothing was found", _OTHER)
    if seen.unexpected:
        found = f"{len(seen.unexpected):,} queries that nobody judged, e.g. {shown(seen.unexpected[0])}"
        reasons.add(name, found, f"the {len(judged.queries):,} judged ones alone", _OTHER)
    return not (seen.missing or seen.unexpected)


def _documents(where: tuple[str, str], run: Run, judged: Judged, reasons: Reasons) -> bool:
    """Hold a run against the corpus and the deepest measure."""
    name = place("runs", *where)
    for ranking in run.values():
        if judged.depth is not None and len(ranking.documents) > judged.depth:
            found = f"{len(ranking.documents):,} documents of query {shown(ranking.query)}"
            reasons.add(name, found, f"at most {judged.depth:,}, the deepest cut of the task's measures", _OTHER)
    strangers = judged.lacks(list(dict.fromkeys(one for ranking in run.values() for one in ranking.documents)))
    if strangers:
        found = f"{len(strangers):,} documents that the corpus lacks, e.g. {shown(strangers[0])}"
        reasons.add(name, found, "ids of the task's corpus", _OTHER)
    return not strangers


def _values(where: tuple[str, str], name: str, table: PerQuery, scores: Scores, reasons: Reasons) -> None:
    """Hold a measure's values against ours, query by query."""
    ours = dict(zip(scores.queries, scores.values[name], strict=True))
    theirs = dict(zip(table.queries, table.measures[name], strict=False))
    off = [query for query, value in theirs.items() if abs(value - ours[query]) > TOLERANCE]
    if off:
        first = off[0]
        also = f" (and others for {len(off) - 1:,} more)" if len(off) > 1 else ""
        reasons.add(
            place("per-query", *where),
            f"{name} = {theirs[first]:.6f} for query {shown(first)}{also}",
            f"{ours[first]:.6f}, as computed again from the run and the judgements",
            _OTHER,
        )
