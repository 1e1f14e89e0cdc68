"""A bundle submitted from elsewhere: read only if its files are small, plain, and those that its result file names.

`ValidationErrors` collects every error, so that a submitter can fix all of them in one go.
"""

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from bench.core.errors import DataError, DataFaultsError, StoreError
from bench.core.files import sha256_file
from bench.data.formats.faults import Faults, RecordError, shown
from bench.evaluation.results import CARDS, CURVES, RESULT, Heading
from bench.evaluation.results.format import ACCEPTED, Cards, Content, PerQuery, place, silent_place
from bench.evaluation.results.read import Result, read_result, unpacked
from leaderboard.site.curves import Curves
from leaderboard.submissions.strict_json import LONGEST, parse

LARGEST_RESULT = 4 << 20
"""Bytes of a result file; a hundred tasks take a tenth."""
MOST_MARKS = 1_000_000
"""Texts, commas and brackets of any file but the values per query; a result of a hundred tasks has a tenth."""
LARGEST_FILE = 1 << 20
"""Bytes of any other file of a bundle, so that thousands of them can be kept in git."""
MOST_FILES = 5_000

TAKE_UNCHANGED = "take the result to hand in from the folder that `bench run` wrote, whole and unchanged"
_LISTED = 5  # errors of one file that are listed; further ones are counted
_MODELS: dict[str, type[BaseModel]] = {CARDS: Cards, CURVES: Curves}
_EXTRA = re.compile(r"[a-z][a-z-]{0,40}\.json")  # cards, and files that later releases may add


class ValidationErrors:
    """Errors of a bundle by file.

    Args:
        title: what messages call the bundle: its folder, or a path inside an archive.
    """

    def __init__(self, title: str) -> None:
        self._title = title
        self._files: dict[str, Faults] = {}

    def __len__(self) -> int:
        """Return the number of all errors."""
        return sum(map(len, self._files.values()))

    def add(self, file: str, fault: str, expected: str, hint: str = "", line: int | None = None) -> None:
        """Add an error of a file; the first few of each file are listed, the others are counted.

        Args:
            file: its path in the bundle; empty for the bundle as a whole.
            fault: what is there, in words.
            expected: what should be there.
            hint: what to do.
            line: the line of the file, from 1.
        """
        location = f"{self._title}/{file}" if file else self._title
        self._files.setdefault(file, Faults(_LISTED)).add(DataError(location, line, fault, expected, hint))

    def count(self, file: str) -> int:
        """Return the number of errors of a file."""
        return len(self._files.get(file, ()))

    def listed(self) -> list[DataError]:
        """Return the listed errors, file by file."""
        return [error for name in sorted(self._files) for error in self._files[name].listed]

    @contextmanager
    def collect(self, file: str) -> Iterator[None]:
        """Turn `DataError`s and validation errors that are raised in a block into errors of a file."""
        try:
            yield
        except RecordError as error:
            self.add(file, error.found, error.expected, error.hint)
        except ValidationError as error:
            for detail in error.errors(include_url=False, include_input=False, include_context=False):
                location = ".".join(map(str, detail["loc"])) or "file"
                self.add(file, f"a fault at {location[:200]!a}", detail["msg"][:500])
        except (DataError, DataFaultsError) as error:
            for fault in error.faults if isinstance(error, DataFaultsError) else [error]:
                self.add(file, fault.found, fault.expected, fault.hint, fault.line)


def is_start(label: str) -> bool:
    """Return whether a label is that of an encoder before training: `crop@init`, `crop@init@pooling=cls`."""
    return re.search(r"@init(?=[@+]|$)", label) is not None


@dataclass(frozen=True)
class Candidate:
    """A submitted result, as far as it can be read.

    Args:
        result: checked against the models; nothing of its bundle is read yet.
        raw_content: the content of the result file.
        raw: the bytes of the result file.
    """

    result: Result
    raw_content: dict[str, Any]
    raw: bytes

    @property
    def folder(self) -> Path:
        """The folder of its files."""
        return self.result.path.parent

    @property
    def digest(self) -> str:
        """The sha256 of its result file, as it was read."""
        return hashlib.sha256(self.raw).hexdigest()

    @property
    def content(self) -> Content:
        """The content of the result file, as models."""
        return self.result.content

    @property
    def target(self) -> Path:
        """Its folder below a results folder, which its content decides."""
        content = self.content
        system, suite = content.system.model_dump(), content.suite.model_dump()
        return Heading(system, suite, content.regime, content.data, content.profile, content.seed, cards={}).folder


def read_candidate(folder: Path, errors: ValidationErrors) -> Candidate | None:
    """Read a bundle's result file and check the other files against it.

    Args:
        folder: the folder of the bundle.
        errors: receives what is wrong with size, JSON, seal, version and content of the result file, and with
            names, sizes and checksums of the others.

    Returns:
        The result; None if nothing more can be checked.
    """
    sizes = _file_sizes(folder, errors)
    if sizes is None:
        return None
    if RESULT not in sizes:
        if not errors.count(RESULT):
            errors.add(RESULT, "no such file", "a result file", TAKE_UNCHANGED)
        return None
    if sizes[RESULT] > LARGEST_RESULT:
        errors.add(RESULT, f"{sizes[RESULT]:,} bytes", f"at most {LARGEST_RESULT:,}", TAKE_UNCHANGED)
        return None
    raw, candidate = (folder / RESULT).read_bytes(), None
    with errors.collect(RESULT):
        if not isinstance(parse(raw, most=MOST_MARKS), dict):
            errors.add(RESULT, "JSON that is no object", "a result", TAKE_UNCHANGED)
    if errors.count(RESULT):
        return None
    try:
        content = read_result(folder / RESULT)
    except ValueError as error:
        errors.add(
            RESULT, f"that it cannot be trusted: {error}", "a result as it was written and sealed", TAKE_UNCHANGED
        )
        return None
    except StoreError as error:
        errors.add(RESULT, error.found, error.expected, error.hint)
        return None
    with errors.collect(RESULT):
        candidate = Candidate(Result(folder / RESULT, Content.model_validate(content)), content, raw)
    if candidate is not None:
        _check_file_names(candidate.content, errors)
        _check_files(candidate, sizes, errors)
    return candidate


def _file_sizes(folder: Path, errors: ValidationErrors) -> dict[str, int] | None:
    """Return the sizes of the plain files of a folder by name; links and devices are errors and never opened."""
    sizes: dict[str, int] = {}
    if folder.is_symlink():
        errors.add("", "a link", "a folder")
        return None
    for root, folders, names in os.walk(folder):
        for name in [*folders, *names]:
            path = Path(root, name)
            status = path.lstat()
            relative = path.relative_to(folder).as_posix()
            if stat.S_ISREG(status.st_mode):
                sizes[relative] = status.st_size
            elif not stat.S_ISDIR(status.st_mode):
                kind = "a link" if stat.S_ISLNK(status.st_mode) else "a device"
                errors.add(_printable(relative), kind, "files and folders alone", TAKE_UNCHANGED)
        if len(sizes) > MOST_FILES:
            errors.add("", f"more than {MOST_FILES:,} files", "a file or two for each task", TAKE_UNCHANGED)
            return None
    return sizes


def _printable(name: str) -> str:
    return name.encode("ascii", "backslashreplace").decode()


def _check_file_names(content: Content, errors: ValidationErrors) -> None:
    """Compare the names in `files` and `remote` with those that the result's tasks need."""
    remotable = {CARDS: False}  # the files that a result needs by name, and whether each may be remote
    optional = set[str]()
    for task, subsets in content.tasks.items():
        for subset in subsets:
            remotable |= {place("runs", task, subset): True, place("per-query", task, subset): False}
            optional.add(silent_place(task, subset))
    for name in content.files:
        extra = name in optional or (_EXTRA.fullmatch(name) and name not in {RESULT, ACCEPTED})
        if name not in remotable and not extra:
            errors.add(RESULT, f"the file name {shown(name)}", "files of the result's own tasks alone", TAKE_UNCHANGED)
    for name in content.remote:
        if not remotable.get(name):
            errors.add(RESULT, f"a `remote` file {shown(name)}", "runs of the result's own tasks alone")
        elif name in content.files:
            errors.add(RESULT, f"{name} in `files` and in `remote`", "it in one of them")
    for name in remotable:
        if name not in content.files and name not in content.remote:
            errors.add(RESULT, f"no file {name}", "the run and the values of every task", TAKE_UNCHANGED)


def _check_files(candidate: Candidate, sizes: dict[str, int], errors: ValidationErrors) -> None:
    """Check that the files are those that the result names, small enough, with their checksums, and well-formed."""
    seals = candidate.content.files
    for name in seals:
        safe = name.isprintable() and ".." not in name.split("/")
        if name not in sizes and not errors.count(name) and safe:
            errors.add(name, "no such file", f"the file that {RESULT} names", TAKE_UNCHANGED)
    for name, size in sizes.items():
        if name in seals and size > LARGEST_FILE:
            hint = ""
            if name.startswith("runs/"):
                hint = "put the run on the web and type `bench leaderboard pack DIR --url PREFIX`, which names it there"
            errors.add(name, f"{size:,} bytes", f"at most {LARGEST_FILE:,}", hint)
        elif name in seals and (actual := sha256_file(candidate.folder / name)) != seals[name]:
            expected = f"{shown(seals[name][:12])[1:-1]}… as {RESULT} names"
            errors.add(name, f"sha256 {actual[:12]}…", expected, TAKE_UNCHANGED)
        elif name in seals and "/" not in name:
            with errors.collect(name):
                value = parse((candidate.folder / name).read_bytes(), most=MOST_MARKS)
                if name in _MODELS:
                    _MODELS[name].model_validate(value)
        elif name not in {*seals, RESULT, ACCEPTED}:
            fault = f"a file that {RESULT} does not name"
            errors.add(_printable(name), fault, "only files that it names", "take it away")


def per_query(candidate: Candidate, task: str, subset: str, errors: ValidationErrors) -> PerQuery | None:
    """Read the per-query values of a subset; None if they cannot be read, which is then an error."""
    name = place("per-query", task, subset)
    raw, table = unpacked_file(candidate, name, errors), None
    with errors.collect(name):
        table = None if raw is None else PerQuery.model_validate(parse(raw, longest=LONGEST))
    return table  # noqa: RET504 (the block may end early)


def unpacked_file(candidate: Candidate, name: str, errors: ValidationErrors) -> bytes | None:
    """Unpack a file of the bundle that has no error so far; None if there is no such file."""
    if name not in candidate.content.files or errors.count(name):
        return None
    path = candidate.folder / name
    try:
        return unpacked(path.read_bytes(), path)
    except StoreError:
        errors.add(
            name, "what cannot be unpacked, or becomes too large", "a sound gzip file of at most 64 MiB", TAKE_UNCHANGED
        )
        return None
