"""Every error that the harness raises on purpose: a sentence for a person, and the exit code that goes with it.

A message says what was found, what was expected, and what to type next. Exit code 2 is a mistake that the user can
mend by typing something else or repairing an input; 1 is a failure of the harness, of a plugin or of the machine.
"""

from __future__ import annotations

from pathlib import Path


class BenchError(Exception):
    """Root of the tree; anything else that reaches the command line is a bug of ours."""

    exit_code = 1


class UsageError(BenchError):
    """A name, option or value on the command line (or in an API call) that cannot be meant."""

    exit_code = 2


class ConfigError(UsageError):
    """A configuration key or value that is unknown, of the wrong type or out of range."""


class DataError(BenchError):
    """An input file that breaks its format; says where.

    Args:
        where: the file.
        line: 1-based line number, or None where the fault belongs to the whole file.
        found: what stands there, short and printable.
        expected: what should stand there.
        hint: what to do next; empty where `expected` says it already.
    """

    exit_code = 2

    def __init__(self, where: Path | str, line: int | None, found: str, expected: str, hint: str = "") -> None:
        """Compose the sentence `where:line: found …, expected …; hint`."""
        self.where, self.line, self.found, self.expected, self.hint = str(where), line, found, expected, hint
        place = f"{where}:{line}" if line is not None else f"{where}"
        super().__init__(f"{place}: found {found}, expected {expected}" + (f"; {hint}" if hint else ""))

    def __reduce__(self) -> tuple[type[DataError], tuple[str, int | None, str, str, str]]:
        """Survive the way through worker processes (the default would replay the composed sentence)."""
        return type(self), (self.where, self.line, self.found, self.expected, self.hint)


class DataFaultsError(BenchError):
    """Several faults of one input, told together so that a file is mended in one go.

    Args:
        faults: the faults in file order, cut at a limit by the caller.
        more: how many further faults were counted but are not listed.
    """

    exit_code = 2

    def __init__(self, faults: list[DataError], more: int = 0) -> None:
        """Join the sentences, one a line."""
        self.faults, self.more = faults, more
        lines = [str(fault) for fault in faults]
        super().__init__("\n".join(lines + ([f"… and {more} more faults like these"] if more else [])))

    def __reduce__(self) -> tuple[type[DataFaultsError], tuple[list[DataError], int]]:
        """Survive the way through worker processes."""
        return type(self), (self.faults, self.more)


class PluginError(BenchError):
    """A plugin that does not load, breaks a promise, or stands in another's way."""


class StoreError(BenchError):
    """The store or the results folder cannot be read or written (full disk, read-only folder, corrupt file)."""
