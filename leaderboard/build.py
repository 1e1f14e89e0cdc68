"""Build a site from a results folder: plain files, written all or none, that replace nothing but an older site."""

import gc
import json
import os
import secrets
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from bench.core.errors import BenchError, StoreError, UsageError
from bench.core.files import explain
from bench.evaluation.results.read import Result, result, result_files
from leaderboard.pages import ablations, compare, cost, index, methods, protocols, reported, runs, suites
from leaderboard.records import NEAR, Records
from leaderboard.site.boards import COPY, Board, boards
from leaderboard.site.feed import days
from leaderboard.site.render import Family, Files, Renderer, assets, settled
from leaderboard.site.rows import entries
from leaderboard.site.site import LeftOut, Shown, Site, pages
from leaderboard.site.verify import faults, too_large

LIST = "site.json"
"""Lists every file of the site; a later build recognises the site by it."""
SCHEMA = "retrieval-bench/site/1"
Sound = TypeVar("Sound")
_BREAKS = (BenchError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What a bundle may raise that is not as a run writes it."""


@dataclass(frozen=True)
class Built:
    """A built site."""

    folder: Path
    pages: tuple[dict[str, Any], ...]
    files: int
    bytes: int
    left: tuple[LeftOut, ...]


@contextmanager
def _uncollected() -> Iterator[None]:
    """Look for no cycles within: nearly all objects live to the end of a build, a quarter of which the search takes."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


@_uncollected()
def build(
    folder: Path,
    out: Path,
    shown: Shown | None = None,
    built: str = "",
    cache: Path | None = None,
    *,
    runs: bool = False,
    records: Records = NEAR,
) -> Built:
    """Build the site of a results folder at `out`, which must be absent, empty, or hold an older site alone.

    Pages name the day `built`, if it is given; the folder `cache` keeps statistical tests from build to build; `runs`
    copies result files and runs next to the rows' pages. A bundle that cannot be read or shown is left out and named.

    Raises:
        UsageError: there are no results, `out` holds other files, or a page would be too large.
        StoreError: no result can be trusted, a folder cannot be written, or pages contradict their files.
    """
    found, left = _readable(folder)
    if not found:
        if left:
            raise StoreError(f"no result can be shown; the first: {left[0].why}", where=folder)
        hint = f"type `bench run --results {folder}` to make some, or name another folder by --results"
        raise UsageError(where=folder, found="no results", expected="at least one", hint=hint)
    _free(out)
    days_ = _listing(out).get("days")
    known = {str(row): str(day) for row, day in days_.items()} if isinstance(days_, dict) else {}

    tables = partial(boards, cache=cache, records=records)

    def make(chosen: Sequence[Result], bad: Mapping[Path, str]) -> tuple[Site, dict[str, bytes]]:
        gone = [LeftOut(path.parent.relative_to(folder).as_posix(), why) for path, why in bad.items()]
        site = Site(tuple(chosen), tuple(tables(chosen)), shown or Shown(), built, known, runs, records, (*left, *gone))
        content = files(site)
        _check(content)
        return site, content

    (site, content), _ = _sound(sorted(found, key=lambda one: one.accepted is not None), make, tables)
    made = tuple(page.about() for page in pages(site.boards))
    left_out = [one.place for one in site.left]  # the reasons name folders of this machine
    listing = {"schema": SCHEMA, "files": sorted([*content, LIST]), "pages": made, "days": days(site)}
    listing |= {"left_out": left_out} if left_out else {}
    content[LIST] = (json.dumps(listing, indent=1, ensure_ascii=False) + "\n").encode()
    try:
        _replace(out, content)
    except OSError as error:
        hint = "fix that or choose another folder by --out"
        raise StoreError(f"cannot write the site to {out}: {explain(error)}; {hint}", where=out, hint=hint) from error
    return Built(out, made, len(content), sum(map(len, content.values())), site.left)


def trial(
    candidates: Sequence[Result], folder: Path, cache: Path | None = None, records: Records = NEAR
) -> tuple[dict[Path, str], list[str]]:
    """Build the board of results that share one, with them and those of a results folder; write nothing.

    Return why it cannot be built with some of them, by their files; and what it notes of rows with the same numbers.
    """
    about = candidates[0].content
    others, _ = _readable(folder / about.data / about.suite.name / about.setting)
    new = {(one.content.system.hash, one.content.seed) for one in candidates}
    kept = [one for one in others if (one.content.system.hash, one.content.seed) not in new]
    tables = partial(boards, cache=cache, records=records)

    def make(chosen: Sequence[Result], _: Mapping[Path, str]) -> list[str]:
        site = Site(tuple(chosen), tuple(tables(chosen)), records=records)
        _check(files(site))
        return [note for board in site.boards for note in board.notes if COPY in note]

    try:
        notes, bad = _sound([*kept, *candidates], make, tables)
    except _BREAKS as error:
        return {one.path: str(error) for one in candidates}, []
    return {one.path: bad[one.path] for one in candidates if one.path in bad}, notes


def _readable(folder: Path) -> tuple[list[Result], list[LeftOut]]:
    """Return the results of a folder, and those that are not as they were written."""
    found, left = [], []
    for path in result_files(folder):
        try:
            found.append(result(path))
        except BenchError as error:
            left.append(LeftOut(path.parent.relative_to(folder).as_posix(), str(error)))
    return found, left


def _sound(
    found: Sequence[Result],
    make: Callable[[Sequence[Result], Mapping[Path, str]], Sound],
    tables: Callable[[Sequence[Result]], list[Board]],
) -> tuple[Sound, dict[Path, str]]:
    """Make something of all results, or of those without which it can be made: why not, by their files.

    Of results that are sound each by itself but not together, the first are kept. Raises what `make` raises where
    leaving results out does not help.
    """
    try:
        return make(found, {}), {}
    except _BREAKS as error:
        bad = {one.path: why for one in found if (why := _fails(partial(make, [one], {})))}
        if not bad:
            kept: dict[tuple[str, str, str], list[Result]] = defaultdict(list)
            for one in found:
                own = kept[one.content.data, one.content.suite.name, one.content.setting]
                if why := _fails(partial(tables, [*own, one])):
                    bad[one.path] = why
                else:
                    own.append(one)
        if not bad or len(bad) == len(found):
            raise
        try:
            return make([one for one in found if one.path not in bad], bad), bad
        except _BREAKS:
            raise error from None


def _fails(make: Callable[[], object]) -> str:
    """Return why a site cannot be made; empty where it can."""
    try:
        make()
    except _BREAKS as error:
        return str(error) if isinstance(error, BenchError) else f"{type(error).__name__}: {error}"
    return ""


def _of_rows(site: Site, renderer: Renderer) -> Files:
    """Pages of runs, methods, pairs and costs."""
    every = entries(site)
    yield from runs.files(renderer, every)
    yield from runs.run_files(every) if site.runs else ()
    yield from methods.files(site, renderer, every)
    yield from compare.files(renderer, every)
    yield from cost.files(renderer, every)


FAMILIES: tuple[Family, ...] = (
    # The order decides nothing but which of two pages of one name is the second.
    index.files,
    suites.files,
    reported.files,
    protocols.files,
    ablations.files,
    _of_rows,
)
"""All families of pages."""


def files(site: Site) -> dict[str, bytes]:
    """Return every file of the site by its path; the same site always gives the same bytes."""
    renderer = Renderer(site)
    found = assets()
    for family in FAMILIES:
        for name, content in family(site, renderer):
            if name in found:
                raise ValueError(f"{name}: two pages of one name")
            found[name] = content
    return {
        name: settled(name, content, found, renderer.empty) if name.endswith(".html") else content
        for name, content in found.items()
    }


def _free(out: Path) -> None:
    """Raise `UsageError` where `out` holds anything that no build has written."""
    if not out.exists():
        return
    if not out.is_dir():
        raise UsageError(where=out, found="a file", expected="a folder for the site", hint="choose another by --out")
    named = _listing(out).get("files")
    ours = set(map(str, named)) if isinstance(named, list) else set()
    if ours:
        there = {path.relative_to(out).as_posix() for path in out.rglob("*") if not path.is_dir() or path.is_symlink()}
    else:
        there = {path.name for path in out.iterdir()}
    strange = sorted(there - ours)
    if strange:
        raise UsageError(
            where=out,
            found=f"files that no build has written ({', '.join(strange[:3])}{', …' if len(strange) > 3 else ''})",
            expected="an absent or empty folder, or an older site",
            hint="choose another by --out",
        )


def _check(content: dict[str, bytes]) -> None:
    """Raise an error for pages that are too large, contradict their files, or have dead links."""
    for name, size, most in too_large(content):
        hint = "build from a folder with fewer systems (--results)"
        raise UsageError(where=name, found=f"{size:,} bytes", expected=f"at most {most:,}", hint=hint)
    wrong = list(faults(content))
    if wrong:
        raise StoreError(
            f"the site was not written: found {len(wrong):,} faults, expected none; the first: {wrong[0]}. This is a "
            "bug: please report it"
        )


def _listing(out: Path) -> dict[str, Any]:
    try:
        listing = json.loads((out / LIST).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return listing if isinstance(listing, dict) and listing.get("schema") == SCHEMA else {}


def _replace(out: Path, content: dict[str, bytes]) -> None:
    """Write all files to a folder next to `out`, then rename it to `out`; a failure leaves the old site."""
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
