"""Arrays in numpy's format, written piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Add = Callable[[npt.NDArray[Any]], None]
"""Takes the next values of a column."""


@contextmanager
def column(path: Path, dtype: npt.DTypeLike, count: int) -> Iterator[Add]:
    """Write a one-dimensional array of a known length as .npy; it is never held as a whole.

    Args:
        path: the file.
        dtype: of its values; those that are added are cast to it.
        count: how many there will be.

    Raises:
        ValueError: at the end, if another number was added.
        OSError: as `open` does.
    """
    kind, added = np.dtype(dtype), 0
    header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": (count,)}
    with path.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, header)

        def add(values: npt.NDArray[Any]) -> None:
            nonlocal added
            added += len(values)
            stream.write(np.ascontiguousarray(values, kind).data)

        yield add
    if added != count:
        raise ValueError(f"{path}: found {added} values, expected {count}")
