"""index: corpus → whatever a retriever needs to search it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.config.base import Config
from bench.config.layers import identity
from bench.core.encoder_config import EncoderConfig
from bench.core.workspace import Workspace
from bench.pipeline.compute import LIBRARIES, Compute
from bench.pipeline.stages import pool
from bench.pipeline.stages.encode import RoleEncoder
from bench.pipeline.stages.init import EncoderStage
from bench.pipeline.stages.pool import BuildPool
from bench.pipeline.stages.validate import Validate
from bench.store.fingerprinted import Fingerprinted
from bench.store.stage import ENVIRONMENT, NOT_IN_KEY, Cost, Stage, named, versions
from bench.types import Item, Json, Method, Retriever

_RATE = 5e3  # documents a second


def method_identity(method: Method, config: Config) -> dict[str, Json]:
    """Return the method's name and version, and those of its settings that can change a result."""
    return {"method": method.name, "version": method.version, "config": identity(config)}


@dataclass(frozen=True, kw_only=True)
class Index(Stage):
    """Corpus → index of a method that searches by itself."""

    name, code = "index", 1
    unit = "documents"
    checked: Validate = field(metadata=named("corpus"))
    corpus: Fingerprinted[Item]
    resolved: Mapping[str, Json] = field(metadata=ENVIRONMENT)  # what the language decides
    method: Method = field(metadata=NOT_IN_KEY)
    config: Any = field(metadata=NOT_IN_KEY)

    title = property(lambda self: f"{self.method.name} {self.checked.suite_corpus.id}")
    cost = property(lambda self: Cost(f"index {self.method.name}", self.checked.cost.units, _RATE, start=1.0))

    library_versions = property(lambda self: versions(*self.libraries, *self.method.libraries))

    def choices(self) -> dict[str, Json]:
        return {**super().choices(), **method_identity(self.method, self.config)}

    def retriever(self, folders: Mapping[str, Path]) -> Retriever:
        """Return the retriever, given the inputs of this stage or of a search. Raises `PluginError` without one."""
        return self.method.build_retriever(self.config)

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        return self.retriever(folders).index(self.checked.suite_corpus, space)


@dataclass(frozen=True, kw_only=True)
class EncoderIndex(Index):
    """Corpus + trained encoder → index of a method that indexes in its own way."""

    libraries = LIBRARIES
    encoder: EncoderStage
    encoder_config: EncoderConfig
    compute: Compute = field(metadata=ENVIRONMENT)
    batch_tokens: int | None = field(
        default=None, metadata=NOT_IN_KEY
    )  # tokens of a batch; None: what suits the device

    def retriever(self, folders: Mapping[str, Path]) -> Retriever:
        encoder = RoleEncoder(self.encoder, folders["encoder"], self.encoder_config, self.compute, self.batch_tokens)
        return self.method.build_retriever(self.config, encoder)


@dataclass(frozen=True, kw_only=True)
class MineIndex(Stage):
    """Pool of training pairs → index; the pool says its language when it is there."""

    name, code = "mine_index", 1
    unit = "documents"
    pool: BuildPool
    resolved: Mapping[str, Json] = field(metadata=ENVIRONMENT)  # what is decided whatever the language
    method: Method = field(metadata=NOT_IN_KEY)
    config: Any = field(metadata=NOT_IN_KEY)

    title = property(lambda self: f"{self.method.name} {self.pool.label}")
    cost = property(lambda self: Cost(f"index {self.method.name}", self.pool.cost.units, _RATE))

    library_versions = property(lambda self: versions(*self.method.libraries))

    def choices(self) -> dict[str, Json]:
        return {**super().choices(), **method_identity(self.method, self.config)}

    def retriever(self) -> Retriever:
        """Return the method's retriever. Raises `PluginError` where it has none."""
        return self.method.build_retriever(self.config)

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        return self.retriever().index(pool.corpus(folders["pool"], self.pool.label), space)
