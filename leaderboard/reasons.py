"""Why a result is not taken: every fault of every file, told together so that it is mended in one go."""

from __future__ import annotations

from contextlib import AbstractContextManager
from types import TracebackType

from pydantic import ValidationError

from bench.data.faults import Faults, RecordError
from bench.errors import DataError, DataFaultsError

_EACH = 5
"""How many faults of one file are told in full."""


class Reasons:
    """Gathers faults by file.

    Args:
        title: what messages call the bundle: its folder, or a place inside an archive.
    """

    def __init__(self, title: str) -> None:
        """Know none."""
        self._title = title
        self._files: dict[str, Faults] = {}

    def __len__(self) -> int:
        """All faults."""
        return sum(map(len, self._files.values()))

    def add(self, file: str, found: str, expected: str, hint: str = "", line: int | None = None) -> None:
        """Take a fault of a file; the first few of each are told, the others are counted."""
        where = f"{self._title}/{file}" if file else self._title
        self._files.setdefault(file, Faults(_EACH)).add(DataError(where, line, found, expected, hint))

    def of(self, file: str) -> int:
        """How many faults a file has."""
        return len(self._files.get(file, ()))

    def told(self) -> list[DataError]:
        """Those that are told, file by file."""
        return [fault for name in sorted(self._files) for fault in self._files[name].listed]

    @property
    def more(self) -> int:
        """How many are counted only."""
        return len(self) - len(self.told())

    def gathering(self, file: str) -> AbstractContextManager[None, bool]:
        """Take what readers raise of a file: `DataError`s, and what a model refuses; the block ends there."""
        return _Gathering(self, file)


class _Gathering(AbstractContextManager[None, bool]):
    """A block whose faults become reasons."""

    def __init__(self, reasons: Reasons, file: str) -> None:
        """Know where to put them."""
        self._reasons, self._file = reasons, file

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        """Take a fault of the data; any other error passes through."""
        reasons, file = self._reasons, self._file
        if isinstance(error, RecordError):
            reasons.add(file, error.found, error.expected, error.hint)
        elif isinstance(error, ValidationError):
            for fault in error.errors(include_url=False, include_input=False, include_context=False):
                place = ".".join(map(str, fault["loc"])) or "file"
                reasons.add(file, f"a fault at {place[:200]!a}", fault["msg"][:500])
        elif isinstance(error, DataError | DataFaultsError):
            for one in error.faults if isinstance(error, DataFaultsError) else [error]:
                reasons.add(file, one.found, one.expected, one.hint, one.line)
        else:
            return False
        return True
