"""What the commands of `bench data` print of official files."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.filesize import decimal
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from bench.cli.output import notice, table
from bench.config.request import split
from bench.core.errors import UsageError
from bench.core.messages import canonical
from bench.core.publications import Release
from bench.data.corpora.named import CorpusPart, NamedCorpus, fetched_bytes, is_named, parse
from bench.data.fetching import records
from bench.data.fetching.local_files import LocalFile, asked_tasks, examine, local_files, unread, untouched
from bench.data.fetching.records import public_url
from bench.plugins import load
from bench.types import Suite

LANGUAGES: Callable[..., Any] = click.option(
    "--languages", metavar="CODES", help="Of a corpus to pretrain on: only these languages, comma-separated."
)
LISTED = 20
"""Rows before a table that asks for no detail is cut."""


@dataclass(frozen=True)
class Official:
    """The official files of a suite, or of a corpus to pretrain on."""

    name: str
    licence: str
    files: Sequence[LocalFile]
    suite: Suite | None = None
    task_names: tuple[str, ...] = ()  # its tasks
    corpus: NamedCorpus | None = None


def official(name: str, tasks: str | None, languages: str | None, places: Sequence[Path]) -> Official:
    """Look for the files of a suite or corpus; raises `UsageError` for an unknown name, task or language."""
    plugins = load()
    if is_named(name, plugins.corpora_by_name) and canonical(name) not in plugins.suites:
        if tasks:
            raise UsageError(where=f"corpus {name}", found="--task", expected="--languages, or neither")
        parts = parse(f"{name}:{languages}" if languages else name, plugins.corpora_by_name)
        corpus = NamedCorpus(f"{name}:{languages}" if languages else name, parts, tuple(places))
        licences = dict.fromkeys(part.corpus.licence for part in parts)
        return Official(name, "; ".join(licences), corpus.files(), corpus=corpus)
    suite = plugins.suite(name)
    if languages:
        raise UsageError(where=f"suite {name}", found="--languages", expected="--task, or neither")
    task_names = asked_tasks(suite, split(tasks))
    return Official(
        suite.name, suite.licence, local_files(suite, places, task_names if tasks else ()), suite, task_names
    )


def source(release: Release) -> str:
    """Return where a file comes from."""
    return public_url(release.urls[0]) if release.urls else "by hand"


def size(count: int | None) -> str:
    """Bytes in words."""
    return "unknown" if count is None else decimal(count)


def sized(count: int, unknown: int) -> str:
    """Bytes in words, with the number of files of which nobody knows."""
    amounts = [size(count)] if count or not unknown else []
    return " and ".join([*amounts, *([f"{unknown} of unknown size"] if unknown else [])])


def missing(files: Iterable[LocalFile]) -> dict[str, int]:
    """Return how much of official files has to come: bytes, and files of which nobody published the size."""
    incomplete = [file for file in files if not (file.complete or file.local)]
    return {
        "bytes_left": sum(
            max(0, (file.release.size or 0) - file.size * (file.state == "partial")) for file in incomplete
        ),
        "files_left_of_unknown_size": sum(file.release.size is None for file in incomplete),
    }


def as_json(file: LocalFile) -> dict[str, Any]:
    """Return the machine's view of one file."""
    release = file.release
    return {
        "path": release.path,
        "state": file.state,
        "where": str(file.path),
        "bytes": file.size,
        "published": {"bytes": release.size, "sha256": release.sha256 or None, "md5": release.md5 or None},
        "licence": release.licence,
        "sources": [public_url(url) for url in release.urls],
        "by_hand": not release.urls,
        "instructions": release.instructions or None,
        "unpacked_into": release.unpack or None,
        "tasks": list(release.tasks),
        "reason": file.reason or None,
        "held_against": file.basis or None,
    }


def files_table(title: str, files: Sequence[LocalFile], most: int | None = None) -> None:
    """Print a row a file, at most so many."""
    rows = [
        (
            file.release.path,
            file.state,
            size(file.release.size if file.release.size is not None else file.size or None),
            file.release.licence,
            source(file.release),
            file.reason,
        )
        for file in files
    ]
    shown = rows if most is None or len(rows) <= most + 1 else rows[:most]
    table(title, ("file", "state", "size", "licence", "source", "remark"), shown, numbers=("size",))
    if len(shown) < len(rows):
        click.echo(f"… and {len(rows) - len(shown)} more; `bench data list SUITE` and --json name all")


def unpublished(files: Sequence[LocalFile]) -> None:
    """Name the files whose sha256 nobody published, so that what is fetched first is trusted."""
    names = [file.release.path + " (md5 alone)" * bool(file.release.md5) for file in files if not file.release.sha256]
    if names:
        count = f"{file_count(len(names))} without a published sha256, compared with what was fetched first"
        click.echo(f"{count}: {', '.join(names)}")


def about_size(parts: Sequence[CorpusPart]) -> str:
    """Return about how many bytes the files of a corpus are, in words."""
    known_bytes, unknown = fetched_bytes(parts)
    return f"about {size(int(known_bytes))}" + f" and {file_count(unknown)} of unknown size" * bool(unknown)


def file_count(number: int) -> str:
    """Return how many files."""
    return f"{number:,} file{'s' * (number != 1)}"


def instructions(files: Iterable[LocalFile], say: Callable[[str], None]) -> None:
    """Say what to do about files that cannot be fetched: name, size, checksum, place."""
    groups: dict[str, list[LocalFile]] = {}
    for file in files:
        groups.setdefault(file.release.instructions, []).append(file)
    for text, members in groups.items():
        say(f"{file_count(len(members))} cannot be fetched. {text}")
        for file in members:
            say(f"  {file.release.path} ({_published(file.release)}): put it at {file.path}")
        if any(file.release.unpack for file in members):
            say("  as it is; `bench data fetch` unpacks it")


def _published(release: Release) -> str:
    facts = [size(release.size)] if release.size is not None else []
    facts += [f"{name} {value}" for name, value in (("sha256", release.sha256), ("md5", release.md5)) if value]
    return ", ".join(facts) or "size and checksum were not published"


def examined(files: Sequence[LocalFile], *, reread: bool) -> list[LocalFile]:
    """Compare checksums with what was published, with a bar; of files fetched and untouched only `again`."""
    pairs = [(file, _worth_reading(file, reread)) for file in files]
    with Bar("checking", sum(unread(file) for file, is_wanted in pairs if is_wanted)) as bar:
        return [examine(file, bar.advance) if is_wanted else file for file, is_wanted in pairs]


def _worth_reading(file: LocalFile, reread: bool) -> bool:
    """Return whether reading a file would show more than its size did."""
    if file.state not in ("present", "packed"):
        return False
    release = file.release
    has_digest = release.sha256 or release.md5 or records.recall(file.root, release.path)
    return reread or (bool(has_digest) and not untouched(file))


class Bar:
    """A bar of bytes on stderr with rate and time left; silent without a terminal."""

    def __init__(self, text: str, total: int | None) -> None:
        self._progress = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        self._task: TaskID = self._progress.add_task(text, total=total)

    def __enter__(self) -> Bar:
        """Take the terminal's last line."""
        self._progress.start()
        return self

    def __exit__(self, *failure: object) -> None:
        """Give it back."""
        self._progress.stop()

    def advance(self, count: float) -> None:
        """So many bytes more."""
        self._progress.advance(self._task, count)

    def at(self, count: int, total: int | None) -> None:
        """So many bytes are there, of so many."""
        self._progress.update(self._task, completed=count, total=total)

    def notice(self, sentence: str) -> None:
        """Say something above the bar."""
        if sys.stderr.isatty():
            self._progress.console.print(f"bench: {sentence}", markup=False, highlight=False)
        else:
            notice(sentence)
