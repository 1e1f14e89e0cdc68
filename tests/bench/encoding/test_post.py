"""Post-processing on disk: what is applied to which language, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench.encoding.calibration import Affine
from bench.encoding.post import ANY, Post, write
from bench.errors import BenchError, StoreError, UsageError

TURN = np.array([[0.0, -1.0], [1.0, 0.0]])
MAPS = {"sw": Affine(np.array([1.0, 0.0]), np.array([2.0, 1.0]), TURN), "en": Affine(np.array([0.0, 1.0]))}


def test_each_language_by_its_own_map(tmp_path: Path) -> None:
    """Worked out by hand: shift, scale, quarter turn for Swahili; shift for English."""
    write(tmp_path, "calibrate", MAPS, {"sw": 10, "en": 20})
    post = Post(tmp_path)
    assert (post.kind, post.languages) == ("calibrate", ("en", "sw"))
    vectors = np.array([[5, 1], [5, 1], [1, 4]], np.float32)
    moved = post.apply(vectors, ["sw", "en", "sw"])
    assert moved.dtype == np.float32
    assert moved.tolist() == [[-1, 2], [5, 0], [-4, 0]]
    assert json.loads((tmp_path / "post.json").read_text()) == {
        "kind": "calibrate",
        "languages": {"en": 20, "sw": 10},
    }


def test_one_map_for_all(tmp_path: Path) -> None:
    """Languages are not asked for."""
    write(tmp_path, "centre", {ANY: MAPS["en"]}, {ANY: 30})
    assert Post(tmp_path).apply(np.array([[5, 1]], np.float32), [""]).tolist() == [[5, 0]]


def test_equal_maps_give_equal_bytes(tmp_path: Path) -> None:
    """In whatever order they come."""
    for name, maps in (("a", MAPS), ("b", dict(reversed(MAPS.items())))):
        write(tmp_path / name, "calibrate", maps, {"sw": 10, "en": 20})
    for file in ("post.safetensors", "post.json"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


@pytest.mark.parametrize("language", ["fi", ""])
def test_a_language_that_was_not_fitted(tmp_path: Path, language: str) -> None:
    """Says which there are, and what to type."""
    write(tmp_path, "shift", MAPS, {"sw": 10, "en": 20})
    with pytest.raises(UsageError, match=r"one of those that the pretraining corpus has: en, sw.*post.kind=centre"):
        Post(tmp_path).apply(np.zeros((2, 2), np.float32), ["en", language])


def test_vectors_of_another_width(tmp_path: Path) -> None:
    """Are another encoder's."""
    write(tmp_path, "shift", MAPS, {"sw": 10, "en": 20})
    with pytest.raises(UsageError, match="found vectors of 3 dimensions and a post-processing of 2"):
        Post(tmp_path).apply(np.zeros((1, 3), np.float32), ["en"])


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
