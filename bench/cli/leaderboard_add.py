"""`bench leaderboard add` and `check`: other people's results, accepted only after validation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.cli import examples
from bench.cli.options import FILE, data_dir_option, records_option, results_option, store_option
from bench.cli.output import json_option, notice, print_json
from bench.core.errors import DataError, UsageError
from bench.plugins import load
from bench.store.store import Store

if TYPE_CHECKING:
    from leaderboard.submissions.validate import Verdict

_OPTIONS: tuple[Callable[[Callable[..., Any]], Callable[..., Any]], ...] = (
    click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR...", type=FILE),
    results_option,
    click.option(
        "--task",
        "folders",
        multiple=True,
        metavar="FOLDER",
        type=click.Path(path_type=Path, exists=True, file_okay=False),
        help="Data of results on a folder of somebody's own (local data). Repeatable.",
    ),
    click.option(
        "--strict",
        is_flag=True,
        help="Refuse results any number of which could not be recomputed and that no record covers.",
    ),
    data_dir_option,
    store_option,
    records_option,
    json_option,
    click.option("--memory", type=click.IntRange(1), default=8, show_default=True, metavar="GIB", help="At most."),
    click.option("--minutes", type=click.IntRange(1), default=60, show_default=True, help="Of the processor, at most."),
)


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that both have."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


KEPT = "leaderboard"
"""Folder of a store that keeps what the tests of a site found, from build to build."""


@click.command(name="add", epilog=examples("bench leaderboard add theirs.zip --results results"))
@_options
@click.pass_context
def add_command(context: click.Context, /, paths: tuple[Path, ...], memory: int, minutes: int, **given: Any) -> None:
    """Take results from elsewhere into a results folder, if they pass every check.

    FILE is a result.json, any file of its bundle, or a zip or tar of one or many; DIR is a folder of them. Measures are
    recomputed from the runs and the judgements that are here; accepted.json records which could not be, and the
    board marks their rows and gives them no rank. One result that is refused keeps all others out too, and nothing is
    written. All of it runs in a process with bounds on memory and time.
    """
    from bench.cli.limits import bounded

    bounded(context, memory, minutes, str(paths[0]), lambda: _add(paths, **given))


def _add(paths: tuple[Path, ...], results: Path, as_json: bool, **given: Any) -> None:
    from leaderboard.records import now
    from leaderboard.submissions.add import add
    from leaderboard.submissions.pack import submissions

    with submissions(paths) as found:
        verdicts = _verdicts([(one.folder, one.title) for one in found], results, **given)
        added = add(verdicts, results, now())
    if as_json:
        by_title = {one.title: {"state": one.state, "path": str(one.path)} for one in added}
        print_json({"results": [{**_row(one), **by_title[one.title]} for one in verdicts]})
        return
    for verdict, one in zip(verdicts, added, strict=True):
        _report_unverified(verdict)
        click.echo(f"{one.state}: {one.path}")


@click.command(name="check", epilog=examples("bench leaderboard check results/official/beir --results results"))
@_options
@click.option("--record", is_flag=True, help="Write accepted.json for results that pass; existing records are trusted.")
@click.option(
    "--made-again",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="What `bench reproduce --json` printed of the one result, for its record (with --record --records).",
)
@click.option("--agreed", metavar="URL", help="Where the method's author agrees with the one result, for its record.")
@click.pass_context
def check_command(context: click.Context, /, paths: tuple[Path, ...], memory: int, minutes: int, **given: Any) -> None:
    """Check results as `add` does, and add nothing: for pull requests, and before handing one in.

    The last check builds the board with the result in it. All of it runs in a process with bounds on memory and time.
    With --records DIR, --record writes the records of a maintainer there, of results that were recomputed whole.
    """
    from bench.cli.limits import bounded

    bounded(context, memory, minutes, str(paths[0]), lambda: _check(paths, **given))


def _check(
    paths: tuple[Path, ...],
    results: Path,
    records: Path | None,
    as_json: bool,
    record: bool,
    made_again: Path | None,
    agreed: str | None,
    **given: Any,
) -> None:
    from leaderboard.submissions.add import refuse
    from leaderboard.submissions.pack import submissions

    with submissions(paths) as found:
        whole = [(one.folder, one.title) for one in found]
        verdicts = _verdicts(whole, results, trusted=record, records=records, **given)
        if as_json:
            print_json({"results": [_row(one) for one in verdicts]})
        if as_json and not all(one.accepted for one in verdicts):
            raise click.exceptions.Exit(DataError.exit_code)
        refuse(verdicts)
        if (made_again or agreed) and not (record and records and len(verdicts) == 1):
            raise UsageError("--made-again and --agreed need --record, --records DIR and one result")
        for verdict in verdicts if record else ():
            _record(verdict, records, made_again, agreed)
    if not as_json:
        for verdict in verdicts:
            _report_unverified(verdict)
            click.echo(f"passes: {verdict.title}")


def _record(verdict: Verdict, records: Path | None, made_again: Path | None, agreed: str | None) -> None:
    """Write what was found: into the folder of records if it was recomputed whole, else next to the result."""
    from leaderboard.records import Records, now
    from leaderboard.submissions.add import write_record
    from leaderboard.submissions.replayed import replayed

    found = verdict.found
    if found is not None and records is None and found.result.accepted is None:
        write_record(found.folder, verdict, found, now())
    if found is not None and records is not None and not verdict.not_recomputed:
        more: dict[str, Any] = {"made_again": replayed(made_again, found, now())} if made_again else {}
        more |= {"agreed": agreed} if agreed else {}
        Records(records).write(found.result.path, verdict.data, verdict.recomputed, **more)


def _verdicts(
    found: Sequence[tuple[Path, str]],
    results: Path,
    *,
    trusted: bool = False,
    folders: tuple[Path, ...],
    strict: bool,
    data_dir: Path | None,
    store: Path,
    records: Path | None,
) -> list[Verdict]:
    """Look at bundles, by themselves, in the results folder, and on the board."""
    from bench.cli.leaderboard_judges import SuiteJudges
    from leaderboard.records import Records
    from leaderboard.submissions.add import check_boards, check_place
    from leaderboard.submissions.validate import validate, without_trust

    judges, board = SuiteJudges(load(), Store(store, notice), data_dir, folders, notice), Records(records)
    made = []
    for folder, title in found:
        verdict = check_place(validate(folder, title, judges), results, trusted=trusted or records is not None)
        made.append(without_trust(verdict, board) if strict else verdict)
    made, notes = check_boards(made, results, store / KEPT, board)
    notice(*notes)
    return made


def _report_unverified(verdict: Verdict) -> None:
    """Say what was taken on trust, a sentence for each reason."""
    whys = Counter(why for legs in verdict.not_recomputed.values() for names in legs.values() for why in names.values())
    for why, count in whys.items():
        notice(f"{verdict.title}: {count} {'number' if count == 1 else 'numbers'} could not be recomputed: {why}")


def _row(verdict: Verdict) -> dict[str, Any]:
    return {
        "result": verdict.title,
        "accepted": verdict.accepted,
        "reasons": [
            {"where": one.where, "line": one.line, "found": one.found, "expected": one.expected, "hint": one.hint}
            for one in verdict.reasons
        ],
        "more_reasons": verdict.more,
        "recomputed": verdict.recomputed,
        "not_recomputed": verdict.not_recomputed,
    }
