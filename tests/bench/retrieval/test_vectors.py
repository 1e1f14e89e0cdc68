"""Vectors on disk."""

from pathlib import Path

import numpy as np
import pytest

from bench.core.errors import StoreError
from bench.retrieval.vectors import Vectors, write_ids, write_matrix


def written(folder: Path) -> None:
    """Write three vectors in two blocks."""
    write_ids(folder, iter(["a", "é", "c"]))
    blocks = [np.array([[1, 2], [3, 4]], np.float32), np.array([[5, 6]], np.float32)]
    assert write_matrix(folder, blocks) == (3, 2)


@pytest.mark.parametrize("name", ["vectors.f32", "meta.json", "ids.txt"])
def test_a_file_that_is_gone_cut_or_grown(tmp_path: Path, name: str) -> None:
    """Is refused, with the command that finds it."""
    written(tmp_path)
    if name == "vectors.f32":
        for spoil in (b"", b"\0" * 20, b"\0" * 28):
            (tmp_path / name).write_bytes(spoil)
            with pytest.raises(StoreError, match="bench verify"):
                Vectors(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(StoreError, match="bench verify"):
        Vectors(tmp_path)


def test_they_come_back(tmp_path: Path) -> None:
    """Row by row, memory-mapped, little endian; blocks of other widths are refused, and leave nothing behind."""
    with pytest.raises(ValueError, match=r"blocks of \[2, 3\] columns"):
        write_matrix(tmp_path, [np.zeros((1, 2), np.float32), np.zeros((1, 3), np.float32)])
    assert list(tmp_path.iterdir()) == []
    written(tmp_path)
    vectors = Vectors(tmp_path)
    assert list(vectors.ids) == ["a", "é", "c"]
    assert isinstance(vectors.matrix, np.memmap)
    np.testing.assert_array_equal(vectors.matrix, [[1, 2], [3, 4], [5, 6]])
    assert (tmp_path / "vectors.f32").read_bytes() == np.arange(1, 7, dtype="<f4").tobytes()
    assert (tmp_path / "meta.json").read_bytes() == b'{"d":2,"dtype":"float32","n":3}'
