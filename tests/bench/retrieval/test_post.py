"""Post-processing: shift, scale and whitening by hand, what is applied to which language, and what is refused."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from bench.core.errors import BenchError, StoreError, UsageError
from bench.retrieval.post_processing import ANY, FLOOR, Affine, Post, mean, spread, whitening, write
from tests.conftest import present

TURN = np.array([[0.0, -1.0], [1.0, 0.0]])
MAPS = {"sw": Affine(np.array([1.0, 0.0]), np.array([2.0, 1.0]), TURN), "en": Affine(np.array([0.0, 1.0]))}


def test_each_language_by_its_own_map(tmp_path: Path) -> None:
    """By hand: shift, scale, quarter turn for Swahili; shift for English; one map for all; another width is refused."""
    write(tmp_path, "calibrate", MAPS, {"sw": 10, "en": 20})
    post = Post(tmp_path)
    assert (post.kind, post.languages) == ("calibrate", ("en", "sw"))
    vectors = np.array([[5, 1], [5, 1], [1, 4]], np.float32)
    moved = post.apply(vectors, ["sw", "en", "sw"])
    assert moved.dtype == np.float32
    assert moved.tolist() == [[-1, 2], [5, 0], [-4, 0]]
    assert json.loads((tmp_path / "post.json").read_text()) == {"kind": "calibrate", "languages": {"en": 20, "sw": 10}}
    write(tmp_path / "one", "centre", {ANY: MAPS["en"]}, {ANY: 30})
    assert Post(tmp_path / "one").apply(np.array([[5, 1]], np.float32), [""]).tolist() == [[5, 0]]
    for language in ("fi", ""):  # which were not fitted: it says which there are, and what to type
        with pytest.raises(UsageError, match=r"one of those that the pretraining corpus has: en, sw.*post.kind=centre"):
            Post(tmp_path).apply(np.zeros((2, 2), np.float32), ["en", language])
    with pytest.raises(UsageError, match="found vectors of 3 dimensions and a post-processing of 2"):
        Post(tmp_path).apply(np.zeros((1, 3), np.float32), ["en"])


def test_equal_maps_give_equal_bytes(tmp_path: Path) -> None:
    """In whatever order they come."""
    for name, maps in (("a", MAPS), ("b", dict(reversed(MAPS.items())))):
        write(tmp_path / name, "calibrate", maps, {"sw": 10, "en": 20})
    for file in ("post.safetensors", "post.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


@pytest.mark.parametrize("part", ["mean", "scale", "matrix"])
def test_no_number_is_written_that_is_none(tmp_path: Path, part: str) -> None:
    """Nothing is left behind."""
    values = {"mean": np.zeros(2), "scale": np.ones(2), "matrix": np.eye(2)}
    values[part].flat[0] = np.nan
    with pytest.raises(BenchError, match=f"the {part} of en that was fitted is not finite"):
        write(tmp_path, "calibrate", {"en": Affine(**values)}, {"en": 5})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("lost", ["post.safetensors", "post.json"])
def test_a_file_that_is_gone_or_cut(tmp_path: Path, lost: str) -> None:
    """Is a sentence."""
    write(tmp_path, "shift", MAPS, {"sw": 10, "en": 20})
    (tmp_path / lost).write_bytes((tmp_path / lost).read_bytes()[:-9])
    with pytest.raises(StoreError, match="expected a fitted post-processing; `bench verify`"):
        Post(tmp_path)
    (tmp_path / lost).unlink()
    with pytest.raises(StoreError, match="expected a fitted post-processing"):
        Post(tmp_path)


def test_spread_and_matrix_by_hand() -> None:
    """Without spread the floor divides; a small one round a large mean is not lost; rows times the transpose."""
    vectors = np.array([[1.0, 5.0], [3.0, 5.0]])
    assert spread(vectors).tolist() == [1.0, FLOOR]
    assert Affine(mean(vectors), spread(vectors))(vectors).tolist() == [[-1, 0], [1, 0]]
    far = np.array([[4096.0], [4096.5], [4097.0]], np.float32)
    assert spread(far) == pytest.approx([0.5 * math.sqrt(2 / 3)], abs=1e-12)
    assert Affine(np.array([1.0, 1.0]), np.array([1.0, 2.0]), TURN)(np.array([[2.0, 3.0]])).tolist() == [[-1, 1]]


def test_white_vectors() -> None:
    """Mean 0, covariance 1, a symmetric matrix; white ones stay; none is magnified beyond 1000 times the widest."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(400, 5)) @ rng.normal(size=(5, 5)) + 3
    transform = whitening(vectors)
    white = transform(vectors)
    np.testing.assert_allclose(white.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(white.T @ white / 400, np.eye(5), atol=1e-9)
    assert transform.matrix is not None
    np.testing.assert_allclose(transform.matrix, transform.matrix.T, atol=1e-12)
    second = present(whitening(white).matrix)
    np.testing.assert_allclose(second, np.eye(5), atol=1e-9)
    flat = np.random.default_rng(0).normal(size=(100, 3)) * [2.0, 1.0, 0.0]
    matrix = present(whitening(flat).matrix)
    scales = np.linalg.eigvalsh(matrix)
    assert scales[-1] == pytest.approx(1000 * scales[0], rel=1e-6)
