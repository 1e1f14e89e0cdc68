"""Recompute measures from a bundle's run and the judgements, and compare them with the reported ones.

The caller provides the judgements (`Judges`), because nothing here may read a suite.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bench.core.errors import BenchError
from bench.data.formats.faults import shown
from bench.evaluation.measures.evaluate import Scores, coverage
from bench.evaluation.results import RESULT
from bench.evaluation.results.format import Content, Leg, PerQuery, place
from bench.types import Macro, Parallel, Run, Tie
from leaderboard.submissions.bundle import Reasons

TOLERANCE = 1e-6
"""Largest difference to a recomputed number, which is a mean of 64-bit numbers and the same on every machine."""

_OTHER = "submit what `bench run` wrote with the judgements of the same release, or report why ours is wrong"


@dataclass(frozen=True)
class Recomputed:
    """Measures of a run, scored again."""

    scores: Scores  # our measures, per query
    official: Mapping[str, float]  # numbers of official scorers


@dataclass(frozen=True)
class Judged:
    """The judgements of a leg, as plain data."""

    queries: Sequence[str]  # all judged queries
    measures: Sequence[str]  # what can be computed here
    tie: Tie  # order of equal scores
    drop_identical: bool  # documents whose id is the query's are left out
    depth: int | None  # the deepest cut of the task's measures, None for a whole ranking
    score: Callable[[Run], Recomputed]  # a run → its values
    lacks: Callable[[Sequence[str]], list[str]]  # document ids → those that the corpus lacks
    # why measures of the task cannot be computed here, by name
    lacking: Mapping[str, str] = field(default_factory=dict)
    digest: str = ""  # of the judgements


@dataclass(frozen=True)
class SuiteKnown:
    """An installed suite, as far as results are checked against it."""

    title: str  # on pages
    primary: str  # its headline measure
    stands_for: str  # the benchmark that it is a substitute for; empty for a benchmark itself
    macros: Sequence[Macro]
    parallel: Parallel = ""  # where queries of one id ask one question


class Judges(Protocol):
    """Source of judgements; returns a sentence where it has none."""

    @property
    def methods(self) -> Collection[str]:
        """Names of the installed methods."""

    def suite(self, content: Content) -> SuiteKnown | str:
        """Return the suite of a result, or why it is unknown. Raises `RecordError` for another version of it."""

    def leg(self, content: Content, task: str, leg: str) -> Judged | str:
        """Return the judgements of a leg, or why there are none here.

        Raises `RecordError` where the suite has no such task or leg, or its data are here in another release.
        """


@dataclass(frozen=True)
class Outcome:
    """Which numbers of a leg were recomputed."""

    recomputed: tuple[str, ...] = ()  # names of recomputed numbers
    data: str = ""  # digest of the judgements
    taken: Mapping[str, str] = field(default_factory=dict)  # why the others were not, by name


def not_recomputed(about: Leg, why: str) -> Outcome:
    """Return the outcome of a leg none of whose numbers can be recomputed."""
    return Outcome(taken=dict.fromkeys([*about.measures, *about.official], why))


def recompute(
    where: tuple[str, str], about: Leg, table: PerQuery, run: Run, judged: Judged, reasons: Reasons
) -> Outcome:
    """Score the run of a leg again; every difference to the result becomes a reason to refuse it."""
    said = f"{where[0]} {where[1]}".strip()
    for name, expected in (("tie", judged.tie), ("drop_identical", judged.drop_identical)):
        if (found := about.protocol.get(name)) != expected:
            reasons.add(RESULT, f"protocol {name} {shown(found)} of {said}", f"{expected!r}, the task's own", _OTHER)
    if not (_queries(where, table, judged, reasons) and _documents(where, run, judged, reasons)):
        return not_recomputed(about, "see the reasons")
    try:
        ours = judged.score(run)
    except BenchError as error:
        return not_recomputed(about, str(error))
    for name in judged.measures:
        if name not in about.measures:
            reasons.add(RESULT, f"no {name} of {said}", "every measure of the task", _OTHER)
        elif name in table.measures:
            _values(where, name, table, ours.scores, reasons)
    for name in ours.official.keys() & about.official.keys():
        if abs(ours.official[name] - about.official[name]) > TOLERANCE:
            found = f"{name} = {about.official[name]:.6f} of {said}"
            reasons.add(RESULT, found, f"{ours.official[name]:.6f}, as recomputed", _OTHER)
    done = {*judged.measures, *ours.official}
    every = [*about.measures, *about.official]
    return Outcome(
        tuple(name for name in every if name in done),
        judged.digest,
        {name: judged.lacking.get(name, "nothing here computes it") for name in every if name not in done},
    )


def _queries(where: tuple[str, str], table: PerQuery, judged: Judged, reasons: Reasons) -> bool:
    """Compare the queries with the judged ones, none of which may be left out of a mean."""
    seen = coverage(dict.fromkeys(judged.queries), dict.fromkeys(table.queries))
    name = place("per-query", *where)
    if seen.missing:
        found = f"no value of {len(seen.missing):,} judged queries, e.g. {shown(seen.missing[0])}"
        reasons.add(name, found, f"one for each of the {len(judged.queries):,}, 0 where nothing was found", _OTHER)
    if seen.unexpected:
        found = f"{len(seen.unexpected):,} queries without judgements, e.g. {shown(seen.unexpected[0])}"
        reasons.add(name, found, f"the {len(judged.queries):,} judged ones alone", _OTHER)
    return not (seen.missing or seen.unexpected)


def _documents(where: tuple[str, str], run: Run, judged: Judged, reasons: Reasons) -> bool:
    name = place("runs", *where)
    for ranking in run.values():
        if judged.depth is not None and len(ranking.documents) > judged.depth:
            found = f"{len(ranking.documents):,} documents of query {shown(ranking.query)}"
            reasons.add(name, found, f"at most {judged.depth:,}, the deepest cut of the task's measures", _OTHER)
    unknown = judged.lacks(list(dict.fromkeys(one for ranking in run.values() for one in ranking.documents)))
    if unknown:
        found = f"{len(unknown):,} documents that the corpus lacks, e.g. {shown(unknown[0])}"
        reasons.add(name, found, "ids of the task's corpus", _OTHER)
    return not unknown


def _values(where: tuple[str, str], name: str, table: PerQuery, scores: Scores, reasons: Reasons) -> None:
    ours = dict(zip(scores.queries, scores.values[name], strict=True))
    theirs = dict(zip(table.queries, table.measures[name], strict=False))
    off = [query for query, value in theirs.items() if abs(value - ours[query]) > TOLERANCE]
    if off:
        first = off[0]
        also = f" (and others for {len(off) - 1:,} more)" if len(off) > 1 else ""
        reasons.add(
            place("per-query", *where),
            f"{name} = {theirs[first]:.6f} for query {shown(first)}{also}",
            f"{ours[first]:.6f}, as recomputed from the run and the judgements",
            _OTHER,
        )
