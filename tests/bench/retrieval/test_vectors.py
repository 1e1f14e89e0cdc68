"""Vectors on disk."""

from pathlib import Path

import numpy as np
import pytest

from bench.core.errors import StoreError, UsageError
from bench.retrieval.vectors import Vectors, rounded, write_ids, write_matrix
from bench.testing import fields


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


def test_in_float16_they_take_half_the_room(tmp_path: Path) -> None:
    """Each number is the nearest of float16; the file is half as long, and says what it holds."""
    write_ids(tmp_path, ["a", "b"])
    values = np.array([[1 / 3, -2.0], [65_504, 1e-8]], np.float32)
    assert write_matrix(tmp_path, [values], "float16") == (2, 2)
    vectors = Vectors(tmp_path)
    assert (vectors.precision, str(vectors.matrix.dtype)) == ("float16", "float16")
    assert (tmp_path / "vectors.f16").read_bytes() == bytes.fromhex("5535 00c0 ff7b 0000")
    assert vectors.matrix.tolist() == [[0.333251953125, -2.0], [65_504.0, 0.0]]
    assert (tmp_path / "meta.json").read_bytes() == b'{"d":2,"dtype":"float16","n":2}'
    (tmp_path / "vectors.f16").write_bytes(b"\0" * 16)
    with pytest.raises(StoreError, match="do not belong together"):
        Vectors(tmp_path)


def test_a_number_beyond_float16_is_refused(tmp_path: Path) -> None:
    """With its size and what to type; 65,519 is still rounded to the largest one."""
    assert rounded(np.array([[65_519.0]], np.float32), "float16").tolist() == [[65_504.0]]
    beyond = np.array([[1.0, -70_000]], np.float32)
    expected = fields(where="encode.vectors=float16", found="a vector with a number of size 70,000", hint="normalise")
    with pytest.raises(UsageError, check=expected):
        write_matrix(tmp_path, [beyond], "float16")
    assert list(tmp_path.iterdir()) == []
    assert rounded(beyond, "float32") is beyond
