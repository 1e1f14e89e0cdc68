"""Whether a result from elsewhere may stand on a board: everything that can be checked, and every reason why not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.data.faults import shown
from bench.errors import DataError
from bench.results import RESULT, averages
from leaderboard.bundle import AGAIN, Candidate, candidate, per_query
from leaderboard.invariants import read_checked_run, table_faults
from leaderboard.reasons import Reasons
from leaderboard.recompute import TOLERANCE, Judges, Outcome, SuiteKnown, nothing, recompute
from leaderboard.schema import Remote, place

Outcomes = Mapping[tuple[str, str], Outcome]


@dataclass(frozen=True)
class Verdict:
    """What came of looking at a result.

    Args:
        title: what messages call it.
        found: the result; None where it could not be read.
        reasons: why it is refused, file by file; none where it may stand.
        more: faults that are counted but not told.
        outcomes: what was computed again, by task and leg.
    """

    title: str
    found: Candidate | None
    reasons: tuple[DataError, ...]
    more: int = 0
    outcomes: Outcomes = field(default_factory=dict)

    @property
    def accepted(self) -> bool:
        """It may stand."""
        return not self.reasons

    @property
    def recomputed(self) -> dict[str, dict[str, list[str]]]:
        """Names of numbers that were computed again, by task and leg."""
        found: dict[str, dict[str, list[str]]] = {}
        for (task, leg), outcome in self.outcomes.items():
            if outcome.recomputed:
                found.setdefault(task, {})[leg] = list(outcome.recomputed)
        return found

    @property
    def not_recomputed(self) -> dict[str, dict[str, dict[str, str]]]:
        """Why the others were not, by task, leg and name."""
        found: dict[str, dict[str, dict[str, str]]] = {}
        for (task, leg), outcome in self.outcomes.items():
            if outcome.taken:
                found.setdefault(task, {})[leg] = {name: why[:2000] for name, why in outcome.taken.items()}
        return found


def validate(folder: Path, title: str, judges: Judges) -> Verdict:
    """Look at a bundle.

    Args:
        folder: of its result file.
        title: what messages call it.
        judges: hands in what judges its tasks.

    Raises:
        OSError: a file that cannot be read.
    """
    reasons = Reasons(title)
    found = candidate(folder, reasons)
    outcomes: dict[tuple[str, str], Outcome] = {}
    if found is not None:
        known = judges.suite(found.content)
        _averages(found, known, reasons)
        for task, leg in found.legs:
            outcomes[task, leg] = _leg(found, task, leg, judges, known, reasons)
    return Verdict(title, found, tuple(reasons.told()), reasons.more, outcomes)


def strictly(verdict: Verdict) -> Verdict:
    """Turn what could not be computed again into reasons, a sentence for each cause."""
    taken = [
        (f"{task} {leg}".strip(), name, why)
        for (task, leg), outcome in verdict.outcomes.items()
        for name, why in outcome.taken.items()
    ]
    first: dict[str, tuple[str, str]] = {}
    for said, name, why in taken:
        first.setdefault(why, (said, name))
    reasons = [
        DataError(
            verdict.title, None, f"{shown(name)} of {said}, which could not be computed again", "numbers that can", why
        )
        for why, (said, name) in first.items()
    ]
    return replace(verdict, reasons=verdict.reasons or tuple(reasons))


def _leg(found: Candidate, task: str, leg: str, judges: Judges, known: SuiteKnown | str, reasons: Reasons) -> Outcome:
    """Check a leg: its values, its run, and the one against the other."""
    about, where = found.content.tasks[task][leg], (task, leg)
    said = " ".join(where).strip()
    if not isinstance(about.protocol.get("k"), int) or about.protocol.get("tie") not in ("trec", "list"):
        reasons.add(
            RESULT, f"the protocol {shown(about.protocol)} of {said}", "`tie` and `k` as a run writes them", AGAIN
        )
    before = len(reasons)
    table = per_query(found, task, leg, reasons)
    if table is None:
        return nothing(about, "its values cannot be read")
    table_faults(where, about, table, reasons)
    remote = found.content.remote.get(place("runs", task, leg))
    if remote is not None:
        return nothing(about, _elsewhere(remote))
    run = read_checked_run(found, where, about, table, reasons)
    if run is None or len(reasons) > before:
        return nothing(about, "see the reasons")
    if isinstance(known, str):
        return nothing(about, known)
    judged = judges.leg(found.content, task, leg)
    if isinstance(judged, str):
        return nothing(about, judged)
    return recompute(where, about, table, run, judged, reasons)


def _elsewhere(remote: Remote) -> str:
    """Say that a run is not in the bundle."""
    return f"the run is not in the bundle ({remote.bytes / 1e6:,.1f} MB at {remote.url})"


def _averages(found: Candidate, known: SuiteKnown | str, reasons: Reasons) -> None:
    """Hold the suite's name and its averages against what is known of it; without it, averages of legs alone."""
    content = found.content
    for task, legs in content.tasks.items():
        if len({frozenset(leg.measures) for leg in legs.values()}) > 1:
            reasons.add(RESULT, f"legs of {task} with other measures than each other", "the same for all", AGAIN)
            return
    if isinstance(known, SuiteKnown):
        for name in ("title", "primary", "stands_for"):
            says, expected = getattr(content.suite, name), getattr(known, name)
            if says != expected and not (name == "primary" and says is None):
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
        if name in ours:
            _average(name, values, ours[name], reasons)


def _average(name: str, theirs: Mapping[str, float], ours: Mapping[str, float], reasons: Reasons) -> None:
    """Hold one average against ours."""
    for measure in sorted(theirs.keys() | ours.keys()):
        says, expected = theirs.get(measure), ours.get(measure)
        if says is None or expected is None or abs(says - expected) > TOLERANCE:
            found = f"{shown(measure)} of the average {shown(name)} = {says}"
            reasons.add(RESULT, found, f"{expected}, the mean of its members", AGAIN)
