"""Many strings on disk, read one at a time: one UTF-8 file and the offsets at which each string begins."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import overload

import numpy as np
import numpy.typing as npt


def write_strings(folder: Path, name: str, strings: Iterable[str]) -> None:
    """Write strings to `{name}.txt` (UTF-8, nothing between them) and `{name}.offsets.npy` (int64, `[n + 1]` bytes).

    Raises:
        OSError: as `open` does.
        UnicodeEncodeError: for half of a surrogate pair, which UTF-8 does not have.
    """
    offsets = array("q", [0])
    with (folder / f"{name}.txt").open("wb") as stream:
        for string in strings:
            offsets.append(offsets[-1] + stream.write(string.encode()))
    np.save(folder / f"{name}.offsets.npy", np.asarray(offsets, np.int64), allow_pickle=False)


class Strings(Sequence[str]):
    """The strings that `write_strings` wrote, memory-mapped: none is held, each is decoded when asked for.

    Args:
        folder: where they lie.
        name: as they were written.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._offsets = np.asarray(np.load(folder / f"{name}.offsets.npy", mmap_mode="r", allow_pickle=False))
        path = folder / f"{name}.txt"
        self._bytes = np.memmap(path, np.uint8, "r").data if path.stat().st_size else memoryview(b"")

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._offsets) - 1

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: int | slice) -> str | list[str]:
        """Decode one string, or a slice of them. Raises `IndexError` as a list does."""
        if isinstance(at, slice):
            return [self[one] for one in range(*at.indices(len(self)))]
        place = range(len(self))[at]
        return str(self._bytes[self._offsets[place] : self._offsets[place + 1]], "utf-8")


class Picked(Sequence[str]):
    """Some of a sequence's strings, looked up when asked for.

    Args:
        strings: all of them.
        positions: which, `[n]`.
    """

    def __init__(self, strings: Sequence[str], positions: npt.NDArray[np.integer]) -> None:
        self._strings, self._positions = strings, positions

    def __len__(self) -> int:
        """Return how many were picked."""
        return len(self._positions)

    @overload
    def __getitem__(self, at: int) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> Picked: ...
    def __getitem__(self, at: int | slice) -> str | Picked:
        """Look up one string, or narrow the choice."""
        if isinstance(at, slice):
            return Picked(self._strings, self._positions[at])
        return self._strings[int(self._positions[at])]

    def __iter__(self) -> Iterator[str]:
        """Look up one after the other."""
        return (self._strings[at] for at in self._positions.tolist())
