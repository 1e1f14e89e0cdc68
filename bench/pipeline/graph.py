"""The graph of a plan: equal stages are one object, and files are hashed once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from bench.config.layers import SettingRow
from bench.evaluation.measures.specs import MeasureSpec, parse
from bench.pipeline.settings import row_json
from bench.pipeline.stages.index import EncoderIndex, Index
from bench.pipeline.stages.post import PostProcess
from bench.pipeline.stages.read import Read
from bench.pipeline.stages.score import Protocol, Score
from bench.pipeline.stages.search_dense import DenseSearch
from bench.pipeline.stages.texts import StoreTexts
from bench.pipeline.stages.validate import Validate
from bench.store.input_hashes import InputHashes
from bench.store.stage import Stage
from bench.store.store import Store
from bench.types import Corpus, Json, Measure, Subset, Task

S = TypeVar("S", bound=Stage)


class GraphBuilder:
    """Interns stages by key, so that whatever systems have in common is one stage.

    Args:
        store: gives the checksums of input files, and what is known of finished stages.
        measures: measures of plugins by name.
        setting_rows: the harness's own settings; they are kept with the artefacts that no system has made.
    """

    def __init__(self, store: Store, measures: Mapping[str, Measure], setting_rows: Sequence[SettingRow] = ()) -> None:
        self.store, self.inputs = store, InputHashes(store)
        self._measures = measures
        self._notes: dict[str, Json] = {"settings": [row_json(row) for row in setting_rows]}
        self._stages: dict[str, Stage] = {}

    def intern(self, stage: S) -> S:
        """Return the stage of the graph that has the key of `stage`: itself where it is the first."""
        first = self._stages.setdefault(stage.key, stage)
        return first if isinstance(first, type(stage)) else stage

    def validate(self, corpus: Corpus) -> Validate:
        """Return the check of a corpus. Raises `UsageError` where a file cannot be read."""
        return self.intern(Validate.corpus_of(corpus, self.inputs, self._notes))

    def read(self, task: Task, subset: Subset, unknown_ids: str) -> Read:
        """Return the reading of queries and judgements.

        Args:
            task: whose name messages use.
            subset: what is read.
            unknown_ids: what to do with judged documents that the corpus lacks: `refuse` or `keep`.

        Raises:
            UsageError: a file cannot be read.
        """
        label = f"{task.id}{' ' + subset.name if subset.name else ''}"
        return self.intern(
            Read.subset_of(subset, label, self.validate(subset.corpus), unknown_ids, self.inputs, self._notes)
        )

    def texts(self, corpus: Corpus) -> StoreTexts:
        """Return the stored texts of a corpus. Raises `UsageError` where a file cannot be read."""
        return self.intern(StoreTexts.corpus_of(corpus, self.validate(corpus), self.inputs))

    def protocol(self, task: Task, measures: Sequence[MeasureSpec] | None = None) -> Protocol:
        """Return how a task is scored, by its own measures unless others are given."""
        specs = [parse(name, self._measures) for name in task.measures] if measures is None else measures
        return Protocol(tuple(specs), task.tie, task.drop_identical, task.official, self._measures)


@dataclass(frozen=True)
class SubsetStages:
    """The stages that score one system on one subset of a task; what they say of themselves is read from the chain."""

    task: Task
    subset: Subset
    score: Score  # the last of them

    @property
    def k(self) -> int:
        """Documents per query."""
        return self.score.ranking.rules.k

    @property
    def depth(self) -> int | None:
        """The deepest cut of the measures; None where one has no cut."""
        return self.score.protocol.depth

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Inputs before users, the ranking last but one."""
        return tuple(self.score.chain())

    @property
    def by_name(self) -> dict[str, Stage]:
        """The stages by verb; further ones of a verb (queries after passages, the other part's) get a number.

        What reads the test comes before what reads dev questions.
        """
        test, names = (self.score.subset.key, self.score.subset.corpus.key), dict[str, str]()
        for stage in sorted(self.stages, key=lambda stage: stage.key not in test):
            earlier = sum(name.partition("-")[0] == stage.name for name in names.values())
            names[stage.key] = f"{stage.name}-{earlier + 1}" if earlier else stage.name
        return {names[stage.key]: stage for stage in self.stages}

    @property
    def libraries(self) -> dict[str, Json]:
        """Versions of every library that took part."""
        versions: dict[str, Json] = {}
        for stage in self.stages:
            of_stage = stage.identity().get("libraries")
            versions |= dict(of_stage) if isinstance(of_stage, Mapping) else {}
        return versions

    @property
    def resolved(self) -> Json:
        """What the language or the task decided: an analyzer, or how texts became vectors, the whole encoder config.

        Where no file and no setting says how a model pools, `guess` says why it is one.
        """
        index = next((stage for stage in self.stages if isinstance(stage, Index)), None)
        if index is not None:
            return {**(index.encoder_config.dump() if isinstance(index, EncoderIndex) else {}), **index.resolved}
        search = next(
            stage for stage in self.stages if isinstance(stage, DenseSearch) and stage.name == DenseSearch.name
        )
        choices: dict[str, Json] = {}
        for side in (search.passages, search.queries):
            encoding = side.vectors if isinstance(side, PostProcess) else side
            encoder_config = encoding.choices().get("encoder_config")
            choices |= dict(encoder_config) if isinstance(encoder_config, Mapping) else {}
            guess = getattr(getattr(encoding, "encoder_config", None), "guess", "")
            choices |= {"guess": guess} if guess else {}
        return {**choices, "similarity": search.similarity}
