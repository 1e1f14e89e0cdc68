"""Validate a result from elsewhere: check everything that can be checked, and report every reason to refuse it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.core.errors import DataError
from bench.data.formats.faults import shown
from bench.evaluation.results import RESULT, averages
from bench.evaluation.results.format import place
from leaderboard.records import NEAR, Records
from leaderboard.submissions.bundle import AGAIN, Candidate, Reasons, candidate, folder_of, per_query
from leaderboard.submissions.claims import check_claims
from leaderboard.submissions.invariants import read_checked_run, table_faults
from leaderboard.submissions.recompute import TOLERANCE, Judged, Judges, Outcome, SuiteKnown, not_recomputed, recompute

Outcomes = Mapping[tuple[str, str], Outcome]


@dataclass(frozen=True)
class Verdict:
    """The outcome of validating a result."""

    title: str  # what messages call it
    found: Candidate | None  # the result; None if it cannot be read
    reasons: tuple[DataError, ...]  # why it is refused, file by file; none if it is accepted
    more: int = 0  # faults that are counted but not listed
    outcomes: Outcomes = field(default_factory=dict)  # what was recomputed, by task and leg

    @property
    def accepted(self) -> bool:
        """Whether nothing speaks against it."""
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
        """Return why the others were not recomputed, by task, leg and name."""
        return self._by_task(lambda outcome: {name: why[:2000] for name, why in outcome.taken.items()})

    def _by_task(self, read: Callable[[Outcome], Any]) -> dict[str, dict[str, Any]]:
        """Return what is read from each outcome, by task and leg; nothing for those where it is empty."""
        found: dict[str, dict[str, Any]] = {}
        for (task, leg), outcome in self.outcomes.items():
            if value := read(outcome):
                found.setdefault(task, {})[leg] = value
        return found


def validate(folder: Path, title: str, judges: Judges) -> Verdict:
    """Validate a bundle; messages call it `title`. Raises `OSError` for a file that cannot be read."""
    reasons = Reasons(title)
    found = candidate(folder, reasons)
    outcomes: dict[tuple[str, str], Outcome] = {}
    if found is not None:
        check_claims(found, judges.methods, reasons)
        known: SuiteKnown | str = "see the reasons"
        with reasons.collect(RESULT):
            known = judges.suite(found.content)
        _averages(found, known, reasons)
        for task, leg in found.legs:
            outcomes[task, leg] = _leg(found, task, leg, judges, known, reasons)
    return Verdict(title, found, tuple(reasons.listed()), reasons.more, outcomes)


def without_trust(verdict: Verdict, records: Records = NEAR) -> Verdict:
    """Return the verdict with a reason for each cause that left numbers unverified, unless a record covers them."""
    found = verdict.found
    record = records.find(found.result.path) if found else None
    if found and record and record.covers(found.content):
        other = [
            DataError(verdict.title, None, f"a record of other judgements of {task} {leg}".strip(), "one of those here")
            for (task, leg), outcome in verdict.outcomes.items()
            if outcome.data and outcome.data != record.data.get(task, {}).get(leg)
        ]
        return replace(verdict, reasons=verdict.reasons or tuple(other))
    if found and records.excepted(folder_of(found)):
        return verdict
    first: dict[str, str] = {}
    for (task, leg), outcome in verdict.outcomes.items():
        for name, why in outcome.taken.items():
            first.setdefault(why, f"{shown(name)} of {f'{task} {leg}'.strip()}, which could not be recomputed")
    reasons = [DataError(verdict.title, None, what, "only recomputable numbers", why) for why, what in first.items()]
    return replace(verdict, reasons=verdict.reasons or tuple(reasons))


def _leg(found: Candidate, task: str, leg: str, judges: Judges, known: SuiteKnown | str, reasons: Reasons) -> Outcome:
    """Check the values and the run of a leg, and one against the other."""
    about, where = found.content.tasks[task][leg], (task, leg)
    said = " ".join(where).strip()
    if not isinstance(about.protocol.get("k"), int) or about.protocol.get("tie") not in ("trec", "list"):
        reasons.add(
            RESULT, f"the protocol {shown(about.protocol)} of {said}", "`tie` and `k` as a run writes them", AGAIN
        )
    before = len(reasons)
    table = per_query(found, task, leg, reasons)
    if table is None:
        return not_recomputed(about, "its values cannot be read")
    table_faults(where, about, table, reasons)
    remote = found.content.remote.get(place("runs", task, leg))
    if remote is not None:
        size = f"{remote.bytes / 1e6:,.1f} MB"
        return not_recomputed(about, f"the run is not in the bundle ({size} at {remote.url})")
    run = read_checked_run(found, where, about, table, reasons)
    if run is None or len(reasons) > before:
        return not_recomputed(about, "see the reasons")
    judged: Judged | str = known if isinstance(known, str) else "see the reasons"
    if not isinstance(known, str):
        with reasons.collect(RESULT):
            judged = judges.leg(found.content, task, leg)
    if isinstance(judged, str):
        return not_recomputed(about, judged)
    return recompute(where, about, table, run, judged, reasons)


def _averages(found: Candidate, known: SuiteKnown | str, reasons: Reasons) -> None:
    """Check the suite's names and averages against the installed one; without one, only averages of legs."""
    content = found.content
    for task, legs in content.tasks.items():
        if len({frozenset(leg.measures) for leg in legs.values()}) > 1:
            reasons.add(RESULT, f"legs of {task} with different measures", "the same for all", AGAIN)
            return
    if isinstance(known, SuiteKnown):
        for name in ("title", "primary", "stands_for", "parallel"):
            says, expected = getattr(content.suite, name), getattr(known, name)
            if says != expected and not (name in ("primary", "parallel") and not says):  # older results lack them
                reasons.add(
                    RESULT, f"suite {name} {shown(says)}", f"{expected!r}, as suite {content.suite.name} has it"
                )
    plain = {
        task: {leg: {"measures": one.measures} for leg, one in legs.items()} for task, legs in content.tasks.items()
    }
    ours = {
        str(one["name"]): one["measures"]
        for one in averages(plain, known.macros if isinstance(known, SuiteKnown) else ())
    }
    theirs = {one.name: one.measures for one in content.macro}
    if len(theirs) != len(content.macro):
        reasons.add(RESULT, "two averages of one name", "each once", AGAIN)
    for name in ours:
        if name not in theirs:
            reasons.add(RESULT, f"no average {shown(name)}", "every average whose tasks are there", AGAIN)
    for name, values in theirs.items():
        if name not in ours and isinstance(known, SuiteKnown):
            reasons.add(RESULT, f"an average {shown(name)}", f"those of suite {content.suite.name} alone", AGAIN)
        for measure in sorted(values.keys() | ours[name].keys()) if name in ours else ():
            says, expected = values.get(measure), ours[name].get(measure)
            if says is None or expected is None or abs(says - expected) > TOLERANCE:
                found_ = f"{shown(measure)} of the average {shown(name)} = {says}"
                reasons.add(RESULT, found_, f"{expected}, the mean of its members", AGAIN)
