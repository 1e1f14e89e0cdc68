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
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ValidationError

from bench.errors import StoreError
from bench.fsio import read_sealed, sha256_file
from bench.results import CARDS, RESULT, result_files
from bench.substitutes import mark
from leaderboard.migrate import migrate
from leaderboard.schema import (
    DEV,
    About,
    Accepted,
    Average,
    Cards,
    Content,
    Leg,
    Origin,
    PerQuery,
    Processing,
    Remote,
    Setting,
    SuiteAbout,
    place,
)

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "ACCEPTED",
    "DEV",
    "LARGEST",
    "About",
    "Accepted",
    "Average",
    "Content",
    "FloatArray",
    "Leg",
    "Origin",
    "Processing",
    "Remote",
    "Result",
    "Setting",
    "SuiteAbout",
    "contents",
    "frame",
    "legs",
    "results",
    "unpacked",
]

LARGEST = 64 << 20
"""Bytes of a file of a bundle, unpacked; ten times what the largest task needs."""
ACCEPTED = "accepted.json"
"""The record of a result that was taken in from elsewhere, beside its result file."""

FloatArray = npt.NDArray[np.float64]
Part = TypeVar("Part", bound=BaseModel)


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
        return _model(Cards, self._file(CARDS), self.path.parent / CARDS).suite

    @cached_property
    def accepted(self) -> Accepted | None:
        """What was found when the result was taken in from elsewhere; None for one that was made here.

        A record of another state of the result file (tasks were run since) holds for nothing, and is None too.

        Raises:
            StoreError: the record is not as it was written.
        """
        path = self.path.parent / ACCEPTED
        try:
            record = read_sealed(path)
            checked = Accepted.model_validate(record)
            return checked if checked.result == sha256_file(self.path) else None
        except FileNotFoundError:
            return None
        except ValidationError as error:
            raise _fault(path, error) from error
        except (OSError, ValueError, RecursionError) as error:
            raise StoreError(f"{path} cannot be trusted: {error}; take it away, or add the result again") from error

    def values(self, task: str, leg: str, measure: str) -> tuple[tuple[str, ...], FloatArray]:
        """Return query ids, in their byte order, and a measure's value for each.

        Raises:
            StoreError: the file is missing, damaged, or says otherwise than the result.
        """
        name = place("per-query", task, leg)
        path = self.path.parent / name
        table = _model(PerQuery, unpacked(self._file(name), path), path)
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


def unpacked(packed: bytes, path: Path) -> bytes:
    """Unpack a gzip file, never more than `LARGEST` bytes of it.

    Raises:
        StoreError: it is none, is damaged, or would become too large.
    """
    try:
        with gzip.open(io.BytesIO(packed)) as stream:
            raw = stream.read(LARGEST + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise StoreError(f"{path} cannot be unpacked: {error}; {_AGAIN}") from error
    if len(raw) > LARGEST:
        raise StoreError(f"{path}: found more than {LARGEST:,} bytes unpacked, expected fewer; {_AGAIN}")
    return raw


def _sealed(folder: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield every result file with its content, in today's version of the format, in the order of their paths."""
    for path in result_files(folder):
        try:
            content = read_sealed(path)
        except (OSError, ValueError, RecursionError) as error:
            raise StoreError(f"{path} cannot be trusted: {error}; run the command that made it again") from error
        try:
            yield path, migrate(content)
        except ValueError as error:
            raise StoreError(f"{path}: {error}; {_AGAIN}") from error


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
