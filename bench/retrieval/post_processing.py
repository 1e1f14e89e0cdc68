"""Post-processing of vectors: affine maps fitted to a sample, one a language, stored next to the encoder.

Conventions: n vectors of d dimensions, float64 `[n, d]`; statistics are the population's (divided by n). CCP (Wu et al.
2022) shifts and scales each language by itself; centring and whitening take all languages together (Su et al. 2021,
arXiv 2103.15316). Rotation of one language into another: `bench.retrieval.rotation`.

Layout of the folder::

    post.safetensors   float64: LANGUAGE.mean `[d]`, and maybe LANGUAGE.scale `[d]` and LANGUAGE.matrix `[d, d]`
    post.json          the kind, and each language with the number of sentences that it was fitted on

`*` means every language: centring and whitening make no difference between them.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from bench.core.errors import BenchError, StoreError, UsageError
from bench.core.files import canonical, write_bytes

Matrix = npt.NDArray[np.float64]
ScaleBy = Literal["std", "var"]

FLOOR = 1e-6
"""The least that vectors are divided by, so that a dimension without spread stays finite."""
_FLAT = 1e-6  # of the largest variance: directions with less spread are noise, and are not blown up beyond it


@dataclass(frozen=True)
class Affine:
    """x → ((x − mean) / scale) matrixᵀ."""

    mean: Matrix  # `[d]`
    scale: Matrix | None = None  # `[d]`, positive; None for 1
    matrix: Matrix | None = None  # `[d, d]`; None for the identity

    def __call__(self, vectors: npt.NDArray[Any]) -> Matrix:
        """Return the images `[n, d]` of vectors `[n, d]`, in float64."""
        moved: Matrix = np.asarray(vectors, np.float64) - self.mean
        if self.scale is not None:
            moved = moved / self.scale
        return moved if self.matrix is None else _product(moved, self.matrix.T)


def mean(vectors: npt.NDArray[Any]) -> Matrix:
    """Return the mean `[d]`."""
    average: Matrix = np.asarray(vectors, np.float64).mean(axis=0)
    return average


def spread(vectors: npt.NDArray[Any], by: ScaleBy = "std") -> Matrix:
    """Return the deviation or variance of each dimension `[d]`, at least `FLOOR` (CCP's text and formula differ)."""
    wide = np.asarray(vectors, np.float64)
    deviations: Matrix = wide.std(axis=0) if by == "std" else wide.var(axis=0)
    return np.maximum(deviations, FLOOR)


def whitening(vectors: npt.NDArray[Any]) -> Affine:
    """Return the map after which the sample has mean 0 and variance 1 in every direction with spread (Σ^−½).

    Args:
        vectors: the sample, `[n, d]`. Variances below a millionth of the largest count as that much.

    Source: Su et al. 2021, arXiv 2103.15316.
    """
    import torch

    middle = mean(vectors)
    centred = Affine(middle)(vectors)
    covariance = torch.from_numpy(_product(centred.T, centred) / len(centred))
    variances, directions = (
        tensor.numpy() for tensor in torch.linalg.eigh(covariance)
    )  # ascending `[d]`; columns `[d, d]`
    floor = max(float(variances[-1]) * _FLAT, FLOOR**2)
    return Affine(middle, None, _product(directions / np.sqrt(np.maximum(variances, floor)), directions.T))


def _product(first: Matrix, second: Matrix) -> Matrix:
    """Multiply by torch, whose threads a stage sets: sums over other numbers of threads round otherwise."""
    import torch

    product: Matrix = (torch.from_numpy(first) @ torch.from_numpy(second)).numpy()
    return product


ANY = "*"
"""Means every language."""
_MAPS, _META = "post.safetensors", "post.json"


def write(folder: Path, kind: str, maps: Mapping[str, Affine], sentences: Mapping[str, int]) -> None:
    """Write maps by language, or one under `ANY`, and their sample sizes. Raises `BenchError` if one is not finite."""
    tensors = {}
    for language, affine in sorted(maps.items()):
        for name, values in (("mean", affine.mean), ("scale", affine.scale), ("matrix", affine.matrix)):
            if values is None:
                continue
            if not np.isfinite(values).all():
                raise BenchError(f"the {name} of {language} that was fitted is not finite, expected numbers")
            tensors[f"{language}.{name}"] = np.ascontiguousarray(values, "<f8")
    write_bytes(folder / _MAPS, save(tensors))
    languages = {language: sentences[language] for language in sorted(maps)}
    write_bytes(folder / _META, canonical({"kind": kind, "languages": languages}))


class Post:
    """A fitted post-processing, in memory. Raises `StoreError` if the files are not those that stage `fit` wrote."""

    def __init__(self, folder: Path) -> None:
        try:
            meta = json.loads((folder / _META).read_bytes())
            tensors = load_file(folder / _MAPS)
            self.kind = str(meta["kind"])
            self._maps = {
                language: Affine(
                    tensors[f"{language}.mean"], tensors.get(f"{language}.scale"), tensors.get(f"{language}.matrix")
                )
                for language in meta["languages"]
            }
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            raise StoreError(
                f"{folder}: found {error!r}, expected a fitted post-processing; `bench verify` shows what is broken"
            ) from error

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that it knows, `ANY` alone where it is the same for all."""
        return tuple(self._maps)

    def apply(self, vectors: npt.NDArray[np.float32], languages: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the images of vectors `[n, d]` by the language of each row. Raises `UsageError` for one not fitted."""
        moved = np.empty(vectors.shape, np.float32)
        row_languages = np.asarray([ANY] * len(vectors) if ANY in self._maps else languages, np.str_)
        for language in sorted(set(row_languages.tolist())):
            if language not in self._maps:
                raise UsageError(without(language, self._maps))
            rows, affine = row_languages == language, self._maps[language]
            if affine.mean.shape != vectors.shape[1:]:
                raise UsageError(
                    f"found vectors of {vectors.shape[1]} dimensions and a post-processing of {affine.mean.shape[0]}; "
                    "fit it with the same encoder"
                )
            moved[rows] = affine(vectors[rows])
        return moved


def without(language: str, languages: Iterable[str]) -> str:
    """Say that a language cannot be post-processed by itself, and what to type instead."""
    lacking = f"found no sentences in {language!r}" if language else "found texts that say no language"
    return (
        f"{lacking}, expected one of those that the pretraining corpus has: {', '.join(sorted(languages))}; "
        "pretrain on a corpus that has it, or type --set post.kind=centre, which is the same for all languages"
    )
