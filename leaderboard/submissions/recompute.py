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
from leaderboard.submissions.bundle import ValidationErrors

TOLERANCE = 1e-6
"""Largest difference to a recomputed number, which is a mean of 64-bit numbers and the same on every machine."""

_RELEASE = "submit what `bench run` wrote with the judgements of the same release, or report why ours is wrong"


@dataclass(frozen=True)
class Recomputed:
    """Measures of a run, scored again.

    Args:
        scores: our measures, per query.
        official: numbers of official scorers, by name.
    """

    scores: Scores
    official: Mapping[str, float]


@dataclass(frozen=True)
class JudgedLeg:
    """The judgements of a leg, as plain data.

    Args:
        queries: all judged queries.
        measures: names of the measures that can be computed here.
        tie: order of equal scores.
        drop_identical: whether documents whose id is the query's are left out.
        depth: the deepest cut of the task's measures; None for a whole ranking.
        score: takes a run and returns its values.
        missing_documents: takes document ids and returns those that the corpus lacks.
        not_computable: why measures of the task cannot be computed here, by name.
        digest: of the judgements.
    """

    queries: Sequence[str]
    measures: Sequence[str]
    tie: Tie
    drop_identical: bool
    depth: int | None
    score: Callable[[Run], Recomputed]
    missing_documents: Callable[[Sequence[str]], list[str]]
    not_computable: Mapping[str, str] = field(default_factory=dict)
    digest: str = ""


@dataclass(frozen=True)
class InstalledSuite:
    """An installed suite, as far as results are checked against it.

    Args:
        title: its title on pages.
        primary: its headline measure.
        stands_for: the benchmark that it is a proxy for; empty for a benchmark itself.
        macros: its averages.
        parallel: where queries of one id ask one question.
    """

    title: str
    primary: str
    stands_for: str
    macros: Sequence[Macro]
    parallel: Parallel = ""


class Judges(Protocol):
    """Source of judgements; returns a sentence where it has none."""

    @property
    def methods(self) -> Collection[str]:
        """Names of the installed methods."""

    def suite(self, content: Content) -> InstalledSuite | str:
        """Return the suite of a result, or why it is unknown. Raises `RecordError` for another version of it."""

    def leg(self, content: Content, task: str, leg: str) -> JudgedLeg | str:
        """Return the judgements of a leg, or why there are none here.

        Raises `RecordError` where the suite has no such task or leg, or its data are here in another release.
        """


@dataclass(frozen=True)
class Outcome:
    """Which numbers of a leg were recomputed.

    Args:
        recomputed: names of recomputed numbers.
        data: digest of the judgements.
        not_recomputed: why the others were not, by name.
    """

    recomputed: tuple[str, ...] = ()
    data: str = ""
    not_recomputed: Mapping[str, str] = field(default_factory=dict)


def not_recomputed(leg: Leg, reason: str) -> Outcome:
    """Return the outcome of a leg none of whose numbers can be recomputed."""
    return Outcome(not_recomputed=dict.fromkeys([*leg.measures, *leg.official], reason))


def recompute(
    task_leg: tuple[str, str], leg: Leg, table: PerQuery, run: Run, judged: JudgedLeg, errors: ValidationErrors
) -> Outcome:
    """Score the run of a leg again.

    Args:
        task_leg: the task and the name of the leg.
        leg: what the result file says of it.
        table: its per-query values, as submitted.
        run: its run, as submitted.
        judged: its judgements.
        errors: receives every difference to the result.

    Returns:
        Which numbers were recomputed, and why others were not.
    """
    title = " ".join(task_leg).strip()
    for name, expected in (("tie", judged.tie), ("drop_identical", judged.drop_identical)):
        if (value := leg.protocol.get(name)) != expected:
            errors.add(RESULT, f"protocol {name} {shown(value)} of {title}", f"{expected!r}, the task's own", _RELEASE)
    if not _is_covered(task_leg, table, run, judged, errors):
        return not_recomputed(leg, "see the reasons")
    try:
        ours = judged.score(run)
    except BenchError as error:
        return not_recomputed(leg, str(error))
    for name in judged.measures:
        if name not in leg.measures:
            errors.add(RESULT, f"no {name} of {title}", "every measure of the task", _RELEASE)
        elif name in table.measures:
            _compare_values(task_leg, name, table, ours.scores, errors)
    for name in ours.official.keys() & leg.official.keys():
        if abs(ours.official[name] - leg.official[name]) > TOLERANCE:
            fault = f"{name} = {leg.official[name]:.6f} of {title}"
            errors.add(RESULT, fault, f"{ours.official[name]:.6f}, as recomputed", _RELEASE)
    computed = {*judged.measures, *ours.official}
    names = [*leg.measures, *leg.official]
    return Outcome(
        tuple(name for name in names if name in computed),
        judged.digest,
        {name: judged.not_computable.get(name, "nothing here computes it") for name in names if name not in computed},
    )


def _is_covered(
    task_leg: tuple[str, str], table: PerQuery, run: Run, judged: JudgedLeg, errors: ValidationErrors
) -> bool:
    """Check that the judged queries are those of the values, and that the corpus has the documents of the run.

    No judged query may be left out of a mean, and no ranking may be deeper than the task's measures look.
    """
    name, runs = place("per-query", *task_leg), place("runs", *task_leg)
    covered = coverage(dict.fromkeys(judged.queries), dict.fromkeys(table.queries))
    if covered.missing:
        fault = f"no value of {len(covered.missing):,} judged queries, e.g. {shown(covered.missing[0])}"
        errors.add(name, fault, f"one for each of the {len(judged.queries):,}, 0 where nothing was found", _RELEASE)
    if covered.unexpected:
        fault = f"{len(covered.unexpected):,} queries without judgements, e.g. {shown(covered.unexpected[0])}"
        errors.add(name, fault, f"the {len(judged.queries):,} judged ones alone", _RELEASE)
    if covered.missing or covered.unexpected:
        return False
    for ranking in run.values():
        if judged.depth is not None and len(ranking.documents) > judged.depth:
            fault = f"{len(ranking.documents):,} documents of query {shown(ranking.query)}"
            errors.add(runs, fault, f"at most {judged.depth:,}, the deepest cut of the task's measures", _RELEASE)
    missing = judged.missing_documents(
        list(dict.fromkeys(document for ranking in run.values() for document in ranking.documents))
    )
    if missing:
        fault = f"{len(missing):,} documents that the corpus lacks, e.g. {shown(missing[0])}"
        errors.add(runs, fault, "ids of the task's corpus", _RELEASE)
    return not missing


def _compare_values(
    task_leg: tuple[str, str], name: str, table: PerQuery, scores: Scores, errors: ValidationErrors
) -> None:
    """Compare the submitted values of a measure with the recomputed ones, query by query."""
    ours = dict(zip(scores.queries, scores.values[name], strict=True))
    submitted = dict(zip(table.queries, table.measures[name], strict=False))
    different = [query for query, value in submitted.items() if abs(value - ours[query]) > TOLERANCE]
    if different:
        first = different[0]
        more = f" (and others for {len(different) - 1:,} more)" if len(different) > 1 else ""
        fault = f"{name} = {submitted[first]:.6f} for query {shown(first)}{more}"
        expected = f"{ours[first]:.6f}, as recomputed from the run and the judgements"
        errors.add(place("per-query", *task_leg), fault, expected, _RELEASE)
