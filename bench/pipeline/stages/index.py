"""index: corpus → whatever a retriever needs to search it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.config.base import Config
from bench.config.layers import identity
from bench.core.encoder_config import EncoderConfig
from bench.core.workspace import Workspace
from bench.pipeline import memory
from bench.pipeline.compute import LIBRARIES, Compute
from bench.pipeline.stages import pool
from bench.pipeline.stages.encode import RoleEncoder, batch_size
from bench.pipeline.stages.init import EncoderStage, begun_size
from bench.pipeline.stages.pool import BuildPool
from bench.pipeline.stages.validate import Validate
from bench.store.fingerprinted import Fingerprinted
from bench.store.stage import ENVIRONMENT, NOT_IN_KEY, Cost, Resources, Stage, named, versions
from bench.types import Footprint, Item, Json, Method, Retriever

_RATE = 5e3  # documents a second
_AVERAGE = 400.0  # bytes of a passage of training pairs


def method_identity(method: Method, config: Config) -> dict[str, Json]:
    """Return the method's name and version, and those of its settings that can change a result."""
    return {"method": method.name, "version": method.version, "config": identity(config)}


def footprint(method: Method, config: Config, language: str, passages: float, text: float) -> Footprint:
    """Return what an index takes, about: as its method says, or where it says nothing, 200 µs a passage and 1 GiB."""
    if method.footprint is None:
        return Footprint(passages / _RATE, memory.GIB, memory.GIB, 0.0)
    return method.footprint(config, language, passages, text)


def indexing(method: Method, passages: float, stated: Footprint, start: float = 0.0) -> Cost:
    """Return the cost of an index in passages, each of which is so many microseconds of work."""
    if method.footprint is None or not passages:
        return Cost(f"index {method.name}", passages, _RATE, start=start)
    return Cost(f"index {method.name} by size", passages, 1e6, start, each=1e6 * stated.seconds / passages)


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
    cost = property(lambda self: indexing(self.method, self.checked.passages, self.footprint, start=1.0))
    resources = property(lambda self: Resources(memory=self.footprint.memory / memory.GIB))
    disk = property(lambda self: int(self.footprint.disk))
    parts = property(lambda self: int(self.footprint.parts))

    library_versions = property(lambda self: versions(*self.libraries, *self.method.libraries))

    @property
    def footprint(self) -> Footprint:
        """What the index takes, about; of a corpus that nobody has counted, that of a stated number of passages."""
        passages = self.checked.passages
        counted = memory.counted(passages)
        text = self.checked.text_bytes if passages else _AVERAGE * counted
        return footprint(self.method, self.config, self.checked.suite_corpus.language, counted, text)

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

    @property
    def resources(self) -> Resources:
        """What the encoder takes, and the index."""
        tokens = batch_size(self.batch_tokens, self.compute.device)
        encoding = memory.reading(begun_size(self.encoder), tokens, 0, self.compute.resources)
        return replace(encoding, memory=encoding.memory + self.footprint.memory / memory.GIB)

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
    cost = property(lambda self: indexing(self.method, self.pool.cost.units, self.footprint))
    resources = property(lambda self: Resources(memory=self.footprint.memory / memory.GIB))

    library_versions = property(lambda self: versions(*self.method.libraries))

    def choices(self) -> dict[str, Json]:
        return {**super().choices(), **method_identity(self.method, self.config)}

    @property
    def footprint(self) -> Footprint:
        """What the index takes, about, of as many passages as pairs."""
        passages = memory.counted(self.pool.cost.units)
        return footprint(self.method, self.config, "", passages, _AVERAGE * passages)

    def retriever(self) -> Retriever:
        """Return the method's retriever. Raises `PluginError` where it has none."""
        return self.method.build_retriever(self.config)

    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        return self.retriever().index(pool.corpus(folders["pool"], self.pool.label), space)
