"""Recompute measures from a bundle's run and the judgements, and compare them with the reported ones.

The caller provides the judgements (`Judges`), because nothing here may read a suite.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from bench.core.errors import BenchError
from bench.data.formats.faults import shown
from bench.evaluation.measures.evaluate import Scores, coverage
from bench.evaluation.results import RESULT
from bench.evaluation.results.format import Content, PerQuery, Subset, place
from bench.types import Method, Run, Suite, Tie
from leaderboard.submissions.bundle import ValidationErrors

TOLERANCE = 1e-6
"""Largest difference to a recomputed number, which is a mean of 64-bit numbers and the same on every machine."""

_RELEASE = "submit what `bench run` wrote with the judgements of the same release, or report why ours is wrong"


@dataclass(frozen=True)
class JudgedSubset:
    """The judgements of a subset, as plain data.

    Args:
        queries: all judged queries.
        measures: names of the measures that can be computed here.
        tie: order of equal scores.
        drop_identical: whether documents whose id is the query's are left out.
        depth: the deepest cut of the task's measures; None for a whole ranking.
        k: how many documents of each query the task's protocol ranks.
        score: takes a run and returns our measures, per query, and numbers of official scorers by name.
        missing_documents: takes document ids and returns those that the corpus lacks.
        not_computable: why measures of the task cannot be computed here, by name.
        digest: of the judgements.
        data_digests: of queries, judgements and corpus, as passports have them.
    """

    queries: Sequence[str]
    measures: Sequence[str]
    tie: Tie
    drop_identical: bool
    depth: int | None
    k: int
    score: Callable[[Run], tuple[Scores, Mapping[str, float]]]
    missing_documents: Callable[[Sequence[str]], list[str]]
    not_computable: Mapping[str, str] = field(default_factory=dict)
    digest: str = ""
    data_digests: Mapping[str, str] = field(default_factory=dict)


class Judges(Protocol):
    """Source of judgements; returns a sentence where it has none."""

    @property
    def methods(self) -> Mapping[str, Method]:
        """The installed methods by name."""

    def suite(self, content: Content) -> Suite | str:
        """Return the installed suite of a result, or why there is none. Raises `RecordError` for another version."""

    def subset(self, content: Content, task: str, subset: str) -> JudgedSubset | str:
        """Return the judgements of a subset, or why there are none here.

        Raises `RecordError` where the suite has no such task or subset, or its data are here in another release.
        """


@dataclass(frozen=True)
class Outcome:
    """Which numbers of a subset were recomputed.

    Args:
        recomputed: names of recomputed numbers.
        data: digest of the judgements.
        not_recomputed: why the others were not, by name.
    """

    recomputed: tuple[str, ...] = ()
    data: str = ""
    not_recomputed: Mapping[str, str] = field(default_factory=dict)


def not_recomputed(subset: Subset, reason: str) -> Outcome:
    """Return the outcome of a subset none of whose numbers can be recomputed."""
    return Outcome(not_recomputed=dict.fromkeys([*subset.measures, *subset.official], reason))


def recompute(
    task_subset: tuple[str, str],
    subset: Subset,
    table: PerQuery,
    run: Run,
    judged: JudgedSubset,
    errors: ValidationErrors,
) -> Outcome:
    """Score the run of a subset again.

    Args:
        task_subset: the task and the name of the subset.
        subset: what the result file says of it.
        table: its per-query values, as submitted.
        run: its run, as submitted.
        judged: its judgements.
        errors: receives every difference to the result.

    Returns:
        Which numbers were recomputed, and why others were not.
    """
    title = " ".join(task_subset).strip()
    for name, expected in (("tie", judged.tie), ("drop_identical", judged.drop_identical)):
        if (value := subset.protocol.get(name)) != expected:
            errors.add(RESULT, f"protocol {name} {shown(value)} of {title}", f"{expected!r}, the task's own", _RELEASE)
    for name, digest in judged.data_digests.items() if subset.passport else ():
        if getattr(subset.passport, name) != digest:
            errors.add(RESULT, f"a passport with other {name} of {title}", "the digest of those here", _RELEASE)
    if not _is_covered(task_subset, table, run, judged, errors):
        return not_recomputed(subset, "see the reasons")
    try:
        scores, official = judged.score(run)
    except BenchError as error:
        return not_recomputed(subset, str(error))
    for name in judged.measures:
        if name not in subset.measures:
            errors.add(RESULT, f"no {name} of {title}", "every measure of the task", _RELEASE)
        elif name in table.measures:
            _compare_values(task_subset, name, table, scores, errors)
    for name in official.keys() & subset.official.keys():
        if abs(official[name] - subset.official[name]) > TOLERANCE:
            fault = f"{name} = {subset.official[name]:.6f} of {title}"
            errors.add(RESULT, fault, f"{official[name]:.6f}, as recomputed", _RELEASE)
    computed = {*judged.measures, *official}
    names = [*subset.measures, *subset.official]
    return Outcome(
        tuple(name for name in names if name in computed),
        judged.digest,
        {name: judged.not_computable.get(name, "nothing here computes it") for name in names if name not in computed},
    )


def _is_covered(
    task_subset: tuple[str, str], table: PerQuery, run: Run, judged: JudgedSubset, errors: ValidationErrors
) -> bool:
    """Check that the judged queries are those of the values, and that the corpus has the documents of the run.

    No judged query may be left out of a mean, and no ranking may be deeper than the task's measures look.
    """
    name, runs = place("per-query", *task_subset), place("runs", *task_subset)
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
    task_subset: tuple[str, str], name: str, table: PerQuery, scores: Scores, errors: ValidationErrors
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
        errors.add(place("per-query", *task_subset), fault, expected, _RELEASE)
