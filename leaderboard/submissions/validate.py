"""Validate a result from elsewhere: check everything that can be checked, and report every reason to refuse it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.core.errors import DataError
from bench.data.formats.faults import shown
from bench.evaluation.results import RESULT
from bench.evaluation.results.format import place
from leaderboard.records import NEAR, Records
from leaderboard.submissions.bundle import AGAIN, Candidate, ValidationErrors, per_query, read_candidate
from leaderboard.submissions.metadata_checks import check_averages, check_metadata
from leaderboard.submissions.recompute import InstalledSuite, JudgedLeg, Judges, Outcome, not_recomputed, recompute
from leaderboard.submissions.run_checks import check_table, read_checked_run


@dataclass(frozen=True)
class Verdict:
    """The outcome of validating a result.

    Args:
        title: what messages call the result.
        candidate: the result; None if it cannot be read.
        reasons: why it is refused, file by file; none if it is accepted.
        more: number of errors that are counted but not listed.
        outcomes: what was recomputed, by task and leg.
    """

    title: str
    candidate: Candidate | None
    reasons: tuple[DataError, ...]
    more: int = 0
    outcomes: Mapping[tuple[str, str], Outcome] = field(default_factory=dict)

    @property
    def accepted(self) -> bool:
        """Whether there is no reason to refuse it."""
        return not self.reasons

    @property
    def recomputed(self) -> dict[str, dict[str, list[str]]]:
        """Names of recomputed numbers, by task and leg."""
        return self._by_task(lambda outcome: list(outcome.recomputed))

    @property
    def data(self) -> dict[str, dict[str, str]]:
        """Digests of the judgements that were used, by task and leg."""
        return self._by_task(lambda outcome: outcome.data)

    @property
    def not_recomputed(self) -> dict[str, dict[str, dict[str, str]]]:
        """Why the others were not recomputed, by task, leg and name."""
        return self._by_task(lambda outcome: {name: why[:2000] for name, why in outcome.not_recomputed.items()})

    def refused(self, *reasons: DataError) -> "Verdict":
        """Return the verdict with more reasons to refuse the result."""
        return replace(self, reasons=(*self.reasons, *reasons))

    def _by_task(self, read: Callable[[Outcome], Any]) -> dict[str, dict[str, Any]]:
        """Return what is read from each outcome, by task and leg; empty values are left out."""
        values: dict[str, dict[str, Any]] = {}
        for (task, leg), outcome in self.outcomes.items():
            if value := read(outcome):
                values.setdefault(task, {})[leg] = value
        return values


def validate(folder: Path, title: str, judges: Judges) -> Verdict:
    """Validate a bundle.

    Args:
        folder: the folder of the bundle.
        title: what messages call it.
        judges: the suites and judgements that are here.

    Returns:
        The verdict, with every reason to refuse the result.

    Raises:
        OSError: a file cannot be read.
    """
    errors = ValidationErrors(title)
    candidate = read_candidate(folder, errors)
    outcomes: dict[tuple[str, str], Outcome] = {}
    if candidate is not None:
        check_metadata(candidate, judges.methods, errors)
        suite: InstalledSuite | str = "see the reasons"
        with errors.collect(RESULT):
            suite = judges.suite(candidate.content)
        check_averages(candidate, suite, errors)
        for task, legs in candidate.content.tasks.items():
            for leg in legs:
                outcomes[task, leg] = _check_leg(candidate, task, leg, judges, suite, errors)
    listed = errors.listed()
    return Verdict(title, candidate, tuple(listed), len(errors) - len(listed), outcomes)


def _check_leg(
    candidate: Candidate, task: str, name: str, judges: Judges, suite: InstalledSuite | str, errors: ValidationErrors
) -> Outcome:
    """Check the values and the run of a leg, one against the other, and both against the judgements."""
    leg, task_leg = candidate.content.tasks[task][name], (task, name)
    if not isinstance(leg.protocol.get("k"), int) or leg.protocol.get("tie") not in ("trec", "list"):
        found = f"the protocol {shown(leg.protocol)} of {f'{task} {name}'.strip()}"
        errors.add(RESULT, found, "`tie` and `k` as a run writes them", AGAIN)
    errors_before = len(errors)
    table = per_query(candidate, task, name, errors)
    if table is None:
        return not_recomputed(leg, "its values cannot be read")
    check_table(task_leg, leg, table, errors)
    remote = candidate.content.remote.get(place("runs", task, name))
    if remote is not None:
        return not_recomputed(leg, f"the run is not in the bundle ({remote.bytes / 1e6:,.1f} MB at {remote.url})")
    run = read_checked_run(candidate, task_leg, leg, table, errors)
    if run is None or len(errors) > errors_before:
        return not_recomputed(leg, "see the reasons")
    judged: JudgedLeg | str = suite if isinstance(suite, str) else "see the reasons"
    if not isinstance(suite, str):
        with errors.collect(RESULT):
            judged = judges.leg(candidate.content, task, name)
    return (
        not_recomputed(leg, judged) if isinstance(judged, str) else recompute(task_leg, leg, table, run, judged, errors)
    )


def require_recomputed(verdict: Verdict, records: Records = NEAR) -> Verdict:
    """Return the verdict, refused where numbers are unverified that no maintainer's record or exception covers.

    Args:
        verdict: what `validate` returned.
        records: those of maintainers; records next to results prove nothing here, since anybody can write one.
    """
    candidate = verdict.candidate
    if candidate and records.folder:
        record = records.find(candidate.result.path)
        if record and record.covers(candidate.content):
            changed = [
                DataError(
                    verdict.title, None, f"a record of other judgements of {task} {leg}".strip(), "one of those here"
                )
                for (task, leg), outcome in verdict.outcomes.items()
                if outcome.data and outcome.data != record.data.get(task, {}).get(leg)
            ]
            return verdict if verdict.reasons else verdict.refused(*changed)
        if records.excepted(candidate.target):
            return verdict
    first: dict[str, str] = {}
    for (task, leg), outcome in verdict.outcomes.items():
        for name, reason in outcome.not_recomputed.items():
            first.setdefault(reason, f"{shown(name)} of {f'{task} {leg}'.strip()}, which could not be recomputed")
    reasons = [
        DataError(verdict.title, None, found, "only recomputable numbers", reason) for reason, found in first.items()
    ]
    return verdict if verdict.reasons else verdict.refused(*reasons)
