"""Add accepted results to a results folder: the bundle as submitted, and a record of what was recomputed.

The result file is written last, so that no reader ever sees half a bundle.
"""

import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from filelock import FileLock

from bench.core.errors import DataError, DataFaultsError, StoreError
from bench.core.files import explain, fsync_folder, read_sealed, sha256_file, write_bytes
from bench.data.formats.faults import RecordError
from bench.evaluation.results import RESULT
from bench.evaluation.results.format import ACCEPTED, Accepted
from bench.evaluation.results.read import Result
from leaderboard.build import trial
from leaderboard.records import NEAR, Records, Reproduction
from leaderboard.submissions.bundle import TAKE_UNCHANGED, Candidate
from leaderboard.submissions.recompute import TOLERANCE, Judges
from leaderboard.submissions.strict_json import parse
from leaderboard.submissions.validate import Verdict, require_recomputed, validate


@dataclass(frozen=True)
class Added:
    """A result that is in the folder now.

    Args:
        title: what messages call it.
        path: its result file.
        state: whether it was added or was there before.
    """

    title: str
    path: Path
    state: Literal["added", "already there"]


def existing(candidate: Candidate, results: Path) -> list[Path]:
    """Return the results of the same system, suite, regime, data and seed, and any at the candidate's own path.

    Labels may differ. Of a damaged file, which `bench verify` reports, the same system is assumed: refuse a duplicate
    rather than hide it.
    """
    target, hash_ = candidate.target, candidate.content.system.hash
    paths = []
    for path in sorted((results / target.parent.parent).glob(f"*-{hash_[:8]}/{target.name}/{RESULT}")):
        try:
            same_system = read_sealed(path)["system"]["hash"] == hash_
        except (OSError, ValueError, KeyError, TypeError):
            same_system = True
        if same_system or path == results / target / RESULT:
            paths.append(path)
    return paths


def check_place(verdict: Verdict, results: Path, *, trusted: bool = False) -> Verdict:
    """Return the verdict with the errors of a result in this results folder: wrong place, duplicate, false record.

    Args:
        verdict: what `validate` returned.
        results: the results folder.
        trusted: whether a record in the bundle may claim more than was recomputed now.
    """
    candidate = verdict.candidate
    if candidate is None:
        return verdict
    path, target = candidate.result.path.resolve(), (results / candidate.target / RESULT).resolve()
    reasons = []
    if path.is_relative_to(results.resolve()) and path != target:
        expected = f"{candidate.target.as_posix()} below {results}, which its content decides"
        reasons.append(DataError(verdict.title, None, "a result at another place than its own", expected, "move it"))
    reasons += [
        _duplicate(verdict.title, str(duplicate))
        for duplicate in existing(candidate, results)
        if duplicate.resolve() != path and duplicate.read_bytes() != candidate.raw
    ]
    if not trusted:
        reasons += _check_record(verdict, candidate)
    return verdict.refused(*reasons)


def _check_record(verdict: Verdict, candidate: Candidate) -> list[DataError]:
    """Refuse a record in the bundle that claims more than was recomputed now: anybody can write one."""
    path = candidate.folder / ACCEPTED
    if not path.exists():
        return []
    location = f"{verdict.title}/{ACCEPTED}"
    try:
        record = Accepted.model_validate(read_sealed(path))
    except (OSError, ValueError, RecursionError) as error:
        fault = f"that it cannot be trusted: {str(error)[:200]}"
        return [DataError(location, None, fault, "no such file", "take it away")]
    if record.result != candidate.digest:
        return [DataError(location, None, "a record of another result file", "none", "take it away")]
    for task, subsets in record.recomputed.items():
        for subset, names in subsets.items():
            if excess := [
                name for name in names if name not in verdict.findings.recomputed.get(task, {}).get(subset, [])
            ]:
                fault = f"a claim that {excess[0][:80]!a} of {f'{task} {subset}'.strip()} was recomputed"
                return [DataError(location, None, fault, "no more than could be recomputed here", "take it away")]
    return []


def check_boards(
    verdicts: Sequence[Verdict], results: Path, cache: Path | None = None, records: Records = NEAR
) -> tuple[list[Verdict], list[str]]:
    """Build the boards of accepted results with them, writing nothing.

    Args:
        verdicts: of the submitted results.
        results: the results folder that they would join.
        cache: folder that keeps statistical tests from build to build.
        records: which rows are verified.

    Returns:
        The verdicts, refused where a board cannot be built with the result, and notes of boards on copies.
    """
    groups: dict[tuple[str, str, str], list[Result]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.candidate is not None and verdict.accepted:
            content = verdict.candidate.content
            groups[content.data, content.suite.name, content.regime].append(verdict.candidate.result)
    broken, notes = dict[Path, str](), list[str]()
    for group in groups.values():
        causes, group_notes = trial(group, results, cache, records)
        broken |= causes
        notes += group_notes
    checked = []
    for verdict in verdicts:
        cause = broken.get(verdict.candidate.result.path) if verdict.candidate else None
        fault = f"that the board cannot be built with it: {(cause or '')[:500]}"
        error = DataError(verdict.title, None, fault, "that it can", TAKE_UNCHANGED)
        checked.append(verdict.refused(error) if cause else verdict)
    return checked, notes


def check(
    bundles: Mapping[Path, str],
    results: Path,
    judges: Judges,
    records: Records = NEAR,
    *,
    strict: bool = False,
    trusted: bool = False,
    cache: Path | None = None,
) -> tuple[list[Verdict], list[str]]:
    """Make every check of submitted results: by themselves, in the results folder, and on their boards.

    Args:
        bundles: folders of the submitted results, with what messages call them.
        results: the results folder that they would join.
        judges: the suites and judgements that are here.
        records: which results are verified; those of a maintainers' folder make records in bundles harmless.
        strict: whether to refuse results any number of which was not recomputed and that no record covers.
        trusted: whether a record in a bundle may claim more than was recomputed now.
        cache: folder that keeps statistical tests from build to build.

    Returns:
        A verdict for each bundle, and notes of boards on copies.

    Raises:
        OSError: a file cannot be read.
    """
    verdicts = []
    for folder, title in bundles.items():
        verdict = validate(folder, title, judges)
        verdict = check_place(verdict, results, trusted=trusted or records.folder is not None)
        verdicts.append(require_recomputed(verdict, records) if strict else verdict)
    return check_boards(verdicts, results, cache, records)


def _duplicate(title: str, existing_title: str) -> DataError:
    fault = f"another result of the same system, suite, regime, data and seed at {existing_title}"
    return DataError(title, None, fault, "none", "if this one shall replace it, take that folder away first")


def refuse(verdicts: Sequence[Verdict]) -> None:
    """Raise `DataError` or `DataFaultsError` for refused results, and for different results of one place."""
    reasons = [reason for verdict in verdicts for reason in verdict.reasons]
    first: dict[Path, tuple[str, bytes]] = {}
    for verdict in verdicts:
        if verdict.candidate is not None:
            title, raw = first.setdefault(verdict.candidate.target, (verdict.title, verdict.candidate.raw))
            reasons += [_duplicate(verdict.title, title)] if raw != verdict.candidate.raw else []
    more = sum(verdict.more for verdict in verdicts)
    if len(reasons) == 1 and not more:
        raise reasons[0]
    if reasons:
        raise DataFaultsError(reasons, more)


def add(verdicts: Sequence[Verdict], results: Path, time: str) -> list[Added]:
    """Add results to a results folder; if one is refused, nothing is written.

    Args:
        verdicts: of `validate` and `check_place`.
        results: the results folder.
        time: the time for the records, ISO 8601.

    Raises:
        DataError, DataFaultsError: why results are refused.
        StoreError: the folder cannot be written, or a file changed meanwhile.
    """
    refuse(verdicts)
    try:
        results.mkdir(parents=True, exist_ok=True)
        with FileLock(results / ".lock"):
            return [_add(verdict, verdict.candidate, results, time) for verdict in verdicts if verdict.candidate]
    except OSError as error:
        raise StoreError(
            f"cannot write the result to {results}: {explain(error)}; fix that or choose another folder by --results"
        ) from error


def _add(verdict: Verdict, candidate: Candidate, results: Path, time: str) -> Added:
    """Copy a bundle to its place; what an interrupted addition left there is replaced."""
    if paths := existing(candidate, results):
        if paths[0].read_bytes() != candidate.raw:  # added during the validation
            raise _duplicate(verdict.title, str(paths[0]))
        return Added(verdict.title, paths[0], "already there")
    target = results / candidate.target
    if target.exists():
        shutil.rmtree(target)
    try:
        for name, seal in candidate.content.files.items():
            write_bytes(target / name, (candidate.folder / name).read_bytes())
            if sha256_file(target / name) != seal:
                raise StoreError(f"{candidate.folder / name} changed while it was read; type the same command again")
        NEAR.write(target / RESULT, candidate.digest, verdict.findings, time)
        write_bytes(target / RESULT, candidate.raw)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    fsync_folder(target.parent)
    return Added(verdict.title, target / RESULT, "added")


def read_reproduction(path: Path, candidate: Candidate, by: str, time: str) -> Reproduction:
    """Read what `bench reproduce --json` printed of a result.

    Args:
        path: the file with its output.
        candidate: the result that it must be of.
        by: who ran it, or the address where the method's author confirms it.
        time: the time, ISO 8601.

    Raises:
        DataError: it is no such report, nothing ran anew, the numbers differ, or it is of another result.
    """
    hint = "type `bench reproduce RESULT_FILE --json > FILE`"
    try:
        report = parse(path.read_bytes())
        verdict, stages = str(report["verdict"]), int(report["stages_run"])
        values = {(row["task"], row["subset"], row["measure"]): row["theirs"] for row in report["values"]}
    except (RecordError, KeyError, TypeError, ValueError) as error:
        raise DataError(path, None, "no report of `bench reproduce`", "its JSON", hint) from error
    if verdict not in ("OK", "close") or not stages:
        raise DataError(
            path, None, f"the verdict {verdict[:20]!a} with {stages} stages run", "OK or close, made anew", hint
        )
    for task, subsets in candidate.content.tasks.items():
        for name, subset in subsets.items():
            for measure, expected in subset.measures.items():
                value = values.get((task, name, measure))
                if value is None or abs(value - expected) > TOLERANCE:
                    fault = f"{measure} of {task} {name} = {value}"
                    raise DataError(path, None, fault, f"{expected}, as the result says")
    return Reproduction.model_validate({"verdict": verdict, "date": time, "by": by})
