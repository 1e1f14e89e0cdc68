"""Faults of an input file, gathered so that a user mends it in one go.

Conventions: a parser that knows only a line's text raises `RecordError`; whoever knows the file and the line turns it
into a `DataError` and adds it to `Faults`.
"""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from bench.core.errors import DataError, DataFaultsError

LISTED = 20
"""How many faults of one file are listed in full; the others are counted."""

_SHOWN = 60


def shown(value: object) -> str:
    """Quote a value for a message: printable, on one line, at most about 60 characters."""
    text = repr(value[: _SHOWN + 1] if isinstance(value, str) else value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def columns(cells: Sequence[str], text: str) -> str:
    """Return the words for a line with a wrong number of columns."""
    return f"{len(cells)} column{'s' * (len(cells) != 1)} in {shown(text)}"


class RecordError(ValueError):
    """A record that breaks its format, raised where file and line are not known; fields as in `DataError`."""

    def __init__(self, found: str, expected: str, hint: str = "") -> None:
        super().__init__(f"found {found}, expected {expected}")
        self.found, self.expected, self.hint = found, expected, hint

    def at(self, where: object, line: int | None) -> DataError:
        """Return the fault with its place."""
        return DataError(str(where), line, self.found, self.expected, self.hint)


class Faults:
    """Gathers the faults of one input; as a context manager it raises them when the block ends.

    A `DataError` that leaves the block (the stream is truncated, say) ends the reading, but is raised together with the
    faults gathered before it. One fault is raised as itself, several as one `DataFaultsError`, which lists `limit` of
    them. Falsy while there is none, so that a reader can stop handing on records of a file that will be refused anyway.
    """

    def __init__(self, limit: int = LISTED) -> None:
        self.listed: list[DataError] = []
        self.more = 0
        self._limit = limit

    def __len__(self) -> int:
        """Number of faults, listed or not."""
        return len(self.listed) + self.more

    def add(self, fault: DataError) -> None:
        """Add one fault."""
        if len(self.listed) < self._limit:
            self.listed.append(fault)
        else:
            self.more += 1

    def check(self) -> None:
        """Raise `DataError` for a single fault, `DataFaultsError` for several."""
        if len(self) == 1:
            raise self.listed[0]
        if self:
            raise DataFaultsError(self._by_line(), self.more)

    def _by_line(self) -> list[DataError]:
        """Return the listed faults in file order, those of no line first."""
        return sorted(self.listed, key=lambda fault: fault.line or 0)

    def __enter__(self) -> Self:
        """Begin to gather."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        """Raise the faults; an error that is no fault of the data passes through untouched."""
        if isinstance(error, DataError) and self:
            raise DataFaultsError([*self._by_line(), error], self.more) from None
        if error is None:
            self.check()
