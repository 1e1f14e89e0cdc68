"""`bench leaderboard add` and `check`: other people's results, accepted only after validation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench.cli import examples
from bench.cli.options import FILE, data_dir_option, results_option, store_option
from bench.cli.output import json_option, notice, print_json
from bench.core.errors import DataError
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
    click.option("--strict", is_flag=True, help="Refuse results any number of which could not be recomputed."),
    data_dir_option,
    store_option,
    json_option,
)


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that both have."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command(name="add", epilog=examples("bench leaderboard add theirs.zip --results results"))
@_options
def add_command(paths: tuple[Path, ...], results: Path, as_json: bool, **given: Any) -> None:
    """Take results from elsewhere into a results folder, if they pass every check.

    FILE is a result.json, any file of its bundle, or a zip or tar of one or many; DIR is a folder of them. Measures are
    recomputed from the runs and the judgements that are here; accepted.json records which could not be. One
    result that is refused keeps all others out too, and nothing is written.
    """
    from leaderboard.submissions.add import add, now
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
def check_command(paths: tuple[Path, ...], results: Path, as_json: bool, record: bool, **given: Any) -> None:
    """Check results as `add` does, and add nothing: for pull requests, and before handing one in."""
    from leaderboard.submissions.add import now, refuse, write_record
    from leaderboard.submissions.pack import submissions

    with submissions(paths) as found:
        verdicts = _verdicts([(one.folder, one.title) for one in found], results, trusted=record, **given)
        if as_json:
            print_json({"results": [_row(one) for one in verdicts]})
        if as_json and not all(one.accepted for one in verdicts):
            raise click.exceptions.Exit(DataError.exit_code)
        refuse(verdicts)
        for verdict in verdicts:
            if record and verdict.found is not None and verdict.found.result.accepted is None:
                write_record(verdict.found.folder, verdict, verdict.found, now())
    if not as_json:
        for verdict in verdicts:
            _report_unverified(verdict)
            click.echo(f"passes: {verdict.title}")


def _verdicts(
    found: Sequence[tuple[Path, str]],
    results: Path,
    *,
    trusted: bool = False,
    folders: tuple[Path, ...],
    strict: bool,
    data_dir: Path | None,
    store: Path,
) -> list[Verdict]:
    from bench.cli.leaderboard_judges import SuiteJudges
    from leaderboard.submissions.add import check_place
    from leaderboard.submissions.validate import validate, without_trust

    judges = SuiteJudges(load(), Store(store, notice), data_dir, folders, notice)
    verdicts = [check_place(validate(folder, title, judges), results, trusted=trusted) for folder, title in found]
    return [without_trust(one) for one in verdicts] if strict else verdicts


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
