"""Versions of what plugins of other distributions bring: the author's word, and a digest of the sources.

A version is raised by hand, and a plugin's author edits first. So that edited code never passes for what it was, the
digest is part of the version wherever this enters keys, hashes and results: `1+3f9a0c11d2`. Comments, docstrings and
blank lines are no part of it, nor are pages, logs, hidden and temporary files; whatever else a package holds is, such
as a list of words or weights.
"""

from __future__ import annotations

import io
import os
import sys
import tokenize
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from bench.core.caches import private_cache_folder
from bench.core.files import digest, read_sealed, sha256_file, write_sealed
from bench.types import DataRequest, FineTuneStep, Measure, Method, Source, Suite, Task, TrainingPair

MARK = "+"
"""Between the author's version and the digest."""
DIGITS = 10
_PYTHON = ".py"
_LARGE = 1 << 20  # bytes; smaller files are hashed sooner than a memo is read
_PAGES = frozenset({".md", ".rst", ".pyi", ".typed", ".pyc", ".log", ".tmp"})
"""Endings of what nothing that computes reads: what explains a package (`py.typed` too), and what was left behind."""

Sourced = TypeVar("Sourced", bound=Method | Suite | Measure)
"""What plugins bring with a version."""
Record = TypeVar("Record")


def with_sources(value: Sourced, module: str) -> Sourced:
    """Return a plugin's method, suite or measure with the digest of its sources in its version.

    What a suite reads is read by other code too, so the digest is in the names of its readers.

    Args:
        value: as the plugin brings it.
        module: where the plugin lives; sources are those of its top-level package.
    """
    sources = source_digest(module.partition(".")[0])
    version = f"{value.version}{MARK}{sources}"
    if not isinstance(value, Suite):
        return replace(value, version=version)
    load, dev, folder = value.load, value.dev, value.folder
    recipes = {
        regime: {name: tuple(_marked_step(step, sources) for step in steps) for name, steps in by_name.items()}
        for regime, by_name in value.recipes.items()
    }
    return replace(
        value,
        version=version,
        recipes=recipes,
        load=lambda name, request: _marked(load(name, request), sources),
        dev=dev and (lambda name, request: _marked(dev(name, request), sources)),
        folder=folder and (lambda path: [_marked(task, sources) for task in folder(path)]),
    )


@cache
def source_digest(package: str) -> str:
    """Return the digest of the files of a top-level package or module, 10 hexadecimal digits."""
    files = _sources(package)
    contents = {name: _decisive(path) if path.suffix == _PYTHON else _checksum(path) for name, path in files}
    return digest(contents)[:DIGITS]


def _checksum(path: Path) -> str:
    """Return the sha256 of a file; a large one's is remembered between commands, by its size and times."""
    before = path.stat()
    folder = private_cache_folder("checksums") if before.st_size >= _LARGE else None
    if folder is None:
        return sha256_file(path)
    memo = folder / f"{digest(str(path.resolve()))}.json"
    with suppress(OSError, ValueError, KeyError):  # none, or a damaged one: the file is hashed
        known = read_sealed(memo)
        if known["stamp"] == _stamp(before):
            return str(known["sha256"])
    checksum = sha256_file(path)
    if _stamp(path.stat()) == _stamp(before):
        with suppress(OSError):  # a full disk: hashed again next time
            write_sealed(memo, {"stamp": _stamp(before), "sha256": checksum})
    return checksum


def _stamp(status: os.stat_result) -> list[int]:
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _sources(package: str) -> Iterator[tuple[str, Path]]:
    """Yield the files of a package that decide what it does, or the file of a module, with their names inside of it."""
    spec = getattr(sys.modules.get(package), "__spec__", None) or find_spec(package)
    places = [Path(place) for place in spec.submodule_search_locations or ()] if spec else []
    for place in places:
        for path in sorted(place.rglob("*")):
            name = path.relative_to(place)
            hidden = any(part.startswith(".") or part.endswith("~") or part == "__pycache__" for part in name.parts)
            if path.is_file() and not hidden and path.suffix not in _PAGES:
                yield name.as_posix(), path
    if spec and not places and spec.origin and Path(spec.origin).is_file():
        yield Path(spec.origin).name, Path(spec.origin)


def _decisive(path: Path) -> str:
    """Return a source without comments, docstrings and blank lines; as it is where Python cannot read it."""
    source = path.read_bytes().decode("utf-8", errors="replace")
    try:
        spans = sorted(_without_effect(source), reverse=True)
    except (SyntaxError, tokenize.TokenError):
        return source
    lines = source.splitlines(keepends=True)
    for (first, start), (last, end) in spans:
        lines[first - 1 : last] = [lines[first - 1][:start] + lines[last - 1][end:]]
    return "\n".join(line.rstrip() for line in "".join(lines).splitlines() if line.strip())


def _without_effect(source: str) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield where comments and strings that are statements begin and end: line from 1, and column."""
    statement: list[tokenize.TokenInfo] = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start, token.end
        elif token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
            if statement and all(part.type == tokenize.STRING for part in statement):
                yield statement[0].start, statement[-1].end
            statement = []
        elif token.type not in (tokenize.NL, tokenize.INDENT, tokenize.DEDENT):
            statement.append(token)


def _renamed(source: Source[Record], mark: str) -> Source[Record]:
    """Return a source whose reader is called by its name and the digest."""
    return replace(source, reader=f"{source.reader}{MARK}{mark}")


def _marked(task: Task, mark: str) -> Task:
    subsets = (
        replace(
            subset,
            queries=_renamed(subset.queries, mark),
            qrels=subset.qrels and _renamed(subset.qrels, mark),
            answers=subset.answers and _renamed(subset.answers, mark),
            candidates=subset.candidates and _renamed(subset.candidates, mark),
            corpus=replace(subset.corpus, items=_renamed(subset.corpus.items, mark)),
        )
        for subset in task.subsets
    )
    return replace(task, subsets=tuple(subsets))


def _marked_step(step: FineTuneStep, mark: str) -> FineTuneStep:
    pairs, by_task = step.pairs, step.by_task

    def pairs_of_task(request: DataRequest, task: str) -> Source[TrainingPair] | None:
        source = by_task(request, task) if by_task else None
        return source and _renamed(source, mark)

    return replace(
        step,
        pairs=pairs and (lambda request: _renamed(pairs(request), mark)),
        by_task=by_task and pairs_of_task,
    )
