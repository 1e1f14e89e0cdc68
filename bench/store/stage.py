"""A stage: one step from files to files, a frozen dataclass whose fields declare its inputs and its key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import Field, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

from bench.config.base import Config
from bench.config.layers import identity as decisive
from bench.core.encoder_config import EncoderConfig
from bench.core.errors import PluginError
from bench.core.files import digest
from bench.core.installed import DENSE, version, version_of, without_dense
from bench.core.workspace import Workspace
from bench.store.fingerprinted import Fingerprinted
from bench.types import Json

KEY_FORMAT = 1
"""How keys are made; part of every key."""
KEY_DIGITS = 32

T = TypeVar("T")

NOT_IN_KEY: Mapping[str, Any] = MappingProxyType({"not_in_key": True})
"""Metadata of a field that cannot change the bytes, e.g. a title, a batch size or an opened reader."""
ENVIRONMENT: Mapping[str, Any] = MappingProxyType({"environment": True})
"""Metadata of a field that may change bytes and identifies no system: a machine, the tag of a run, an analyzer."""
OPTIONAL: Mapping[str, Any] = MappingProxyType({"optional": True})
"""Metadata of a field that is left out of the key where it is None."""
FLATTEN_IN_KEY: Mapping[str, Any] = MappingProxyType({"flatten_in_key": True})
"""Metadata of a field whose own entries enter the identity, in place of one entry with its name."""


def named(key: str, *others: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata of a field that the identity calls otherwise."""
    return {name: value for metadata in others for name, value in metadata.items()} | {"key": key}


@dataclass(frozen=True)
class Cost:
    """How large a piece of work is, and how fast such work goes."""

    kind: str  # work of one kind goes at one rate, e.g. `index bm25`
    units: float  # the size, e.g. bytes of corpus or number of queries
    rate: float  # work per second on one core where this store has no experience yet (order of magnitude)
    start: float = 0.0  # seconds that the first such work of a run takes beforehand, where it has none either
    each: float = 1.0  # the work in a unit, e.g. operations; rates and experience are of work

    @property
    def work(self) -> float:
        """The size of the work in what makes works of one kind comparable."""
        return self.units * self.each


@dataclass(frozen=True)
class Resources:
    """What a stage takes of a machine while it runs."""

    cores: int = 0  # those of its threads; 0 where any number gives the same bytes
    memory: float = 1.0  # GiB, about
    device: str = "cpu"  # `cuda` for any GPU; `cuda:N` and `mps` for that one
    processes: int = 1  # on `cuda` each has a GPU

    @property
    def gpus(self) -> int:
        """How many GPUs it has to itself."""
        return self.processes if self.device.startswith("cuda") else 0


@dataclass(frozen=True, kw_only=True)
class Stage(ABC):
    """One step from files to files; equal identities give equal bytes. Inputs are the fields that are stages."""

    name: ClassVar[str]
    """The verb, as keys and folders have it."""
    code: ClassVar[int | tuple[int, ...]]
    """Version of the code; changes whenever it would write other bytes."""
    unit: ClassVar[str] = "queries"
    """What its cost counts, as people read it."""
    libraries: ClassVar[tuple[str, ...]] = ()
    """Distributions whose versions can change the bytes."""

    notes: Mapping[str, Json] = field(
        default_factory=dict, metadata=NOT_IN_KEY
    )  # kept with the artefact, no part of the key

    @property
    @abstractmethod
    def title(self) -> str:
        """What people call it, e.g. `bm25 beir/scifact`."""

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """The size of the work; the units are those by which `run` advances."""

    @abstractmethod
    def run(self, space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        """Do the work into `space`, given the artefacts of the inputs by field name; return metadata. Pure."""

    @cached_property
    def inputs(self) -> dict[str, Stage]:
        """The stages that it rests on, by field name."""
        return {item.name: value for item in fields(self) if isinstance(value := getattr(self, item.name), Stage)}

    @property
    def files(self) -> Mapping[Path, str]:
        """Files of the user's that it reads, with the sha256 that its key has of each."""
        sources = (value for item in fields(self) if isinstance(value := getattr(self, item.name), Fingerprinted))
        return {path: checksum for source in sources for path, checksum in source.files.items()}

    @property
    def shares(self) -> tuple[Stage, ...]:
        """Stages that do its work in shares beforehand; it does what they have left, and they are in no key."""
        return ()

    @property
    def before(self) -> tuple[Stage, ...]:
        """What is made before it: its inputs, and its shares."""
        return (*self.inputs.values(), *self.shares)

    @property
    def resources(self) -> Resources:
        """What it takes of the machine: as its field `compute` says, where it has one."""
        compute: Any = getattr(self, "compute", None)
        return compute.resources if compute else Resources()

    @property
    def parts(self) -> int:
        """Bytes that it has on disk besides until it is done, about; 0 where nothing is known."""
        return 0

    @property
    def disk(self) -> int:
        """Bytes that it leaves in the store, about, as far as counts say beforehand; 0 where nothing is known."""
        return 0

    @property
    def library_versions(self) -> dict[str, Json]:
        """Versions of what can change the bytes, by distribution."""
        return versions(*self.libraries)

    def choices(self) -> dict[str, Json]:
        """Return what decides the output besides inputs and environment: the one method that a stage may extend.

        These are the fields that are neither stages nor marked `NOT_IN_KEY` or `ENVIRONMENT`. They are part of the key
        and of the hash of every system that the stage belongs to.
        """
        return self._values(environment=False)

    def identity(self) -> dict[str, Json]:
        """Return everything that can change the bytes, keys of the inputs included.

        Raises:
            PluginError: two fields have one name in the key, so that one of them would be lost.
        """
        libraries = self.library_versions
        return {
            "code": _plain(self.code),
            **self._values(environment=True),
            **self.choices(),
            **({"libraries": libraries} if libraries else {}),
            "inputs": {name: stage.key for name, stage in self.key_inputs.items()},
        }

    @property
    def key_inputs(self) -> dict[str, Stage]:
        """The stages that it rests on, by their name in the key."""
        inputs = self.inputs
        return self._by_key_name({item: inputs[item.name] for item in fields(self) if item.name in inputs})

    def _values(self, *, environment: bool) -> dict[str, Json]:
        """Return the fields that are marked as environment, or those that are not, as JSON by their name in the key."""
        inputs, flattened, values = self.inputs, dict[str, Json](), {}
        for item in fields(self):
            value, marks = getattr(self, item.name), item.metadata
            if item.name in inputs or marks.get("not_in_key") or bool(marks.get("environment")) != environment:
                continue
            if value is None and marks.get("optional"):
                continue
            if marks.get("flatten_in_key"):
                flattened |= _plain(value)
            else:
                values[item] = _plain(value)
        return {**flattened, **self._by_key_name(values)}

    def _by_key_name(self, values: Mapping[Field[Any], T]) -> dict[str, T]:
        named_fields: dict[str, str] = {}
        for item in values:
            name = item.metadata.get("key", item.name)
            if name in named_fields:
                raise PluginError(
                    where=f"stage {self.name} ({type(self).__name__})",
                    found=f"fields {named_fields[name]} and {item.name}, both called {name} in the key",
                    expected="one name in the key for each field",
                    hint=f"rename {item.name}, or give it another name in the key by `bench.store.stage.named`",
                )
            named_fields[name] = item.name
        return {item.metadata.get("key", item.name): value for item, value in values.items()}

    @cached_property
    def key(self) -> str:
        """32 hexadecimal digits."""
        return digest({"format": KEY_FORMAT, "stage": self.name, "identity": self.identity()})[:KEY_DIGITS]

    @property
    def provenance(self) -> dict[str, Json]:
        """What is kept with the artefact besides its identity."""
        return {**self.notes, "cost": {"kind": self.cost.kind, "units": self.cost.work}}

    def about(self) -> dict[str, Any]:
        """Return what hooks get to know."""
        return {"stage": self.name, "title": self.title, "key": self.key, "identity": self.identity()}

    def chain(self) -> Iterator[Stage]:
        """Yield the stages that it rests on, then itself, each once and after its inputs."""
        stages: dict[str, Stage] = {}
        for dependency in self.inputs.values():
            stages |= {stage.key: stage for stage in dependency.chain() if stage.key not in stages}
        yield from stages.values()
        yield self


def versions(*names: str) -> dict[str, Json]:
    """Return the installed versions of libraries by name. Raises `UsageError` where the extra `dense` is needed."""
    missing = next((name for name in DENSE if name in names and version_of(name) is None), None)
    if missing:
        raise without_dense(missing)
    return {name: version(name) for name in sorted(set(names))}


def _plain(value: Any) -> Any:
    """Return a field as JSON: of configs and encoder configs what can change a result."""
    if isinstance(value, Config):
        return decisive(value)
    if isinstance(value, EncoderConfig):
        return value.dump()
    if hasattr(value, "identity"):
        return value.identity()
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
