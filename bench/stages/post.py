"""post: vectors + a fitted post-processing → vectors, in the same order under the same ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice, repeat
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.dense import TrainingJob
from bench.encoding.post import ANY, Post
from bench.encoding.vectors import Vectors, write_ids, write_matrix
from bench.errors import StoreError
from bench.types import Item, Json
from bench.workspace import Workspace

VERSION = 1
_BLOCK = 4096


def run(
    work: Workspace,
    vectors: Path,
    fitted: Path,
    language: str,
    items: Callable[[], Iterable[Item]],
    threads: int,
) -> Mapping[str, Json]:
    """Write the post-processed vectors.

    Args:
        work: where to; advances by vectors.
        vectors: the artefact of `encode`.
        fitted: the artefact of `fit`.
        language: of all items; empty where each item says its own.
        items: opens what was encoded, in order; called only where each says its own language.
        threads: of the processor.

    Raises:
        UsageError: a language that nothing was fitted for.
        StoreError: the vectors are not those of the items.
    """
    from bench.training.determinism import reproducible

    given, post = Vectors(vectors), Post(fitted)
    own = not language and ANY not in post.languages
    languages = _languages(given, items()) if own else repeat(language)

    def blocks() -> Iterator[npt.NDArray[np.float32]]:
        """Post-process block by block."""
        for start in range(0, len(given.ids), _BLOCK):
            block = given.matrix[start : start + _BLOCK]
            yield post.apply(block, list(islice(languages, len(block))))
            work.advance(len(block))

    with reproducible(TrainingJob(0, 0, "cpu", threads)):
        rows, width = write_matrix(work.out, blocks())
    write_ids(work.out, given.ids)
    return {"kind": post.kind, "vectors": rows, "dimensions": width}


def _languages(vectors: Vectors, items: Iterable[Item]) -> Iterator[str]:
    """The language of each vector."""
    for name, item in zip(vectors.ids, items, strict=True):
        if name != item.id:
            raise StoreError(f"found the vector of {name!r} where {item.id!r} was read; `bench verify` tells more")
        yield item.language
