"""`bench data fetch`: official files, after their sizes and licences were shown."""

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from bench.cli import examples
from bench.cli import local_files as shown
from bench.cli.local_files import (
    LANGUAGES,
    LISTED,
    Bar,
    Official,
    counted,
    examined,
    files_table,
    instructions,
    official,
    size,
    sized,
)
from bench.cli.options import data_dir_option
from bench.cli.output import json_option, notice, print_json
from bench.core.errors import BenchError, StoreError, UsageError
from bench.data.fetching.local_files import LocalFile
from bench.data.fetching.official import roots

_ASKED = 40
"""Files whose size is asked of their servers, where it was not published; of more of them it stays unknown."""


@click.command(
    name="fetch",
    epilog=examples(
        "bench data fetch lareqa",
        "bench data fetch beir --task scifact --yes",
        "bench data fetch mrtydi --dry-run",
        "bench data fetch wikipedia --languages sw,te",
    ),
)
@click.argument("name", metavar="SUITE|CORPUS")
@click.option("--task", "tasks", metavar="NAMES", help="Only what these tasks need, comma-separated.")
@LANGUAGES
@data_dir_option
@click.option("--offline", is_flag=True, help="Touch no network; say what is missing.")
@click.option("--yes", is_flag=True, help="Do not ask. Needed where there is no terminal to ask on.")
@click.option("--dry-run", is_flag=True, help="Say what would be fetched, and stop.")
@json_option
def command(data_dir: Path | None, offline: bool, yes: bool, dry_run: bool, as_json: bool, **named: Any) -> None:
    """Fetch what is missing of the official files of a suite or corpus, after showing size and licence and asking.

    They go to --data-dir, else to the folder that has files of that suite already (BENCH_DATA, then the download
    cache), else to BENCH_DATA, else to the cache. Interrupted fetching goes on where it stopped. Checksums are compared
    before a file gets its name; archives are unpacked and kept. Exit status 1 if something is still missing.
    """
    explicit = click.get_current_context().get_parameter_source("data_dir") is ParameterSource.COMMANDLINE
    places = (data_dir,) if explicit and data_dir else roots(data_dir)
    suite = official(**named, places=places)
    found = examined(suite.files, again=False)
    if not found:
        raise UsageError(
            f"{suite.name} lists no official files; `bench show {suite.name}` says what it reads and from where"
        )
    plan = _plan(suite, found, offline)
    say = notice if as_json else click.echo
    if plan.lacking and not as_json:
        files_table(f"{suite.name}: {len(plan.lacking)} of {counted(len(found))} not there", plan.lacking, LISTED)
    for line in _lines(plan):
        say(line)
    failed: dict[str, str] = {}
    if plan.todo and not dry_run:
        _room(plan)
        if not (yes or all(one.local for one in plan.todo)):
            _agreed()
        now, failed = _carry_out(plan)
        found = [now.get(one.release.path, one) for one in found]
    complete = all(one.complete for one in found)
    instructions((one for one in found if one.by_hand), say)
    notice(*failed.values())
    if as_json:
        print_json(_json(plan, found, failed, complete))
    elif plan.lacking and not dry_run:
        there = sum(one.complete for one in found)
        click.echo(f"{suite.name}: {there} of {counted(len(found))} there" + ("" if complete else ", not complete"))
    if not (complete or dry_run):
        raise click.exceptions.Exit(1)


@dataclass(frozen=True)
class _FetchPlan:
    """Files as they are now, those that will be fetched or unpacked, and bytes to fetch by path where known."""

    suite: Official
    found: Sequence[LocalFile]
    todo: Sequence[LocalFile]
    sizes: Mapping[str, int]
    offline: bool

    @property
    def lacking(self) -> list[LocalFile]:
        return [one for one in self.found if not one.complete]


def _plan(suite: Official, found: Sequence[LocalFile], offline: bool) -> _FetchPlan:
    todo = [one for one in found if one.local or (not offline and not one.complete and one.release.urls)]
    sizes = _sizes(todo)
    if not offline:
        sizes |= _asked_sizes([one for one in todo if not one.local and one.release.path not in sizes])
    return _FetchPlan(suite, found, todo, sizes, offline)


def _sizes(todo: Sequence[LocalFile]) -> dict[str, int]:
    """Bytes still to be fetched, by path, of the files whose size was published."""
    left = {one.release.path: one.release.size for one in todo if not one.local}
    begun = {one.release.path: one.size for one in todo if one.state == "partial"}
    return {path: max(0, total - begun.get(path, 0)) for path, total in left.items() if total is not None}


def _asked_sizes(todo: Sequence[LocalFile]) -> dict[str, int]:
    """Bytes of files whose size was not published, as their servers say; not for ever so many."""
    if not 0 < len(todo) <= _ASKED:
        return {}
    from bench.data.fetching.client import Client, RetryPolicy

    with Client(RetryPolicy(connect=5, read=10)) as client:
        found = {one.release.path: client.size(one.release.urls[0]) for one in todo if one.release.urls}
    return {path: count for path, count in found.items() if count is not None}


def _lines(plan: _FetchPlan) -> list[str]:
    suite, found, todo, sizes = plan.suite, plan.found, plan.todo, plan.sizes
    if not plan.lacking:
        return [f"{suite.name}: {counted(len(found))}, nothing missing"]
    lines = []
    missing = [one.release.path for one in found if not (one.complete or one.local or one.by_hand)]
    if plan.offline and missing:
        names = ", ".join(missing[:LISTED]) + (f" and {len(missing) - LISTED} more" if len(missing) > LISTED else "")
        lines.append(f"missing: {names}; without --offline {counted(len(missing))} would be fetched")
    fetched = [one for one in todo if not one.local]
    if fetched:
        known = [sizes[one.release.path] for one in fetched if one.release.path in sizes]
        lines.append(f"to fetch: {counted(len(fetched))}, {sized(sum(known), len(fetched) - len(known))}")
        lines.append(f"licence of {suite.name}: {suite.licence}")
        own = dict.fromkeys(one.release.licence for one in fetched if one.release.licence not in ("", suite.licence))
        lines += [f"licence of its files: {'; '.join(own)}"] if own else []
    unpacked = [one for one in todo if one.release.unpack]
    if unpacked:
        lines.append(f"to unpack: {', '.join(one.release.path for one in unpacked)}")
    return [*lines, f"into: {', '.join(dict.fromkeys(str(one.root) for one in todo))}"] if todo else lines


def _room(plan: _FetchPlan) -> None:
    """Raise `StoreError` before any work for a folder that cannot be written or has not the room."""
    needed: dict[Path, int] = {}
    for one in plan.todo:
        needed[one.root] = needed.get(one.root, 0) + plan.sizes.get(one.release.path, 0)
    for root, count in needed.items():
        place = next(folder for folder in (root, *root.absolute().parents) if folder.exists())
        if not place.is_dir() or not os.access(place, os.W_OK):
            raise StoreError(f"cannot write to {root}: nothing was fetched; choose another folder by --data-dir")
        free = shutil.disk_usage(place).free
        if count > free:
            raise StoreError(
                f"{size(count)} are to be fetched, and the disk of {root} has {size(free)} left: nothing was fetched; "
                "free some, name fewer tasks by --task, or choose another folder by --data-dir"
            )


def _agreed() -> None:
    """Ask. Raises `UsageError` where there is nobody to ask, `Exit` where the answer is no."""
    if not sys.stdin.isatty():
        raise UsageError(
            "nothing was fetched: there is no terminal to ask on; type --yes to agree to the size and the licence, or "
            "--dry-run to see them only"
        )
    if not click.confirm("Fetch them under these licences?", default=True, err=True):
        click.echo("nothing was fetched", err=True)
        raise click.exceptions.Exit(1)


def _carry_out(plan: _FetchPlan) -> tuple[dict[str, LocalFile], dict[str, str]]:
    """Fetch and unpack files one by one; return what is there now and what failed, by path. Raises `StoreError`."""
    from bench.data.fetching.client import Client
    from bench.data.fetching.fetch import ensure

    now: dict[str, LocalFile] = {}
    failed: dict[str, str] = {}
    with Client() as client:
        for number, one in enumerate(plan.todo, 1):
            path = one.release.path
            with Bar(f"[{number}/{len(plan.todo)}] {path}", plan.sizes.get(path)) as bar:
                try:
                    now[path] = ensure(one, None if plan.offline else client, bar)
                except StoreError:
                    raise
                except BenchError as error:
                    failed[path] = str(error)
                    bar.notice(f"{path} failed")
                else:
                    bar.notice(f"{path} ({size(now[path].size)}) is there")
    return now, failed


def _json(plan: _FetchPlan, found: Sequence[LocalFile], failed: Mapping[str, str], complete: bool) -> dict[str, Any]:
    return {
        "suite": plan.suite.name,
        "complete": complete,
        "into": sorted({str(one.root) for one in plan.todo}),
        "asked_for": [one.release.path for one in plan.todo],
        "failed": [{"path": path, "reason": reason} for path, reason in failed.items()],
        "files": [shown.as_json(one) for one in found],
    }
