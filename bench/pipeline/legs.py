"""The legs of a run: what builds the stages that every system shares, and the stages of one leg for one system."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from bench.config.layers import SettingRow
from bench.evaluation.measures.specs import MeasureSpec, parse
from bench.pipeline.fine_tunings import Tuning
from bench.pipeline.settings import row_json
from bench.pipeline.stages.index import EncoderIndex, Index
from bench.pipeline.stages.post import PostProcess
from bench.pipeline.stages.read import Read
from bench.pipeline.stages.score import Protocol
from bench.pipeline.stages.search import Rules
from bench.pipeline.stages.search_dense import DenseSearch
from bench.pipeline.stages.texts import StoreTexts
from bench.pipeline.stages.validate import Validate
from bench.plugins import Plugins
from bench.store.inputs import Inputs
from bench.store.stage import Stage
from bench.store.store import Store
from bench.types import Corpus, Json, Leg, Task

T = TypeVar("T")


@dataclass(frozen=True)
class LegStages:
    """The stages of one leg for one system."""

    task: Task
    leg: Leg
    stages: tuple[Stage, ...]  # inputs before users, the run last but one, the scores last
    k: int  # documents per query
    depth: int | None  # the deepest cut of the measures, None where one has no cut

    @property
    def by_name(self) -> dict[str, Stage]:
        """Its stages by verb; further ones of a verb (queries after passages, the other part's) get a number."""
        stages: dict[str, Stage] = {}
        for item in self.stages:
            earlier = sum(name.partition("-")[0] == item.name for name in stages)
            stages[f"{item.name}-{earlier + 1}" if earlier else item.name] = item
        return stages

    @property
    def libraries(self) -> dict[str, Json]:
        """Versions of every library that took part."""
        versions: dict[str, Json] = {}
        for item in self.stages:
            part = item.identity().get("libraries")
            versions |= dict(part) if isinstance(part, Mapping) else {}
        return versions

    @property
    def resolved(self) -> Json:
        """What the language or the task decided: an analyzer, or how texts became vectors, the whole contract."""
        index = next((item for item in self.stages if isinstance(item, Index)), None)
        if index is not None:
            return {**(index.contract.dump() if isinstance(index, EncoderIndex) else {}), **index.resolved}
        search = next(item for item in self.stages if isinstance(item, DenseSearch) and item.name == DenseSearch.name)
        choices: dict[str, Json] = {}
        for side in (search.passages, search.queries):
            encoding = side.vectors if isinstance(side, PostProcess) else side
            part = encoding.identity().get("contract")
            choices |= dict(part) if isinstance(part, Mapping) else {}
        return {**choices, "similarity": search.similarity}

    @property
    def read(self) -> Read:
        """The stage that reads the leg."""
        return next(item for item in self.stages if isinstance(item, Read))

    @property
    def search(self) -> Stage:
        """The stage that writes the run."""
        return self.stages[-2]

    @property
    def score(self) -> Stage:
        """The stage that writes the scores."""
        return self.stages[-1]


class Legs:
    """Builds stages; the same question gives an equal stage, so that cells share what they have in common.

    The store gives checksums of input files and what is known of corpora, plugins measures and methods that mine;
    `setting_rows` are the harness's own settings, kept with the artefacts that no system has made.
    """

    def __init__(self, store: Store, plugins: Plugins, setting_rows: Sequence[SettingRow]) -> None:
        self._notes: dict[str, Json] = {"settings": [row_json(row) for row in setting_rows]}
        self._built: dict[tuple[object, ...], tuple[Any, tuple[object, ...]]] = {}
        self.inputs, self.plugins = Inputs(store), plugins

    def shared(self, kind: str, build: Callable[[], T], *of: object) -> T:
        """Return what was built of these very objects, built once; they are kept, so that no id comes twice."""
        key = kind, *map(id, of)
        if key not in self._built:
            self._built[key] = build(), of
        built: T = self._built[key][0]
        return built

    def validate(self, corpus: Corpus) -> Validate:
        """Return the check of a corpus."""
        return self.shared("validate", lambda: Validate.corpus_of(corpus, self.inputs, self._notes), corpus)

    def read(self, task: Task, leg: Leg, unknown_ids: str) -> Read:
        """Return the reading of a leg."""
        label = f"{task.id}{' ' + leg.name if leg.name else ''}"
        arguments = leg, label, self.validate(leg.corpus), unknown_ids, self.inputs, self._notes
        return self.shared(f"read {unknown_ids}", lambda: Read.leg_of(*arguments), task, leg)

    def texts(self, corpus: Corpus) -> StoreTexts:
        """Return the texts of a corpus."""
        return self.shared("texts", lambda: StoreTexts.corpus_of(corpus, self.validate(corpus), self.inputs), corpus)

    def protocol(self, task: Task, measures: Sequence[MeasureSpec] | None = None) -> Protocol:
        """Return how a task is scored, by its own measures where none are given."""
        extra = self.plugins.measures_by_name
        specs = [parse(name, extra) for name in task.measures] if measures is None else measures
        return Protocol(tuple(specs), task.tie, task.drop_identical, task.official, extra)


@dataclass(frozen=True)
class Asked:
    """A leg that a system is to search."""

    legs: Legs
    task: Task
    leg: Leg
    k: int  # documents per query
    unknown_ids: str  # what to do with judged documents that the corpus lacks
    seed: int = 0  # of pretraining and tuning
    tunings: tuple[Tuning, ...] = ()  # of encoders before the test, first to last
    lessons: tuple[Tuning, ...] = ()  # what a re-ranker is trained on, first to last
    dev: Task | None = None  # the task on dev questions, where there are some

    @property
    def rules(self) -> Rules:
        """What the task says about a run."""
        return Rules(self.k, self.task.tie, self.task.drop_identical)

    @cached_property
    def checked(self) -> Validate:
        """The check of the corpus."""
        return self.legs.validate(self.leg.corpus)

    @cached_property
    def read(self) -> Read:
        """The reading of the leg."""
        return self.legs.read(self.task, self.leg, self.unknown_ids)
