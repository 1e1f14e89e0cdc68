"""Vectors on disk: one file of float32 rows, and the ids; written once in order, read memory-mapped."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.core.errors import StoreError
from bench.core.files import atomic, canonical, write_bytes
from bench.data.formats.string_array import StringArray, write_strings

_MATRIX, _META, _IDS = "vectors.f32", "meta.json", "ids"
_TYPE = np.dtype("<f4")


def write_ids(folder: Path, ids: Iterable[str]) -> None:
    """Write the ids, read as a stream. Raises `OSError`."""
    write_strings(folder, _IDS, ids)


def write_matrix(folder: Path, blocks: Iterable[npt.NDArray[np.float32]]) -> tuple[int, int]:
    """Write rows block by block as `vectors.f32` (little endian, row after row) and `meta.json`; return rows and d.

    Blocks are `[rows, d]`. Raises `ValueError` if two differ in d or there is none, `OSError` as `open` does.
    """
    rows, widths = 0, set()
    with atomic(folder / _MATRIX) as stream:
        for block in blocks:
            rows += block.shape[0]
            widths.add(block.shape[1])
            stream.write(np.ascontiguousarray(block, _TYPE).data)
        if len(widths) != 1:
            raise ValueError(f"found blocks of {sorted(widths)} columns, expected blocks of one width")
    width = widths.pop()
    write_bytes(folder / _META, canonical({"n": rows, "d": width, "dtype": "float32"}))
    return rows, width


class Vectors:
    """The vectors of an artefact of `encode`, memory-mapped. Raises `StoreError` for files that were not written so."""

    def __init__(self, folder: Path) -> None:
        try:
            meta = json.loads((folder / _META).read_bytes())
            rows, width = int(meta["n"]), int(meta["d"])
            self.ids: Sequence[str] = StringArray(folder, _IDS)
            self.matrix: npt.NDArray[np.float32] = np.memmap(folder / _MATRIX, _TYPE, "r", shape=(rows, width))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"{folder}: found {error}, expected vectors; `bench verify` shows what is broken"
            ) from error
        if len(self.ids) != rows or (folder / _MATRIX).stat().st_size != rows * width * _TYPE.itemsize:
            raise StoreError(f"{folder}: the files of the vectors do not belong together; `bench verify` shows more")
