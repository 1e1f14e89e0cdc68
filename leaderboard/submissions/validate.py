"""Validate a result from elsewhere: check everything that can be checked, and report every reason to refuse it."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.core.errors import DataError
from bench.data.formats.faults import shown
from bench.evaluation.results import RESULT
from bench.evaluation.results.format import place
from bench.types import Suite
from leaderboard.records import NEAR, Findings, Records
from leaderboard.submissions.bundle import TAKE_UNCHANGED, Candidate, ValidationErrors, per_query, read_candidate
from leaderboard.submissions.metadata_checks import check_averages, check_metadata, check_regime
from leaderboard.submissions.recompute import JudgedSubset, Judges, Outcome, not_recomputed, recompute
from leaderboard.submissions.run_checks import check_table, read_checked_run
from leaderboard.submissions.statements import check_statements, protocol_depth


@dataclass(frozen=True)
class Verdict:
    """The outcome of validating a result.

    Args:
        title: what messages call the result.
        candidate: the result; None if it cannot be read.
        reasons: why it is refused, file by file; none if it is accepted.
        more: number of errors that are counted but not listed.
        findings: what was recomputed.
    """

    title: str
    candidate: Candidate | None
    reasons: tuple[DataError, ...]
    more: int = 0
    findings: Findings = field(default_factory=Findings)

    @property
    def accepted(self) -> bool:
        """Whether there is no reason to refuse it."""
        return not self.reasons

    def refused(self, *reasons: DataError) -> "Verdict":
        """Return the verdict with more reasons to refuse the result."""
        return replace(self, reasons=(*self.reasons, *reasons))


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
    findings = Findings()
    if candidate is not None:
        check_metadata(candidate, judges.methods, errors)
        check_statements(candidate, judges.methods, errors)
        suite: Suite | str = "see the reasons"
        with errors.collect(RESULT):
            suite = judges.suite(candidate.content)
        check_regime(candidate, judges.methods, suite, errors)
        check_averages(candidate, suite, errors)
        for task, subsets in candidate.content.tasks.items():
            for subset in subsets:
                outcome = _check_subset(candidate, task, subset, judges, suite, errors)
                if outcome.recomputed:
                    findings.recomputed.setdefault(task, {})[subset] = list(outcome.recomputed)
                if outcome.not_recomputed:
                    reasons = {name: reason[:2000] for name, reason in outcome.not_recomputed.items()}
                    findings.not_recomputed.setdefault(task, {})[subset] = reasons
                if outcome.data:
                    findings.data.setdefault(task, {})[subset] = outcome.data
    listed = errors.listed()
    return Verdict(title, candidate, tuple(listed), len(errors) - len(listed), findings)


def _check_subset(
    candidate: Candidate, task: str, name: str, judges: Judges, suite: Suite | str, errors: ValidationErrors
) -> Outcome:
    """Check the values and the run of a subset, one against the other, and both against the judgements."""
    subset, task_subset = candidate.content.tasks[task][name], (task, name)
    if not isinstance(subset.protocol.get("k"), int) or subset.protocol.get("tie") not in ("trec", "list"):
        fault = f"the protocol {shown(subset.protocol)} of {f'{task} {name}'.strip()}"
        errors.add(RESULT, fault, "`tie` and `k` as a run writes them", TAKE_UNCHANGED)
    errors_before = len(errors)
    table = per_query(candidate, task, name, errors)
    if table is None:
        return not_recomputed(subset, "its values cannot be read")
    check_table(task_subset, subset, table, errors)
    remote = candidate.content.remote.get(place("runs", task, name))
    if remote is not None:
        return not_recomputed(subset, f"the run is not in the bundle ({remote.bytes / 1e6:,.1f} MB at {remote.url})")
    run = read_checked_run(candidate, task_subset, subset, table, errors)
    if run is None or len(errors) > errors_before:
        return not_recomputed(subset, "see the reasons")
    judged: JudgedSubset | str = suite if isinstance(suite, str) else "see the reasons"
    if not isinstance(suite, str):
        with errors.collect(RESULT):
            judged = judges.subset(candidate.content, task, name)
    if isinstance(judged, str):
        return not_recomputed(subset, judged)
    depth = protocol_depth(candidate.raw_content["system"]) or judged.k
    if (stated := subset.protocol.get("k")) != depth:
        fault = f"protocol k {stated} of {f'{task} {name}'.strip()}"
        errors.add(RESULT, fault, f"{depth}, as the task and the system's graph have it", TAKE_UNCHANGED)
    return recompute(task_subset, subset, table, run, judged, errors)


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
                    verdict.title, None, f"a record of other judgements of {task} {subset}".strip(), "one of those here"
                )
                for task, subsets in verdict.findings.data.items()
                for subset, digest in subsets.items()
                if digest != record.data.get(task, {}).get(subset)
            ]
            return verdict if verdict.reasons else verdict.refused(*changed)
        if candidate.target.as_posix() in records.exceptions:
            return verdict
    first: dict[str, str] = {}
    for task, subsets in verdict.findings.not_recomputed.items():
        for subset, by_name in subsets.items():
            for name, reason in by_name.items():
                first.setdefault(
                    reason, f"{shown(name)} of {f'{task} {subset}'.strip()}, which could not be recomputed"
                )
    reasons = [
        DataError(verdict.title, None, fault, "only recomputable numbers", reason) for reason, fault in first.items()
    ]
    return verdict if verdict.reasons else verdict.refused(*reasons)
