"""Result files of a folder as rows, as a data frame, and as checked results with their per-query values.

A seal shows that a file is as it was written, not that who wrote it meant well: what a site is built from is checked
here once (names, sizes, numbers), and everything behind relies on it.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from bench.errors import StoreError
from bench.fsio import read_sealed, sha256_file
from bench.results import CARDS, RESULT, SCHEMA, result_files
from bench.substitutes import mark
from bench.wording import bare

if TYPE_CHECKING:
    import pandas as pd

LARGEST = 64 << 20
"""Bytes of a file of a bundle, unpacked; ten times what the largest task needs."""

DEV = "@dev"
"""What names of tasks on dev questions end with."""

FloatArray = npt.NDArray[np.float64]
Part = TypeVar("Part", bound=BaseModel)


def _path(name: str) -> str:
    """Refuse what would lead out of a folder."""
    if {"", ".", ".."} & set(name.split("/")):
        raise ValueError("a name that leads out of its folder")
    return name


Fraction = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Text = Annotated[str, Field(max_length=200)]
Word = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")]
TaskId = Annotated[str, Field(pattern=r"^[A-Za-z0-9._+/-]{1,200}(@dev)?$"), AfterValidator(_path)]
LegName = Annotated[str, Field(pattern=r"^[A-Za-z0-9._+-]{0,80}$"), AfterValidator(lambda name: name and _path(name))]


class _Part(BaseModel):
    """A part of a result; keys that the site does not show may come and go."""

    model_config = ConfigDict(frozen=True, strict=True, extra="ignore")


class Setting(_Part):
    """One setting of a system: its value and the layer that set it."""

    key: Text
    value: Any = None
    origin: Text


class Origin(_Part):
    """What a dense system was pretrained on."""

    name: Text


class Processing(_Part):
    """What was done to vectors after encoding, and the corpus that it was fitted on."""

    kind: Word
    corpus: Origin


class About(_Part):
    """A system. `backbone`, `corpus`, `budget`, `readout` and `post` are there for dense systems only."""

    label: Annotated[str, Field(min_length=1, max_length=200)]
    hash: Annotated[str, Field(pattern=r"^[0-9a-f]{8,64}$")]
    method: Word
    version: Text
    settings: list[Setting] = []
    backbone: Text | None = None
    corpus: Origin | None = None
    budget: int | None = None
    budget_flops: float | None = None
    readout: dict[Text, Any] = {}
    post: Processing | None = None


class SuiteAbout(_Part):
    """A suite; `primary` is its headline measure, where the result says it.

    `stands_for` is the benchmark that a substitute stands for, empty for a benchmark itself.
    """

    name: Word
    version: Text
    title: Text
    primary: Text | None = None
    stands_for: Annotated[str, Field(pattern=r"^([A-Za-z0-9][A-Za-z0-9._-]{0,79})?$")] = ""


class Average(_Part):
    """An average over tasks by measure; `members` are task ids without `mini/` and its like, lists are means."""

    name: Text
    note: Annotated[str, Field(max_length=2000)] = ""
    measures: dict[Text, Fraction]
    members: list[Any] | None = None


class Leg(_Part):
    """A scored leg."""

    measures: Annotated[dict[Text, Fraction], Field(min_length=1)]
    queries: Annotated[int, Field(ge=1)]
    protocol: dict[str, Any] = {}
    libraries: dict[Text, Text] = {}


class Content(_Part):
    """A result file."""

    system: About
    suite: SuiteAbout
    setting: Literal["unsupervised", "english", "multilingual", "few-shot"]
    data: Annotated[str, Field(pattern=r"^(official|local|mini(-[a-z]+)*)$", max_length=80)]
    profile: Word
    seed: Annotated[int, Field(ge=0)]
    macro: list[Average]
    tasks: Annotated[
        dict[TaskId, Annotated[dict[LegName, Leg], Field(min_length=1)]], Field(min_length=1, max_length=1000)
    ]
    files: dict[str, str]

    @model_validator(mode="after")
    def _mini_says_so(self) -> Content:
        """Mini numbers must never pass for official ones, nor for another world's, nor the other way round."""
        mark = "" if self.data in {"official", "local"} else f"{self.data}/"
        for task in self.tasks:
            if task != mark + bare(task):
                raise ValueError(f"task {task} in a result of {self.data} data")
        return self

    def tested(self) -> Content:
        """The same without dev tasks: settings are chosen by their questions, so nobody is ranked by them."""
        kept = {task: legs for task, legs in self.tasks.items() if not task.endswith(DEV)}
        return self.model_copy(update={"tasks": kept})

    @property
    def averages(self) -> list[Average]:
        """The suite's own averages; the mean of a task's legs, which bears the task's name, is none of them."""
        return [average for average in self.macro if average.name not in self.tasks]


class _PerQuery(_Part):
    queries: list[Text]
    measures: dict[Text, list[Fraction]]


class _Cards(_Part):
    suite: Annotated[str, Field(max_length=100_000)] = ""


@dataclass(frozen=True)
class Result:
    """A checked result and its bundle.

    Args:
        path: the result file.
        content: what is in it.
    """

    path: Path
    content: Content

    @cached_property
    def card(self) -> str:
        """The suite's protocol card, Markdown. Raises `StoreError` for a bundle that is not as it was written."""
        return _model(_Cards, self._file(CARDS), self.path.parent / CARDS).suite

    def values(self, task: str, leg: str, measure: str) -> tuple[tuple[str, ...], FloatArray]:
        """Return query ids, in their byte order, and a measure's value for each.

        Raises:
            StoreError: the file is missing, damaged, or says otherwise than the result.
        """
        name = f"per-query/{task}{'/' + leg if leg else ''}.json.gz"
        path = self.path.parent / name
        table = _model(_PerQuery, _unpacked(self._file(name), path), path)
        column, about = table.measures.get(measure, []), self.content.tasks[task][leg]
        if not len(column) == len(table.queries) == len(set(table.queries)) == about.queries:
            raise StoreError(
                f"{path}: found {len(column):,} values of {measure} for {len(set(table.queries)):,} queries, expected "
                f"one for each of {about.queries:,}; {_AGAIN}"
            )
        values = np.array(column)
        if abs(float(values.mean()) - about.measures[measure]) > 1e-6:
            raise StoreError(
                f"{path}: found a mean {measure} of {values.mean():.6f}, expected {about.measures[measure]:.6f} as in "
                f"{RESULT}; {_AGAIN}"
            )
        order = sorted(range(len(values)), key=table.queries.__getitem__)
        return tuple(table.queries[place] for place in order), values[order]

    def _file(self, name: str) -> bytes:
        """Read a file of the bundle, which must have the checksum that the result names."""
        path = self.path.parent / name
        try:
            if path.stat().st_size > LARGEST:
                raise StoreError(f"{path}: found {path.stat().st_size:,} bytes, expected at most {LARGEST:,}")
            if sha256_file(path) != self.content.files.get(name):
                raise StoreError(f"{path}: found other bytes than {RESULT} names; {_AGAIN}")
            return path.read_bytes()
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error.strerror}; {_AGAIN}") from error


_AGAIN = "run the command that made it again, or take its folder away"


def _model(kind: type[Part], raw: bytes, path: Path) -> Part:
    """Check JSON against a model; a sentence about the first fault."""
    try:
        return kind.model_validate_json(raw)
    except ValidationError as error:
        raise _fault(path, error) from error


def _fault(path: Path, error: ValidationError) -> StoreError:
    """Say where the first fault is, and what was expected there."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(map(str, first["loc"])) or "file"
    return StoreError(f"{path}: found a fault at {place!a}, expected: {first['msg']}; {_AGAIN}")


def _unpacked(packed: bytes, path: Path) -> bytes:
    """Unpack a gzip file, never more than `LARGEST` bytes of it."""
    try:
        with gzip.open(io.BytesIO(packed)) as stream:
            raw = stream.read(LARGEST + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise StoreError(f"{path} cannot be unpacked: {error}; {_AGAIN}") from error
    if len(raw) > LARGEST:
        raise StoreError(f"{path}: found more than {LARGEST:,} bytes unpacked, expected fewer; {_AGAIN}")
    return raw


def _sealed(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield every result file with its content, in the order of their paths."""
    for path in result_files(folder):
        try:
            yield path, read_sealed(path)
        except (OSError, ValueError, RecursionError) as error:
            raise StoreError(f"{path} cannot be trusted: {error}; run the command that made it again") from error


def contents(folder: Path) -> list[dict[str, Any]]:
    """The content of every result file, in the order of their paths.

    Raises:
        StoreError: a file that is not as it was written.
    """
    return [content for _, content in _sealed(folder)]


def results(folder: Path) -> list[Result]:
    """Every result of a folder, checked, in the order of their paths; nothing of the bundles is read yet.

    Raises:
        StoreError: a file that is not as it was written, or holds what no run writes.
    """
    found = []
    for path, content in _sealed(folder):
        if content.get("schema") != SCHEMA:
            raise StoreError(f"{path}: found schema {content.get('schema')!r:.60}, expected {SCHEMA!r}; {_AGAIN}")
        try:
            found.append(Result(path, Content.model_validate(content)))
        except ValidationError as error:
            raise _fault(path, error) from error
    return found


def legs(folder: Path) -> list[dict[str, Any]]:
    """One row a scored leg: what it is, and each measure as a column (fractions); averages follow their tasks.

    The column `note` says of a substitute's numbers what they are not comparable with; elsewhere it is None.
    """
    rows: list[dict[str, Any]] = []
    for content in contents(folder):
        about = {
            "system": content["system"]["label"],
            "suite": content["suite"]["name"],
            "setting": content["setting"],
            "data": content["data"],
            "seed": content["seed"],
            "note": mark(content["suite"].get("stands_for", "")) or None,
        }
        for task, parts in content["tasks"].items():
            for leg, entry in parts.items():
                rows.append(
                    {**about, "task": task, "leg": leg or None, "queries": entry["queries"], **entry["measures"]}
                )
        rows += [
            {**about, "task": average["name"], "leg": None, "queries": None, **average["measures"]}
            for average in content["macro"]
        ]
    return rows


def frame(folder: Path) -> pd.DataFrame:
    """The rows of `legs` as a data frame, for notebooks; measures are float64 columns of fractions."""
    import pandas as pd

    return pd.DataFrame(legs(folder))
