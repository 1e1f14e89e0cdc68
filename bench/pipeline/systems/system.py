"""A system: what a row of a table is about — a method with every choice that precedes the test resolved.

A system is an expression. Its leaves rank by themselves (`Lexical`, `OwnEncoder`, and those of
`bench.pipeline.systems.dense`); others wrap them: `PostProcessed`, `Hybrid`, `Reranked`. What a system is, is read from
the graph of its ranking on a placeholder (`bench.pipeline.identity`), so that no list of choices is kept next to it.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, Self, TypeVar

from bench.config.grids import CellReference
from bench.config.layers import SettingRow, dump
from bench.config.layers import identity as decisive
from bench.core.files import digest
from bench.core.system_graph import Graph, graph_differences
from bench.pipeline.compute import Compute
from bench.pipeline.fine_tunings import Recipes
from bench.pipeline.graph import GraphBuilder
from bench.pipeline.points import Point
from bench.pipeline.pretraining import PretrainingInputs
from bench.pipeline.public_names import FOLDER_PREFIX, public
from bench.pipeline.settings import Settings, Variant, row_json
from bench.pipeline.stages.encode_own import OwnPassages, OwnQueries
from bench.pipeline.stages.index import Index, method_identity
from bench.pipeline.stages.read import Read
from bench.pipeline.stages.search import RankingOptions, RankingStage, Search
from bench.pipeline.stages.search_dense import DenseSearch
from bench.retrieval.backbones import cached_commit
from bench.types import Json, Method, Subset, Task

LONGEST_LABEL = 80
"""Characters of a label at most."""
_COMMIT_DIGITS = 7
_CUT_DIGITS = 6


@dataclass(frozen=True)
class System(ABC):
    """A method with every choice that precedes the test."""

    label: str  # its name in tables, e.g. `bm25`, `bm25@k1=1.2`
    method: Method
    resolved: Settings  # its config, all layers applied, and the harness's own settings
    grid: CellReference | None = field(default=None, kw_only=True)  # None outside grids
    model_names: Mapping[str, str] = field(default_factory=dict, kw_only=True)  # of its model: path → public name
    recipes: Recipes = field(default_factory=Recipes, kw_only=True)  # what precedes the test on each task

    @abstractmethod
    def ranking(self, task: Task, subset: Subset, seed: int, graph: GraphBuilder) -> RankingStage:
        """Return the stage that writes the run of a subset, with all that it rests on: all that a system must say.

        Args:
            task: whose rules hold; `recipes` say by its id what precedes it.
            subset: queries, judgements and corpus.
            seed: of random weights, pretraining and fine-tuning.
            graph: what stages are built with.

        Raises:
            UsageError: an input file that cannot be read; something that the method needs is not installed.
        """

    def with_recipes(self, recipes: Recipes) -> Self:
        """Return the same with what precedes the test; a system of others hands it on to them."""
        return replace(self, recipes=recipes)

    @property
    def choices(self) -> dict[str, Any]:
        """What a result file says makes it this system, in the words of settings."""
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
    def point(self) -> Point | None:
        """Where on the way of a training its encoder is; None at the end, and where nothing is pretrained."""
        return None

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
    def stops_by_dev(self) -> bool:
        """Whether it pretrains an encoder until dev questions show no gain."""
        return False

    @property
    def compute(self) -> Compute | None:
        """The machine; None for a method without an encoder."""
        return None

    @property
    def pretraining(self) -> PretrainingInputs | None:
        """Backbone, corpus and budget; None for a method that trains nothing."""
        return None

    @property
    def post(self) -> PretrainingInputs | None:
        """What the post-processing of its vectors is fitted on; None where there is none."""
        return None

    @property
    def protocol(self) -> bool:
        """Whether texts are read as a suite's protocol says, as far as it does; else as the encoder's config says."""
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
    def regimes(self) -> tuple[str, ...]:
        """The regimes that something of it can be tuned for."""
        return self.method.regimes

    @property
    def deterministic(self) -> bool:
        """Whether no seed changes anything."""
        return self.method.deterministic

    @property
    def public_names(self) -> Mapping[str, str]:
        """Path → public name of each model on this machine that its choices name."""
        return self.model_names

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
            **({"grid": {name: text for name, text in asdict(self.grid).items() if text}} if self.grid else {}),
            **({"tuning": self.tuning} if self.tuning else {}),
            "settings": [row_json(row) for row in self.rows()],
        }
        heading = {"label": self.label, "deterministic": self.deterministic}
        return {**heading, **public(description, self.public_names)}

    def rows(self) -> list[SettingRow]:
        """Return the settings that make it."""
        return self.resolved.method_rows()

    @cached_property
    def notes(self) -> dict[str, Json]:
        """The resolved settings with their origins and sources, which are kept with every artefact."""
        return {"system": self.label, "settings": [row_json(row) for row in self.resolved.rows()]}

    @property
    def stored(self) -> dict[str, Any]:
        """How vectors of passages are stored, as results say it; empty where in full, or where there are none."""
        precision = self.resolved.run.encode.vectors
        return {"vectors": precision} if self.method.searches_vectors and precision != "float32" else {}

    def ending(self, suffix: str, values: Sequence[str] = ()) -> str:
        """Return the label with an ending that says what is done besides, with settings: `crop+rerank@depth=10`."""
        suffix = cleaned(f"{suffix}@{','.join(values)}" if values else suffix)
        suffix = shortened(suffix, max(LONGEST_LABEL // 2, LONGEST_LABEL - 1 - len(self.label)))
        return f"{shortened(self.label, LONGEST_LABEL - 1 - len(suffix))}+{suffix}"

    def rules(self, task: Task) -> RankingOptions:
        """Return how a run of a task is cut and ordered."""
        return RankingOptions(self.resolved.run.search.k or task.depth, task.tie, task.drop_identical)

    def read(self, task: Task, subset: Subset, graph: GraphBuilder) -> Read:
        """Return the reading of a subset. Raises `UsageError` where a file cannot be read."""
        return graph.read(task, subset, self.resolved.run.data.unknown_ids)


@dataclass(frozen=True)
class Lexical(System):
    """A method that indexes and searches by itself, e.g. BM25."""

    def ranking(self, task: Task, subset: Subset, seed: int, graph: GraphBuilder) -> Search:
        checked = graph.validate(subset.corpus)
        index = Index(
            checked=checked,
            corpus=checked.corpus,
            resolved=self.method.resolve(self.resolved.method, subset.corpus.language),
            method=self.method,
            config=self.resolved.method,
            notes=self.notes,
        )
        return Search(
            index=graph.intern(index),
            subset=self.read(task, subset, graph),
            rules=self.rules(task),
            tag=self.tag,
            notes=self.notes,
        )


@dataclass(frozen=True)
class OwnEncoder(System):
    """A method that brings an encoder of its own, whose vectors the harness stores and searches."""

    @property
    def choices(self) -> dict[str, Any]:
        similarity = self.resolved.run.encode.similarity
        return super().choices | ({} if similarity is None else {"similarity": similarity}) | self.stored

    @property
    def sections(self) -> set[str]:
        return super().sections | {"encode"}

    def ranking(self, task: Task, subset: Subset, seed: int, graph: GraphBuilder) -> DenseSearch:
        identity = {"method": self.method.name, "version": self.method.version, "config": self.resolved.method}
        common: dict[str, Any] = {**identity, "plugin": self.method, "notes": self.notes}
        checked, read = graph.validate(subset.corpus), self.read(task, subset, graph)
        return DenseSearch(
            passages=graph.intern(
                OwnPassages(
                    role="passage", checked=checked, corpus=checked.corpus, stored=self.stored.get("vectors"), **common
                )
            ),
            queries=graph.intern(OwnQueries(role="query", subset=read, **common)),
            subset=read,
            rules=self.rules(task),
            similarity=task.similarity or self.resolved.run.encode.similarity or "cos",
            tag=self.tag,
            system_label=self.label,
            notes=self.notes,
        )


S = TypeVar("S", bound=System)


def by_precision(system: S) -> S:
    """Return a system called after the precision in which its vectors are stored, `crop+float16`, unless in full."""
    stored = system.stored.get("vectors")
    return replace(system, label=system.ending(stored)) if stored else system


def _inner(name: str) -> Any:
    """Return a property that is the inner system's."""
    return property(attrgetter(f"inner.{name}"), doc="The inner one's.")


@dataclass(frozen=True)
class Wrapped(System):
    """A system around another, with all of it that is not said otherwise."""

    inner: System
    untrained = _inner("untrained")
    point = _inner("point")
    sections = _inner("sections")
    leaves = _inner("leaves")
    parts = _inner("parts")
    chooses_weight = _inner("chooses_weight")
    compute = _inner("compute")
    pretraining = _inner("pretraining")
    protocol = _inner("protocol")

    def with_recipes(self, recipes: Recipes) -> Self:
        return replace(self, recipes=recipes, inner=self.inner.with_recipes(recipes))

    @property
    def choices(self) -> dict[str, Any]:
        return self.inner.choices

    @property
    def public_names(self) -> Mapping[str, str]:
        return self.inner.public_names

    @property
    def post(self) -> PretrainingInputs | None:
        return self.inner.post

    @property
    def deterministic(self) -> bool:
        return self.inner.deterministic

    def rows(self) -> list[SettingRow]:
        return self.inner.rows()


def distinct_label(label: str, graph: Graph, rival: Graph) -> str:
    """Return a label that says in what a system differs from another of that label, whatever section it is in."""
    unlike = graph_differences(graph, rival)
    values = dict.fromkeys(f"{key.rpartition('.')[2]}={mine}" for key, (mine, _) in unlike.items())
    return _fit(f"{label}@{','.join(values)}")


def default_label(variant: Variant) -> str:
    """Return what a system is called where nobody says: its method, with the settings that are not as by default.

    For instance `bm25@k1=1.2`, or `bm25@PRESET` for an unchanged preset. A model of the hub is named with the commit
    that is in the cache: `pretrained@model=owner-name@1111111`. The cells of a grid are called
    `ccp@table5=no-bn`, with what was changed over the cell.
    """
    method, resolved, grid = variant.method, variant.resolved, variant.grid
    # A profile is in the heading of a result, so its values are no part of the name.
    effective = {row.key: row for row in resolved.method_rows() if row.effective}
    overridden = resolved.overridden()
    assignment = partial(setting_text, names=variant.public_names)
    if grid:
        changed = [assignment(row) for key, row in effective.items() if key in overridden]
        return _fit(",".join([grid.label, *changed]))
    changed_rows = (row for row in effective.values() if row.value != row.default)
    presets = {row.origin for row in changed_rows if row.origin.startswith("preset ")}
    if presets and overridden.isdisjoint(effective):
        return f"{method.name}@{presets.pop().removeprefix('preset ')}"
    rows = [row for row in resolved.departures() if row.key in effective]
    if not rows:
        return method.name
    return _fit(f"{method.name}@{','.join(map(assignment, rows))}")


def named_precision(resolved: Settings) -> str:
    """Return what the name of a start says of its precision, `@precision=bfloat16`: nothing where a profile says it."""
    row = next((row for row in resolved.departures() if row.key == "train.precision"), None)
    return f"@{setting_text(row, {})}" if row else ""


def variant_of(label: str, variant: Variant) -> CellReference:
    """Return which variant of the system of that label a method with its settings is, called after what is varied."""
    rows = [row for row in variant.resolved.rows() if row.key in variant.varied]
    return CellReference(label, ",".join(setting_text(row, variant.public_names) for row in rows))


def variant_label(reference: CellReference) -> str:
    """Return what a variant is called: `mine@noise=0.1`, as the same settings by `--set` are."""
    return _fit(reference.label)


def setting_text(row: SettingRow, names: Mapping[str, str]) -> str:
    """Return a setting as labels have it: `k1=1.2`; `names` are public ones of the method's models, by path."""
    return value_text(row.key, row.value, names)


def value_text(key: str, value: object, names: Mapping[str, str]) -> str:
    """Return the value of a key as labels have it, a model of the hub with its commit in the cache."""
    text: str = public({"key": key, "value": str(value)}, names)["value"].removeprefix(FOLDER_PREFIX)
    commit = cached_commit(text) if "/" in text else None
    text = f"{text}@{commit[:_COMMIT_DIGITS]}" if commit else text
    return f"{key.removeprefix('method.').removeprefix('train.')}={text}"


def section_texts(resolved: Settings, section: str, names: Mapping[str, str], keys: Container[str]) -> list[str]:
    """Return the settings of a harness's section that are not as the profile has them, as endings of labels have them.

    Args:
        resolved: all layers applied.
        section: whose settings are meant.
        names: public names of models, by path.
        keys: those within the section that the system listens to, or sections within it.
    """
    rows = [row for row in resolved.without_method().departures() if row.effective]
    rows = [row._replace(key=key) for row in rows if (key := row.key.removeprefix(f"{section}.")) != row.key]
    return [setting_text(row, names) for row in rows if row.key.partition(".")[0] in keys]


def cleaned(name: str) -> str:
    """Return a name with the characters alone that tables, paths and run files can carry."""
    return re.sub(r"[^A-Za-z0-9@._+=,-]+", "-", name)


def _fit(name: str) -> str:
    return shortened(cleaned(name), LONGEST_LABEL)


def shortened(name: str, most: int) -> str:
    """Return a name of at most so many characters: one that is cut, after a whole setting, ends in a digest of it all.

    Example:
        >>> shortened("crop@clip=None,pairs=512", 22)
        'crop@clip=None-0cc1ea'
    """
    if len(name) <= most:
        return name
    ending = f"-{digest(name)[:_CUT_DIGITS]}"
    kept = name[: most - len(ending) + 1]  # with the character after it, which may be a comma
    whole, comma, _ = kept.rpartition(",")
    return (whole if comma else kept[:-1]) + ending
