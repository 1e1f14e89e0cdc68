"""Add accepted results to a results folder: the bundle as submitted, and a record of what was recomputed.

The result file is written last, so that no reader ever sees half a bundle.
"""

import hashlib
import shutil
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from filelock import FileLock

from bench.core.errors import DataError, DataFaultsError, StoreError
from bench.core.files import explain, fsync_folder, read_sealed, sha256_file, write_bytes, write_sealed
from bench.evaluation.results import RESULT
from bench.evaluation.results.format import ACCEPTED, ACCEPTED_SCHEMA, Accepted
from bench.evaluation.results.read import Result
from leaderboard.build import trial
from leaderboard.records import NEAR, Records
from leaderboard.submissions.bundle import AGAIN, Candidate, folder_of
from leaderboard.submissions.validate import Verdict

State = Literal["added", "already there"]


@dataclass(frozen=True)
class Added:
    """A result that is in the folder now."""

    title: str
    path: Path  # its result file
    state: State


def existing(found: Candidate, results: Path) -> list[Path]:
    """Return the results of the same system, suite, setting, data and seed, and whatever occupies this one's place."""
    place = folder_of(found)
    pattern = f"*-{found.content.system.hash[:8]}/{place.name}/{RESULT}"
    own = results / place / RESULT
    return [path for path in sorted((results / place.parent.parent).glob(pattern)) if path == own or _same(path, found)]


def _same(path: Path, found: Candidate) -> bool:
    """Return whether a result file is of the same system; the labels may differ."""
    try:
        return bool(read_sealed(path)["system"]["hash"] == found.content.system.hash)
    except (OSError, ValueError, KeyError, TypeError):
        return True  # damaged, which `bench verify` reports: refuse a duplicate rather than hide it


def check_place(verdict: Verdict, results: Path, *, trusted: bool = False) -> Verdict:
    """Return the verdict with the faults of a result in this results folder: place, duplicate, false record.

    A record in the bundle is compared with what was recomputed now, unless it is `trusted`.
    """
    found = verdict.found
    if found is None:
        return verdict
    own, wanted = found.result.path.resolve(), (results / folder_of(found) / RESULT).resolve()
    reasons = list(verdict.reasons)
    if own.is_relative_to(results.resolve()) and own != wanted:
        expected = f"{folder_of(found).as_posix()} below {results}, which its content decides"
        reasons.append(DataError(verdict.title, None, "a result at another place than its own", expected, "move it"))
    reasons += [
        _duplicate(verdict.title, str(path))
        for path in existing(found, results)
        if path.resolve() != own and path.read_bytes() != found.raw
    ]
    reasons += [] if trusted else _false_claims(verdict, found)
    return Verdict(verdict.title, found, tuple(reasons), verdict.more, verdict.outcomes)


def check_boards(
    verdicts: Sequence[Verdict], results: Path, cache: Path | None = None, records: Records = NEAR
) -> tuple[list[Verdict], list[str]]:
    """Return the verdicts, refused where a board cannot be built with the result, and what boards note of copies."""
    groups: dict[tuple[str, str, str], list[Result]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.found is not None and verdict.accepted:
            about = verdict.found.content
            groups[about.data, about.suite.name, about.setting].append(verdict.found.result)
    bad, notes = dict[Path, str](), list[str]()
    for group in groups.values():
        why, noted = trial(group, results, cache, records)
        bad |= why
        notes += noted
    said = [bad.get(one.found.result.path, "")[:500] if one.found else "" for one in verdicts]
    faults = [f"that the board cannot be built with it: {one}" if one else "" for one in said]
    return [
        replace(one, reasons=(DataError(one.title, None, fault, "that it can", AGAIN),)) if fault else one
        for one, fault in zip(verdicts, faults, strict=True)
    ], notes


def _duplicate(title: str, other: str) -> DataError:
    """Return the error for a second result of the same system, suite, setting, data and seed."""
    found = f"another result of the same system, suite, setting, data and seed at {other}"
    return DataError(title, None, found, "none", "if this one shall replace it, take that folder away first")


def _duplicates(verdicts: Sequence[Verdict]) -> list[DataError]:
    """Return errors for different results of one kind in one submission; the same file twice is no error."""
    seen: dict[Path, Verdict] = {}
    reasons = []
    for verdict in verdicts:
        if verdict.found is not None:
            first = seen.setdefault(folder_of(verdict.found), verdict)
            if first.found is not None and first.found.raw != verdict.found.raw:
                reasons.append(_duplicate(verdict.title, first.title))
    return reasons


def _false_claims(verdict: Verdict, found: Candidate) -> list[DataError]:
    """Refuse a record in the bundle that claims more than was recomputed now: anybody can write one."""
    path = found.folder / ACCEPTED
    if not path.exists():
        return []
    where = f"{verdict.title}/{ACCEPTED}"
    try:
        said = Accepted.model_validate(read_sealed(path))
    except (OSError, ValueError, RecursionError) as error:
        cause = f"that it cannot be trusted: {str(error)[:200]}"
        return [DataError(where, None, cause, "no such file", "take it away")]
    if said.result != hashlib.sha256(found.raw).hexdigest():
        return [DataError(where, None, "a record of another result file", "none", "take it away")]
    ours = verdict.recomputed
    for task, legs in said.recomputed.items():
        for leg, names in legs.items():
            for name in names:
                if name not in ours.get(task, {}).get(leg, []):
                    claim = f"a claim that {name[:80]!a} of {f'{task} {leg}'.strip()} was recomputed"
                    return [DataError(where, None, claim, "no more than could be recomputed here", "take it away")]
    return []


def write_record(folder: Path, verdict: Verdict, found: Candidate, when: str) -> None:
    """Write `accepted.json`, sealed; `when` is the time, ISO 8601."""
    said = {
        "schema": ACCEPTED_SCHEMA,
        "result": hashlib.sha256(found.raw).hexdigest(),
        "version": version("retrieval-bench"),
        "when": when,
        "recomputed": verdict.recomputed,
        "not_recomputed": verdict.not_recomputed,
    }
    write_sealed(folder / ACCEPTED, said)


def refuse(verdicts: Sequence[Verdict]) -> None:
    """Raise the reasons of all verdicts and of duplicates among them, as `DataError` or `DataFaultsError`."""
    reasons = [*(fault for verdict in verdicts for fault in verdict.reasons), *_duplicates(verdicts)]
    more = sum(verdict.more for verdict in verdicts)
    if len(reasons) == 1 and not more:
        raise reasons[0]
    if reasons:
        raise DataFaultsError(reasons, more)


def add(verdicts: Sequence[Verdict], results: Path, when: str) -> list[Added]:
    """Add results, looked at by `check_place` too, to a results folder; if one is refused, nothing is written.

    Raises:
        DataError, DataFaultsError: why results are refused.
        StoreError: the folder cannot be written, or a file changed meanwhile.
    """
    refuse(verdicts)
    try:
        results.mkdir(parents=True, exist_ok=True)
        with FileLock(results / ".lock"):
            return [_put(verdict, verdict.found, results, when) for verdict in verdicts if verdict.found is not None]
    except OSError as error:
        raise StoreError(
            f"cannot write the result to {results}: {explain(error)}; mend that or choose another folder by --results"
        ) from error


def _put(verdict: Verdict, found: Candidate, results: Path, when: str) -> Added:
    there = existing(found, results)
    if there and there[0].read_bytes() != found.raw:  # added during the validation
        raise _duplicate(verdict.title, str(there[0]))
    if there:
        return Added(verdict.title, there[0], "already there")
    target = results / folder_of(found)
    if target.exists():
        shutil.rmtree(target)  # without a result file: an interrupted addition
    try:
        for name, seal in found.content.files.items():
            write_bytes(target / name, (found.folder / name).read_bytes())
            if sha256_file(target / name) != seal:
                raise StoreError(f"{found.folder / name} changed while it was read; type the same command again")
        write_record(target, verdict, found, when)
        write_bytes(target / RESULT, found.raw)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    fsync_folder(target.parent)
    return Added(verdict.title, target / RESULT, "added")
