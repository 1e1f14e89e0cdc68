"""Many strings on disk, read one at a time: one UTF-8 file and the offsets at which each string begins."""

import mmap
from array import array
from collections.abc import Iterable, Sequence
from operator import itemgetter
from pathlib import Path
from typing import TypeVar, overload

import numpy as np
import numpy.typing as npt

T_co = TypeVar("T_co", covariant=True)


class StoredSequence(Sequence[T_co]):
    """A sequence whose members are read from disk when asked for."""

    def read(self, at: int) -> T_co:
        """Return the member of a number from 0 to below the length."""
        raise NotImplementedError

    @overload
    def __getitem__(self, at: int) -> T_co: ...
    @overload
    def __getitem__(self, at: slice) -> list[T_co]: ...
    def __getitem__(self, at: int | slice) -> T_co | list[T_co]:
        """Read one member, or a slice of them. Raises `IndexError` as a list does."""
        if isinstance(at, slice):
            return [self.read(index) for index in range(*at.indices(len(self)))]
        place = at + len(self) if at < 0 else at
        if not 0 <= place < len(self):
            raise IndexError(at)
        return self.read(place)


def write_strings(folder: Path, name: str, strings: Iterable[str]) -> None:
    """Write strings to `{name}.txt` (UTF-8, nothing between them) and `{name}.offsets.npy` (int64, `[n + 1]` bytes).

    Raises `UnicodeEncodeError` for half of a surrogate pair, which UTF-8 does not have.
    """
    offsets = array("q", [0])
    with (folder / f"{name}.txt").open("wb") as stream:
        for string in strings:
            offsets.append(offsets[-1] + stream.write(string.encode()))
    np.save(folder / f"{name}.offsets.npy", np.asarray(offsets, np.int64), allow_pickle=False)


class StringArray(StoredSequence[str]):
    """The strings that `write_strings` wrote, memory-mapped: none is held, each is decoded when asked for."""

    def __init__(self, folder: Path, name: str) -> None:
        # Views, since indexing numpy's own arrays one number at a time takes several times longer.
        self._offsets = np.load(folder / f"{name}.offsets.npy", mmap_mode="r", allow_pickle=False).data
        self._length = len(self._offsets) - 1
        with (folder / f"{name}.txt").open("rb") as file:  # an empty file cannot be mapped
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if self._offsets[-1] else b""

    def __len__(self) -> int:
        """Number of strings."""
        return self._length

    def read(self, at: int) -> str:
        """Decode one string."""
        return self._bytes[self._offsets[at] : self._offsets[at + 1]].decode()

    def take(self, places: npt.NDArray[np.integer]) -> list[str]:
        """Decode the strings of places in range, `[n]`: several times as fast as one by one."""
        offsets, data = np.asarray(self._offsets), self._bytes
        ends = zip(offsets[places].tolist(), offsets[places + 1].tolist(), strict=True)
        return [data[first:end].decode() for first, end in ends]


class Picked(StoredSequence[str]):
    """The strings of places in range, `[n]`, of a sequence: each is looked up when asked for."""

    def __init__(self, strings: Sequence[str], places: npt.NDArray[np.integer]) -> None:
        self._strings, self._places = strings, places

    def __len__(self) -> int:
        """Number of places."""
        return len(self._places)

    def read(self, at: int) -> str:
        """Look up one string."""
        return self._strings[int(self._places[at])]

    def take(self, places: npt.NDArray[np.integer]) -> list[str]:
        """Look up the strings of places among those picked."""
        return take(self._strings, self._places[places])


def take(strings: Sequence[str], places: npt.NDArray[np.integer]) -> list[str]:
    """Return the strings of places in range, `[n]`, by the shortest way."""
    if isinstance(strings, StringArray | Picked):
        return strings.take(places)
    if len(places) < 2:  # of one place itemgetter returns no tuple, and none it does not take
        return [strings[place] for place in places.tolist()]
    return list(itemgetter(*places.tolist())(strings))  # in less than half of the time that a map takes
