"""A dense system whose vectors are post-processed: centred, whitened, or calibrated into a pivot language."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from bench.config.layers import SettingRow, describe
from bench.core.contract import Contract, Role
from bench.core.errors import UsageError
from bench.pipeline.graph import GraphBuilder
from bench.pipeline.pretraining import Pretraining
from bench.pipeline.stages.encode import EncodePassages, EncodeQueries, EncodeSample
from bench.pipeline.stages.fit import Fit
from bench.pipeline.stages.init import EncoderStage
from bench.pipeline.stages.post import PostProcess
from bench.pipeline.stages.read import Read
from bench.pipeline.stages.search_dense import DenseSearch
from bench.pipeline.systems import encoders
from bench.pipeline.systems.dense import Dense
from bench.pipeline.systems.system import Wrapped
from bench.retrieval.settings import PostConfig
from bench.types import Leg, Task

_JOINT = ("centre", "whiten")
"""Kinds of post-processing with one map over all languages."""


@dataclass(frozen=True)
class PostProcessed(Wrapped):
    """A dense system whose vectors are post-processed: a system of its own, `LABEL+KIND`."""

    inner: Dense
    sample: Pretraining  # the corpus whose sentences it is fitted on

    @classmethod
    def from_system(cls, system: Dense, sample: Pretraining) -> Self:
        """Return a system with the post-processing that its settings ask for."""
        return cls(system.ending(system.resolved.run.post.kind), system.method, system.resolved, system, sample)

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

    def ranking(self, task: Task, leg: Leg, seed: int, graph: GraphBuilder) -> DenseSearch:
        contract = self.inner.contract(task, processed=True)
        passages, queries = self.inner.vectors(task, leg, seed, contract, graph)
        into = pivot(self._settings, leg.corpus.id, leg.corpus.language)
        first, second = (
            self._fit(passages.encoder, contract, language, role, into, seed, graph)
            for language, role in self._sides(leg, contract, passages.encoder)
        )
        search = {**self.inner.search(task, contract, queries.leg), "tag": self.tag, "who": self.label}
        return DenseSearch(
            passages=graph.intern(self._moved(passages, first, leg.corpus.language)),
            queries=graph.intern(self._moved(queries, second, leg.language, queries.leg)),
            **{**search, "notes": self.notes},
        )

    @property
    def _settings(self) -> PostConfig:
        return self.resolved.run.post

    def _sides(self, leg: Leg, contract: Contract, encoder: EncoderStage) -> tuple[tuple[str, Role], tuple[str, Role]]:
        """Return language and role of passages and of queries; one sample serves both where they are read alike."""
        differ = contract.query_prompt != contract.passage_prompt or encoder.untied
        query_role: Role = "query" if differ else "passage"
        if self._settings.kind in _JOINT:
            return ("", "passage"), ("", query_role)
        return (leg.corpus.language, "passage"), (leg.language, query_role)

    def _fit(
        self,
        encoder: EncoderStage,
        contract: Contract,
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
            sample=self._sample(encoder, contract, language, role, graph),
            pivot=self._sample(encoder, contract, into, "passage", graph) if into else None,
            seed=seed if adversarial else None,
            compute=self.inner.machine,
            settings=settings,
            who=self.label,
            notes=self.notes,
        )
        return graph.intern(fit)

    def _sample(
        self, encoder: EncoderStage, contract: Contract, language: str, role: Role, graph: GraphBuilder
    ) -> EncodeSample:
        """Return the vectors of sentences of the corpus, of all its languages where none is named."""
        sample = EncodeSample(
            encoder=encoder,
            contract=contract,
            role=role,
            shards=encoders.prepare(self.sample, self.resolved.run.prepare, self.notes, graph),
            language=language,
            sentences=self._settings.sentences,
            kind=self._settings.kind,
            **{**self.inner.reading, "who": self.method.name, "notes": self.notes},
        )
        return graph.intern(sample)

    def _moved(
        self, vectors: EncodePassages | EncodeQueries, fit: Fit, language: str, read: Read | None = None
    ) -> PostProcess:
        return PostProcess(
            vectors=vectors,
            fit=fit,
            leg=read,
            language="" if self._settings.kind in _JOINT else language,
            machine={"threads": self.inner.machine.threads},
            of=language,
            who=self.label,
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
