"""`bench data`: official files are listed, fetched and checked here; training texts are audited by `data_audit`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

import click
from click.core import ParameterSource

from bench.cli import LazyGroup, examples
from bench.cli.data_probe import probe
from bench.cli.file_texts import file_json, print_files, print_instructions
from bench.cli.options import data_dir_option, store_option
from bench.cli.output import (
    Reporter,
    file_count,
    json_option,
    notice,
    print_json,
    progress_options,
    size_text,
    sizes_text,
    table,
)
from bench.config.request import split
from bench.core.errors import StoreError, UsageError
from bench.core.messages import canonical
from bench.types import Suite

if TYPE_CHECKING:
    from bench.cli.byte_bars import ByteBar
    from bench.cli.fetch_for import Needed
    from bench.data.corpora.named import NamedCorpus
    from bench.data.fetching.local_files import LocalFile
    from bench.pipeline.downloads import Download
    from bench.studies.inspection import Inspected

_LANGUAGES: Callable[..., Any] = click.option(
    "--languages", metavar="CODES", help="Of a corpus to pretrain on: only these languages, comma-separated."
)
_MAX_ROWS = 20
"""Rows after which a table, or a list of names, that asks for no detail is cut."""
_MAX_SIZE_REQUESTS = 40
"""Most files whose size, where it was not published, is requested from their servers; beyond, it stays unknown."""
_VERDICTS: dict[str, Literal["ok", "missing", "wrong"]] = {
    "present": "ok",
    "packed": "missing",
    "partial": "missing",
    "damaged": "wrong",
    "missing": "missing",
}


@click.group(
    name="data",
    cls=LazyGroup,
    epilog=examples(
        "bench data list", "bench data fetch beir --task scifact,nfcorpus", "bench data check tatoeba --data-dir FOLDER"
    ),
)
def command() -> None:
    """List, fetch and check official data.

    A suite's files are in SUITE/ under the data folder (--data-dir, BENCH_DATA) or, if that has no such folder, under
    the download cache (BENCH_CACHE, else the platform's place for caches).
    """


@command.command(
    name="list",
    short_help="List the official files that a suite needs, and which are present.",
    epilog=examples("bench data list", "bench data list mrtydi", "bench data list --json"),
)
@click.argument("names", nargs=-1, metavar="[SUITE]...")
@data_dir_option
@json_option
def list_files(names: tuple[str, ...], data_dir: Path | None, as_json: bool) -> None:
    """List the official files that suites need, and which are present; without a name, one row for each suite.

    Files are found by name and size; `bench data check` reads them. `partial`: its download was interrupted. `packed`:
    an archive that has not been unpacked. `damaged`: not of its published size, or changed since it was fetched.
    """
    from bench.data.fetching.local_files import bytes_to_fetch, local_files
    from bench.data.fetching.official import roots
    from bench.plugins import load

    plugins, places = load(), roots(data_dir)
    suites = [plugins.suite(name) for name in dict.fromkeys(names or sorted(plugins.suites))]
    files_by_suite = {suite.name: local_files(suite, places) for suite in suites}
    totals_by_suite = {}
    for name, files in files_by_suite.items():
        counts = {"files": len(files), "complete": sum(file.complete for file in files)}
        totals_by_suite[name] = {**counts, "bytes_here": sum(file.size for file in files), **bytes_to_fetch(files)}
    if as_json:
        rows = [
            {
                "suite": suite.name,
                "proxy_for": suite.proxy_for or None,
                "licence": suite.licence,
                "totals": totals_by_suite[suite.name],
                "files": [file_json(file) for file in files_by_suite[suite.name]],
            }
            for suite in suites
        ]
        print_json({"places": [str(place) for place in places], "suites": rows})
        return
    click.echo(f"looked for in: {', then '.join(map(str, places))}\n")
    overview = []
    for suite in suites:
        files, totals = files_by_suite[suite.name], totals_by_suite[suite.name]
        size_here = size_text(totals["bytes_here"])
        to_come = sizes_text(totals["bytes_left"], totals["files_left_of_unknown_size"])
        by_hand = [file for file in files if file.by_hand]
        if not names:
            complete = f"{totals['complete']} of {totals['files']}" if files else "lists none"
            columns = (complete, size_here, to_come if files else "", str(len(by_hand) or ""))
            overview.append((suite.name, *columns, suite.licence))
        elif not files:
            click.echo(f"{suite.name} lists no official files; `bench show {suite.name}` says what it reads\n")
        else:
            print_files(f"{suite.name}: {suite.licence}", files)
            click.echo(f"{totals['complete']} of {file_count(len(files))}, {size_here} here; to come: {to_come}")
            print_instructions(by_hand, click.echo)
            click.echo()
    if overview:
        titles = ("suite", "files here", "size here", "to come", "by hand", "licence")
        table("", titles, overview, numbers=("size here", "to come", "by hand"))


@command.command(
    name="fetch",
    short_help="Fetch a suite's official files; size and licence are shown first.",
    epilog=examples(
        "bench data fetch lareqa",
        "bench data fetch beir --task scifact --yes",
        "bench data fetch mrtydi --dry-run",
        "bench data fetch wikipedia --languages sw,te",
        "bench data fetch c4 --quota 400000000",
        "bench data fetch --for 'run --method msm --suite mrtydi --task sw --profile small'",
    ),
)
@click.argument("name", metavar="[SUITE|CORPUS]", required=False)
@click.option("--task", "tasks", metavar="NAMES", help="Only what these tasks need, comma-separated.")
@click.option(
    "--for",
    "words",
    metavar="COMMAND",
    help="All that a command reads, models too: 'run …', 'plan …' or the name of a run's file.",
)
@_LANGUAGES
@data_dir_option
@click.option(
    "--quota",
    type=click.IntRange(1),
    metavar="TOKENS",
    help="Of a corpus to pretrain on: only as many files as prepare.quota (tokens a language) needs.",
)
@click.option("--offline", is_flag=True, help="Use no network; say what is missing.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation; needed without a terminal.")
@click.option("--dry-run", is_flag=True, help="Say what would be fetched, and stop.")
@json_option
def fetch(
    name: str | None,
    words: str | None,
    data_dir: Path | None,
    offline: bool,
    yes: bool,
    dry_run: bool,
    as_json: bool,
    **selection: Any,
) -> None:
    """Fetch what is missing of the official files of a suite or corpus, after showing size and licence and asking.

    With --for, everything that a `bench` command reads and that is missing: files of suites and corpora, models of the
    hub, and what ir_datasets and the hub serve.

    They go to --data-dir, else to the folder that has files of that suite already (BENCH_DATA, then the download
    cache), else to BENCH_DATA, else to the cache. Interrupted downloads resume. Checksums are compared
    before a file gets its name; archives are unpacked and kept. Exit status 1 if something is still missing.
    """
    from bench.cli.fetch_for import fetch_by_libraries
    from bench.cli.fetch_texts import download_json
    from bench.data.fetching.official import roots

    explicit = click.get_current_context().get_parameter_source("data_dir") is ParameterSource.COMMANDLINE
    places = (data_dir,) if explicit and data_dir else roots(data_dir)
    if words is not None:
        official = _for_command(words, name, **selection, explicit=explicit, ask=not offline)
    elif name is None:
        raise click.UsageError("Missing argument 'SUITE|CORPUS'.")
    else:
        official = _official_files(name, **selection, places=places)
    official = official if offline else official.listed()
    files = _examined(official.files, reread=False)
    if not files and official.needed is None:
        raise UsageError(
            f"{official.name} lists no official files; `bench show {official.name}` says what it reads and from where"
        )
    plan = _plan_fetch(official, files, offline)
    say = notice if as_json else click.echo
    if plan.incomplete and not as_json and official.needed is None:
        title = f"{official.name}: {len(plan.incomplete)} of {file_count(len(files))} not there"
        print_files(title, plan.incomplete, _MAX_ROWS)
    for line in plan.summary():
        say(line)
    failed: dict[str, str] = {}
    if (plan.todo or plan.libraries) and not dry_run:
        _check_space(plan)
        if not (yes or (all(file.local for file in plan.todo) and not plan.libraries)):
            _confirm()
        official.keep_listings()
        fetched, failed = _fetch_all(plan)
        files = [fetched.get(file.release.path, file) for file in files]
        failed |= fetch_by_libraries(plan.libraries)
    lacking = [] if official.needed is None else official.needed.libraries
    lacking_still = [download for download in lacking if dry_run or offline or download.name in failed]
    complete = sum(file.complete for file in files)
    print_instructions((file for file in files if file.by_hand), say)
    notice(*failed.values())
    if as_json:
        print_json(
            {
                "suite": official.name,
                "complete": complete == len(files) and not lacking_still,
                "into": sorted({str(file.root) for file in plan.todo}),
                "asked_for": [file.release.path for file in plan.todo],
                "failed": [{"path": path, "reason": reason} for path, reason in failed.items()],
                "files": [file_json(file) for file in files],
                **({} if official.needed is None else {"downloads": [*map(download_json, official.needed.downloads)]}),
            }
        )
    elif (plan.incomplete or plan.libraries) and not dry_run:
        ending = "" if complete == len(files) and not lacking_still else ", not complete"
        summary = f"{complete} of {file_count(len(files))} there"
        if lacking:
            summary += f", {len(lacking) - len(lacking_still)} of {len(lacking)} models and data sets of libraries"
        click.echo(f"{official.name}: {summary}{ending}")
    if (complete < len(files) or lacking_still) and not dry_run:
        raise click.exceptions.Exit(1)


@dataclass(frozen=True)
class _OfficialFiles:
    """The official files of a suite, or of a corpus to pretrain on."""

    name: str
    licence: str
    files: Sequence[LocalFile]
    suite: Suite | None = None
    task_names: tuple[str, ...] = ()  # of the suite
    corpus: NamedCorpus | None = None
    needed: Needed | None = None  # by a command, whose name is its words

    @property
    def corpora(self) -> tuple[NamedCorpus, ...]:
        """Corpora to pretrain on among them."""
        downloads = self.needed.downloads if self.needed else ()
        return tuple(filter(None, (self.corpus, *(download.corpus for download in downloads))))

    def listed(self) -> Self:
        """Ask the hub which files a corpus has, where that is not known. Raises `UsageError` where it does not say."""
        corpus = self.corpus and self.corpus.listed()
        return replace(self, corpus=corpus, files=corpus.files()) if corpus else self

    def keep_listings(self) -> None:
        """Write down which files the hub has listed. Raises `StoreError` where that cannot be written."""
        from bench.data.fetching.fetch import writing

        for corpus in self.corpora:
            with writing(f"the list of files of {corpus.text}"):
                corpus.keep_listings()


def _for_command(
    words: str,
    name: str | None,
    tasks: str | None,
    languages: str | None,
    quota: int | None,
    *,
    explicit: bool,
    ask: bool,
) -> _OfficialFiles:
    """Look for what a command reads. Raises `UsageError` as it does, and for what narrows a suite or corpus."""
    from bench.cli.fetch_for import needed

    typed = {
        "a name": name,
        "--task": tasks,
        "--languages": languages,
        "--quota": quota,
        "--data-dir": explicit,
    }
    if other_option := next((option for option, value in typed.items() if value), None):
        raise UsageError(
            where="--for", found=f"{other_option} next to it", expected="all options within the command's words"
        )
    reads = needed(words, ask=ask)
    files = [file for download in reads.downloads for file in download.local]
    return _OfficialFiles(reads.words, "", files, needed=reads)


def _official_files(
    name: str, tasks: str | None, languages: str | None, places: Sequence[Path], quota: int | None = None
) -> _OfficialFiles:
    """Look for the files of a suite or corpus; raises `UsageError` for an unknown name, task or language."""
    from bench.data.corpora.named import NamedCorpus, is_named, parse
    from bench.data.fetching.local_files import DEV, asked_tasks, local_files
    from bench.plugins import load

    plugins = load()
    if is_named(name, plugins.corpora_by_name) and canonical(name) not in plugins.suites:
        if tasks:
            raise UsageError(where=f"corpus {name}", found="--task", expected="--languages, or neither")
        identifier = f"{name}:{languages}" if languages else name
        parts = parse(identifier, plugins.corpora_by_name)
        corpus = NamedCorpus(identifier, parts, tuple(places)).within(quota)
        licences = dict.fromkeys(part.corpus.licence for part in parts)
        return _OfficialFiles(name, "; ".join(licences), corpus.files(), corpus=corpus)
    suite = plugins.suite(name)
    if languages:
        raise UsageError(where=f"suite {name}", found="--languages", expected="--task, or neither")
    if quota:
        raise UsageError(where=f"suite {name}", found="--quota", expected="--task, or neither")
    task_names = asked_tasks(suite, split(tasks))
    files = local_files(suite, places, task_names if tasks else ())
    readable = (*suite.task_names("official"), *(name for name in task_names if name.endswith(DEV)))
    read = tuple(name for name in task_names if name in readable)  # the others are groups of files that no task reads
    return _OfficialFiles(suite.name, suite.licence, files, suite, read)


@dataclass(frozen=True)
class _FetchPlan:
    """Files as they are now, those to be fetched or unpacked, and the bytes to fetch by path where known."""

    official: _OfficialFiles
    files: Sequence[LocalFile]
    todo: Sequence[LocalFile]
    sizes: Mapping[str, int]
    offline: bool

    @property
    def incomplete(self) -> list[LocalFile]:
        """Files that are missing, damaged, or not unpacked."""
        return [file for file in self.files if not file.complete]

    @property
    def libraries(self) -> Sequence[Download]:
        """What libraries fetch for a command."""
        return () if self.offline or self.official.needed is None else self.official.needed.libraries

    def summary(self) -> list[str]:
        """Return what would be fetched, from whom and into which folder, as sentences."""
        if self.official.needed is not None:
            return self._summary_for(self.official.needed)
        if not self.incomplete:
            return [f"{self.official.name}: {file_count(len(self.files))}, nothing missing"]
        lines = []
        missing = [file.release.path for file in self.incomplete if not (file.local or file.by_hand)]
        if self.offline and missing:
            names = ", ".join(missing[:_MAX_ROWS])
            names += f" and {len(missing) - _MAX_ROWS} more" if len(missing) > _MAX_ROWS else ""
            lines.append(f"missing: {names}; without --offline {file_count(len(missing))} would be fetched")
        if fetched := [file for file in self.todo if not file.local]:
            sizes = [self.sizes[file.release.path] for file in fetched if file.release.path in self.sizes]
            amount = sizes_text(sum(sizes), len(fetched) - len(sizes))
            lines.append(f"to fetch: {file_count(len(fetched))}, {amount}")
            licence = self.official.licence
            lines.append(f"licence of {self.official.name}: {licence}")
            licences = dict.fromkeys(
                file.release.licence for file in fetched if file.release.licence not in ("", licence)
            )
            lines += [f"licence of its files: {'; '.join(licences)}"] if licences else []
        if unpacked := [file.release.path for file in self.todo if file.release.unpack]:
            lines.append(f"to unpack: {', '.join(unpacked)}")
        folders = dict.fromkeys(str(file.root) for file in self.todo)
        return [*lines, f"into: {', '.join(folders)}"] if folders else lines

    def _summary_for(self, reads: Needed) -> list[str]:
        """Return a line for each thing that a command reads and is not here, and the sum."""
        from bench.cli.fetch_texts import amount_text

        lines, size_in_all, unsized_in_all, count = [], 0, 0, 0
        for download in reads.downloads:
            sizes = [self.sizes.get(file.release.path) for file in download.local if not file.local]
            has_answers = any(size is not None for size in sizes) or not sizes
            size = sum(filter(None, sizes)) if download.local and has_answers else download.bytes
            unsized = sizes.count(None) if download.local and has_answers else download.unknown
            size_in_all, unsized_in_all, count = size_in_all + size, unsized_in_all + unsized, count + download.files
            entry = f"{download.name}: {file_count(download.files)}, {amount_text(size, unsized)}"
            lines.append(f"{entry}; licence: {download.licence}; into {download.into}")
        if not lines:
            return [f"{self.official.name}: nothing missing"]
        verb = "missing" if self.offline else "to fetch"
        return [*lines, f"{verb} in all: {file_count(count)}, {amount_text(size_in_all, unsized_in_all)}"]


def _plan_fetch(official: _OfficialFiles, files: Sequence[LocalFile], offline: bool) -> _FetchPlan:
    """Choose what to fetch or unpack; servers tell sizes that were not published, of not too many files."""
    todo = [file for file in files if file.local or (not offline and not file.complete and file.release.urls)]
    sizes = {
        file.release.path: max(0, file.release.size - file.size * (file.state == "partial"))
        for file in todo
        if file.release.size is not None and not file.local
    }
    unsized = [file.release for file in todo if file.release.size is None and not file.local]
    if not offline and 0 < len(unsized) <= _MAX_SIZE_REQUESTS:
        from bench.data.fetching.client import Client, RetryPolicy

        with Client(RetryPolicy(connect=5, read=10)) as client:
            answers = {release.path: map(client.size, release.urls) for release in unsized}  # each until one says it
            first = {path: next((size for size in sizes if size is not None), None) for path, sizes in answers.items()}
        sizes |= {path: size for path, size in first.items() if size is not None}
    return _FetchPlan(official, files, todo, sizes, offline)


def _check_space(plan: _FetchPlan) -> None:
    """Raise `StoreError` before any work for a folder that cannot be written or has not the room."""
    bytes_by_root: dict[Path, int] = {}
    for file in plan.todo:
        bytes_by_root[file.root] = bytes_by_root.get(file.root, 0) + plan.sizes.get(file.release.path, 0)
    for download in plan.libraries:
        bytes_by_root[download.into] = bytes_by_root.get(download.into, 0) + download.bytes
    for root, count in bytes_by_root.items():
        existing_folder = next(folder for folder in (root, *root.absolute().parents) if folder.exists())
        if not existing_folder.is_dir() or not os.access(existing_folder, os.W_OK):
            raise StoreError(f"cannot write to {root}: nothing was fetched; choose another folder by --data-dir")
        free = shutil.disk_usage(existing_folder).free
        if count > free:
            raise StoreError(
                f"{size_text(count)} are to be fetched, and the disk of {root} has {size_text(free)} left: nothing was "
                "fetched; free some, name fewer tasks by --task, or choose another folder by --data-dir"
            )


def _confirm() -> None:
    """Ask for consent. Raises `UsageError` where no terminal is there to ask on, `Exit` where the answer is no."""
    if not sys.stdin.isatty():
        raise UsageError(
            "nothing was fetched: there is no terminal to ask on; type --yes to agree to the size and the licence, or "
            "--dry-run to see them only"
        )
    if not click.confirm("Fetch them under these licences?", default=True, err=True):
        click.echo("nothing was fetched", err=True)
        raise click.exceptions.Exit(1)


def _fetch_all(plan: _FetchPlan) -> tuple[dict[str, LocalFile], dict[str, str]]:
    """Fetch and unpack files; return what is there now and what failed, by path. Raises `StoreError`."""
    from bench.cli.byte_bars import ByteBars
    from bench.data.fetching.fetch import ensure_all

    with ByteBars() as bars:

        @contextmanager
        def watch(number: int, file: LocalFile) -> Iterator[ByteBar]:
            path = file.release.path
            with bars.bar(f"[{number}/{len(plan.todo)}] {path}", plan.sizes.get(path)) as bar:
                yield bar

        def ended(file: LocalFile, reason: str) -> None:
            bars.notice(
                f"{file.release.path} failed" if reason else f"{file.release.path} ({size_text(file.size)}) is there"
            )

        return ensure_all(plan.todo, watch, ended, offline=plan.offline)


@command.command(
    name="check",
    short_help="Compare checksums and counts of a suite's files with what was published.",
    epilog=examples(
        "bench data check tatoeba", "bench data check beir --task scifact", "bench data check xor-retrieve"
    ),
)
@click.argument("name", metavar="SUITE|CORPUS")
@click.option(
    "--task", "tasks", metavar="NAMES", help="Only these tasks and the files that they need, comma-separated."
)
@_LANGUAGES
@data_dir_option
@store_option
@progress_options
@json_option
def check(data_dir: Path | None, store: Path, progress: Reporter, as_json: bool, **selection: Any) -> None:
    """Compare official files with what was published: sizes and checksums, then counts, by reading them.

    Every corpus, question and judgement is read as a run reads it, and what is found is kept in the store for runs.
    Of a corpus to pretrain on, the first document of each language is read.
    Exit status 1 if anything is missing or wrong.
    """
    from bench.data.fetching.local_files import BY_HUB
    from bench.data.fetching.official import roots
    from bench.plugins import load
    from bench.store.graph import steps
    from bench.store.store import Store
    from bench.studies.inspection import execute, prepare, read_first_documents

    official, stage_store = _official_files(**selection, places=roots(data_dir)), Store(store, notice)
    files = _examined(official.files, reread=True)
    if official.suite is None:
        subsets = read_first_documents(official.corpus) if official.corpus else []
    else:
        prepared = prepare(official.suite, official.task_names, data_dir, load(), stage_store)
        with progress(steps([stage for _, stage in prepared if stage], stage_store)) as lines:
            subsets = execute(prepared, stage_store, lines)
    faults = sum(_VERDICTS[file.state] != "ok" for file in files) + sum(subset.verdict != "ok" for subset in subsets)
    if as_json:
        files_json = [{**file_json(file), "verdict": _VERDICTS[file.state]} for file in files]
        subsets_json = [{**asdict(subset), "reason": subset.reason or None} for subset in subsets]
        print_json({"suite": official.name, "faults": faults, "files": files_json, "subsets": subsets_json})
    else:
        _print_check(files, subsets)
        read = (
            f"{len(subsets)} subset{'s' * (len(subsets) != 1)} of tasks"
            if official.suite
            else f"{len(subsets)} languages"
        )
        click.echo(f"{official.name}: {file_count(len(files))} and {read} checked, {faults} faults")
        unpublished = [file.release for file in files if not file.release.sha256 and file.basis != BY_HUB]
        if unpublished:  # what was fetched first is trusted
            names = ", ".join(release.path + " (md5 alone)" * bool(release.md5) for release in unpublished)
            count = f"{file_count(len(unpublished))} without a published sha256"
            click.echo(f"{count}, compared with what was fetched first: {names}")
        if any(file.state == "damaged" for file in files):
            click.echo(f"`bench data fetch {official.name}` fetches damaged files again")
    if faults:
        raise click.exceptions.Exit(1)


def _print_check(files: Sequence[LocalFile], subsets: Sequence[Inspected]) -> None:
    """Print a table of files and a table of what was read; a reason that repeats the row's above is abbreviated."""
    if files:
        rows = [
            (
                file.release.path,
                _VERDICTS[file.state],
                size_text(file.size),
                file.basis or "nothing was published" * file.path.is_file(),
                file.reason,
            )
            for file in files
        ]
        table("", ("file", "verdict", "size", "compared with", "reason"), rows, numbers=("size",))
        click.echo()
    counts = list(dict.fromkeys(kind for subset in subsets for kind in subset.counts))
    rows_read = [
        (
            f"{subset.task}{' ' + subset.subset if subset.subset else ''}",
            subset.verdict,
            *(f"{subset.counts[kind]:,}" if kind in subset.counts else "" for kind in counts),
            subset.reason if row == 0 or subset.reason != subsets[row - 1].reason else "as above" * bool(subset.reason),
        )
        for row, subset in enumerate(subsets)
    ]
    table("", ("task", "verdict", *counts, "reason"), rows_read, numbers=counts)
    click.echo()


command.add_lazy("audit", "Look for a suite's questions, passages and answers in training text.", "data_audit")
command.add_command(probe)


def _examined(files: Sequence[LocalFile], *, reread: bool) -> list[LocalFile]:
    """Compare checksums with those published, with a bar; files fetched and untouched since only with `reread`."""
    from bench.cli.byte_bars import ByteBars
    from bench.data.fetching.local_files import examine, is_worth_reading, unread

    selection = [(file, is_worth_reading(file, reread=reread)) for file in files]
    total = sum(unread(file) for file, selected in selection if selected)
    with ByteBars() as bars, bars.bar("checking", total) as bar:
        return [examine(file, bar.read) if selected else file for file, selected in selection]
