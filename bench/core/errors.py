"""Every error that the harness raises on purpose: fields for programs, a sentence for a person, an exit code.

A sentence says what was found, what was expected, and what to type next. Exit code 2 is a mistake that the user can
mend by typing something else or repairing an input; 1 is a failure of the harness, of a plugin or of the machine.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any


class BenchError(Exception):
    """Root of the tree; anything else that reaches the command line is a bug of ours.

    Args:
        message: the whole sentence, where it does not follow the pattern `where: found …, expected …; hint`.
        where: the option, key, file or name at fault.
        found: the offending value, short and printable.
        expected: what is accepted in its place.
        hint: what to type or do next.
    """

    exit_code = 1

    def __init__(
        self, message: str = "", *, where: Path | str = "", found: str = "", expected: str = "", hint: str = ""
    ) -> None:
        self.where, self.found, self.expected, self.hint = str(where), found, expected, hint
        super().__init__(message or sentence(self.where, found, expected, hint))

    def __reduce__(self) -> tuple[Any, ...]:
        """Survive the way through worker processes, fields included, whatever arguments a subclass takes."""
        return type(self).__new__, (type(self), *self.args), vars(self)


def sentence(where: str, found: str, expected: str, hint: str = "") -> str:
    """Return `where: found …, expected …; hint` without the parts that are empty."""
    parts = [f"found {found}" if found else "", f"expected {expected}" if expected else ""]
    fault = ", ".join(filter(None, parts))
    return "; ".join(filter(None, (": ".join(filter(None, (where, fault))), hint)))


class UsageError(BenchError):
    """A name, option or value on the command line (or in an API call) that cannot be meant."""

    exit_code = 2


class ConfigError(UsageError):
    """A configuration key or value that is unknown, of the wrong type or out of range."""


class DataError(BenchError):
    """An input file that breaks its format: `where:line: found …, expected …; hint`, lines from 1 or None."""

    exit_code = 2

    def __init__(self, where: Path | str, line: int | None, found: str, expected: str, hint: str = "") -> None:
        self.line = line
        place = f"{where}:{line}" if line is not None else f"{where}"
        message = sentence(place, found, expected, hint)
        super().__init__(message, where=where, found=found, expected=expected, hint=hint)


class DataFaultsError(BenchError):
    """Several faults of one input, in file order, so that a file can be repaired in one go; `more` are not listed."""

    exit_code = 2

    def __init__(self, faults: list[DataError], more: int = 0) -> None:
        self.faults, self.more = faults, more
        lines = [str(fault) for fault in faults]
        super().__init__("\n".join(lines + ([f"… and {more} more faults like these"] if more else [])))


class PluginError(BenchError):
    """A plugin that does not load, breaks its contract, or conflicts with another."""


class StoreError(BenchError):
    """The store or the results folder cannot be read or written (full disk, read-only folder, corrupt file)."""
