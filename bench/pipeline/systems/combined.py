"""Systems made of others: two whose runs are fused (`--method bm25+msm`), and re-ranked ones (`--rerank MODEL`)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from bench.config.base import Config
from bench.config.layers import SettingRow, describe, dump
from bench.config.layers import identity as decisive
from bench.config.profiles import DEFAULT
from bench.core.encoder_config import EncoderConfig
from bench.core.errors import PluginError, UsageError
from bench.pipeline.compute import Compute
from bench.pipeline.fine_tunings import Recipes
from bench.pipeline.graph import GraphBuilder
from bench.pipeline.pretraining import PretrainingInputs
from bench.pipeline.settings import RunConfig, Variant
from bench.pipeline.stages.fuse import Fuse
from bench.pipeline.stages.init import weights
from bench.pipeline.stages.rerank import Rerank
from bench.pipeline.stages.train_cross import TrainCross
from bench.pipeline.stages.weigh import TuneFusionWeight
from bench.pipeline.systems import encoders
from bench.pipeline.systems.system import System, Wrapped, section_texts, value_text
from bench.retrieval.backbones import cached_commit
from bench.store.input_hashes import InputHashes
from bench.training.cross_encoder_config import RerankConfig, with_titles
from bench.types import REGIMES, Json, Method, Subset, Task

JOINT = "+"
"""Between the names of two methods whose runs are fused."""
_TWO = 2
TRAINED = "trained"
"""The value of `--rerank` that means a cross-encoder of our own; a folder of that name is `./trained`."""

_RATE, _NOBODY = "rerank.train.learning_rate", f"profile {DEFAULT}"


@dataclass(frozen=True)
class Hybrid(System):
    """Two systems whose runs are fused."""

    first: System
    second: System

    @classmethod
    def from_parts(cls, first: System, second: System) -> Self:
        """Return the fusion of two systems, called and described after both."""
        methods = first.method, second.method
        method = Method(
            name=JOINT.join(part.name for part in methods),
            version=JOINT.join(part.version for part in methods),
            summary=f"The runs of {methods[0].name} and {methods[1].name}, fused.",
            citation="; ".join(part.citation for part in methods),
            config=Config,
            deterministic=all(part.deterministic for part in methods),
            trains=False,
            regimes=tuple(dict.fromkeys(name for part in methods for name in part.regimes)),  # one may stay untuned
        )
        resolved = next((part.resolved for part in (first, second) if part.dense), first.resolved).without_method()
        system = cls(f"{first.label}{JOINT}{second.label}", method, resolved, first, second)
        fused_by = section_texts(resolved, "fuse", {}, {"how", "weight"})
        return replace(system, label=system.ending("fuse", fused_by)) if fused_by else system

    def with_recipes(self, recipes: Recipes) -> Self:
        first, second = (part.with_recipes(recipes) for part in self.parts)
        return replace(self, recipes=recipes, first=first, second=second)

    @property
    def parts(self) -> tuple[System, ...]:
        return self.first, self.second

    @property
    def leaves(self) -> Iterator[System]:
        for part in self.parts:
            yield from part.leaves

    @property
    def public_names(self) -> Mapping[str, str]:
        """Those of both."""
        return {**self.first.public_names, **self.second.public_names}

    @property
    def sections(self) -> set[str]:
        return self.first.sections | self.second.sections | {"fuse"}

    @property
    def choices(self) -> dict[str, Any]:
        parts = [part.choices for part in self.parts]
        return {**super().choices, "parts": parts, "fuse": dump(self.resolved.run.fuse)}

    @property
    def chooses_weight(self) -> bool:
        return self.resolved.run.fuse.how == "interpolate" and self.resolved.run.fuse.weight is None

    def ranking(self, task: Task, subset: Subset, seed: int, graph: GraphBuilder) -> Fuse:
        """Return the fused ranking. Raises `UsageError` where a weight is to be chosen without dev questions."""
        return Fuse(
            first=self.first.ranking(task, subset, seed, graph),
            second=self.second.ranking(task, subset, seed, graph),
            subset=self.read(task, subset, graph),
            weight=self._weight(task, subset, seed, graph) if self.chooses_weight else None,
            rules=self.rules(task),
            fuse=self.resolved.run.fuse,
            tag=self.tag,
            system_label=self.label,
            notes=self.notes,
        )

    def _weight(self, task: Task, subset: Subset, seed: int, graph: GraphBuilder) -> TuneFusionWeight:
        """Return the choice of the weight: both parts on the dev questions."""
        dev = self.recipes.dev.get(task.id)
        dev_subset = (
            next((candidate for candidate in dev.subsets if candidate.name == subset.name), None) if dev else None
        )
        if dev is None or dev_subset is None:
            raise UsageError(
                f"{self.label}: found no dev questions of {task.id} to choose the weight by; type --set "
                "fuse.how=rrf, or a weight from 0 to 1: --set fuse.weight=0.5"
            )
        protocol = graph.protocol(dev)
        return TuneFusionWeight(
            first=self.first.ranking(dev, dev_subset, seed, graph),
            second=self.second.ranking(dev, dev_subset, seed, graph),
            subset=self.read(dev, dev_subset, graph),
            texts=graph.texts(dev_subset.corpus) if protocol.by_answers else None,
            rules=self.rules(dev),
            scale=self.resolved.run.fuse.scale,
            protocol=protocol,
            system_label=self.label,
            notes=self.notes,
        )


def parts_of(name: str) -> tuple[str, ...]:
    """Split the name of a method as typed, `bm25+msm`. Raises `UsageError` for more than two parts, or equal ones."""
    parts = tuple(part.strip() for part in name.split(JOINT))
    if len(parts) > _TWO or not all(parts) or len(set(parts)) != len(parts):
        raise UsageError(f"found --method {name}, expected one method, or two different ones like bm25+msm")
    return parts


def hybrid(name: str, systems: Sequence[System]) -> Hybrid:
    """Return the fusion that a name like `bm25+msm` asks for.

    Raises `UsageError` where a method of the two is several systems.
    """
    first, second = (_only(part, name, systems) for part in parts_of(name))
    return Hybrid.from_parts(first, second)


def _only(method: str, name: str, systems: Sequence[System]) -> System:
    """The one system of a method, without its start, points on its way and twins (of two readouts, the protocol's)."""
    candidates = [
        system
        for system in systems
        if system.method.name == method and not system.untrained and system.post is None and system.point is None
    ]
    matches = [system for system in candidates if not system.protocol] or candidates
    if len(matches) != 1:
        labels = ", ".join(system.label for system in matches)
        raise UsageError(f"found --method {name}, where {method} stands for {len(matches)} systems ({labels}); run one")
    return matches[0]


@dataclass(frozen=True)
class Reranker:
    """A cross-encoder, before it is trained where it will be."""

    model: str  # its folder or id, or `TRAINED`
    compute: Compute
    backbone: str = ""  # what it is trained from; empty where it is there already
    corpus: PretrainingInputs | None = None  # whose texts the tokenizer of a backbone from scratch is trained on
    miner: Variant | None = None  # what mines its hard negatives; None where its pairs are taken as they are
    public_names: Mapping[str, str] = field(default_factory=dict)  # of model and backbone: path → public name

    @property
    def trained(self) -> bool:
        """Whether it is trained here."""
        return bool(self.backbone)

    def choices(self, run: RunConfig) -> dict[str, Any]:
        """What makes it this one and no other."""
        config = run.rerank
        choices: dict[str, Any] = {"model": self.model, "depth": config.depth}
        if not self.trained:
            return choices
        choices |= {"backbone": self.backbone, "mine": config.mine, "train": decisive(config.train)}
        if self.corpus is not None:
            choices["corpus"] = {"name": self.corpus.corpus, "digest": self.corpus.digest}
        return choices


@dataclass(frozen=True)
class Reranked(Wrapped):
    """A system whose runs a cross-encoder re-ranks."""

    reranker: Reranker

    @classmethod
    def from_system(cls, system: System, reranker: Reranker, usual: str) -> Self:
        """Return a system re-ranked, called after what re-ranks it: `bm25+rerank@model=NAME`, `bm25+rerank@depth=10`.

        Args:
            system: whose runs are re-ranked.
            reranker: what re-ranks them.
            usual: the backbone that a re-ranker is trained from where nobody says otherwise; any other is named.
        """
        names, keys = reranker.public_names, {"depth", *(("mine", "train") if reranker.trained else ())}
        key, model = ("backbone", reranker.backbone) if reranker.trained else ("model", reranker.model)
        values = [value_text(key, model, names)] if model != usual else []
        values += section_texts(system.resolved, "rerank", names, keys)
        return cls(system.ending("rerank", values), system.method, system.resolved, system, reranker)

    @property
    def public_names(self) -> Mapping[str, str]:
        """Also the re-ranker's public names."""
        return {**self.inner.public_names, **self.reranker.public_names}

    @property
    def reranker_training(self) -> dict[str, Any] | None:
        """How its re-ranker is trained, as a result says it; None where it is not trained here."""
        run = self.resolved.run
        training = {"mine": run.rerank.mine, "backbone": self.reranker.backbone, **dump(run.rerank.train)}
        return training if self.reranker.trained else None

    @property
    def regimes(self) -> tuple[str, ...]:
        """The regimes that something of it can be tuned for; a cross-encoder is trained in all that have pairs."""
        return REGIMES if self.reranker.trained else self.inner.regimes

    @property
    def deterministic(self) -> bool:
        return self.inner.deterministic and not self.reranker.trained

    @property
    def choices(self) -> dict[str, Any]:
        return {**self.inner.choices, "rerank": self.reranker.choices(self.resolved.run)}

    def rows(self) -> list[SettingRow]:
        rows = self.inner.rows() + describe(self.resolved.run.rerank, self.resolved.origins, "rerank.")
        shared_rows = self.resolved.shared_rows(RerankConfig) if self.reranker.trained else []
        return rows + [row for row in shared_rows if row not in rows]

    def ranking(self, task: Task, subset: Subset, seed: int, graph: GraphBuilder) -> Rerank:
        """Return the ranking that is re-ranked, which other rows share, with the re-ranker on top.

        Raises `UsageError` for a folder that is not there, `PluginError` where there is nothing to train on.
        """
        reranker = self.reranker
        return Rerank(
            ranking=self.inner.ranking(task, subset, seed, graph),
            subset=self.read(task, subset, graph),
            texts=graph.texts(with_titles(subset.corpus)),
            trained=self._cross_encoder(task, seed, graph) if reranker.trained else None,
            rules=self.rules(task),
            model=None if reranker.trained else _weights(reranker.model, graph.inputs),
            revision=None if reranker.trained else cached_commit(reranker.model),
            depth=self.resolved.run.rerank.depth,
            tag=self.tag,
            compute=reranker.compute,
            place=reranker.model,
            system_label=self.label,
            notes=self.notes,
        )

    def _cross_encoder(self, task: Task, seed: int, graph: GraphBuilder) -> TrainCross:
        """Return the last of the recipe's trainings of a cross-encoder, each going on from the one before."""
        reranker, run, cross_encoder, initial = self.reranker, self.resolved.run, None, None
        if reranker.corpus is not None:  # shared, however the system's own encoder reads
            initial = encoders.scratch(reranker.corpus, EncoderConfig(), seed, run.prepare, self.notes, graph)
        for tuning in self.recipes.of_reranker(task):
            mined = encoders.mined_by_retriever(tuning, reranker.miner, graph) if reranker.miner else None
            cross_encoder = TrainCross(
                pairs=mined or encoders.store_pairs(tuning, graph),
                begun=cross_encoder or initial,
                config=run.rerank.train,
                start=None if cross_encoder or initial else _weights(reranker.backbone, graph.inputs),
                revision=None if cross_encoder or initial else cached_commit(reranker.backbone),
                seed=seed,
                compute=reranker.compute,
                backbone=reranker.backbone,
                pairs_name=tuning.name,
                notes=self.notes,
            )
        if cross_encoder is None:
            raise PluginError(f"{self.label} has no pairs to train a cross-encoder on")
        return graph.intern(cross_encoder)


def _weights(model: str, inputs: InputHashes) -> Json:
    """Return what decides a cross-encoder's weights. Raises `UsageError` where its folder is not there."""
    folder = Path(model).expanduser()
    if model.startswith(("/", ".", "~")) and not folder.is_dir():
        raise UsageError(
            f"{folder}: found no such folder, expected a cross-encoder: a folder of a sequence classifier, or a "
            "Hugging Face id"
        )
    return weights(model, inputs)


def rate_warnings(systems: Sequence[System]) -> list[str]:
    """Warn where re-rankers' weights that were trained before would be trained on at a rate that suits random ones."""
    warnings: dict[str, None] = {}
    for system in systems:
        if not isinstance(system, Reranked) or not system.reranker.trained or system.reranker.corpus:
            continue
        if system.resolved.origins.get(_RATE, _NOBODY) == _NOBODY:
            rate = system.resolved.run.rerank.train.learning_rate
            warnings[
                f"the re-ranker trains {system.reranker.backbone} with {_RATE} {rate}, which suits random weights and "
                f"may undo what it knows; type --profile small, or --set {_RATE}=1e-5"
            ] = None
    return [*warnings]
