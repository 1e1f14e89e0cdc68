"""Shift, scale and whitening by hand (golden values: tests/golden)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bench.encoding.calibration import FLOOR, Affine, mean, spread, whitening


def test_a_dimension_without_spread_stays_finite() -> None:
    """It is divided by the floor, not by nothing."""
    vectors = np.array([[1.0, 5.0], [3.0, 5.0]])
    assert spread(vectors).tolist() == [1.0, FLOOR]
    assert Affine(mean(vectors), spread(vectors))(vectors).tolist() == [[-1, 0], [1, 0]]


def test_float32_is_counted_in_float64() -> None:
    """A small spread round a large mean is not lost."""
    vectors = np.array([[4096.0], [4096.5], [4097.0]], np.float32)
    assert spread(vectors) == pytest.approx([0.5 * math.sqrt(2 / 3)], abs=1e-12)


def test_matrix_by_hand() -> None:
    """Rows are multiplied by the transpose: a quarter turn to the left."""
    turn = np.array([[0.0, -1.0], [1.0, 0.0]])
    assert Affine(np.array([1.0, 1.0]), np.array([1.0, 2.0]), turn)(np.array([[2.0, 3.0]])).tolist() == [[-1, 1]]


def test_white_vectors() -> None:
    """Mean 0 and covariance 1; the matrix is symmetric; white vectors stay as they are."""
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(400, 5)) @ rng.normal(size=(5, 5)) + 3
    found = whitening(vectors)
    white = found(vectors)
    np.testing.assert_allclose(white.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(white.T @ white / 400, np.eye(5), atol=1e-9)
    assert found.matrix is not None
    np.testing.assert_allclose(found.matrix, found.matrix.T, atol=1e-12)
    again = whitening(white).matrix
    assert again is not None
    np.testing.assert_allclose(again, np.eye(5), atol=1e-9)


def test_whitening_a_direction_without_spread() -> None:
    """It is magnified no more than a thousand times the widest one."""
    vectors = np.random.default_rng(0).normal(size=(100, 3)) * [2.0, 1.0, 0.0]
    matrix = whitening(vectors).matrix
    assert matrix is not None
    scales = np.linalg.eigvalsh(matrix)
    assert scales[-1] == pytest.approx(1000 * scales[0], rel=1e-6)
