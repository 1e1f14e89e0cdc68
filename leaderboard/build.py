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
from bench.evaluation.learning_curves import trainings
from bench.evaluation.learning_curves.figure import LearningCurves
from bench.evaluation.results.read import Result, require_place, result, result_files
from leaderboard.pages import (
    ablations,
    compare,
    cost,
    index,
    learning_curves,
    methods,
    protocols,
    reported,
    runs,
    suites,
    variants,
)
from leaderboard.records import NEAR, Records
from leaderboard.site.boards import COPY, Board, boards
from leaderboard.site.render import Family, Renderer, assets, resolve_links
from leaderboard.site.site import Catalogue, Site, row_id
from leaderboard.site.verify import errors, too_large

LIST = "site.json"
"""Lists every file of the site; a later build recognises the site by it."""
SCHEMA = "retrieval-bench/site/1"
Product = TypeVar("Product")
_BROKEN = (BenchError, ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What a bundle may raise that is not as a run writes it."""
FAMILIES: tuple[Family, ...] = (
    # The order decides nothing but which of two pages of one name is the second.
    index.files,
    suites.files,
    reported.files,
    protocols.files,
    ablations.files,
    variants.files,
    learning_curves.files,
    runs.files,
    methods.files,
    compare.files,
    cost.files,
)
"""All families of pages."""


@dataclass(frozen=True)
class BuiltSite:
    """A built site.

    Args:
        folder: where it is.
        pages: its boards, as its list has them.
        files: number of files.
        bytes: their size.
        omitted: why bundles cannot be read or shown, by their folder below the results folder.
    """

    folder: Path
    pages: tuple[dict[str, Any], ...]
    files: int
    bytes: int
    omitted: Mapping[str, str]


@contextmanager
def gc_disabled() -> Iterator[None]:
    """Switch garbage collection off: nearly all objects live to the end of a build, a quarter of which it takes."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@gc_disabled()
def build(
    folder: Path,
    out: Path,
    catalogue: Catalogue | None = None,
    built: str = "",
    cache: Path | None = None,
    *,
    runs: bool = False,
    records: Records = NEAR,
) -> BuiltSite:
    """Build the site of a results folder; a bundle that cannot be read or shown is left out and named.

    Args:
        folder: the results folder.
        out: where the site goes; it must be absent, empty, or hold an older site alone.
        catalogue: methods and suites of plugins.
        built: the day that pages name, ISO 8601; by default none.
        cache: folder that keeps statistical tests from build to build.
        runs: whether to copy result files and runs next to the rows' pages.
        records: which results are verified.

    Raises:
        UsageError: there are no results, `out` holds other files, or a page would be too large.
        StoreError: no result can be trusted, a folder cannot be written, or pages contradict their files.
    """
    results, omitted = _readable(folder)
    curves, unreadable = _curves(folder)
    omitted |= unreadable
    if not results and omitted:
        raise StoreError(f"no result can be shown; the first: {next(iter(omitted.values()))}", where=folder)
    if not results:
        hint = f"type `bench run --results {folder}` to make some, or name another folder by --results"
        raise UsageError(where=folder, found="no results", expected="at least one", hint=hint)
    _require_replaceable(out)
    days = _listing(out).get("days")
    days = {str(row): str(day) for row, day in days.items()} if isinstance(days, dict) else {}
    catalogue = catalogue or Catalogue()
    tables = partial(boards, cache=cache, records=records, suites=catalogue.suites)

    def make(sound_results: Sequence[Result], broken: Mapping[Path, str]) -> tuple[Site, dict[str, bytes]]:
        bundles = {path.parent.relative_to(folder).as_posix(): why for path, why in broken.items()}
        site = Site(
            results=tuple(sound_results),
            boards=tuple(tables(sound_results)),
            catalogue=catalogue,
            built=built,
            days=days,
            runs=runs,
            records=records,
            omitted=omitted | bundles,
            curves=curves,
        )
        content = files(site)
        _check(content)
        return site, content

    submitted_last = sorted(results, key=lambda read: read.accepted is not None)
    (site, content), _ = build_without_broken(submitted_last, make, tables)
    listed = tuple(
        {
            "page": f"{board.stem}.html",
            "suite": board.suite,
            "proxy_for": board.proxy_for or None,
            "regime": board.regime,
            "data": board.data,
            "measure": board.measure,
            "systems": len(board.all_rows),
            "best": board.best,
        }
        for board in site.boards
    )
    first_days = {row_id(board, row): site.first_day(board, row) for board in site.boards for row in board.all_rows}
    listing = {
        "schema": SCHEMA,
        "files": sorted([*content, LIST]),
        "pages": listed,
        "days": {row: day for row, day in first_days.items() if day},
    }
    if site.omitted:  # the reasons name folders of this machine
        listing["left_out"] = list(site.omitted)
    content[LIST] = (json.dumps(listing, indent=1, ensure_ascii=False) + "\n").encode()
    try:
        _replace(out, content)
    except OSError as error:
        hint = "fix that or choose another folder by --out"
        raise StoreError(f"cannot write the site to {out}: {explain(error)}; {hint}", where=out, hint=hint) from error
    return BuiltSite(out, listed, len(content), sum(map(len, content.values())), site.omitted)


def trial(
    candidates: Sequence[Result], folder: Path, cache: Path | None = None, records: Records = NEAR
) -> tuple[dict[Path, str], list[str]]:
    """Build the board of some results that share one, together with those of a results folder; write nothing.

    Args:
        candidates: the results; they replace those of the same systems and seeds.
        folder: the results folder.
        cache: folder that keeps statistical tests.
        records: which results are verified.

    Returns:
        Why the board cannot be built with some of the candidates, by their files; and its notes on rows with the same
        numbers.
    """
    content = candidates[0].content
    existing, _ = _readable(folder / content.data / content.suite.name / content.regime)
    new = {(result.content.system.hash, result.content.seed) for result in candidates}
    existing = [result for result in existing if (result.content.system.hash, result.content.seed) not in new]
    tables = partial(boards, cache=cache, records=records)

    def make(sound_results: Sequence[Result], _: Mapping[Path, str]) -> list[str]:
        site = Site(tuple(sound_results), tuple(tables(sound_results)), records=records)
        _check(files(site))
        return [note for board in site.boards for note in board.notes if COPY in note]

    try:
        notes, broken = build_without_broken([*existing, *candidates], make, tables)
    except _BROKEN as error:
        return {result.path: str(error) for result in candidates}, []
    return {result.path: broken[result.path] for result in candidates if result.path in broken}, notes


def _readable(folder: Path) -> tuple[list[Result], dict[str, str]]:
    """Return the results of a folder, and what is wrong with those that are not as they were written, by folder."""
    results, omitted = [], {}
    for path in result_files(folder):
        try:
            readable = result(path)
            require_place(folder, readable)
            results.append(readable)
        except BenchError as error:
            omitted[path.parent.relative_to(folder).as_posix()] = str(error)
    return results, omitted


def _curves(folder: Path) -> tuple[tuple[LearningCurves, ...], dict[str, str]]:
    """Return the curves below a results folder, and why files of some are left out: damaged, or one training twice."""
    files, omitted, first = [], dict[str, str](), dict[tuple[str, ...], str]()
    for path in trainings.curve_files(folder / trainings.FOLDER):
        name = path.relative_to(folder).as_posix()
        try:
            file = trainings.read(path)
        except BenchError as error:
            omitted[name] = str(error)
            continue
        if (known := first.setdefault(file.identity, name)) != name:
            omitted[name] = f"the same training as {known}"
        else:
            files.append(file)
    groups = trainings.by_scoring(files)
    return tuple(LearningCurves(scoring, group) for scoring, group in groups.items()), omitted


def build_without_broken(
    results: Sequence[Result],
    make: Callable[[Sequence[Result], Mapping[Path, str]], Product],
    tables: Callable[[Sequence[Result]], list[Board]],
) -> tuple[Product, dict[Path, str]]:
    """Make something of all results, or of those without which it can be made.

    Of results that are sound each by itself but not together, the first are kept.

    Args:
        results: in the order of trust.
        make: takes results, and reasons why others are left out, by their files; raises for results that break it.
        tables: builds boards; raises for results that must not share one.

    Returns:
        What was made, and why results were left out, by their files.

    Raises:
        Exception: what `make` raises where leaving results out does not help.
    """
    try:
        return make(results, {}), {}
    except _BROKEN as error:
        broken = {result.path: cause for result in results if (cause := _cause(partial(make, [result], {})))}
        if not broken:
            sound: dict[tuple[str, str, str], list[Result]] = defaultdict(list)
            for result in results:
                content = result.content
                group = sound[content.data, content.suite.name, content.regime]
                if cause := _cause(partial(tables, [*group, result])):
                    broken[result.path] = cause
                else:
                    group.append(result)
        if not broken or len(broken) == len(results):
            raise
        try:
            return make([result for result in results if result.path not in broken], broken), broken
        except _BROKEN:
            raise error from None


def _cause(make: Callable[[], object]) -> str:
    """Return why something cannot be made; empty where it can."""
    try:
        make()
    except _BROKEN as error:
        return str(error) if isinstance(error, BenchError) else f"{type(error).__name__}: {error}"
    return ""


def files(site: Site) -> dict[str, bytes]:
    """Return every file of the site by its path; the same site always gives the same bytes."""
    renderer = Renderer(site)
    content = assets()
    for family in FAMILIES:
        for name, data in family(site, renderer):
            if name in content:
                raise ValueError(f"{name}: two pages of one name")
            content[name] = data
    return {
        name: resolve_links(name, data, content, renderer.empty) if name.endswith(".html") else data
        for name, data in content.items()
    }


def _require_replaceable(out: Path) -> None:
    """Raise `UsageError` where `out` holds anything that no build has written."""
    if not out.exists():
        return
    if not out.is_dir():
        raise UsageError(where=out, found="a file", expected="a folder for the site", hint="choose another by --out")
    listed = _listing(out).get("files")
    ours = set(map(str, listed)) if isinstance(listed, list) else set()
    paths = (path for path in out.rglob("*") if not path.is_dir() or path.is_symlink()) if ours else out.iterdir()
    foreign = sorted({path.relative_to(out).as_posix() for path in paths} - ours)
    if foreign:
        raise UsageError(
            where=out,
            found=f"files that no build has written ({', '.join(foreign[:3])}{', …' if len(foreign) > 3 else ''})",
            expected="an absent or empty folder, or an older site",
            hint="choose another by --out",
        )


def _check(content: dict[str, bytes]) -> None:
    """Raise an error for pages that are too large, contradict their files, or have dead links."""
    for name, size, most in too_large(content):
        hint = "build from a folder with fewer systems (--results)"
        raise UsageError(where=name, found=f"{size:,} bytes", expected=f"at most {most:,}", hint=hint)
    wrong = list(errors(content))
    if wrong:
        raise StoreError(
            f"the site was not written: found {len(wrong):,} faults, expected none; the first: {wrong[0]}. This is a "
            "bug: please report it"
        )


def _listing(out: Path) -> dict[str, Any]:
    """Return the list of an older site; empty where there is none."""
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
        for folder in {(fresh / name).parent for name in content}:
            folder.mkdir(parents=True, exist_ok=True)
        for name, data in content.items():
            (fresh / name).write_bytes(data)
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
