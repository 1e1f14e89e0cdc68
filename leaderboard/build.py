"""A results folder → a folder of plain files, which appears whole or not at all and never takes a stranger's place."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.errors import StoreError, UsageError
from bench.fsio import explain
from leaderboard.feed import days
from leaderboard.kit import Shown, Site
from leaderboard.page import files, pages
from leaderboard.read import results
from leaderboard.tables import boards
from leaderboard.verify import faults, too_large

LIST = "site.json"
"""Names every file of the site; by it a site is known as ours when it is built again."""
SCHEMA = "retrieval-bench/site/1"


@dataclass(frozen=True)
class Built:
    """A built site.

    Args:
        folder: where it lies.
        pages: what each page is about.
        files: how many files there are.
        bytes: their size.
    """

    folder: Path
    pages: tuple[dict[str, Any], ...]
    files: int
    bytes: int


def build(
    folder: Path,
    out: Path,
    shown: Shown | None = None,
    built: str = "",
    cache: Path | None = None,
    *,
    runs: bool = False,
) -> Built:
    """Build the site of a results folder; an older site at that place is replaced.

    Args:
        folder: of results.
        out: of the site; must be absent, empty, or hold a site and nothing else.
        shown: what plugins tell of methods and suites; None for nothing.
        built: the day that pages name; empty for none.
        cache: folder that keeps what the tests found from build to build; None to keep nothing.
        runs: copy result files and runs beside the rows' pages.

    Raises:
        UsageError: there are no results, other files stand at `out`, or a page would be too large.
        StoreError: a result that cannot be trusted, a folder that cannot be written, or pages that contradict their
            files.
    """
    found = results(folder)
    if not found:
        raise UsageError(
            f"{folder}: found no results, expected some; `bench run --results {folder}` makes them, or name another "
            "folder by --results"
        )
    _free(out)
    tables = boards(found, cache)
    site = Site(tuple(found), tuple(tables), shown or Shown(), built, _days(out), runs)
    content = files(site)
    _check(content)
    made = tuple(page.about() for page in pages(tables))
    listing = {"schema": SCHEMA, "files": sorted([*content, LIST]), "pages": made, "days": days(site)}
    content[LIST] = (json.dumps(listing, indent=1, ensure_ascii=False) + "\n").encode()
    try:
        _replace(out, content)
    except OSError as error:
        raise StoreError(
            f"cannot write the site to {out}: {explain(error)}; mend that or choose another folder by --out"
        ) from error
    return Built(out, made, len(content), sum(map(len, content.values())))


def _free(out: Path) -> None:
    """Refuse a place where anything lies that no build has written."""
    if not out.exists():
        return
    if not out.is_dir():
        raise UsageError(f"{out}: found a file, expected a folder for the site; choose another by --out")
    ours = _ours(out)
    if ours:
        there = {path.relative_to(out).as_posix() for path in out.rglob("*") if not path.is_dir() or path.is_symlink()}
    else:
        there = {path.name for path in out.iterdir()}
    strange = sorted(there - ours)
    if strange:
        raise UsageError(
            f"{out}: found files that are no site's ({', '.join(strange[:3])}{', …' if len(strange) > 3 else ''}), "
            "expected an absent or empty folder or an older site; choose another by --out"
        )


def _check(content: dict[str, bytes]) -> None:
    """Refuse pages that are too large, contradict their files, or lead nowhere."""
    for name, size, most in too_large(content):
        raise UsageError(
            f"{name}: would have {size:,} bytes, expected at most {most:,}; build from a folder with fewer systems "
            "(--results)"
        )
    wrong = list(faults(content))
    if wrong:
        raise StoreError(
            f"the site was not written: found {len(wrong):,} faults, expected none; the first: {wrong[0]}. This is a "
            "mistake of the program: please report it"
        )


def _ours(out: Path) -> set[str]:
    """The files that a site names as its own; none where there is no site."""
    named = _listing(out).get("files")
    return set(map(str, named)) if isinstance(named, list) else set()


def _days(out: Path) -> dict[str, str]:
    """The days on which an older site at that place first showed its rows."""
    named = _listing(out).get("days")
    return {str(row): str(day) for row, day in named.items()} if isinstance(named, dict) else {}


def _listing(out: Path) -> dict[str, Any]:
    """What a site says of itself; nothing where there is none of ours."""
    try:
        listing = json.loads((out / LIST).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return listing if isinstance(listing, dict) and listing.get("schema") == SCHEMA else {}


def _replace(out: Path, content: dict[str, bytes]) -> None:
    """Write all files to a folder beside `out`, then let it take its place; a failure leaves the old site."""
    out = out.resolve()
    out.parent.mkdir(parents=True, exist_ok=True)
    token = f"{os.getpid()}-{secrets.token_hex(3)}"
    fresh, old = (out.with_name(f".{out.name}.{token}.{state}") for state in ("new", "old"))
    try:
        for name, data in content.items():
            path = fresh / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        if out.exists():
            out.rename(old)
        try:
            fresh.rename(out)
        except OSError:
            if old.exists():
                old.rename(out)
            raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    shutil.rmtree(old, ignore_errors=True)
