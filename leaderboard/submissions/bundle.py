"""A bundle submitted from elsewhere: read only if its files are small, plain, and those that its result file names.

`Reasons` collects every fault, so that a submitter can fix all of them in one go.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from pydantic import BaseModel, ValidationError

from bench.core.errors import DataError, DataFaultsError, StoreError
from bench.core.files import read_sealed, sha256_file
from bench.data.formats.faults import Faults, RecordError, shown
from bench.evaluation.results import CARDS, CURVES, RESULT, Heading
from bench.evaluation.results.format import ACCEPTED, Cards, Content, PerQuery, place, silent_place
from bench.evaluation.results.read import Result, migrate, unpacked
from leaderboard.site.curves import Curves
from leaderboard.submissions.strict_json import LONGEST, parse

LARGEST_RESULT = 4 << 20
"""Bytes of a result file; a hundred tasks take a tenth."""
MOST_MARKS = 1_000_000
"""Texts, commas and brackets of any file but the values per query; a result of a hundred tasks has a tenth."""
LARGEST_FILE = 1 << 20
"""Bytes of any other file of a bundle, so that thousands of them can be kept in git."""
MOST_FILES = 5_000

AGAIN = "take the result to hand in from the folder that `bench run` wrote, whole and unchanged"
_EACH = 5  # faults of one file that are listed; further ones are counted
_MODELS: dict[str, type[BaseModel]] = {CARDS: Cards, CURVES: Curves}
_EXTRA = re.compile(r"[a-z][a-z-]{0,40}\.json")  # cards, and files that later releases may add


@dataclass(frozen=True)
class Candidate:
    """A submitted result, as far as it can be read."""

    result: Result  # checked against the models; nothing of its bundle is read yet
    whole: dict[str, Any]  # the content of the result file, in today's version of the format
    raw: bytes  # the bytes of the result file

    @property
    def folder(self) -> Path:
        """The folder of its files."""
        return self.result.path.parent

    @property
    def content(self) -> Content:
        """What the result file says, checked."""
        return self.result.content

    @property
    def legs(self) -> Iterator[tuple[str, str]]:
        """Task and leg of everything that was scored."""
        return ((task, leg) for task, legs in self.content.tasks.items() for leg in legs)


def folder_of(found: Candidate) -> Path:
    """Return the place of a result under a results folder, which its content decides."""
    one = found.content
    system, suite = one.system.model_dump(), one.suite.model_dump()
    return Heading(system, suite, one.setting, one.data, one.profile, one.seed, cards={}).folder


def candidate(folder: Path, reasons: Reasons) -> Candidate | None:
    """Read a bundle's result file and check the other files against it; None if nothing more can be checked."""
    there = _files(folder, reasons)
    found = _result(folder, reasons) if there is not None and RESULT in there else None
    if there is not None and RESULT not in there and not reasons.count(RESULT):
        reasons.add(RESULT, "no such file", "a result file", AGAIN)
    if found is None or there is None:
        return None
    _names(found.content, reasons)
    _bytes(found, there, reasons)
    return found


def _files(folder: Path, reasons: Reasons) -> dict[str, int] | None:
    """Return the sizes of the plain files of a folder by name; links and devices are faults and never opened."""
    found: dict[str, int] = {}
    if folder.is_symlink():
        reasons.add("", "a link", "a folder")
        return None
    for root, folders, names in os.walk(folder):
        for name in [*folders, *names]:
            path = Path(root, name)
            about = path.lstat()
            said = path.relative_to(folder).as_posix()
            if stat.S_ISREG(about.st_mode):
                found[said] = about.st_size
            elif not stat.S_ISDIR(about.st_mode):
                kind = "a link" if stat.S_ISLNK(about.st_mode) else "a device"
                reasons.add(said.encode("ascii", "backslashreplace").decode(), kind, "files and folders alone", AGAIN)
        if len(found) > MOST_FILES:
            reasons.add("", f"more than {MOST_FILES:,} files", "a file or two for each task", AGAIN)
            return None
    return found


def _result(folder: Path, reasons: Reasons) -> Candidate | None:
    """Check size, JSON, seal and version of the result file, and validate it against the model."""
    path = folder / RESULT
    if (size := path.stat().st_size) > LARGEST_RESULT:
        reasons.add(RESULT, f"{size:,} bytes", f"at most {LARGEST_RESULT:,}", AGAIN)
        return None
    raw = path.read_bytes()
    with reasons.collect(RESULT):
        if not isinstance(parse(raw, most=MOST_MARKS), dict):
            reasons.add(RESULT, "JSON that is no object", "a result", AGAIN)
    if reasons.count(RESULT):
        return None
    try:
        whole = migrate(read_sealed(path))
    except ValueError as error:
        reasons.add(RESULT, f"that it cannot be trusted: {error}", "a result as it was written and sealed", AGAIN)
        return None
    with reasons.collect(RESULT):
        return Candidate(Result(path, Content.model_validate(whole)), whole, raw)
    return None


def _names(content: Content, reasons: Reasons) -> None:
    expected = {CARDS: False}  # the files that a result needs by name, and whether each may be remote
    optional = set[str]()
    for task, legs in content.tasks.items():
        for leg in legs:
            expected |= {place("runs", task, leg): True, place("per-query", task, leg): False}
            optional.add(silent_place(task, leg))
    for name in content.files:
        extra = name in optional or (_EXTRA.fullmatch(name) and name not in {RESULT, ACCEPTED})
        if name not in expected and not extra:
            reasons.add(RESULT, f"the file name {shown(name)}", "files of the result's own tasks alone", AGAIN)
    for name in content.remote:
        if not expected.get(name):
            reasons.add(RESULT, f"a `remote` file {shown(name)}", "runs of the result's own tasks alone")
        elif name in content.files:
            reasons.add(RESULT, f"{name} in `files` and in `remote`", "it in one of them")
    for name in expected:
        if name not in content.files and name not in content.remote:
            reasons.add(RESULT, f"no file {name}", "the run and the values of every task", AGAIN)


def _bytes(found: Candidate, there: dict[str, int], reasons: Reasons) -> None:
    named = {name: seal for name, seal in found.content.files.items() if name in there}
    for name in found.content.files:
        safe = name.isascii() and name.isprintable() and ".." not in name
        if name not in there and not reasons.count(name) and safe:
            reasons.add(name, "no such file", f"the file that {RESULT} names", AGAIN)
    for name in there:
        if name not in found.content.files and name not in {RESULT, ACCEPTED}:
            said = name.encode("ascii", "backslashreplace").decode()
            reasons.add(said, f"a file that {RESULT} does not name", "only files that it names", "take it away")
    for name, seal in named.items():
        if there[name] > LARGEST_FILE:
            hint = ""
            if name.startswith("runs/"):
                hint = "put the run on the web and type `bench leaderboard pack DIR --url PREFIX`, which names it there"
            reasons.add(name, f"{there[name]:,} bytes", f"at most {LARGEST_FILE:,}", hint)
        elif (actual := sha256_file(found.folder / name)) != seal:
            reasons.add(name, f"sha256 {actual[:12]}…", f"{shown(seal[:12])[1:-1]}… as {RESULT} names", AGAIN)
        elif "/" not in name:
            with reasons.collect(name):
                value = parse((found.folder / name).read_bytes(), most=MOST_MARKS)
                if name in _MODELS:
                    _MODELS[name].model_validate(value)


def per_query(found: Candidate, task: str, leg: str, reasons: Reasons) -> PerQuery | None:
    """Read the per-query values of a leg; None if they cannot be read, with the fault in `reasons`."""
    name = place("per-query", task, leg)
    if (raw := unpacked_file(found, name, reasons)) is None:
        return None
    with reasons.collect(name):
        return PerQuery.model_validate(parse(raw, longest=LONGEST))
    return None


def unpacked_file(found: Candidate, name: str, reasons: Reasons) -> bytes | None:
    """Unpack a file of the bundle that has no fault so far; None if there is no such file."""
    if name not in found.content.files or reasons.count(name):
        return None
    path = found.folder / name
    try:
        return unpacked(path.read_bytes(), path)
    except StoreError:
        reasons.add(name, "what cannot be unpacked, or becomes too large", "a sound gzip file of at most 64 MiB", AGAIN)
        return None


class Reasons:
    """Faults of a bundle by file; `title` is what messages call it: its folder, or a place inside an archive."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._files: dict[str, Faults] = {}

    def __len__(self) -> int:
        """Return the number of all faults."""
        return sum(map(len, self._files.values()))

    def add(self, file: str, found: str, expected: str, hint: str = "", line: int | None = None) -> None:
        """Add a fault of a file; the first few of each file are listed, the others are counted."""
        where = f"{self._title}/{file}" if file else self._title
        self._files.setdefault(file, Faults(_EACH)).add(DataError(where, line, found, expected, hint))

    def count(self, file: str) -> int:
        """Return the number of faults of a file."""
        return len(self._files.get(file, ()))

    def listed(self) -> list[DataError]:
        """Return the listed faults, file by file."""
        return [fault for name in sorted(self._files) for fault in self._files[name].listed]

    @property
    def more(self) -> int:
        """Number of faults that are counted but not listed."""
        return len(self) - len(self.listed())

    def collect(self, file: str) -> AbstractContextManager[None, bool]:
        """Return a block that turns `DataError`s and validation errors raised in it into faults of a file."""
        return _Collector(self, file)


@dataclass(frozen=True)
class _Collector(AbstractContextManager[None, bool]):
    """Turn data errors of a block into reasons."""

    reasons: Reasons
    file: str

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        reasons, file = self.reasons, self.file
        if isinstance(error, RecordError):
            reasons.add(file, error.found, error.expected, error.hint)
        elif isinstance(error, ValidationError):
            for fault in error.errors(include_url=False, include_input=False, include_context=False):
                place = ".".join(map(str, fault["loc"])) or "file"
                reasons.add(file, f"a fault at {place[:200]!a}", fault["msg"][:500])
        elif isinstance(error, DataError | DataFaultsError):
            for one in error.faults if isinstance(error, DataFaultsError) else [error]:
                reasons.add(file, one.found, one.expected, one.hint, one.line)
        else:
            return False
        return True
