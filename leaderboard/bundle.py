"""A bundle from elsewhere: its files are what its result file says, small, and nothing but files."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.data.faults import shown
from bench.errors import StoreError
from bench.fsio import read_sealed, sha256_file
from bench.results import CARDS, RESULT
from leaderboard.migrate import migrate
from leaderboard.read import ACCEPTED, Result, unpacked
from leaderboard.reasons import Reasons
from leaderboard.schema import Cards, Content, PerQuery, place
from leaderboard.strict_json import LONGEST, parse

LARGEST_RESULT = 4 << 20
"""Bytes of a result file; a hundred tasks take a tenth."""
LARGEST_FILE = 1 << 20
"""Bytes of any other file of a bundle, so that thousands of them can be kept in git."""
MOST_FILES = 5_000

AGAIN = "take the result to hand in from the folder that `bench run` wrote, whole and unchanged"
_BESIDE = re.compile(r"[a-z][a-z-]{0,40}\.json")  # cards, and what later releases lay beside the result file


@dataclass(frozen=True)
class Candidate:
    """A result that was handed in, as far as it can be read.

    Args:
        result: checked against the models; nothing of its bundle is read yet.
        whole: the content of the result file, in today's version of the format.
        raw: the bytes of the result file.
    """

    result: Result
    whole: dict[str, Any]
    raw: bytes

    @property
    def folder(self) -> Path:
        """Where its files lie."""
        return self.result.path.parent

    @property
    def content(self) -> Content:
        """The result."""
        return self.result.content

    @property
    def legs(self) -> Iterator[tuple[str, str]]:
        """Task and leg of everything that was scored."""
        return ((task, leg) for task, legs in self.content.tasks.items() for leg in legs)


def candidate(folder: Path, reasons: Reasons) -> Candidate | None:
    """Read a bundle's result file and hold its files against it; None where nothing more can be said.

    Args:
        folder: the bundle.
        reasons: takes whatever is wrong.
    """
    there = _files(folder, reasons)
    found = _result(folder, reasons) if there is not None and RESULT in there else None
    if there is not None and RESULT not in there and not reasons.of(RESULT):
        reasons.add(RESULT, "no such file", "a result file", AGAIN)
    if found is None or there is None:
        return None
    _names(found.content, reasons)
    _bytes(found, there, reasons)
    return found


def _files(folder: Path, reasons: Reasons) -> dict[str, int] | None:
    """Sizes of the plain files of a folder by name; links and devices are faults and never opened."""
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
    """Read the result file: size, JSON, seal, version, model."""
    path = folder / RESULT
    if (size := path.stat().st_size) > LARGEST_RESULT:
        reasons.add(RESULT, f"{size:,} bytes", f"at most {LARGEST_RESULT:,}", AGAIN)
        return None
    raw = path.read_bytes()
    with reasons.gathering(RESULT):
        if not isinstance(parse(raw), dict):
            reasons.add(RESULT, "JSON that is no object", "a result", AGAIN)
    if reasons.of(RESULT):
        return None
    try:
        whole = migrate(read_sealed(path))
    except ValueError as error:
        reasons.add(RESULT, f"that it cannot be trusted: {error}", "a result as it was written and sealed", AGAIN)
        return None
    with reasons.gathering(RESULT):
        return Candidate(Result(path, Content.model_validate(whole)), whole, raw)
    return None


def _expected(content: Content) -> dict[str, bool]:
    """The files that a result must have by name; whether they may lie elsewhere."""
    found = {CARDS: False}
    for task, legs in content.tasks.items():
        for leg in legs:
            found |= {place("runs", task, leg): True, place("per-query", task, leg): False}
    return found


def _names(content: Content, reasons: Reasons) -> None:
    """Hold the names of files against the tasks."""
    expected = _expected(content)
    for name in content.files:
        if name not in expected and not (_BESIDE.fullmatch(name) and name not in {RESULT, ACCEPTED}):
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
    """Hold sizes and checksums of the files against the result."""
    named = {name: seal for name, seal in found.content.files.items() if name in there}
    for name in found.content.files:
        if name not in there and not reasons.of(name) and _plain(name):
            reasons.add(name, "no such file", f"the file that {RESULT} names", AGAIN)
    for name in there:
        if name not in found.content.files and name not in {RESULT, ACCEPTED}:
            said = name.encode("ascii", "backslashreplace").decode()
            reasons.add(said, f"a file that {RESULT} does not name", "none beside those", "take it away")
    for name, seal in named.items():
        if there[name] > LARGEST_FILE:
            hint = ""
            if name.startswith("runs/"):
                hint = "put the run on the web and type `bench leaderboard pack DIR --url PREFIX`, which names it there"
            reasons.add(name, f"{there[name]:,} bytes", f"at most {LARGEST_FILE:,}", hint)
        elif (actual := sha256_file(found.folder / name)) != seal:
            reasons.add(name, f"sha256 {actual[:12]}…", f"{shown(seal[:12])[1:-1]}… as {RESULT} names", AGAIN)
        elif "/" not in name:
            with reasons.gathering(name):
                value = parse((found.folder / name).read_bytes())
                Cards.model_validate(value if name == CARDS else {})


def _plain(name: str) -> bool:
    """Tell whether a name can stand in a message and in a bundle."""
    return name.isascii() and name.isprintable() and ".." not in name


def per_query(found: Candidate, task: str, leg: str, reasons: Reasons) -> PerQuery | None:
    """Read the values of a leg; None where they cannot be read, which `reasons` then says."""
    name = place("per-query", task, leg)
    raw = _unpacked(found, name, reasons)
    if raw is None:
        return None
    with reasons.gathering(name):
        return PerQuery.model_validate(parse(raw, longest=LONGEST))
    return None


def run_text(found: Candidate, task: str, leg: str, reasons: Reasons) -> bytes | None:
    """Unpack the run of a leg; None where that cannot be done, which `reasons` then says."""
    return _unpacked(found, place("runs", task, leg), reasons)


def _unpacked(found: Candidate, name: str, reasons: Reasons) -> bytes | None:
    """Unpack a file of the bundle that has passed so far."""
    if name not in found.content.files or reasons.of(name):
        return None
    path = found.folder / name
    try:
        return unpacked(path.read_bytes(), path)
    except StoreError:
        reasons.add(name, "what cannot be unpacked, or becomes too large", "a sound gzip file of at most 64 MiB", AGAIN)
        return None
