"""encode: items → vectors by the encoder that a method brings, whatever computes them."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.core.encoder_config import Encoder, Role
from bench.core.errors import PluginError
from bench.core.workspace import Advance, Workspace
from bench.pipeline.stages import read
from bench.pipeline.stages.encode import collapse, write_vectors
from bench.pipeline.stages.read import Read
from bench.pipeline.stages.validate import Validate
from bench.retrieval.vectors import Precision
from bench.store.fingerprinted import Fingerprinted
from bench.store.stage import NOT_IN_KEY, OPTIONAL, Cost, Stage, named, versions
from bench.types import Item, Json, Method, Source

_BATCH = 256  # items that an encoder is given at once
_RATE = 500.0  # texts a second


@dataclass(frozen=True, kw_only=True)
class OwnEncode(Stage):
    """Items → vectors of the encoder that a method brings."""

    name, code, libraries = "encode", (1, 1), ("numpy",)
    unit = "texts"
    role: Role
    method: str
    version: str
    config: Any
    plugin: Method = field(metadata=NOT_IN_KEY)

    library_versions = property(lambda self: versions(*self.libraries, *self.plugin.libraries))

    @property
    def precision(self) -> Precision:
        """How its vectors are stored: in full, but for passages where the settings say otherwise."""
        return "float32"

    @abstractmethod
    def items(self, folders: Mapping[str, Path]) -> Source[Item] | Sequence[Item]:
        """Return what is encoded."""

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        def load(_advance: Advance) -> Encoder:
            return Checked(self.plugin.build_encoder(self.config), self.method)

        written = write_vectors(space, self.items(folders), self.role, load, precision=self.precision)
        return {**written, **collapse(space.out, self.items(folders))}


@dataclass(frozen=True, kw_only=True)
class OwnPassages(OwnEncode):
    """Corpus → vectors."""

    checked: Validate = field(metadata=named("corpus"))
    corpus: Fingerprinted[Item]
    stored: Precision | None = field(default=None, metadata=named("vectors", OPTIONAL))  # None: float32

    precision = property(lambda self: self.stored or "float32")
    title = property(lambda self: f"{self.method} {self.checked.suite_corpus.id}")
    cost = property(lambda self: Cost(f"encode {self.method}", self.checked.cost.units, _RATE))

    def items(self, folders: Mapping[str, Path]) -> Source[Item]:
        return self.corpus.source


@dataclass(frozen=True, kw_only=True)
class OwnQueries(OwnEncode):
    """Judged queries of a subset → vectors."""

    subset: Read

    title = property(lambda self: f"{self.method} queries of {self.subset.title}")
    cost = property(lambda self: Cost(f"encode {self.method}", self.subset.questions, _RATE))

    def items(self, folders: Mapping[str, Path]) -> Sequence[Item]:
        return read.queries(folders["subset"])


@dataclass(frozen=True)
class Checked:
    """An encoder that is given batches, and whose vectors are checked."""

    encoder: Encoder
    method: str

    def encode(self, items: Sequence[Item], role: Role) -> npt.NDArray[np.float32]:
        """Return vectors `[n, d]`, float32, finite. Raises `PluginError` where the encoder returns others."""
        blocks = [self._batch(items[start : start + _BATCH], role) for start in range(0, len(items), _BATCH)]
        widths = sorted({block.shape[1] for block in blocks})
        if len(widths) > 1:
            raise PluginError(where=f"encoder of {self.method}", found=f"vectors of {widths}", expected="one width")
        return np.concatenate(blocks)

    def _batch(self, items: Sequence[Item], role: Role) -> npt.NDArray[np.float32]:
        vectors = self.encoder.encode(items, role)
        expected = f"float32 [{len(items)}, d], finite"
        if not isinstance(vectors, np.ndarray) or vectors.dtype != np.float32 or vectors.shape[:-1] != (len(items),):
            description = (
                f"{vectors.dtype} {list(vectors.shape)}" if isinstance(vectors, np.ndarray) else type(vectors).__name__
            )
            raise PluginError(where=f"encoder of {self.method}", found=description, expected=expected)
        if not np.isfinite(vectors).all():
            raise PluginError(where=f"encoder of {self.method}", found="values that are no numbers", expected=expected)
        return vectors
