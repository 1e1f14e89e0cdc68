"""Vectors on disk: one file of rows in float32 or float16, and the ids; written once in order, read memory-mapped.

Rows in float16 take half the room. They are what is scored: search widens them, which is exact.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from bench.core.errors import StoreError, UsageError
from bench.core.files import atomic, canonical, write_bytes
from bench.data.formats.string_array import StringArray, write_strings

_META, _IDS = "meta.json", "ids"
_MATRIX = {"float32": "vectors.f32", "float16": "vectors.f16"}

Precision = Literal["float32", "float16"]
Rows = npt.NDArray[np.floating[Any]]
"""Vectors in either precision, `[n, d]`."""


def rounded(vectors: Rows, precision: Precision) -> Rows:
    """Return vectors in a precision, each number rounded to the nearest. Raises `UsageError` for one beyond float16."""
    with np.errstate(over="ignore"):
        stored: Rows = vectors.astype(precision, copy=False)
    if precision == "float16" and not np.isfinite(stored).all():
        raise UsageError(
            where="encode.vectors=float16",
            found=f"a vector with a number of size {float(np.abs(vectors).max()):,.6g}",
            expected=f"numbers of at most {float(np.finfo(np.float16).max):,.0f}, as float16 has them",
            hint="leave encode.vectors out, or scale vectors to length 1: --set encode.normalise=true",
        )
    return stored


def write_ids(folder: Path, ids: Iterable[str]) -> None:
    """Write the ids, read as a stream. Raises `OSError`."""
    write_strings(folder, _IDS, ids)


def write_matrix(folder: Path, blocks: Iterable[Rows], precision: Precision = "float32") -> tuple[int, int]:
    """Write rows block by block as `vectors.f32` or `.f16` (little endian) and `meta.json`; return rows and d.

    Blocks are `[rows, d]`. Raises `ValueError` if two differ in d or there is none, `UsageError` for numbers beyond
    float16, `OSError` as `open` does.
    """
    rows, widths, kind = 0, set(), np.dtype(precision).newbyteorder("<")
    with atomic(folder / _MATRIX[precision]) as stream:
        for block in blocks:
            rows += block.shape[0]
            widths.add(block.shape[1])
            stream.write(np.ascontiguousarray(rounded(block, precision), kind).data)
        if len(widths) != 1:
            raise ValueError(f"found blocks of {sorted(widths)} columns, expected blocks of one width")
    width = widths.pop()
    write_bytes(folder / _META, canonical({"n": rows, "d": width, "dtype": precision}))
    return rows, width


class Vectors:
    """The vectors of an artefact of `encode`, memory-mapped. Raises `StoreError` for files that were not written so."""

    def __init__(self, folder: Path) -> None:
        try:
            meta = json.loads((folder / _META).read_bytes())
            rows, width = int(meta["n"]), int(meta["d"])
            self.precision: Precision = meta["dtype"]
            path, kind = folder / _MATRIX[self.precision], np.dtype(self.precision).newbyteorder("<")
            self.ids: Sequence[str] = StringArray(folder, _IDS)
            self.matrix: Rows = np.memmap(path, kind, "r", shape=(rows, width))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"{folder}: found {error}, expected vectors; `bench verify` shows what is broken"
            ) from error
        if len(self.ids) != rows or path.stat().st_size != rows * width * kind.itemsize:
            raise StoreError(f"{folder}: the files of the vectors do not belong together; `bench verify` shows more")
