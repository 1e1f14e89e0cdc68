"""A fitted post-processing on disk: one affine map a language, kept beside the encoder and never inside it.

Layout of the folder::

    post.safetensors   float64: LANGUAGE.mean `[d]`, and maybe LANGUAGE.scale `[d]` and LANGUAGE.matrix `[d, d]`
    post.json          the kind, and each language with the sentences that it was fitted on

`*` stands for every language: centring and whitening do not tell them apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from bench.encoding.calibration import Affine
from bench.errors import BenchError, StoreError, UsageError
from bench.fsio import canonical, write_bytes

ANY = "*"
"""Stands for every language."""
_MAPS, _META = "post.safetensors", "post.json"


def write(folder: Path, kind: str, maps: Mapping[str, Affine], sentences: Mapping[str, int]) -> None:
    """Write maps by language; equal maps give equal bytes.

    Args:
        folder: where to.
        kind: the post-processing.
        maps: by language, or one under `ANY`.
        sentences: how many each was fitted on.

    Raises:
        BenchError: a map holds a value that is no number.
        OSError: as `open` does.
    """
    tensors = {}
    for language, one in sorted(maps.items()):
        for name, values in (("mean", one.mean), ("scale", one.scale), ("matrix", one.matrix)):
            if values is None:
                continue
            if not np.isfinite(values).all():
                raise BenchError(f"the {name} of {language} that was fitted is not finite, expected numbers")
            tensors[f"{language}.{name}"] = np.ascontiguousarray(values, "<f8")
    write_bytes(folder / _MAPS, save(tensors))
    languages = {language: sentences[language] for language in sorted(maps)}
    write_bytes(folder / _META, canonical({"kind": kind, "languages": languages}))


class Post:
    """A fitted post-processing, in memory.

    Args:
        folder: what stage `fit` wrote.

    Raises:
        StoreError: the files are not those that were written.
    """

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
                f"{folder}: found {error!r}, expected a fitted post-processing; `bench verify` tells what is broken"
            ) from error

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that it knows, `ANY` alone where it does not tell them apart."""
        return tuple(self._maps)

    def apply(self, vectors: npt.NDArray[np.float32], languages: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the images of vectors `[n, d]`, computed in float64.

        Args:
            vectors: of the encoder.
            languages: of each row.

        Raises:
            UsageError: a language that it was not fitted for, or vectors of another width.
        """
        moved = np.empty(vectors.shape, np.float32)
        own = np.asarray([ANY] * len(vectors) if ANY in self._maps else languages, np.str_)
        for language in sorted(set(own.tolist())):
            rows, one = own == language, self._map(language)
            if one.mean.shape != vectors.shape[1:]:
                raise UsageError(
                    f"found vectors of {vectors.shape[1]} dimensions and a post-processing of {one.mean.shape[0]}; "
                    "fit it with the same encoder"
                )
            moved[rows] = one(vectors[rows])
        return moved

    def _map(self, language: str) -> Affine:
        """The map of a language. Raises `UsageError` where there is none."""
        if language not in self._maps:
            raise UsageError(without(language, self._maps))
        return self._maps[language]


def without(language: str, known: Iterable[str]) -> str:
    """Say that a language cannot be post-processed by itself, and what to type instead."""
    lacking = f"found no sentences in {language!r}" if language else "found texts that say no language"
    return (
        f"{lacking}, expected one of those that the pretraining corpus has: {', '.join(sorted(known))}; "
        "pretrain on a corpus that has it, or type --set post.kind=centre, which does not tell languages apart"
    )
