"""How far a result was checked, and the records of maintainers that say so.

A result is handed in, then recomputed from its runs and the judgements, then made again elsewhere (`bench reproduce`),
then agreed by the author of its method. Who has the data writes a record into a folder that only maintainers may
change; where that folder is given, nothing else counts: neither a record in a bundle, nor that there is none.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bench.core.errors import StoreError, UsageError
from bench.core.files import explain, read_sealed, sha256_file, write_sealed
from bench.evaluation.results.format import Content, LegName, Sha256, TaskId, Text
from bench.evaluation.results.read import Result

SCHEMA = "retrieval-bench/record/1"
EXCEPTIONS = "exceptions.txt"
"""Folders of results, below the results folder and one a line, that strict checks let pass unverified."""
UNVERIFIED = "unverified"
ONLY_RECOMPUTED = (
    "Recomputed means that the numbers follow from the run and the judgements. Which system produced the run remains a "
    "claim: a run constructed from public judgements cannot be distinguished from a genuine one"
)
Names = dict[TaskId, dict[LegName, list[Text]]]


class State(IntEnum):
    """How far a result was checked; the first has no rank."""

    HANDED_IN = 0
    RUN_HERE = 1
    RECOMPUTED = 2
    MADE_AGAIN = 3
    AGREED = 4

    @property
    def title(self) -> str:
        """Its name on pages and in files."""
        return ("handed in", "run here", "recomputed", "made again elsewhere", "agreed by the author")[self]

    @property
    def verified(self) -> bool:
        """Whether a row in this state is ranked."""
        return self is not State.HANDED_IN


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class MadeAgain(_Part):
    """What `bench reproduce --json` found, and when that was recorded."""

    verdict: Literal["OK", "close"]
    when: Text


class Record(_Part):
    """What a maintainer found of a bundle, whose result file names the checksums of all its files."""

    bundle: Sha256  # of the result file
    data: dict[TaskId, dict[LegName, Sha256]]  # of the judgements that were used
    recomputed: Names
    version: Text
    when: Text
    made_again: MadeAgain | None = None
    agreed: Text | None = None  # where the author says so

    def covers(self, content: Content) -> bool:
        """Whether every number of a result was recomputed."""
        return all(
            {*leg.measures, *leg.official} <= set(self.recomputed.get(task, {}).get(name, ()))
            for task, legs in content.tasks.items()
            for name, leg in legs.items()
        )


class _File(Record):
    """A record as its file holds it."""

    format_: Literal["retrieval-bench/record/1"] = Field(alias="schema")


@dataclass(frozen=True)
class Records:
    """The records of a board; without a folder those that `add` and `check` wrote next to the results."""

    folder: Path | None = None

    def find(self, path: Path) -> Record | None:
        """Return the record of a result file. Raises `StoreError` for one that is not as it was written."""
        place = self._place(path)
        if place is None or not place.exists():
            return None
        try:
            record = _File.model_validate(read_sealed(place))
        except ValidationError as error:
            raise StoreError(where=place, found="no record", expected=error.errors()[0]["msg"]) from error
        except (OSError, ValueError, RecursionError) as error:
            raise StoreError(f"{place} cannot be trusted: {error}; take it away, or record the result again") from error
        return record if record.bundle == place.stem else None

    def state(self, result: Result) -> State:
        """Return how far a result was checked. Raises `StoreError` for a record that is not as it was written."""
        if self.folder is None:
            accepted = result.accepted
            if accepted is None:
                return State.RUN_HERE
            whole = bool(accepted.recomputed) and not any(accepted.not_recomputed.values())
            return State.RECOMPUTED if whole else State.HANDED_IN
        record = self.find(result.path)
        if record is None or not record.covers(result.content):
            return State.HANDED_IN
        if record.made_again is None:
            return State.RECOMPUTED
        return State.MADE_AGAIN if record.agreed is None else State.AGREED

    def excepted(self, place: Path) -> bool:
        """Whether maintainers let a result, by its folder below the results folder, pass unverified."""
        return place.as_posix() in self._exceptions

    def write(self, path: Path, data: Mapping[str, Mapping[str, str]], recomputed: Names, **more: Any) -> Path:
        """Write a result's record, with replays and authors of an older one. Raises `StoreError` where it cannot."""
        place = self._place(path)
        if place is None:
            raise UsageError(where="--record", found="no folder of records", expected="it with --records DIR")
        older = self.find(path)
        kept = older.model_dump(include={"made_again", "agreed"}, exclude_none=True) if older else {}
        said = {"bundle": place.stem, "data": data, "recomputed": recomputed, "version": version("retrieval-bench")}
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            write_sealed(place, {"schema": SCHEMA, **said, "when": now(), **kept, **more})
        except OSError as error:
            raise StoreError(f"cannot write the record {place}: {explain(error)}", where=place) from error
        return place

    def _place(self, path: Path) -> Path | None:
        return self.folder / f"{sha256_file(path)}.json" if self.folder else None

    @cached_property
    def _exceptions(self) -> frozenset[str]:
        path = self.folder / EXCEPTIONS if self.folder else None
        lines = path.read_text(encoding="utf-8").splitlines() if path and path.is_file() else []
        return frozenset(line.partition("#")[0].strip().strip("/") for line in lines) - {""}


NEAR = Records()
"""The records next to the results."""


def now() -> str:
    """Return the time for records, or that of SOURCE_DATE_EPOCH, so that an addition is reproducible to the byte."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    at = datetime.fromtimestamp(int(epoch), UTC) if epoch.isdigit() else datetime.now(UTC)
    return at.replace(microsecond=0).isoformat()
