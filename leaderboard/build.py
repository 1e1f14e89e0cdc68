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
from leaderboard.kit import Shown, Site
from leaderboard.page import files, pages
from leaderboard.read import results
from leaderboard.tables import boards

LIST = "site.json"
"""Names every file of the site; by it a site is known as ours when it is built again."""
SCHEMA = "retrieval-bench/site/1"
LARGEST_PAGE = 500 << 10
"""Bytes of a page; larger ones are slow to open and to mail."""


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


def build(folder: Path, out: Path, shown: Shown | None = None, built: str = "") -> Built:
    """Build the site of a results folder; an older site at that place is replaced.

    Args:
        folder: of results.
        out: of the site; must be absent, empty, or hold a site and nothing else.
        shown: what plugins tell of methods and suites; None for nothing.
        built: the day that pages name; empty for none.

    Raises:
        UsageError: there are no results, or other files stand at `out`.
        StoreError: a result that cannot be trusted, or a folder that cannot be written.
    """
    found = results(folder)
    if not found:
        raise UsageError(
            f"{folder}: found no results, expected some; `bench run --results {folder}` makes them, or name another "
            "folder by --results"
        )
    _free(out)
    tables = boards(found)
    content = files(Site(tuple(found), tuple(tables), shown or Shown(), built))
    for name, data in content.items():
        if len(data) > LARGEST_PAGE and name.endswith(".html"):
            raise UsageError(
                f"{name}: would have {len(data):,} bytes, expected at most {LARGEST_PAGE:,}; build from a folder with "
                "fewer systems (--results)"
            )
    made = tuple(page.about() for page in pages(tables))
    listing = {"schema": SCHEMA, "files": sorted([*content, LIST]), "pages": made}
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


def _ours(out: Path) -> set[str]:
    """The files that a site names as its own; none where there is no site."""
    try:
        listing = json.loads((out / LIST).read_bytes())
    except (OSError, ValueError, RecursionError):
        return set()
    if not isinstance(listing, dict) or listing.get("schema") != SCHEMA or not isinstance(listing.get("files"), list):
        return set()
    return set(map(str, listing["files"]))


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
