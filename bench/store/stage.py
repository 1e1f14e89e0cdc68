"""A stage: one step from files to files, a frozen dataclass whose fields declare its inputs and its key."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from bench.config.base import Config
from bench.config.layers import identity as decisive
from bench.core.contract import Contract
from bench.core.files import digest
from bench.core.installed import DENSE, version, version_of, without_dense
from bench.core.workspace import Workspace
from bench.types import Json

FORMAT = 1
"""Of the store; part of every key."""
KEY_DIGITS = 32

IDLE: Mapping[str, Any] = MappingProxyType({"idle": True})
"""Metadata of a field that cannot change the bytes, e.g. a title, a batch size or an opened reader."""
OPTIONAL: Mapping[str, Any] = MappingProxyType({"optional": True})
"""Metadata of a field that is left out of the key where it is None."""
SPREAD: Mapping[str, Any] = MappingProxyType({"spread": True})
"""Metadata of a field whose own entries enter the identity, in place of one entry with its name."""


def named(key: str, *others: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the metadata of a field that the identity calls otherwise."""
    return {name: value for one in others for name, value in one.items()} | {"key": key}


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
class Needs:
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

    notes: Mapping[str, Json] = field(default_factory=dict, metadata=IDLE)  # kept with the artefact, no part of the key

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
        """Do the work into `space`, given the artefacts of the inputs by field name; return facts. Pure."""

    @property
    def inputs(self) -> dict[str, Stage]:
        """The stages that it rests on, by field name."""
        return {one.name: value for one in fields(self) if isinstance(value := getattr(self, one.name), Stage)}

    @property
    def shares(self) -> tuple[Stage, ...]:
        """Stages that do its work in shares beforehand; it does what they have left, and they are in no key."""
        return ()

    @property
    def before(self) -> tuple[Stage, ...]:
        """What is made before it: its inputs, and its shares."""
        return (*self.inputs.values(), *self.shares)

    @property
    def needs(self) -> Needs:
        """What it takes of the machine: as its field `compute` says, where it has one."""
        compute: Any = getattr(self, "compute", None)
        return compute.needs if compute else Needs()

    @property
    def used_libraries(self) -> tuple[str, ...]:
        """Distributions whose versions enter the key."""
        return self.libraries

    def identity(self) -> dict[str, Json]:
        """Return everything that can change the bytes, keys of the inputs included."""
        own: dict[str, Json] = {"code": _plain(self.code)}
        inputs: dict[str, Json] = {}
        for one in fields(self):
            value, name = getattr(self, one.name), one.metadata.get("key", one.name)
            if isinstance(value, Stage):
                inputs[name] = value.key
            elif one.metadata.get("idle") or (value is None and one.metadata.get("optional")):
                continue
            elif one.metadata.get("spread"):
                own |= _plain(value)
            else:
                own[name] = _plain(value)
        if self.used_libraries:
            own["libraries"] = versions(*self.used_libraries)
        return {**own, "inputs": inputs}

    @cached_property
    def key(self) -> str:
        """32 hexadecimal digits."""
        return digest({"format": FORMAT, "stage": self.name, "identity": self.identity()})[:KEY_DIGITS]

    @property
    def provenance(self) -> dict[str, Json]:
        """What is kept with the artefact beside its identity."""
        return {**self.notes, "cost": {"kind": self.cost.kind, "units": self.cost.work}}

    def about(self) -> dict[str, Any]:
        """Return what hooks get to know."""
        return {"stage": self.name, "title": self.title, "key": self.key, "identity": self.identity()}

    def chain(self) -> Iterator[Stage]:
        """Yield the stages that it rests on, then itself, each once and after its inputs."""
        found: dict[str, Stage] = {}
        for given in self.inputs.values():
            found |= {one.key: one for one in given.chain() if one.key not in found}
        yield from found.values()
        yield self


def versions(*names: str) -> dict[str, Json]:
    """Return the installed versions of libraries by name. Raises `UsageError` where the extra `dense` is needed."""
    missing = next((name for name in DENSE if name in names and version_of(name) is None), None)
    if missing:
        raise without_dense(missing)
    return {name: version(name) for name in sorted(set(names))}


def _plain(value: Any) -> Any:
    """Return a field as JSON: of configs and contracts what can change a result."""
    if isinstance(value, Config):
        return decisive(value)
    if isinstance(value, Contract):
        return value.dump()
    if hasattr(value, "identity"):
        return value.identity()
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value
