"""Whether a result is verified, and the records that say so.

A row is *verified* or *unverified*. It is verified where it was run here, where every number was recomputed from its
run and the judgements, or where it was reproduced elsewhere (`bench reproduce`). `Verification` says which, and by
whom. Whoever has the data writes a record into a folder that only maintainers may change. Where that folder is given,
nothing else counts: neither a record in a bundle, nor that there is none.
"""

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bench.core.errors import StoreError
from bench.core.files import explain, read_sealed, sha256_file, write_sealed
from bench.evaluation.results.format import (
    ACCEPTED,
    ACCEPTED_SCHEMA,
    Accepted,
    Content,
    Sha256,
    SubsetName,
    TaskId,
    Text,
)
from bench.evaluation.results.read import Result

EXCEPTIONS = "exceptions.txt"
"""Folders of results, below the results folder and one a line, that strict checks let pass unverified."""
UNVERIFIED = "unverified"
AS_HANDED_IN = "numbers recomputed; cost, machine and libraries as handed in"
"""What is known of a row that was recomputed alone, and what its author says."""
ONLY_RECOMPUTED = (
    f"Recomputed means that the numbers follow from the run and the judgements ({AS_HANDED_IN}). Which system produced "
    "the run remains a claim: a run constructed from public judgements cannot be distinguished from a genuine one"
)


class Basis(StrEnum):
    """What was done to verify a row, the weakest first; a system is verified as far as its weakest seed."""

    SUBMITTED = "not verified"
    RUN_HERE = "run here"
    RECOMPUTED = "recomputed here"
    REPRODUCED = "reproduced elsewhere"


@dataclass(frozen=True)
class Verification:
    """Whether a row is verified, on what basis, and by whom.

    Args:
        basis: what was done; all but `SUBMITTED` verify a row.
        by: who reproduced it: a name, or the address where its author confirms it; empty otherwise.
    """

    basis: Basis = Basis.RUN_HERE
    by: str = ""

    @property
    def verified(self) -> bool:
        """Whether a row may be ranked."""
        return self.basis is not Basis.SUBMITTED

    @property
    def state(self) -> str:
        """`verified` or `unverified`, as files hold it."""
        return "verified" if self.verified else UNVERIFIED

    @property
    def title(self) -> str:
        """The basis in words, as pages and files show it: `reproduced elsewhere by …`."""
        return f"{self.basis} by {self.by}" if self.by else str(self.basis)


class Reproduction(BaseModel):
    """What `bench reproduce --json` reported, when it was recorded, and who ran it."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    verdict: Literal["OK", "close"]
    date: Text
    by: Text


@dataclass(frozen=True)
class Findings:
    """What was recomputed of a result, by task and subset; subsets without any of it are left out.

    Args:
        recomputed: names of recomputed numbers.
        not_recomputed: why the others could not be recomputed, by name.
        data: digests of the judgements that were used.
    """

    recomputed: dict[str, dict[str, list[str]]] = field(default_factory=dict)
    not_recomputed: dict[str, dict[str, dict[str, str]]] = field(default_factory=dict)
    data: dict[str, dict[str, str]] = field(default_factory=dict)


class Record(Accepted):
    """What was found when a result was checked; the result file names the checksums of all files of its bundle.

    `data` are digests of the judgements that were used, by task and subset.
    """

    format_: Literal["retrieval-bench/accepted/2"] = Field(alias="schema")
    data: dict[TaskId, dict[SubsetName, Sha256]] = Field(default_factory=dict)
    reproduced: Reproduction | None = None

    def covers(self, content: Content) -> bool:
        """Whether every number of a result was recomputed."""
        return all(
            {*subset.measures, *subset.official} <= set(self.recomputed.get(task, {}).get(name, ()))
            for task, subsets in content.tasks.items()
            for name, subset in subsets.items()
        )


@dataclass(frozen=True)
class Records:
    """The records of a board: those of a folder of maintainers, by default those next to the results."""

    folder: Path | None = None

    def find(self, path: Path) -> Record | None:
        """Return the record of a result file. Raises `StoreError` for one that is not as it was written."""
        digest = sha256_file(path)
        location = self._location(path, digest)
        try:
            record = Record.model_validate(read_sealed(location))
        except FileNotFoundError:
            return None
        except ValidationError as error:
            raise StoreError(where=location, found="no record", expected=error.errors()[0]["msg"]) from error
        except (OSError, ValueError, RecursionError) as error:
            raise StoreError(
                f"{location} cannot be trusted: {error}; take it away, or record the result again"
            ) from error
        return record if record.result == digest else None

    def verification(self, result: Result) -> Verification:
        """Return how a result was verified. Raises `StoreError` for a record that is not as it was written."""
        record = self.find(result.path)
        if record is None:
            return Verification(Basis.SUBMITTED if self.folder else Basis.RUN_HERE)
        if not record.covers(result.content):
            return Verification(Basis.SUBMITTED)
        if record.reproduced is None:
            return Verification(Basis.RECOMPUTED)
        return Verification(Basis.REPRODUCED, record.reproduced.by)

    def write(
        self,
        path: Path,
        digest: str,
        findings: Findings,
        time: str,
        reproduced: Reproduction | None = None,
    ) -> Path:
        """Write the record of a result file; the reproduction of an older record of the same file stays.

        Args:
            path: the result file, which may not be there yet.
            digest: the sha256 of its content.
            findings: what was recomputed.
            time: the time, ISO 8601.
            reproduced: what a reproduction elsewhere found.

        Returns:
            The path of the record.

        Raises:
            StoreError: the record cannot be written.
        """
        location = self._location(path, digest)
        if reproduced is None and self.folder and (older := self.find(path)):
            reproduced = older.reproduced
        content = {
            "schema": ACCEPTED_SCHEMA,
            "result": digest,
            "version": version("retrieval-bench"),
            "date": time,
            **vars(findings),
        }
        try:
            location.parent.mkdir(parents=True, exist_ok=True)
            write_sealed(location, content | ({"reproduced": reproduced.model_dump()} if reproduced else {}))
        except OSError as error:
            raise StoreError(f"cannot write the record {location}: {explain(error)}", where=location) from error
        return location

    def _location(self, path: Path, digest: str) -> Path:
        return self.folder / f"{digest}.json" if self.folder else path.parent / ACCEPTED

    def described(self, result: Result) -> str:
        """Return whether a result is verified, how, by whom and when, as its page says it.

        A result without a record was run where the site was built, unless maintainers keep records: then nobody has
        checked it. A record that covers only some numbers verifies nothing.
        """
        verification = self.verification(result)
        if verification.basis is Basis.RUN_HERE:
            return "verified: run where this site was built."
        record = self.find(result.path)
        if record is None:
            return f"{verification.state}: no maintainer has recorded a check."
        detail = record.said
        if record.reproduced:
            detail = f"{verification.title} ({record.reproduced.verdict}, {record.reproduced.date})"
        elif not verification.verified and not record.not_recomputed:
            detail = "its record covers only some of its numbers"
        outcome = f"{verification.state}: {detail} ({record.date}, by version {record.version})."
        return f"{outcome} {ONLY_RECOMPUTED}." if verification.basis is Basis.RECOMPUTED else outcome

    @cached_property
    def exceptions(self) -> frozenset[str]:
        """Folders, below the results folder, of results that maintainers let pass unverified."""
        path = self.folder / EXCEPTIONS if self.folder else None
        lines = path.read_text(encoding="utf-8").splitlines() if path and path.is_file() else []
        return frozenset(line.partition("#")[0].strip().strip("/") for line in lines) - {""}


NEAR = Records()
"""The records next to the results."""


def now() -> str:
    """Return the time for records, or that of SOURCE_DATE_EPOCH, so that an addition is reproducible to the byte."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    moment = datetime.fromtimestamp(int(epoch), UTC) if epoch.isdigit() else datetime.now(UTC)
    return moment.replace(microsecond=0).isoformat()
