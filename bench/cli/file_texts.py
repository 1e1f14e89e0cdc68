"""What commands print of official files: their state, and what to do about those that nobody may fetch."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from bench.cli.output import file_count, size_text, table

if TYPE_CHECKING:
    from bench.data.fetching.local_files import LocalFile


def file_json(file: LocalFile) -> dict[str, Any]:
    """Return the entry of a file in `--json`."""
    from bench.data.fetching.records import public_url

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


def print_files(title: str, files: Sequence[LocalFile], most: int | None = None) -> None:
    """Print a row for each file; with `most`, at most about so many."""
    from bench.data.fetching.records import public_url

    rows = [
        (
            file.release.path,
            file.state,
            size_text(file.release.size if file.release.size is not None else file.size or None),
            file.release.licence,
            public_url(file.release.urls[0]) if file.release.urls else "by hand",
            file.reason,
        )
        for file in files
    ]
    shown = rows if most is None or len(rows) <= most + 1 else rows[:most]
    table(title, ("file", "state", "size", "licence", "source", "remark"), shown, numbers=("size",))
    if len(shown) < len(rows):
        click.echo(f"… and {len(rows) - len(shown)} more; `bench data list SUITE` and --json name all")


def print_instructions(files: Iterable[LocalFile], say: Callable[[str], None]) -> None:
    """Say what to do about files that cannot be fetched: name, size, checksum, place."""
    groups: dict[str, list[LocalFile]] = {}
    for file in files:
        groups.setdefault(file.release.instructions, []).append(file)
    for text, members in groups.items():
        say(f"{file_count(len(members))} cannot be fetched. {text}")
        for file in members:
            release = file.release
            published = [size_text(release.size)] if release.size is not None else []
            published += [f"sha256 {release.sha256}"] if release.sha256 else []
            published += [f"md5 {release.md5}"] if release.md5 else []
            facts = ", ".join(published) or "size and checksum were not published"
            say(f"  {release.path} ({facts}): put it at {file.path}")
        if any(file.release.unpack for file in members):
            say("  as it is; `bench data fetch` unpacks it")
