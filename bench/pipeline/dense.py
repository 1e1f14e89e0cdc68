"""Systems whose encoder the harness reads: as it is found, before and after a pretraining, and post-processed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench.config.layers import SettingRow, describe
from bench.config.layers import identity as decisive
from bench.config.profiles import DEFAULT
from bench.core.contract import NO_TITLES, Contract, Role
from bench.core.errors import PluginError, UsageError
from bench.pipeline.compute import Compute
from bench.pipeline.encoders import Encoders, backbone_of, reading
from bench.pipeline.fine_tunings import Tuning
from bench.pipeline.legs import Asked
from bench.pipeline.pretraining import Pretraining
from bench.pipeline.stages.encode import EncodePassages, EncodeQueries, EncodeSample
from bench.pipeline.stages.fit import Fit
from bench.pipeline.stages.index import EncoderIndex
from bench.pipeline.stages.init import EncoderStage
from bench.pipeline.stages.post import PostProcess
from bench.pipeline.stages.prepare import Prepare
from bench.pipeline.stages.read import Read
from bench.pipeline.stages.search import EncoderSearch
from bench.pipeline.stages.search_dense import DenseSearch
from bench.pipeline.systems import System, Wrapped, unique_stages
from bench.retrieval.readouts import fixed
from bench.retrieval.settings import PostConfig
from bench.store.stage import Stage
from bench.types import Leg, Task

CONTRACT, PROTOCOL = "contract", "protocol"
"""Who says how texts are read: the encoder, or the suite (in rows called `LABEL+protocol`)."""
_JOINT = ("centre", "whiten")
"""Kinds of post-processing with one map over all languages."""


@dataclass(frozen=True)
class Dense(System):
    """A method with an encoder."""

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
    def own_contract(self) -> Contract:
        """How the method reads texts. Raises `PluginError` where it does not say."""
        if self.method.contract is None:
            raise PluginError(f"method {self.method.name} has neither a retriever nor an encoder's contract")
        return self.method.contract(self.resolved.method)

    @property
    def choices(self) -> dict[str, Any]:
        choices = {**super().choices, "contract": self.own_contract.dump(), "readout": self.readout}
        return choices | ({"read_by": PROTOCOL} if self.protocol else {})

    @property
    def readout(self) -> dict[str, Any]:
        """What the run's settings say over the encoder's contract, in its words; a title of None leaves titles out."""
        settings = {key: value for key, value in decisive(self.resolved.run.encode).items() if value is not None}
        return settings | ({"title": None} if settings.get("title") == NO_TITLES else {})

    def readings(self) -> list[Dense]:
        """Return the rows that it makes: read by its contract, by the protocol (`LABEL+protocol`), or both."""
        run = self.resolved.run
        mode = run.encode.readout
        if mode == CONTRACT:
            return [self]
        rows = []
        for readout in (CONTRACT, PROTOCOL) if mode == "both" else (mode,):
            encode = run.encode.model_copy(update={"readout": readout})
            resolved = replace(self.resolved, run=run.model_copy(update={"encode": encode}))
            by_contract = readout == CONTRACT
            label = self.label if by_contract else self.ending(PROTOCOL)
            rows.append(replace(self, label=label, resolved=resolved, grid=self.grid if by_contract else None))
        return rows

    def processed(self, sample: Pretraining) -> PostProcessed:
        """Return the same with the post-processing that the settings ask for: a system of its own, `LABEL+KIND`."""
        return PostProcessed(self.ending(self.resolved.run.post.kind), self.method, self.resolved, self, sample)

    def contract(self, task: Task, tunings: Sequence[Tuning] = (), *, processed: bool = False) -> Contract:
        """Return how texts are read for a task: the method's contract, tunings, what the task fixes, what settings say.

        A system that reads as the protocol says takes what the task's readout says over its tunings. No setting changes
        a similarity that the task fixes. Post-processed vectors are compared by cosine where neither says otherwise.

        Raises:
            PluginError: the method has no encoder.
            UsageError: the protocol's layer goes by the number of layers, and nothing says how many there are.
        """
        contract = self.own_contract
        for tuning in tunings:
            contract = tuning.config.contract(contract)
        overrides: dict[str, Any] = {}
        if self.protocol and task.readout:
            overrides |= fixed(task.readout, backbone_of(self))
        if task.lengths:
            overrides |= {"query_length": task.lengths[0], "passage_length": task.lengths[1]}
        overrides |= self.readout
        contract = replace(contract, **overrides)
        if processed and "similarity" not in overrides and self.resolved.run.post.similarity == "cos":
            contract = replace(contract, similarity="cos")
        fixed_by_task = "cos" if task.similarity == "l2" else task.similarity
        return replace(contract, similarity=fixed_by_task) if fixed_by_task else contract

    def searched(self, target: Asked) -> tuple[Stage, ...]:
        return self.by_vectors(target, self) if self.method.searches_vectors else self._indexed(target)

    def by_vectors(self, target: Asked, row: System, processing: PostProcessed | None = None) -> tuple[Stage, ...]:
        """Return the stages of a search of vectors; `row` is whose run it is: itself, or itself post-processed."""
        encoders = Encoders(row, target.seed, target.legs.inputs, target.legs.plugins)
        encoder = target.legs.shared(
            "encoder", lambda: encoders.final(target.tunings), row, target.seed, *target.tunings
        )
        contract = self.contract(target.task, target.tunings, processed=processing is not None)
        common = {"encoder": encoder, "contract": contract, **reading(row, self.machine)}
        passages = EncodePassages(role="passage", checked=target.checked, corpus=target.checked.corpus, **common)
        queries = EncodeQueries(role="query", leg=target.read, **common)
        sides: tuple[Stage, Stage] = passages, queries
        processed: tuple[Stage, ...] = ()
        if processing is not None:
            shards = encoders.prepare(processing.sample)
            fits, *moved = PostProcessing(encoders, encoder, contract, shards, target.leg).stages(
                passages, queries, target.read
            )
            sides, processed = (moved[0], moved[1]), (*fits, *moved)
        run = DenseSearch(
            queries=sides[1],
            passages=sides[0],
            leg=target.read,
            rules=target.rules,
            similarity=target.task.similarity or contract.similarity,
            tag=row.tag,
            device=self.machine.device,
            workers=self.machine.searchers,
            who=row.label,
            notes=row.notes,
        )
        return (*encoder.chain(), target.checked, target.read, passages, queries, *processed, run)

    def _indexed(self, target: Asked) -> tuple[Stage, ...]:
        """Return the stages of a method that indexes and searches in its own way with the trained encoder."""
        encoders = Encoders(self, target.seed, target.legs.inputs, target.legs.plugins)
        encoder, method, config = encoders.final(target.tunings), self.method, self.resolved.method
        index = EncoderIndex(
            encoder=encoder,
            checked=target.checked,
            corpus=target.checked.corpus,
            resolved=method.resolve(config, target.leg.corpus.language),
            contract=self.contract(target.task, target.tunings),
            compute=self.machine,
            batch_tokens=self.resolved.run.encode.batch_tokens,
            method=method,
            config=config,
            notes=self.notes,
        )
        run = EncoderSearch(
            index=index, leg=target.read, encoder=encoder, rules=target.rules, tag=self.tag, notes=self.notes
        )
        return (*encoder.chain(), target.checked, target.read, index, run)


@dataclass(frozen=True)
class Pretrained(Dense):
    """An encoder that somebody else has trained."""


@dataclass(frozen=True)
class Trained(Dense):
    """A method that pretrains its encoder."""

    pretraining_plan: Pretraining

    @property
    def pretraining(self) -> Pretraining:
        return self.pretraining_plan

    @property
    def places(self) -> Mapping[str, str]:
        """Those of its backbone too."""
        return {**super().places, **self.pretraining_plan.places}

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

    def start(self) -> Untrained:
        """Return the same before the first step of training: a system of its own, `METHOD@init`."""
        return Untrained(f"{self.method.name}@init", self.method, self.resolved, self.machine, self.pretraining_plan)


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


@dataclass(frozen=True)
class PostProcessed(Wrapped):
    """A dense system whose vectors are post-processed."""

    inner: Dense
    sample: Pretraining

    @property
    def post(self) -> Pretraining:
        return self.sample

    @property
    def choices(self) -> dict[str, Any]:
        """What makes it this system and no other; of the post-processing the settings that its kind listens to."""
        corpus = {"name": self.sample.corpus, "digest": self.sample.digest}
        return {**self.inner.choices, "post": {**self.resolved.run.post.choices, "corpus": corpus}}

    def rows(self) -> list[SettingRow]:
        return self.inner.rows() + describe(self.resolved.run.post, self.resolved.origins, "post.")

    def searched(self, target: Asked) -> tuple[Stage, ...]:
        return self.inner.by_vectors(target, self, self)


@dataclass(frozen=True)
class PostProcessing:
    """The post-processing of one system's vectors for a leg."""

    encoders: Encoders
    encoder: EncoderStage
    contract: Contract
    shards: Prepare  # the prepared corpus that the sample is drawn from
    leg: Leg

    def stages(
        self, passages: EncodePassages, queries: EncodeQueries, leg_read: Read
    ) -> tuple[tuple[Stage, ...], PostProcess, PostProcess]:
        """Return the fits (one where both are the same), passages and queries post-processed; raises as `pivot`."""
        corpus = self.leg.corpus
        into = pivot(self._settings, corpus.id, corpus.language)
        first, second = (self._fit(language, role, into) for language, role in self._sides())
        moved = self._moved(passages, first, corpus.language)
        return unique_stages(first, second), moved, self._moved(queries, second, self.leg.language, leg_read)

    @property
    def _settings(self) -> PostConfig:
        return self.encoders.system.resolved.run.post

    def _sides(self) -> tuple[tuple[str, Role], tuple[str, Role]]:
        """Return language and role of passages and of queries; one sample serves both where they are read alike."""
        differ = self.contract.query_prompt != self.contract.passage_prompt or self.encoder.untied
        query_role: Role = "query" if differ else "passage"
        if self._settings.kind in _JOINT:
            return ("", "passage"), ("", query_role)
        return (self.leg.corpus.language, "passage"), (self.leg.language, query_role)

    def _fit(self, language: str, role: Role, into: str) -> Fit:
        """Return the post-processing of a language, of all where it is empty."""
        kind = self._settings.kind
        if kind == "calibrate" and language == into:
            kind, into = "shift-scale", ""  # the pivot is not turned
        settings = self._settings.model_copy(update={"kind": kind})
        adversarial = kind == "calibrate" and settings.rotation.init == "adversarial"
        return Fit(
            sample=self._sample(language, role),
            pivot=self._sample(into, "passage") if into else None,
            seed=self.encoders.seed if adversarial else None,
            compute=self.encoders.compute,
            settings=settings,
            who=self.encoders.system.label,
            notes=self.encoders.notes,
        )

    def _sample(self, language: str, role: Role) -> EncodeSample:
        """Return the vectors of sentences of the corpus, of all its languages where none is named."""
        system = self.encoders.system
        return EncodeSample(
            encoder=self.encoder,
            contract=self.contract,
            role=role,
            shards=self.shards,
            language=language,
            sentences=self._settings.sentences,
            kind=self._settings.kind,
            **{**reading(system, self.encoders.compute), "who": system.method.name},
        )

    def _moved(
        self, vectors: EncodePassages | EncodeQueries, fit: Fit, language: str, leg: Read | None = None
    ) -> PostProcess:
        return PostProcess(
            vectors=vectors,
            fit=fit,
            leg=leg,
            language="" if self._settings.kind in _JOINT else language,
            machine={"threads": self.encoders.compute.threads},
            of=language,
            notes=self.encoders.notes,
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
        if pretraining is None or pretraining.scratch or system.untrained or origin != nobody:
            continue
        value = getattr(system.resolved.method, "learning_rate", "")
        warnings.append(
            f"{system.label} trains {pretraining.backbone} with {rate} {value}, "
            "which suits random weights and may undo what it knows; type --preset paper, --profile small, or "
            f"--set {rate}=3e-5"
        )
    return warnings
