"""post: vectors + a fitted post-processing → vectors, in the same order under the same ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, repeat
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.core.contract import TrainingJob
from bench.core.errors import StoreError
from bench.core.workspace import Workspace
from bench.pipeline.compute import Compute
from bench.pipeline.stages.encode import EncodePassages, EncodeQueries
from bench.pipeline.stages.fit import Fit
from bench.pipeline.stages.read import Read
from bench.retrieval.post_processing import ANY, Post
from bench.retrieval.vectors import Vectors, write_ids, write_matrix
from bench.store.stage import IDLE, OPTIONAL, Cost, Stage
from bench.types import Item, Json, Source

_BLOCK = 4096


@dataclass(frozen=True, kw_only=True)
class PostProcess(Stage):
    """Vectors + fit → vectors.

    Args:
        vectors: the vectors.
        fit: what is done to them.
        leg: the queries, where they are what was encoded.
        language: of the vectors as the key has it: empty where one map serves all, or each item says its own.
        compute: the machine, whose threads alone matter.
        of: language of the vectors, empty where each item says its own.
    """

    name, code, libraries = "post", 1, ("numpy", "torch")
    vectors: EncodePassages | EncodeQueries
    fit: Fit
    leg: Read | None = field(default=None, metadata=OPTIONAL)
    language: str
    compute: Compute
    of: str = field(metadata=IDLE)

    @property
    def title(self) -> str:
        return self.vectors.title

    @property
    def cost(self) -> Cost:
        return Cost("post", self.vectors.cost.units, 2e5)

    def identity(self) -> dict[str, Json]:
        return {**super().identity(), "compute": {"threads": self.compute.threads}}

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        def items() -> Iterable[Item]:
            given = self.vectors.items(folders)
            return given.read() if isinstance(given, Source) else given

        return run(space, folders["vectors"], folders["fit"], self.of, items, self.compute.threads)


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
