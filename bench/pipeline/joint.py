"""Systems made of others: two whose runs are fused (`--method bm25+msm`), and re-ranked ones (`--rerank MODEL`)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.config.base import Config
from bench.config.layers import SettingRow, describe, dump
from bench.config.layers import identity as decisive
from bench.config.profiles import DEFAULT, Profile
from bench.config.request import Request
from bench.core.errors import PluginError, UsageError
from bench.data.formats.titled import with_titles
from bench.pipeline.compute import Compute, compute
from bench.pipeline.dense import Untrained
from bench.pipeline.encoders import Encoders
from bench.pipeline.legs import Asked
from bench.pipeline.names import places
from bench.pipeline.pretraining import Pretraining, sample
from bench.pipeline.settings import RunConfig, Settings
from bench.pipeline.stages.fuse import Fuse
from bench.pipeline.stages.init import weights
from bench.pipeline.stages.rerank import Rerank
from bench.pipeline.stages.train_cross import TrainCross
from bench.pipeline.stages.weigh import Weigh
from bench.pipeline.systems import System, Wrapped, unique_stages
from bench.plugins import Plugins
from bench.store.inputs import Inputs
from bench.store.stage import Stage
from bench.store.store import Store
from bench.types import SETTINGS, Json, Method

JOINT = "+"
"""Between the names of two methods whose runs are fused."""
_TWO = 2
TRAINED = "trained"
"""The value of `--rerank` that stands for a cross-encoder of our own; a folder of that name is `./trained`."""

_RATE = "rerank.train.learning_rate"


@dataclass(frozen=True)
class Reranker:
    """A cross-encoder, before it is trained where it will be."""

    model: str  # its folder or id, or `TRAINED`
    compute: Compute
    backbone: str = ""  # what it is trained from; empty where it is there already
    corpus: Pretraining | None = None  # whose texts the tokenizer of a backbone from scratch is trained on
    places: Mapping[str, str] = field(default_factory=dict)  # of model and backbone: path → public name

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


def reranker(request: Request, size: Profile, run: RunConfig, store: Store, plugins: Plugins) -> Reranker | None:
    """Find out what re-ranks, None for nothing. Raises `UsageError` for a device or a corpus that is not there."""
    if request.rerank is None:
        return None
    machine = compute(request, size, run.compute)
    if request.rerank != TRAINED:
        return Reranker(request.rerank, machine, places=places([request.rerank], Inputs(store)))
    backbone = run.rerank.backbone or request.backbone or size.backbone
    scratch = backbone.startswith("scratch:")
    tokenizer_corpus = sample(request, size, run, store, backbone, plugins) if scratch else None
    return Reranker(TRAINED, machine, backbone, tokenizer_corpus, places([backbone], Inputs(store)))


def rate_warnings(reranker: Reranker | None, resolved: Settings) -> list[str]:
    """Tell where weights that were trained before would be trained on at a rate that suits random ones."""
    nobody = f"profile {DEFAULT}"
    if reranker is None or not reranker.trained or reranker.corpus or resolved.origins.get(_RATE, nobody) != nobody:
        return []
    rate = resolved.run.rerank.train.learning_rate
    warning = (
        f"the re-ranker trains {reranker.backbone} with {_RATE} {rate}, which suits random weights and may undo what "
        f"it knows; type --profile small, or --set {_RATE}=1e-5"
    )
    return [warning]


@dataclass(frozen=True)
class Fused(System):
    """Two systems whose runs are fused."""

    first: System
    second: System

    @property
    def parts(self) -> tuple[System, ...]:
        return self.first, self.second

    @property
    def leaves(self) -> Iterator[System]:
        for part in self.parts:
            yield from part.leaves

    @property
    def places(self) -> Mapping[str, str]:
        """Those of both."""
        return {**self.first.places, **self.second.places}

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

    def searched(self, target: Asked) -> tuple[Stage, ...]:
        """Return the stages to the run. Raises `UsageError` where a weight is to be chosen without dev questions."""
        first, second = (part.searched(target) for part in self.parts)
        run = Fuse(
            first=first[-1],
            second=second[-1],
            leg=target.read,
            weight=self._weight(target) if self.chooses_weight else None,
            rules=target.rules,
            fuse=self.resolved.run.fuse,
            tag=self.tag,
            who=self.label,
            notes=self.notes,
        )
        return unique_stages(*first, *second, *((run.weight,) if run.weight else ()), run)

    def _weight(self, target: Asked) -> Weigh:
        """Return the choice of the weight: both parts on the dev questions."""
        dev, name = target.dev, target.leg.name
        leg = next((dev_leg for dev_leg in dev.legs if dev_leg.name == name), None) if dev else None
        if dev is None or leg is None:
            raise UsageError(
                f"{self.label}: found no dev questions of {target.task.id} to choose the weight by; type --set "
                "fuse.how=rrf, or a weight from 0 to 1: --set fuse.weight=0.5"
            )
        on_dev = replace(target, task=dev, leg=leg)
        first, second = (part.searched(on_dev)[-1] for part in self.parts)
        protocol = target.legs.protocol(dev)
        return Weigh(
            first=first,
            second=second,
            leg=on_dev.read,
            texts=target.legs.texts(leg.corpus) if protocol.by_answers else None,
            rules=on_dev.rules,
            scale=self.resolved.run.fuse.scale,
            protocol=protocol,
            who=self.label,
            notes=self.notes,
        )


@dataclass(frozen=True)
class Reranked(Wrapped):
    """A system whose runs a cross-encoder re-ranks."""

    reranker: Reranker

    @property
    def places(self) -> Mapping[str, str]:
        """Those of the re-ranker too."""
        return {**self.inner.places, **self.reranker.places}

    @property
    def reranker_training(self) -> dict[str, Any] | None:
        """How its re-ranker is trained, as a result says it; None where it is not trained here."""
        run = self.resolved.run
        training = {"mine": run.rerank.mine, "backbone": self.reranker.backbone, **dump(run.rerank.train)}
        return training if self.reranker.trained else None

    @property
    def settings(self) -> tuple[str, ...]:
        """The settings that something of it can be tuned for; a cross-encoder is trained in all that have pairs."""
        return SETTINGS if self.reranker.trained else self.inner.settings

    @property
    def deterministic(self) -> bool:
        return self.inner.deterministic and not self.reranker.trained

    @property
    def choices(self) -> dict[str, Any]:
        return {**self.inner.choices, "rerank": self.reranker.choices(self.resolved.run)}

    def rows(self) -> list[SettingRow]:
        return self.inner.rows() + describe(self.resolved.run.rerank, self.resolved.origins, "rerank.")

    def searched(self, target: Asked) -> tuple[Stage, ...]:
        """Return the stages of the run without the re-ranker, which other rows share, then of re-ranking.

        Raises `UsageError` for a folder that is not there, `PluginError` where there is nothing to train on.
        """
        reranker, before = self.reranker, self.inner.searched(target)
        run = Rerank(
            ranking=before[-1],
            leg=target.read,
            texts=target.legs.texts(with_titles(target.leg.corpus)),
            trained=self._cross_encoder(target) if reranker.trained else None,
            rules=target.rules,
            model=None if reranker.trained else _weights(reranker.model, target.legs.inputs),
            depth=self.resolved.run.rerank.depth,
            tag=self.tag,
            compute=reranker.compute,
            place=reranker.model,
            who=self.label,
            notes=self.notes,
        )
        trained = run.trained.chain() if run.trained else ()
        return unique_stages(*before, *trained, run.texts, run)

    def _cross_encoder(self, target: Asked) -> TrainCross:
        """Return the last of the recipe's trainings of a cross-encoder, each going on from the one before."""
        reranker, run, inputs = self.reranker, self.resolved.run, target.legs.inputs
        encoders, cross_encoder = Encoders(self, target.seed, inputs, target.legs.plugins), None
        initial = None
        if reranker.corpus is not None:
            plain = replace(self.method, contract=None, trainer=None)  # shared, however the system's own encoder reads
            start = Untrained(self.label, plain, self.resolved, reranker.compute, reranker.corpus)
            initial = Encoders(start, target.seed, inputs, target.legs.plugins).start()
        for tuning in target.lessons:
            miner = run.rerank.mine
            cross_encoder = TrainCross(
                pairs=encoders.pairs(tuning) if miner == "none" else encoders.mined_by_retriever(miner, tuning),
                begun=cross_encoder or initial,
                config=run.rerank.train,
                start=None if cross_encoder or initial else _weights(reranker.backbone, inputs),
                seed=target.seed,
                compute=reranker.compute,
                backbone=reranker.backbone,
                of=tuning.name,
                notes=self.notes,
            )
        if cross_encoder is None:
            raise PluginError(f"{self.label} has no pairs to train a cross-encoder on")
        return cross_encoder


def _weights(model: str, inputs: Inputs) -> Json:
    """Return what decides a cross-encoder's weights. Raises `UsageError` where its folder is not there."""
    folder = Path(model).expanduser()
    if model.startswith(("/", ".", "~")) and not folder.is_dir():
        raise UsageError(
            f"{folder}: found no such folder, expected a cross-encoder: a folder of a sequence classifier, or a "
            "Hugging Face id"
        )
    return weights(model, inputs)


def parts_of(name: str) -> tuple[str, ...]:
    """Split the name of a method as typed, `bm25+msm`. Raises `UsageError` for more than two parts, or equal ones."""
    parts = tuple(part.strip() for part in name.split(JOINT))
    if len(parts) > _TWO or not all(parts) or len(set(parts)) != len(parts):
        raise UsageError(f"found --method {name}, expected one method, or two different ones like bm25+msm")
    return parts


def combined(names: Sequence[str], systems: Sequence[System], reranker: Reranker | None) -> list[System]:
    """Add fused and re-ranked systems. Raises `UsageError` for a pair one of whose methods is several systems."""
    all_systems = list(systems)
    for name in names:
        parts = parts_of(name)
        if len(parts) == _TWO:
            all_systems.append(_fused([_only(part, name, systems) for part in parts]))
    if reranker is None:
        return all_systems
    return [
        *all_systems,
        *(
            Reranked(system.ending("rerank"), system.method, system.resolved, system, reranker)
            for system in all_systems
        ),
    ]


def _only(method: str, name: str, systems: Sequence[System]) -> System:
    """The one system of a method, leaving out its untrained start and its twins (of two readouts, the protocol's)."""
    candidates = [
        system for system in systems if system.method.name == method and not system.untrained and system.post is None
    ]
    matches = [system for system in candidates if not system.protocol] or candidates
    if len(matches) != 1:
        labels = ", ".join(system.label for system in matches)
        raise UsageError(f"found --method {name}, where {method} stands for {len(matches)} systems ({labels}); run one")
    return matches[0]


def _fused(parts: Sequence[System]) -> Fused:
    first, second = parts
    methods = first.method, second.method
    method = Method(
        name=JOINT.join(part.name for part in methods),
        version=JOINT.join(part.version for part in methods),
        summary=f"The runs of {methods[0].name} and {methods[1].name}, fused.",
        citation="; ".join(part.citation for part in methods),
        config=Config,
        deterministic=all(part.deterministic for part in methods),
        trains=False,
        settings=tuple(dict.fromkeys(name for part in methods for name in part.settings)),  # a part may stay untuned
    )
    return Fused(
        JOINT.join(part.label for part in parts),
        method,
        replace(next((part.resolved for part in parts if part.dense), first.resolved), method=Config()),
        first,
        second,
    )
