"""Shift, scale and whitening of vectors by the statistics of a sample: what post-processing does within one language.

Conventions: n vectors of d dimensions, float64 `[n, d]`; statistics are the population's (divided by n). CCP (Wu et al.
2022) shifts and scales each language by itself; centring and whitening take all languages together (Su et al. 2021,
arXiv 2103.15316). Rotation of one language into another: `bench.encoding.rotation`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]
ScaleBy = Literal["std", "var"]

FLOOR = 1e-6
"""The least that vectors are divided by, so that a dimension without spread stays finite."""
_FLAT = 1e-6  # of the largest variance: directions with less spread are noise, and are not blown up beyond it


@dataclass(frozen=True)
class Affine:
    """x → ((x − mean) / scale) matrixᵀ.

    Args:
        mean: `[d]`.
        scale: `[d]`, positive; None for 1.
        matrix: `[d, d]`; None for the identity.
    """

    mean: Matrix
    scale: Matrix | None = None
    matrix: Matrix | None = None

    def __call__(self, vectors: npt.NDArray[Any]) -> Matrix:
        """Return the images `[n, d]` of vectors `[n, d]`, in float64."""
        moved = shifted(vectors, self.mean)
        if self.scale is not None:
            moved = scaled(moved, self.scale)
        return moved if self.matrix is None else _product(moved, self.matrix.T)


def mean(vectors: npt.NDArray[Any]) -> Matrix:
    """Return the mean `[d]`."""
    found: Matrix = np.asarray(vectors, np.float64).mean(axis=0)
    return found


def spread(vectors: npt.NDArray[Any], by: ScaleBy = "std") -> Matrix:
    """Return the standard deviation, or the variance, of each dimension `[d]`, at least `FLOOR`.

    CCP's formula divides by σ, its text says variance: hence the choice.
    """
    wide = np.asarray(vectors, np.float64)
    found: Matrix = wide.std(axis=0) if by == "std" else wide.var(axis=0)
    return np.maximum(found, FLOOR)


def shifted(vectors: npt.NDArray[Any], by: Matrix) -> Matrix:
    """Return the vectors less `by` `[d]`."""
    found: Matrix = np.asarray(vectors, np.float64) - by
    return found


def scaled(vectors: Matrix, by: Matrix) -> Matrix:
    """Return the vectors, each dimension divided by its entry of `by` `[d]`."""
    return vectors / by


def whitening(vectors: npt.NDArray[Any]) -> Affine:
    """Return the map after which the sample has mean 0 and, in every direction with spread, variance 1.

    The matrix is the symmetric Σ^−½ (any other whitening is a rotation of it and ranks alike). Variances below a
    millionth of the largest count as that much.
    """
    middle = mean(vectors)
    centred = shifted(vectors, middle)
    variances, directions = _spectrum(_product(centred.T, centred) / len(centred))
    floor = max(float(variances[-1]) * _FLAT, FLOOR**2)
    return Affine(middle, None, _product(directions / np.sqrt(np.maximum(variances, floor)), directions.T))


def _product(left: Matrix, right: Matrix) -> Matrix:
    """Multiply by torch, whose threads a stage sets: sums over other numbers of threads round otherwise."""
    import torch

    product: Matrix = (torch.from_numpy(left) @ torch.from_numpy(right)).numpy()
    return product


def _spectrum(symmetric: Matrix) -> tuple[Matrix, Matrix]:
    """Eigenvalues ascending `[d]` and eigenvectors as columns `[d, d]`."""
    import torch

    values, vectors = torch.linalg.eigh(torch.from_numpy(symmetric))
    return values.numpy(), vectors.numpy()
