"""post: vectors + a fitted post-processing → vectors, in the same order under the same ids."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice, repeat
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bench.core.encoder_config import TrainingJob
from bench.core.errors import StoreError
from bench.core.workspace import Workspace
from bench.pipeline.stages.encode import EncodePassages, EncodeQueries
from bench.pipeline.stages.fit import Fit
from bench.pipeline.stages.read import Read
from bench.retrieval.post_processing import ANY, Post
from bench.retrieval.vectors import Vectors, write_ids, write_matrix
from bench.store.stage import ENVIRONMENT, NOT_IN_KEY, OPTIONAL, Cost, Stage, named
from bench.types import Item, Json, Source

_BLOCK = 4096


@dataclass(frozen=True, kw_only=True)
class PostProcess(Stage):
    """Vectors + fit → vectors."""

    name, code, libraries = "post", 1, ("numpy", "torch")
    unit = "vectors"
    vectors: EncodePassages | EncodeQueries
    fit: Fit
    subset: Read | None = field(default=None, metadata=OPTIONAL)  # the queries, where they are what was encoded
    language: str  # of the vectors as the key has it: empty where one map serves all, or each item says its own
    machine: Mapping[str, int] = field(metadata=named("compute", ENVIRONMENT))  # its `threads`, which alone matter
    vector_language: str = field(metadata=NOT_IN_KEY)  # empty where each item says its own
    system_label: str = field(metadata=NOT_IN_KEY)  # the system whose vectors these are

    title = property(lambda self: replace(self.vectors, system_label=self.system_label).title)
    cost = property(lambda self: Cost("post", self.vectors.cost.units, 2e5))
    disk = property(lambda self: self.vectors.disk)

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        """Write the post-processed vectors in the precision of the encoded ones, from which they are computed.

        What was encoded is read again only where each item says its language.

        Raises:
            UsageError: a language that nothing was fitted for, or a number is too large for float16.
            StoreError: the vectors are not those of the items.
        """
        from bench.training.determinism import reproducible

        encoded_vectors, post = Vectors(folders["vectors"]), Post(folders["fit"])
        languages: Iterator[str] = repeat(self.vector_language)
        if not self.vector_language and ANY not in post.languages:
            items = self.vectors.items(folders)
            languages = _languages(encoded_vectors, items.read() if isinstance(items, Source) else items)

        def blocks() -> Iterator[npt.NDArray[np.float32]]:
            for start in range(0, len(encoded_vectors.ids), _BLOCK):
                block = np.asarray(encoded_vectors.matrix[start : start + _BLOCK], np.float32)
                yield post.apply(block, list(islice(languages, len(block))))
                space.advance(len(block))

        with reproducible(TrainingJob(0, 0, "cpu", self.machine["threads"])):
            rows, width = write_matrix(space.out, blocks(), encoded_vectors.precision)
        write_ids(space.out, encoded_vectors.ids)
        return {"kind": post.kind, "vectors": rows, "dimensions": width}


def _languages(vectors: Vectors, items: Iterable[Item]) -> Iterator[str]:
    """Stream the language of each vector."""
    for name, item in zip(vectors.ids, items, strict=True):
        if name != item.id:
            raise StoreError(f"found the vector of {name!r} where {item.id!r} was read; `bench verify` says more")
        yield item.language
