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
from bench.pipeline.systems import System, Wrapped, once
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
        said = {**super().choices, "contract": self.own_contract.dump(), "readout": self.readout}
        return said | ({"read_by": PROTOCOL} if self.protocol else {})

    @property
    def readout(self) -> dict[str, Any]:
        """What the run's settings say over the encoder's contract, in its words; a title of None leaves titles out."""
        given = {key: value for key, value in decisive(self.resolved.run.encode).items() if value is not None}
        return given | ({"title": None} if given.get("title") == NO_TITLES else {})

    def readings(self) -> list[Dense]:
        """Return the rows that it makes: read by its contract, by the protocol (`LABEL+protocol`), or both."""
        run = self.resolved.run
        asked = run.encode.readout
        if asked == CONTRACT:
            return [self]
        made = []
        for readout in (CONTRACT, PROTOCOL) if asked == "both" else (asked,):
            encode = run.encode.model_copy(update={"readout": readout})
            resolved = replace(self.resolved, run=run.model_copy(update={"encode": encode}))
            own = readout == CONTRACT
            label = self.label if own else self.ending(PROTOCOL)
            made.append(replace(self, label=label, resolved=resolved, grid=self.grid if own else None))
        return made

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
        said: dict[str, Any] = {}
        if self.protocol and task.readout:
            said |= fixed(task.readout, backbone_of(self))
        if task.lengths:
            said |= {"query_length": task.lengths[0], "passage_length": task.lengths[1]}
        said |= self.readout
        contract = replace(contract, **said)
        if processed and "similarity" not in said and self.resolved.run.post.similarity == "cos":
            contract = replace(contract, similarity="cos")
        fixed_by_task = "cos" if task.similarity == "l2" else task.similarity
        return replace(contract, similarity=fixed_by_task) if fixed_by_task else contract

    def searched(self, asked: Asked) -> tuple[Stage, ...]:
        return self.by_vectors(asked, self) if self.method.searches_vectors else self._indexed(asked)

    def by_vectors(self, asked: Asked, row: System, processing: PostProcessed | None = None) -> tuple[Stage, ...]:
        """Return the stages of a search of vectors; `row` is whose run it is: itself, or itself post-processed."""
        encoders = Encoders(row, asked.seed, asked.legs.inputs, asked.legs.plugins)
        encoder = asked.legs.once("encoder", lambda: encoders.final(asked.tunings), row, asked.seed, *asked.tunings)
        contract = self.contract(asked.task, asked.tunings, processed=processing is not None)
        how = {"encoder": encoder, "contract": contract, **reading(row, self.machine)}
        passages = EncodePassages(role="passage", checked=asked.checked, corpus=asked.checked.corpus, **how)
        queries = EncodeQueries(role="query", leg=asked.read, **how)
        sides: tuple[Stage, Stage] = passages, queries
        processed: tuple[Stage, ...] = ()
        if processing is not None:
            shards = encoders.prepare(processing.sample)
            fits, *moved = PostProcessing(encoders, encoder, contract, shards, asked.leg).stages(
                passages, queries, asked.read
            )
            sides, processed = (moved[0], moved[1]), (*fits, *moved)
        run = DenseSearch(
            queries=sides[1],
            passages=sides[0],
            leg=asked.read,
            rules=asked.rules,
            similarity=asked.task.similarity or contract.similarity,
            tag=row.tag,
            device=self.machine.device,
            workers=self.machine.searchers,
            who=row.label,
            notes=row.notes,
        )
        return (*encoder.chain(), asked.checked, asked.read, passages, queries, *processed, run)

    def _indexed(self, asked: Asked) -> tuple[Stage, ...]:
        """Return the stages of a method that indexes and searches in its own way with the trained encoder."""
        encoders = Encoders(self, asked.seed, asked.legs.inputs, asked.legs.plugins)
        encoder, method, config = encoders.final(asked.tunings), self.method, self.resolved.method
        index = EncoderIndex(
            encoder=encoder,
            checked=asked.checked,
            corpus=asked.checked.corpus,
            resolved=method.resolve(config, asked.leg.corpus.language),
            contract=self.contract(asked.task, asked.tunings),
            compute=self.machine,
            batch_tokens=self.resolved.run.encode.batch_tokens,
            method=method,
            config=config,
            notes=self.notes,
        )
        run = EncoderSearch(
            index=index, leg=asked.read, encoder=encoder, rules=asked.rules, tag=self.tag, notes=self.notes
        )
        return (*encoder.chain(), asked.checked, asked.read, index, run)


@dataclass(frozen=True)
class Pretrained(Dense):
    """An encoder that somebody else has trained."""


@dataclass(frozen=True)
class Trained(Dense):
    """A method that pretrains its encoder."""

    given: Pretraining

    @property
    def pretraining(self) -> Pretraining:
        return self.given

    @property
    def places(self) -> Mapping[str, str]:
        """Those of its backbone too."""
        return {**super().places, **self.given.places}

    @property
    def budget(self) -> dict[str, Any]:
        """What the training may spend."""
        others = {"budget_flops": self.given.flops, "budget_steps": self.given.steps}
        return {"budget": self.given.tokens} | {name: value for name, value in others.items() if value}

    @property
    def choices(self) -> dict[str, Any]:
        given = self.given
        corpus = {"name": given.corpus, "digest": given.digest}
        return {**super().choices, "backbone": given.backbone, "corpus": corpus, **self.budget}

    def start(self) -> Untrained:
        """Return the same before the first step of training: a system of its own, `METHOD@init`."""
        return Untrained(f"{self.method.name}@init", self.method, self.resolved, self.machine, self.given)


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

    def searched(self, asked: Asked) -> tuple[Stage, ...]:
        return self.inner.by_vectors(asked, self, self)


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
        return once(first, second), moved, self._moved(queries, second, self.leg.language, leg_read)

    @property
    def _settings(self) -> PostConfig:
        return self.encoders.system.resolved.run.post

    def _sides(self) -> tuple[tuple[str, Role], tuple[str, Role]]:
        """Return language and role of passages and of queries; one sample serves both where they are read alike."""
        differ = self.contract.query_prompt != self.contract.passage_prompt or self.encoder.untied
        asked: Role = "query" if differ else "passage"
        if self._settings.kind in _JOINT:
            return ("", "passage"), ("", asked)
        return (self.leg.corpus.language, "passage"), (self.leg.language, asked)

    def _fit(self, language: str, role: Role, into: str) -> Fit:
        """Return the post-processing of a language, of all where it is empty."""
        kind = self._settings.kind
        if kind == "calibrate" and language == into:
            kind, into = "shift-scale", ""  # the pivot is not turned
        settings = self._settings.model_copy(update={"kind": kind})
        drawn = kind == "calibrate" and settings.rotation.init == "adversarial"
        return Fit(
            sample=self._sample(language, role),
            pivot=self._sample(into, "passage") if into else None,
            seed=self.encoders.seed if drawn else None,
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
    found = settings.pivot or language
    if not found:
        raise UsageError(
            f"the passages of {corpus} are in several languages, so post.kind=calibrate does not know into which to "
            "turn the others; name one, e.g. --set post.pivot=en"
        )
    return found


def about_backbones(named: Sequence[System]) -> list[str]:
    """Warn where trained weights would be trained on at the rate of random ones, and nobody has said another."""
    rate, nobody = "method.learning_rate", f"profile {DEFAULT}"
    told = []
    for system in named:
        given, origin = system.pretraining, system.resolved.origins.get(rate, nobody)
        if given is None or given.scratch or system.untrained or origin != nobody:
            continue
        value = getattr(system.resolved.method, "learning_rate", "")
        told.append(
            f"{system.label} trains {given.backbone} with {rate} {value}, "
            "which suits random weights and may undo what it knows; type --preset paper, --profile small, or "
            f"--set {rate}=3e-5"
        )
    return told
