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
    examined,
    file_count,
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

_MOST_SIZES = 40
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
def command(data_dir: Path | None, offline: bool, yes: bool, dry_run: bool, as_json: bool, **selection: Any) -> None:
    """Fetch what is missing of the official files of a suite or corpus, after showing size and licence and asking.

    They go to --data-dir, else to the folder that has files of that suite already (BENCH_DATA, then the download
    cache), else to BENCH_DATA, else to the cache. Interrupted fetching goes on where it stopped. Checksums are compared
    before a file gets its name; archives are unpacked and kept. Exit status 1 if something is still missing.
    """
    explicit = click.get_current_context().get_parameter_source("data_dir") is ParameterSource.COMMANDLINE
    places = (data_dir,) if explicit and data_dir else roots(data_dir)
    suite = official(**selection, places=places)
    files = examined(suite.files, reread=False)
    if not files:
        raise UsageError(
            f"{suite.name} lists no official files; `bench show {suite.name}` says what it reads and from where"
        )
    plan = _plan(suite, files, offline)
    say = notice if as_json else click.echo
    if plan.incomplete and not as_json:
        files_table(
            f"{suite.name}: {len(plan.incomplete)} of {file_count(len(files))} not there", plan.incomplete, LISTED
        )
    for line in _lines(plan):
        say(line)
    failed: dict[str, str] = {}
    if plan.todo and not dry_run:
        _check_space(plan)
        if not (yes or all(file.local for file in plan.todo)):
            _confirm()
        fetched, failed = _fetch_all(plan)
        files = [fetched.get(file.release.path, file) for file in files]
    complete = all(file.complete for file in files)
    instructions((file for file in files if file.by_hand), say)
    notice(*failed.values())
    if as_json:
        print_json(_json(plan, files, failed, complete))
    elif plan.incomplete and not dry_run:
        complete_count = sum(file.complete for file in files)
        click.echo(
            f"{suite.name}: {complete_count} of {file_count(len(files))} there" + ("" if complete else ", not complete")
        )
    if not (complete or dry_run):
        raise click.exceptions.Exit(1)


@dataclass(frozen=True)
class _FetchPlan:
    """Files as they are now, those that will be fetched or unpacked, and bytes to fetch by path where known."""

    suite: Official
    files: Sequence[LocalFile]
    todo: Sequence[LocalFile]
    sizes: Mapping[str, int]
    offline: bool

    @property
    def incomplete(self) -> list[LocalFile]:
        return [file for file in self.files if not file.complete]


def _plan(suite: Official, files: Sequence[LocalFile], offline: bool) -> _FetchPlan:
    todo = [file for file in files if file.local or (not offline and not file.complete and file.release.urls)]
    sizes = _sizes(todo)
    if not offline:
        sizes |= _sizes_from_servers([file for file in todo if not file.local and file.release.path not in sizes])
    return _FetchPlan(suite, files, todo, sizes, offline)


def _sizes(todo: Sequence[LocalFile]) -> dict[str, int]:
    """Bytes still to be fetched, by path, of the files whose size was published."""
    totals = {file.release.path: file.release.size for file in todo if not file.local}
    partial_sizes = {file.release.path: file.size for file in todo if file.state == "partial"}
    return {path: max(0, total - partial_sizes.get(path, 0)) for path, total in totals.items() if total is not None}


def _sizes_from_servers(todo: Sequence[LocalFile]) -> dict[str, int]:
    """Bytes of files whose size was not published, as their servers say; not for ever so many."""
    if not 0 < len(todo) <= _MOST_SIZES:
        return {}
    from bench.data.fetching.client import Client, RetryPolicy

    with Client(RetryPolicy(connect=5, read=10)) as client:
        sizes = {file.release.path: client.size(file.release.urls[0]) for file in todo if file.release.urls}
    return {path: count for path, count in sizes.items() if count is not None}


def _lines(plan: _FetchPlan) -> list[str]:
    suite, files, todo, sizes = plan.suite, plan.files, plan.todo, plan.sizes
    if not plan.incomplete:
        return [f"{suite.name}: {file_count(len(files))}, nothing missing"]
    lines = []
    missing = [file.release.path for file in files if not (file.complete or file.local or file.by_hand)]
    if plan.offline and missing:
        names = ", ".join(missing[:LISTED]) + (f" and {len(missing) - LISTED} more" if len(missing) > LISTED else "")
        lines.append(f"missing: {names}; without --offline {file_count(len(missing))} would be fetched")
    fetched = [file for file in todo if not file.local]
    if fetched:
        known_sizes = [sizes[file.release.path] for file in fetched if file.release.path in sizes]
        lines.append(
            f"to fetch: {file_count(len(fetched))}, {sized(sum(known_sizes), len(fetched) - len(known_sizes))}"
        )
        lines.append(f"licence of {suite.name}: {suite.licence}")
        licences = dict.fromkeys(
            file.release.licence for file in fetched if file.release.licence not in ("", suite.licence)
        )
        lines += [f"licence of its files: {'; '.join(licences)}"] if licences else []
    unpacked = [file for file in todo if file.release.unpack]
    if unpacked:
        lines.append(f"to unpack: {', '.join(file.release.path for file in unpacked)}")
    return [*lines, f"into: {', '.join(dict.fromkeys(str(file.root) for file in todo))}"] if todo else lines


def _check_space(plan: _FetchPlan) -> None:
    """Raise `StoreError` before any work for a folder that cannot be written or has not the room."""
    bytes_by_root: dict[Path, int] = {}
    for file in plan.todo:
        bytes_by_root[file.root] = bytes_by_root.get(file.root, 0) + plan.sizes.get(file.release.path, 0)
    for root, count in bytes_by_root.items():
        folder_there = next(folder for folder in (root, *root.absolute().parents) if folder.exists())
        if not folder_there.is_dir() or not os.access(folder_there, os.W_OK):
            raise StoreError(f"cannot write to {root}: nothing was fetched; choose another folder by --data-dir")
        free = shutil.disk_usage(folder_there).free
        if count > free:
            raise StoreError(
                f"{size(count)} are to be fetched, and the disk of {root} has {size(free)} left: nothing was fetched; "
                "free some, name fewer tasks by --task, or choose another folder by --data-dir"
            )


def _confirm() -> None:
    """Ask. Raises `UsageError` where there is nobody to ask, `Exit` where the answer is no."""
    if not sys.stdin.isatty():
        raise UsageError(
            "nothing was fetched: there is no terminal to ask on; type --yes to agree to the size and the licence, or "
            "--dry-run to see them only"
        )
    if not click.confirm("Fetch them under these licences?", default=True, err=True):
        click.echo("nothing was fetched", err=True)
        raise click.exceptions.Exit(1)


def _fetch_all(plan: _FetchPlan) -> tuple[dict[str, LocalFile], dict[str, str]]:
    """Fetch and unpack files one by one; return what is there now and what failed, by path. Raises `StoreError`."""
    from bench.data.fetching.client import Client
    from bench.data.fetching.fetch import ensure

    fetched: dict[str, LocalFile] = {}
    failed: dict[str, str] = {}
    with Client() as client:
        for number, file in enumerate(plan.todo, 1):
            path = file.release.path
            with Bar(f"[{number}/{len(plan.todo)}] {path}", plan.sizes.get(path)) as bar:
                try:
                    fetched[path] = ensure(file, None if plan.offline else client, bar)
                except StoreError:
                    raise
                except BenchError as error:
                    failed[path] = str(error)
                    bar.notice(f"{path} failed")
                else:
                    bar.notice(f"{path} ({size(fetched[path].size)}) is there")
    return fetched, failed


def _json(plan: _FetchPlan, files: Sequence[LocalFile], failed: Mapping[str, str], complete: bool) -> dict[str, Any]:
    return {
        "suite": plan.suite.name,
        "complete": complete,
        "into": sorted({str(file.root) for file in plan.todo}),
        "asked_for": [file.release.path for file in plan.todo],
        "failed": [{"path": path, "reason": reason} for path, reason in failed.items()],
        "files": [shown.as_json(file) for file in files],
    }
