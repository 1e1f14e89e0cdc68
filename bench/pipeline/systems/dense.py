"""Systems whose encoder the harness reads: as somebody else trained it, before and after a pretraining, post-processed.

The stages that make an encoder are prepare → init → train, then pairs (→ mine) → tune for each fine-tuning. No stage of
an encoder rests on a test: judgements of tests cannot come near what is mined. On dev questions one kind of training
does (`bench.pipeline.systems.until_flat`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Self

from bench.config.layers import SettingRow, describe
from bench.config.layers import identity as decisive
from bench.config.profiles import DEFAULT
from bench.core.encoder_config import NO_TITLES, EncoderConfig, Role
from bench.core.errors import PluginError, UsageError
from bench.core.files import digest
from bench.pipeline.compute import Compute
from bench.pipeline.fine_tunings import PLACEHOLDER, Tuning
from bench.pipeline.graph import GraphBuilder
from bench.pipeline.points import Point, points, refuse_lost
from bench.pipeline.pretraining import PretrainingInputs
from bench.pipeline.stages.encode import EncodePassages, EncodeQueries, EncodeSample
from bench.pipeline.stages.fit import Fit
from bench.pipeline.stages.index import EncoderIndex
from bench.pipeline.stages.init import EncoderStage, Init
from bench.pipeline.stages.post import PostProcess
from bench.pipeline.stages.read import Read
from bench.pipeline.stages.search import EncoderSearch, RankingStage
from bench.pipeline.stages.search_dense import DenseSearch
from bench.pipeline.stages.train import Train
from bench.pipeline.stages.train_point import TrainPoint
from bench.pipeline.stages.tune import Tune
from bench.pipeline.systems import encoders
from bench.pipeline.systems.system import LONGEST_LABEL, System, Wrapped, named_precision, section_texts, shortened
from bench.retrieval.prompts import BY_SUITE, prompts_of, task_prompts
from bench.retrieval.readouts import fixed
from bench.retrieval.settings import PostConfig
from bench.types import Subset, Task

OWN_CONFIG, PROTOCOL = "encoder", "protocol"
"""Who says how texts are read: the encoder, or the suite (in rows called `LABEL+protocol`)."""
_JOINT = ("centre", "whiten")
"""Kinds of post-processing with one map over all languages."""


@dataclass(frozen=True)
class Dense(System):
    """A method with an encoder, which somebody else has trained unless a subclass does."""

    machine: Compute

    @property
    def compute(self) -> Compute:
        return self.machine

    @property
    def sections(self) -> set[str]:
        return super().sections | {"prepare", "encode", "compute"}

    @property
    def protocol(self) -> bool:
        return self.resolved.run.encode.readout == PROTOCOL

    @property
    def own_encoder_config(self) -> EncoderConfig:
        """How the method reads texts. Raises `PluginError` where it does not say."""
        if self.method.encoder_config is None:
            raise PluginError(f"method {self.method.name} has neither a retriever nor an encoder's config")
        return self.method.encoder_config(self.resolved.method)

    @property
    def backbone(self) -> str:
        """Where its encoder comes from: a folder, an id or `scratch:LxH`; empty where nothing says."""
        return str(getattr(self.resolved.method, "model", ""))

    @property
    def choices(self) -> dict[str, Any]:
        choices = {**super().choices, "encoder_config": self.own_encoder_config.dump(), "readout": self.readout}
        by_task = {"prompts": self.prompts} if self.prompts else {}
        return choices | self.stored | by_task | ({"read_by": PROTOCOL} if self.protocol else {})

    @property
    def readout(self) -> dict[str, Any]:
        """What the run's settings say over the encoder's config, in its words; a title of None leaves titles out."""
        settings = {key: value for key, value in decisive(self.resolved.run.encode).items() if value is not None}
        settings.pop("prompts", None)  # by task, see `prompts`
        settings.pop("vectors", None)  # it says how they are stored, not how texts are read
        return settings | ({"title": None} if settings.get("title") == NO_TITLES else {})

    @property
    def prompts(self) -> dict[str, dict[str, str]] | str:
        """Prompts by task, as `bench.retrieval.prompts.task_prompts` reads them; `suite` for what the suite states.

        Raises `UsageError` for a file that cannot be read.
        """
        value = self.resolved.run.encode.prompts
        return task_prompts(Path(value).expanduser()) if value and value != BY_SUITE else value or {}

    def _task_prompts(self, task: Task) -> dict[str, str]:
        """Return the prompts of a task, as fields of an encoder config. Raises `UsageError`, see `prompts`."""
        prompts = self.prompts
        if not isinstance(prompts, str):
            if task.id != PLACEHOLDER.id:
                return prompts_of(prompts, task.id)
            fields = {
                field for of_name in prompts.values() for field in of_name
            }  # a system is identified by all of them
            return {field: f"<{field} by {digest(prompts)}>" for field in sorted(fields)}
        if not task.prompts:
            found, expected = f"task {task.id}, of which its suite states no prompt", "a suite that states prompts"
            raise UsageError(where="encode.prompts=suite", found=found, expected=expected, hint="type a file's name")
        return {f"{role}_prompt": text for role, text in task.prompts.items()}

    @property
    def reading(self) -> dict[str, Any]:
        """What every stage is given that encodes texts by its encoder."""
        batch_tokens = self.resolved.run.encode.batch_tokens
        return {"compute": self.machine, "batch_tokens": batch_tokens, "system_label": self.label, "notes": self.notes}

    def variants(self) -> list[Dense]:
        """Return the rows that it makes: read by its encoder config, by the protocol (`LABEL+protocol`), or both."""
        run = self.resolved.run
        mode = run.encode.readout
        if mode == OWN_CONFIG:
            return [self]
        rows = []
        for readout in (OWN_CONFIG, PROTOCOL) if mode == "both" else (mode,):
            encode = run.encode.model_copy(update={"readout": readout})
            resolved = replace(self.resolved, run=run.model_copy(update={"encode": encode}))
            by_own_config = readout == OWN_CONFIG
            label = self.label if by_own_config else self.ending(PROTOCOL)
            rows.append(replace(self, label=label, resolved=resolved, grid=self.grid if by_own_config else None))
        return rows

    def encoder_config(self, task: Task, *, processed: bool = False) -> EncoderConfig:
        """Return how texts are read for a task: the method's config, tunings, what the task fixes, what settings say.

        Of settings, a prompt for all tasks overrides prompts by task.

        A system that reads as the protocol says takes what the task's readout says over its tunings. No setting changes
        a similarity that the task fixes.

        Args:
            task: the test, whose fine-tunings come before.
            processed: vectors are post-processed, and compared by cosine where neither settings nor task say otherwise.

        Raises:
            PluginError: the method has no encoder.
            UsageError: the protocol's layer goes by the number of layers, and nothing says how many there are; or
                prompts by task that are not there.
        """
        encoder_config = self.own_encoder_config
        for tuning in self.recipes.of_encoder(task):
            encoder_config = tuning.config.encoder_config(encoder_config)
        overrides: dict[str, Any] = {}
        if self.protocol and task.readout:
            overrides |= fixed(task.readout, self.backbone)
        if task.lengths:
            overrides |= {"query_length": task.lengths[0], "passage_length": task.lengths[1]}
        overrides |= self._task_prompts(task) | self.readout
        encoder_config = replace(encoder_config, **overrides)
        if "pooling" in overrides:
            encoder_config = replace(encoder_config, guess="", dense=())  # such layers are made for their own pooling
        if processed and "similarity" not in overrides:
            encoder_config = replace(encoder_config, similarity=self.resolved.run.post.similarity)
        fixed_by_task = "cos" if task.similarity == "l2" else task.similarity
        return replace(encoder_config, similarity=fixed_by_task) if fixed_by_task else encoder_config

    def start(self, seed: int, graph: GraphBuilder) -> Init:
        """Return the encoder before any training of ours.

        Raises:
            UsageError: a folder that cannot be read.
        """
        encoder_config, trains = self.own_encoder_config, self.method.trainer is not None
        origin = self.resolved.origins.get("method.pooling", "the default")
        if trains and origin.startswith(("the default", "profile", "preset")):  # of a causal model somebody chooses it
            encoder_config = replace(encoder_config, guess=f"method.pooling is that of {origin}")
        new_pooler = encoder_config.pooling == "pooler" and trains
        return encoders.backbone(self.backbone, encoder_config, self.notes, graph, new_pooler=new_pooler)

    def pretrained(self, seed: int, graph: GraphBuilder) -> EncoderStage:
        """Return the encoder before any fine-tuning; raises as `start`."""
        return self.start(seed, graph)

    def encoder(self, task: Task, seed: int, graph: GraphBuilder) -> EncoderStage:
        """Return the encoder that a task is tested with, after pretraining and all fine-tunings; raises as `start`.

        Where an encoder mines for itself, it is tuned twice from the same start: on the pairs as they are, then on what
        the first tuning has mined (Contriever, section 4.2).
        """
        encoder, encoder_config = self.pretrained(seed, graph), self.own_encoder_config
        for tuning in self.recipes.of_encoder(task):
            encoder_config = tuning.config.encoder_config(encoder_config)
            stored = encoders.store_pairs(tuning, graph)
            pairs: encoders.Pairs = stored
            if tuning.miner is not None:
                pairs = encoders.mined_by_retriever(tuning, tuning.miner, graph)
            elif tuning.config.mine == "self":
                first = self._tuned(encoder, tuning, stored, seed, graph, " (before mining)")
                tag, reading = self.method.name, self.reading
                pairs = encoders.mined_by_encoder(first, encoder_config, tag, reading, tuning, stored, graph)
            encoder = self._tuned(encoder, tuning, pairs, seed, graph)
        return encoder

    def _tuned(
        self,
        start: EncoderStage,
        tuning: Tuning,
        pairs: encoders.Pairs,
        seed: int,
        graph: GraphBuilder,
        note: str = "",
    ) -> Tune:
        label = f"{self.label} on {tuning.name}, seed {seed}{note}"
        return encoders.tuned(start, tuning, pairs, seed, self.machine, label, self.notes, graph)

    def ranking(self, task: Task, subset: Subset, seed: int, graph: GraphBuilder) -> RankingStage:
        if not self.method.searches_vectors:
            return self._indexed(task, subset, seed, graph)
        encoder_config = self.encoder_config(task)
        passages, queries = self.vectors(task, subset, seed, encoder_config, graph)
        return DenseSearch(passages=passages, queries=queries, **self.search(task, encoder_config, queries.subset))

    def vectors(
        self, task: Task, subset: Subset, seed: int, encoder_config: EncoderConfig, graph: GraphBuilder
    ) -> tuple[EncodePassages, EncodeQueries]:
        """Return the vectors of passages and of queries; raises as `start`."""
        common = {"encoder": self.encoder(task, seed, graph), "encoder_config": encoder_config, **self.reading}
        checked, read = graph.validate(subset.corpus), self.read(task, subset, graph)
        passages = EncodePassages(
            role="passage", checked=checked, corpus=checked.corpus, stored=self.stored.get("vectors"), **common
        )
        return graph.intern(passages), graph.intern(EncodeQueries(role="query", subset=read, **common))

    def search(self, task: Task, encoder_config: EncoderConfig, read: Read) -> dict[str, Any]:
        """Return what a search among vectors is given besides them."""
        return {
            "subset": read,
            "rules": self.rules(task),
            "similarity": task.similarity or encoder_config.similarity,
            "tag": self.tag,
            "device": self.machine.device,
            "workers": self.machine.searchers,
            "system_label": self.label,
            "notes": self.notes,
        }

    def _indexed(self, task: Task, subset: Subset, seed: int, graph: GraphBuilder) -> EncoderSearch:
        """Return the ranking of a method that indexes and searches in its own way with the trained encoder."""
        encoder, checked = self.encoder(task, seed, graph), graph.validate(subset.corpus)
        index = EncoderIndex(
            encoder=encoder,
            checked=checked,
            corpus=checked.corpus,
            resolved=self.method.resolve(self.resolved.method, subset.corpus.language),
            encoder_config=self.encoder_config(task),
            compute=self.machine,
            batch_tokens=self.resolved.run.encode.batch_tokens,
            method=self.method,
            config=self.resolved.method,
            notes=self.notes,
        )
        return EncoderSearch(
            index=graph.intern(index),
            subset=self.read(task, subset, graph),
            encoder=encoder,
            rules=self.rules(task),
            tag=self.tag,
            notes=self.notes,
        )


@dataclass(frozen=True)
class Trained(Dense):
    """A method that pretrains its encoder."""

    pretraining_plan: PretrainingInputs

    @property
    def pretraining(self) -> PretrainingInputs:
        return self.pretraining_plan

    @property
    def public_names(self) -> Mapping[str, str]:
        """Also the backbone's public names."""
        return {**super().public_names, **self.pretraining_plan.public_names}

    @property
    def backbone(self) -> str:
        return self.pretraining_plan.backbone

    @property
    def budget(self) -> dict[str, Any]:
        """What the training may spend."""
        alternatives = {"budget_flops": self.pretraining_plan.flops, "budget_steps": self.pretraining_plan.steps}
        return {"budget": self.pretraining_plan.tokens} | {name: value for name, value in alternatives.items() if value}

    @property
    def choices(self) -> dict[str, Any]:
        plan = self.pretraining_plan
        corpus = {"name": plan.corpus, "digest": plan.digest}
        return {**super().choices, "backbone": plan.backbone, "corpus": corpus, **self.budget}

    def start(self, seed: int, graph: GraphBuilder) -> Init:
        """Return the encoder before the first step; the seed is of random weights."""
        if not self.pretraining_plan.scratch:
            return super().start(seed, graph)
        prepare = self.resolved.run.prepare
        return encoders.scratch(self.pretraining_plan, self.own_encoder_config, seed, prepare, self.notes, graph)

    def pretrained(self, seed: int, graph: GraphBuilder) -> EncoderStage:
        *_, train = self.training(seed, graph)
        return train

    @property
    def points(self) -> tuple[Point, ...]:
        """The points on its way that settings ask for, each after the one before."""
        return points(self.resolved.run.curve)

    def training(self, seed: int, graph: GraphBuilder) -> Iterator[Train]:
        """Yield the stages of the points on the way of its training, in the order in which they are made, then its own.

        Each is made after the one before, which leaves it a checkpoint; those of a training that is in the store
        already are repeated, each by itself. Raises as `start`.
        """
        plan, method = self.pretraining_plan, self.method
        train = Train(
            start=self.start(seed, graph),
            shards=encoders.prepare(plan, self.resolved.run.prepare, self.notes, graph),
            method=method.name,
            version=method.version,
            config=self.resolved.method,
            tokens=plan.tokens,
            flops=plan.flops,
            steps=plan.steps,
            seed=seed,
            compute=self.machine,
            plugin=method,
            corpus=plan.corpus,
            notes=self.notes,
        )
        late = bool(self.points) and graph.store.state(train) == "cached"
        shared = {item.name: getattr(train, item.name) for item in fields(Train)}
        after: tuple[Train, ...] = ()
        for point in self.points:
            shared["after"] = after
            stage = graph.intern(TrainPoint(**shared, share=point.share, cool=point.cool, late=late))
            after = () if late else (stage,)
            yield stage
        yield graph.intern(replace(train, after=after))

    def on_the_way(self) -> list[AtPoint]:
        """Return the systems at the points on its way: `LABEL@500k` after 500,000 tokens, `LABEL@500k-cooled`.

        They are this system in everything but the encoder, may be tuned and read as it is, and state `point` in their
        choices. Their `System.point` says which one they are; a training itself is the last point of either kind.

        Raises:
            UsageError: the budget is too small for so many points.
        """
        plan = self.pretraining_plan
        budget, unit = (
            (plan.tokens, "") if plan.tokens else (plan.steps or plan.flops or 0.0, "steps" if plan.steps else "flops")
        )
        refuse_lost(self.points, budget, self.label)
        systems = []
        for point in self.points:
            suffix = point.suffix(budget, unit)
            label = f"{shortened(self.label, LONGEST_LABEL - 1 - len(suffix))}@{suffix}"
            values = {item.name: getattr(self, item.name) for item in fields(Trained)}
            systems.append(AtPoint(**{**values, "label": label, "grid": None}, place=point))
        return systems

    def before_training(self) -> Untrained:
        """Return the same before the first step of training: a system of its own, `METHOD@init`.

        A precision that somebody has named is part of its name, as of the trained one's: it encodes in it too.
        """
        label = f"{self.method.name}@init{named_precision(self.resolved)}"
        return Untrained(label, self.method, self.resolved, self.machine, self.pretraining_plan)


@dataclass(frozen=True)
class Untrained(Trained):
    """A method that pretrains its encoder, before the first step."""

    @property
    def untrained(self) -> bool:
        return True

    @property
    def budget(self) -> dict[str, Any]:
        """Nothing is spent."""
        return {"budget": 0}

    @property
    def choices(self) -> dict[str, Any]:
        """What makes it this system and no other; the config decides nothing before the first step, but an index."""
        idle = ("config",) if self.method.searches_vectors else ()
        return {key: value for key, value in super().choices.items() if key not in idle}

    def pretrained(self, seed: int, graph: GraphBuilder) -> EncoderStage:
        return self.start(seed, graph)


@dataclass(frozen=True)
class AtPoint(Trained):
    """A method that pretrains its encoder, at a point on the way."""

    place: Point = field(kw_only=True)

    @property
    def point(self) -> Point:
        return self.place

    @property
    def sections(self) -> set[str]:
        return super().sections | {"curve"}

    @property
    def choices(self) -> dict[str, Any]:
        """Those of the training, whose budget is the whole one, and the point."""
        return {**super().choices, "point": self.place.dump()}

    def pretrained(self, seed: int, graph: GraphBuilder) -> EncoderStage:
        stages = self.training(seed, graph)
        return next(stage for point, stage in zip(self.points, stages, strict=False) if point == self.place)


@dataclass(frozen=True)
class PostProcessed(Wrapped):
    """A dense system whose vectors are post-processed: a system of its own, `LABEL+KIND`."""

    inner: Dense
    sample: PretrainingInputs  # the corpus whose sentences it is fitted on

    @classmethod
    def from_system(cls, system: Dense, sample: PretrainingInputs) -> Self:
        """Return a system with the post-processing that its settings ask for."""
        post = system.resolved.run.post
        values = section_texts(system.resolved, "post", {}, post.choices.keys() - {"kind"})
        return cls(system.ending(post.kind, values), system.method, system.resolved, system, sample)

    @property
    def post(self) -> PretrainingInputs:
        return self.sample

    @property
    def choices(self) -> dict[str, Any]:
        """What makes it this system and no other; of the post-processing the settings that its kind listens to."""
        corpus = {"name": self.sample.corpus, "digest": self.sample.digest}
        return {**self.inner.choices, "post": {**self.resolved.run.post.choices, "corpus": corpus}}

    def rows(self) -> list[SettingRow]:
        return self.inner.rows() + describe(self.resolved.run.post, self.resolved.origins, "post.")

    def ranking(self, task: Task, subset: Subset, seed: int, graph: GraphBuilder) -> DenseSearch:
        encoder_config = self.inner.encoder_config(task, processed=True)
        passages, queries = self.inner.vectors(task, subset, seed, encoder_config, graph)
        into = pivot(self._settings, subset.corpus.id, subset.corpus.language)
        first, second = (
            self._fit(passages.encoder, encoder_config, language, role, into, seed, graph)
            for language, role in self._sides(subset, encoder_config, passages.encoder)
        )
        search = {
            **self.inner.search(task, encoder_config, queries.subset),
            "tag": self.tag,
            "system_label": self.label,
        }
        return DenseSearch(
            passages=graph.intern(self._moved(passages, first, subset.corpus.language)),
            queries=graph.intern(self._moved(queries, second, subset.language, queries.subset)),
            **{**search, "notes": self.notes},
        )

    @property
    def _settings(self) -> PostConfig:
        return self.resolved.run.post

    def _sides(
        self, subset: Subset, encoder_config: EncoderConfig, encoder: EncoderStage
    ) -> tuple[tuple[str, Role], tuple[str, Role]]:
        """Return language and role of passages and of queries; one sample serves both where they are read alike."""
        differ = encoder_config.query_prompt != encoder_config.passage_prompt or encoder.untied
        query_role: Role = "query" if differ else "passage"
        if self._settings.kind in _JOINT:
            return ("", "passage"), ("", query_role)
        return (subset.corpus.language, "passage"), (subset.language, query_role)

    def _fit(
        self,
        encoder: EncoderStage,
        encoder_config: EncoderConfig,
        language: str,
        role: Role,
        into: str,
        seed: int,
        graph: GraphBuilder,
    ) -> Fit:
        """Return the post-processing of a language, of all where it is empty."""
        kind = self._settings.kind
        if kind == "calibrate" and language == into:
            kind, into = "shift-scale", ""  # the pivot is not turned
        settings = self._settings.model_copy(update={"kind": kind})
        adversarial = kind == "calibrate" and settings.rotation.init == "adversarial"
        fit = Fit(
            sample=self._sample(encoder, encoder_config, language, role, graph),
            pivot=self._sample(encoder, encoder_config, into, "passage", graph) if into else None,
            seed=seed if adversarial else None,
            compute=self.inner.machine,
            settings=settings,
            system_label=self.label,
            notes=self.notes,
        )
        return graph.intern(fit)

    def _sample(
        self, encoder: EncoderStage, encoder_config: EncoderConfig, language: str, role: Role, graph: GraphBuilder
    ) -> EncodeSample:
        """Return the vectors of sentences of the corpus, of all its languages where none is named."""
        sample = EncodeSample(
            encoder=encoder,
            encoder_config=encoder_config,
            role=role,
            shards=encoders.prepare(self.sample, self.resolved.run.prepare, self.notes, graph),
            language=language,
            sentences=self._settings.sentences,
            kind=self._settings.kind,
            **{**self.inner.reading, "system_label": self.method.name, "notes": self.notes},
        )
        return graph.intern(sample)

    def _moved(
        self, vectors: EncodePassages | EncodeQueries, fit: Fit, language: str, read: Read | None = None
    ) -> PostProcess:
        return PostProcess(
            vectors=vectors,
            fit=fit,
            subset=read,
            language="" if self._settings.kind in _JOINT else language,
            machine={"threads": self.inner.machine.threads},
            vector_language=language,
            system_label=self.label,
            notes=self.notes,
        )


def pivot(settings: PostConfig, corpus: str, language: str) -> str:
    """Return the language that others are turned into, empty where nothing is turned.

    `language` is that of the corpus's passages, empty where each says its own; then `UsageError` asks for a pivot.
    """
    if settings.kind != "calibrate":
        return ""
    target = settings.pivot or language
    if not target:
        raise UsageError(
            f"the passages of {corpus} are in several languages, so post.kind=calibrate does not know into which to "
            "turn the others; name one, e.g. --set post.pivot=en"
        )
    return target


def backbone_warnings(systems: Sequence[System]) -> list[str]:
    """Warn where trained weights would be trained on at the rate of random ones, and nobody has said another."""
    rate, nobody = "method.learning_rate", f"profile {DEFAULT}"
    warnings = []
    for system in systems:
        pretraining, origin = system.pretraining, system.resolved.origins.get(rate, nobody)
        if pretraining is None or pretraining.scratch or system.untrained or system.point or origin != nobody:
            continue
        value = getattr(system.resolved.method, "learning_rate", "")
        warnings.append(
            f"{system.label} trains {pretraining.backbone} with {rate} {value}, "
            "which suits random weights and may undo what it knows; type --preset paper, --profile small, or "
            f"--set {rate}=3e-5"
        )
    return warnings
