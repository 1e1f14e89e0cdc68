"""Systems: what stands in a row of a table — a method with every choice that precedes the test resolved.

A system is a tree. Its leaves search by themselves (`Sparse`, `Embedding`, and those of `bench.pipeline.dense`); others
wrap them: `PostProcessed`, `Fused`, `Reranked`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from operator import attrgetter
from typing import Any

from bench.config.grids import CellReference, is_default_layer
from bench.config.layers import SettingRow, describe, dump
from bench.config.layers import identity as decisive
from bench.core.errors import UsageError
from bench.core.files import digest
from bench.core.system_graph import Graph, graph_differences
from bench.pipeline.compute import Compute
from bench.pipeline.legs import Asked
from bench.pipeline.names import FOLDER_PREFIX, public
from bench.pipeline.pretraining import Pretraining
from bench.pipeline.settings import Settings, Variant, row_json
from bench.pipeline.stages.encode_own import OwnPassages, OwnQueries
from bench.pipeline.stages.index import Index, method_identity
from bench.pipeline.stages.search import Search
from bench.pipeline.stages.search_dense import DenseSearch
from bench.store.stage import Stage
from bench.types import Json, Method

_LONGEST = 80
_LABEL = re.compile(rf"[A-Za-z0-9][A-Za-z0-9@._+=,-]{{0,{_LONGEST - 1}}}")


@dataclass(frozen=True)
class System(ABC):
    """A method with every choice that precedes the test."""

    label: str  # its name in tables, e.g. `bm25`, `bm25@k1=1.2`
    method: Method
    resolved: Settings  # its config, all layers applied, and the harness's own settings
    grid: CellReference | None = field(default=None, kw_only=True)  # None outside grids
    own_places: Mapping[str, str] = field(default_factory=dict, kw_only=True)  # of its model: path → public name

    @abstractmethod
    def searched(self, target: Asked) -> tuple[Stage, ...]:
        """Return the stages from the checks of the corpus and the leg to the run, which is last.

        Raises:
            UsageError: an input file that cannot be read; something that the method needs is not installed.
        """

    @property
    def choices(self) -> dict[str, Any]:
        """What makes it this system and no other; hashed."""
        return method_identity(self.method, self.resolved.method)

    @property
    def leaves(self) -> Iterator[System]:
        """The systems that search by themselves of which it is made, itself where it is one."""
        yield self

    @property
    def untrained(self) -> bool:
        """Whether it is the start of a training, before the first step."""
        return False

    @property
    def sections(self) -> set[str]:
        """The harness's own sections of settings that it listens to."""
        return {"search", "data"}

    @property
    def parts(self) -> tuple[System, ...]:
        """The two systems whose runs it fuses; none for any other."""
        return ()

    @property
    def chooses_weight(self) -> bool:
        """Whether it chooses the weight of a fusion by dev questions."""
        return False

    @property
    def compute(self) -> Compute | None:
        """The machine; None for a method without an encoder."""
        return None

    @property
    def pretraining(self) -> Pretraining | None:
        """Backbone, corpus and budget; None for a method that trains nothing."""
        return None

    @property
    def post(self) -> Pretraining | None:
        """What the post-processing of its vectors is fitted on; None where there is none."""
        return None

    @property
    def protocol(self) -> bool:
        """Whether texts are read as a suite's protocol says, as far as it does; else as the encoder's contract says."""
        return False

    @property
    def by_protocol(self) -> bool:
        """Whether it, or a part of it, reads texts as a protocol says."""
        return any(leaf.protocol for leaf in self.leaves)

    @property
    def dense(self) -> bool:
        """Whether it, or a part of it, has an encoder that the harness reads."""
        return any(leaf.compute is not None for leaf in self.leaves)

    @property
    def reranker_training(self) -> dict[str, Any] | None:
        """How its re-ranker is trained, as a result says it; None where none is."""
        return None

    @property
    def settings(self) -> tuple[str, ...]:
        """The settings that something of it can be tuned for."""
        return self.method.settings

    @property
    def deterministic(self) -> bool:
        """Whether no seed changes anything."""
        return self.method.deterministic

    @property
    def places(self) -> Mapping[str, str]:
        """Return path → public name of each model on this machine that its choices name."""
        return self.own_places

    @cached_property
    def tag(self) -> str:
        """Last column of its runs; without the label, which changes nothing that is computed. Part of keys."""
        return f"{self.method.name}-{digest(self.choices)[:8]}"

    @property
    def tuning(self) -> dict[str, Any] | None:
        """How a sweep chose its settings; None if none did or they were changed since (`bench.studies.sweep`)."""
        record = self.resolved.sweep
        return dump(record) if self.tuned_for and record.config == digest(decisive(self.resolved.method)) else None

    @property
    def tuned_for(self) -> bool:
        """Whether its settings come from a sweep's file for its method, changed since or not."""
        return self.resolved.sweep.method == self.method.name and not self.untrained

    def about(self) -> dict[str, Any]:
        """What a result file says of it: choices, label, and every setting with its origin and source."""
        description = {
            **self.choices,
            **({"grid": asdict(self.grid)} if self.grid else {}),
            **({"tuning": self.tuning} if self.tuning else {}),
            "settings": [row_json(row) for row in self.rows()],
        }
        heading = {"label": self.label, "deterministic": self.deterministic}
        return {**heading, **public(description, self.places)}

    def rows(self) -> list[SettingRow]:
        """Return the settings that make it."""
        return describe(self.resolved.method, self.resolved.origins, "method.")

    @cached_property
    def notes(self) -> dict[str, Json]:
        """The resolved settings with their origins and sources, which are kept with every artefact."""
        return {"system": self.label, "settings": [row_json(row) for row in self.resolved.rows()]}

    def ending(self, suffix: str) -> str:
        """Return the label with an ending that says what is done besides."""
        return f"{self.label[: _LONGEST - 1 - len(suffix)]}+{suffix}"


@dataclass(frozen=True)
class Sparse(System):
    """A method that indexes and searches by itself, e.g. BM25."""

    def searched(self, target: Asked) -> tuple[Stage, ...]:
        index = Index(
            checked=target.checked,
            corpus=target.checked.corpus,
            resolved=self.method.resolve(self.resolved.method, target.leg.corpus.language),
            method=self.method,
            config=self.resolved.method,
            notes=self.notes,
        )
        run = Search(index=index, leg=target.read, rules=target.rules, tag=self.tag, notes=self.notes)
        return target.checked, target.read, index, run


@dataclass(frozen=True)
class Embedding(System):
    """A method that brings an encoder of its own, whose vectors the harness stores and searches."""

    @property
    def choices(self) -> dict[str, Any]:
        similarity = self.resolved.run.encode.similarity
        return super().choices | ({} if similarity is None else {"similarity": similarity})

    @property
    def sections(self) -> set[str]:
        return super().sections | {"encode"}

    def searched(self, target: Asked) -> tuple[Stage, ...]:
        identity = {"method": self.method.name, "version": self.method.version, "config": self.resolved.method}
        common: dict[str, Any] = {**identity, "of": self.method, "notes": self.notes}
        passages = OwnPassages(role="passage", checked=target.checked, corpus=target.checked.corpus, **common)
        queries = OwnQueries(role="query", leg=target.read, **common)
        run = DenseSearch(
            queries=queries,
            passages=passages,
            leg=target.read,
            rules=target.rules,
            similarity=target.task.similarity or self.resolved.run.encode.similarity or "cos",
            tag=self.tag,
            who=self.label,
            notes=self.notes,
        )
        return target.checked, target.read, passages, queries, run


def _inner(name: str) -> Any:
    """Return a property that is the inner system's."""
    return property(attrgetter(f"inner.{name}"), doc="The inner one's.")


@dataclass(frozen=True)
class Wrapped(System):
    """A system around another, with all of it that is not said otherwise."""

    inner: System
    untrained = _inner("untrained")
    sections = _inner("sections")
    leaves = _inner("leaves")
    parts = _inner("parts")
    chooses_weight = _inner("chooses_weight")
    compute = _inner("compute")
    pretraining = _inner("pretraining")
    protocol = _inner("protocol")

    @property
    def choices(self) -> dict[str, Any]:
        return self.inner.choices

    @property
    def places(self) -> Mapping[str, str]:
        return self.inner.places

    @property
    def post(self) -> Pretraining | None:
        return self.inner.post

    @property
    def deterministic(self) -> bool:
        return self.inner.deterministic

    def rows(self) -> list[SettingRow]:
        return self.inner.rows()


def unique_stages(*stages: Stage) -> tuple[Stage, ...]:
    """Return stages in their order, each once."""
    return tuple({stage.key: stage for stage in stages}.values())


def labels(variants: Sequence[Variant], label: str | None) -> list[str]:
    """Return the labels of methods with their settings.

    A label given by the user names the only system, or follows each method's name where there are several. Without one,
    settings that differ from their defaults are the name: `bm25@k1=1.2`, or `bm25@PRESET` for an unchanged preset. The
    cells of a grid are called `ccp@table5=no-bn`, or `LABEL=no-bn`. Raises `UsageError` for a label that cannot stand
    in a table, a path and a run file.
    """
    several = len({variant.method.name for variant in variants}) > 1
    names = []
    for variant in variants:
        method, grid = variant.method, variant.grid
        if label is None:
            name = _default_label(variant)
        else:
            name = f"{method.name}@{label}" if several else label
            name = f"{name}={grid.cell}" if grid else name
            if not _LABEL.fullmatch(label) or not _LABEL.fullmatch(name):
                raise UsageError(
                    f"found --label {label!r}, expected up to 80 letters, digits and @ . _ + = , - without blanks, "
                    "the first a letter or digit" + (f" (it makes {name})" if name != label else "")
                )
        names.append(name)
    return names


def distinct_label(label: str, graph: Graph, rival: Graph) -> str:
    """Return a label that says in what a system differs from another of that label, whatever section it is in."""
    unlike = graph_differences(graph, rival)
    values = dict.fromkeys(f"{key.rpartition('.')[2]}={mine}" for key, (mine, _) in unlike.items())
    return _fit(f"{label}@{','.join(values)}")


def _default_label(variant: Variant) -> str:
    """The method's name and what is not as by default; of a cell, its name and what was changed over it."""
    method, resolved, grid = variant.method, variant.resolved, variant.grid
    setting_rows = describe(resolved.method, resolved.origins, "method.")

    def assignment(row: SettingRow) -> str:
        value = public(str(row.value), variant.places).removeprefix(FOLDER_PREFIX)
        return f"{row.key.removeprefix('method.')}={value}"

    if grid:  # also a value that is the default's, for the cell may have said another
        changed = [assignment(row) for row in setting_rows if not is_default_layer(row)]
        return _fit(",".join([grid.label, *changed]))
    # A profile stands in the heading of a result, so its values are no part of the name.
    rows = [row for row in setting_rows if row.value != row.default and not row.origin.startswith("profile ")]
    origins = {row.origin for row in rows}
    if not rows:
        return method.name
    if len(origins) == 1 and (preset := next(iter(origins))).startswith("preset "):
        return f"{method.name}@{preset.removeprefix('preset ')}"
    return _fit(f"{method.name}@{','.join(map(assignment, rows))}")


def _fit(name: str) -> str:
    """A name as tables, paths and run files can carry it."""
    return re.sub(r"[^A-Za-z0-9@._+=,-]+", "-", name)[:_LONGEST]
