"""`bench leaderboard add` and `check`: other people's results, accepted only after validation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.cli import examples
from bench.cli.limits import run_bounded
from bench.cli.options import FILE, all_of, data_dir_option, records_option, results_option, store_option
from bench.cli.output import json_option, notice, print_json
from bench.core.errors import DataError, UsageError

if TYPE_CHECKING:
    from leaderboard.submissions.validate import Verdict

CACHE = "leaderboard"
"""Folder of a store that keeps the statistical tests of sites from build to build."""
_options = all_of(
    click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR...", type=FILE),
    results_option,
    click.option(
        "--task",
        "folders",
        multiple=True,
        metavar="FOLDER",
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        help="The folder that results on local data were made on. Repeatable.",
    ),
    click.option(
        "--strict",
        is_flag=True,
        help="Refuse results with a number that could not be recomputed, unless a record covers them.",
    ),
    data_dir_option,
    store_option,
    records_option,
    json_option,
    click.option("--memory", type=click.IntRange(1), default=8, show_default=True, metavar="GIB", help="At most."),
    click.option("--minutes", type=click.IntRange(1), default=60, show_default=True, help="Of the processor, at most."),
)
"""The options that both commands have."""


@click.command(name="add", epilog=examples("bench leaderboard add theirs.zip --results results"))
@_options
@click.pass_context
def add_command(context: click.Context, /, memory: int, minutes: int, **options: Any) -> None:
    """Take results from elsewhere into a results folder, if they pass every check.

    FILE is a result.json, any file of its bundle, or a zip or tar of one or many; DIR is a folder of them. Measures are
    recomputed from the runs and the judgements that are here; accepted.json records which could not be, and the
    board marks their rows and gives them no rank. One result that is refused keeps all others out too, and nothing is
    written. All of it runs in a process with limits on memory and time.
    """
    run_bounded(context, memory, minutes, lambda: _add(**options))


def _add(paths: tuple[Path, ...], results: Path, as_json: bool, **options: Any) -> None:
    from leaderboard.records import now
    from leaderboard.submissions.add import add
    from leaderboard.submissions.pack import submissions

    with submissions(paths) as bundles:
        verdicts = _verdicts(bundles, results, **options)
        results_added = add(verdicts, results, now())
    if as_json:
        states = {added.title: {"state": added.state, "path": str(added.path)} for added in results_added}
        print_json({"results": [{**_summary(verdict), **states[verdict.title]} for verdict in verdicts]})
        return
    for verdict, added in zip(verdicts, results_added, strict=True):
        _report_unverified(verdict)
        click.echo(f"{added.state}: {added.path}")


@click.command(name="check", epilog=examples("bench leaderboard check results/official/beir --results results"))
@_options
@click.option("--record", is_flag=True, help="Write accepted.json for results that pass; existing records are trusted.")
@click.option(
    "--reproduced",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Output of `bench reproduce --json` for the one result, for its record (with --record --records --by).",
)
@click.option("--by", default="", metavar="NAME", help="Who reproduced it, or where its author confirms it.")
@click.pass_context
def check_command(context: click.Context, /, memory: int, minutes: int, **options: Any) -> None:
    """Check results as `add` does, and add nothing: for pull requests, and before submitting one.

    The last check builds the board with the result in it. All of it runs in a process with limits on memory and time.
    With --records DIR, --record writes the records of a maintainer there, of results that were recomputed whole.
    """
    run_bounded(context, memory, minutes, lambda: _check(**options))


def _check(
    paths: tuple[Path, ...],
    results: Path,
    records: Path | None,
    as_json: bool,
    record: bool,
    reproduced: Path | None,
    by: str,
    **options: Any,
) -> None:
    from leaderboard.submissions.add import refuse
    from leaderboard.submissions.pack import submissions

    with submissions(paths) as bundles:
        verdicts = _verdicts(bundles, results, trusted=record, records=records, **options)
        if as_json:
            print_json({"results": [_summary(verdict) for verdict in verdicts]})
        if as_json and not all(verdict.accepted for verdict in verdicts):
            raise click.exceptions.Exit(DataError.exit_code)
        refuse(verdicts)
        if (reproduced or by) and not (reproduced and by and record and records and len(verdicts) == 1):
            raise UsageError("--reproduced and --by need each other, --record, --records DIR and one result")
        for verdict in verdicts if record else ():
            _record(verdict, records, reproduced, by)
    if not as_json:
        for verdict in verdicts:
            _report_unverified(verdict)
            click.echo(f"passes: {verdict.title}")


def _record(verdict: Verdict, folder: Path | None, reproduced: Path | None, by: str) -> None:
    """Write a record: into the maintainers' folder if all was recomputed, else next to a result that has none."""
    from leaderboard.records import Records, now
    from leaderboard.submissions.add import read_reproduction

    candidate, records = verdict.candidate, Records(folder)
    if candidate is None or (verdict.findings.not_recomputed if folder else records.find(candidate.result.path)):
        return
    reproduction = read_reproduction(reproduced, candidate, by, now()) if reproduced else None
    records.write(candidate.result.path, candidate.digest, verdict.findings, now(), reproduction)


def _verdicts(
    bundles: Mapping[Path, str],
    results: Path,
    *,
    trusted: bool = False,
    folders: tuple[Path, ...],
    strict: bool,
    data_dir: Path | None,
    store: Path,
    records: Path | None,
) -> list[Verdict]:
    """Make every check of bundles by the suites and data that are here; notes of boards go to stderr."""
    from bench.cli.leaderboard_judges import SuiteJudges
    from bench.plugins import load
    from bench.store.store import Store
    from leaderboard.records import Records
    from leaderboard.submissions.add import check

    judges = SuiteJudges(load(), Store(store, notice), data_dir, folders, notice)
    maintainers = Records(records)
    verdicts, notes = check(bundles, results, judges, maintainers, strict=strict, trusted=trusted, cache=store / CACHE)
    notice(*notes)
    return verdicts


def _report_unverified(verdict: Verdict) -> None:
    """Say which numbers could not be recomputed, a sentence for each reason."""
    subsets = (subset for by_subset in verdict.findings.not_recomputed.values() for subset in by_subset.values())
    reasons = Counter(reason for subset in subsets for reason in subset.values())
    for reason, count in reasons.items():
        notice(f"{verdict.title}: {count} {'number' if count == 1 else 'numbers'} could not be recomputed: {reason}")


def _summary(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as `--json` prints it."""
    keys = ("where", "line", "found", "expected", "hint")
    return {
        "result": verdict.title,
        "accepted": verdict.accepted,
        "reasons": [{key: getattr(reason, key) for key in keys} for reason in verdict.reasons],
        "more_reasons": verdict.more,
        "recomputed": verdict.findings.recomputed,
        "not_recomputed": verdict.findings.not_recomputed,
    }
