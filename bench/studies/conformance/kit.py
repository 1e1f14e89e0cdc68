"""What a check is, and how one is carried out: a promise, a trial, and a sentence where it fails."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bench.core.errors import BenchError

State = Literal["kept", "broken", "not applicable"]


class BrokenPromiseError(BenchError):
    """A promise that a plugin breaks; the message says what was found and what was expected."""


class NotApplicableError(Exception):
    """A promise that this plugin does not make; the message says why."""


@dataclass(frozen=True)
class Check:
    """One promise and its trial."""

    name: str  # short, e.g. `same-seed-same-bytes`
    promise: str
    remedy: str  # what the author of a plugin that breaks it does
    # subject → what was left out, where something was. Raises `BrokenPromiseError` or `NotApplicableError`; whatever
    # else it raises breaks the promise too
    body: Callable[[Any], str | None]


def promise(name: str, kept: str, remedy: str) -> Callable[[Callable[[Any], str | None]], Check]:
    """Return a decorator that makes a check of its trial; arguments as for `Check`."""
    return lambda body: Check(name, kept, remedy, body)


@dataclass(frozen=True)
class Verdict:
    """How a trial ended, why where the promise was not kept or not wholly tried, and the seconds that it took."""

    check: Check
    state: State
    reason: str
    seconds: float
    remedy: str  # what the author does: the check's, or where the cause is known that of the cause

    def as_json(self) -> dict[str, Any]:
        """As `bench plugin check --json` prints it."""
        about = {"name": self.check.name, "promise": self.check.promise, "state": self.state, "reason": self.reason}
        return {**about, "remedy": self.remedy, "seconds": round(self.seconds, 3)}


def carry_out(check: Check, subject: Any) -> Verdict:
    """Try a promise; whatever third-party code raises breaks it."""
    begun = time.monotonic()
    state: State = "kept"
    reason, remedy = "", check.remedy
    try:
        reason = check.body(subject) or ""
    except NotApplicableError as error:
        state, reason = "not applicable", str(error)
    except BrokenPromiseError as error:
        state, reason, remedy = "broken", str(error), error.hint or remedy
    except Exception as error:  # third-party code may raise anything
        state, reason = "broken", f"{type(error).__name__}: {error}"
    return Verdict(check, state, reason, time.monotonic() - begun, remedy)


def expect(kept: bool, sentence: str, remedy: str = "") -> None:
    """Raise `BrokenPromiseError` with a sentence unless something holds; `remedy` in place of the check's."""
    if not kept:
        raise BrokenPromiseError(sentence, hint=remedy)


def files(folder: Path) -> dict[str, bytes]:
    """Return the bytes of every file below a folder, by its path."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def different(left: dict[str, bytes], right: dict[str, bytes]) -> list[str]:
    """Return the names of files that are not the same on both sides."""
    return sorted(name for name in left.keys() | right.keys() if left.get(name) != right.get(name))
