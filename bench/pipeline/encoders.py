"""Which stages make a dense system's encoder: prepare → init → train, then pairs (→ mine) → tune for each fine-tuning.

Dev pairs, where a release has some, are stored like the others and enter the key of `tune`; they are never mined, and
nothing is mined for them. No stage rests on a task: judgements of tests cannot come near what is mined.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from bench.core.contract import Contract, Role
from bench.core.errors import PluginError
from bench.data.pairs import mining
from bench.pipeline.compute import Compute
from bench.pipeline.fine_tunings import Tuning
from bench.pipeline.pretraining import Pretraining
from bench.pipeline.settings import resolve
from bench.pipeline.stages.encode import MineEncode
from bench.pipeline.stages.index import MineIndex
from bench.pipeline.stages.init import EncoderStage, Init, weights
from bench.pipeline.stages.mine import TIE, Mine
from bench.pipeline.stages.pairs import StorePairs
from bench.pipeline.stages.pool import BuildPool
from bench.pipeline.stages.prepare import Prepare
from bench.pipeline.stages.search import MineSearch, Rules
from bench.pipeline.stages.search_dense import MineDenseSearch
from bench.pipeline.stages.train import Train
from bench.pipeline.stages.tune import Tune
from bench.pipeline.systems import Sparse, System
from bench.plugins import Plugins
from bench.retrieval import poolers
from bench.retrieval.backbones import cached_commit
from bench.store.inputs import Inputs
from bench.training.fine_tuning_config import FineTuningConfig
from bench.types import Json


@dataclass(frozen=True)
class Encoders:
    """Builds the stages of one system's encoder."""

    system: System  # a dense one, or one whose re-ranker is trained
    seed: int  # of random weights, pretraining and tuning
    inputs: Inputs
    plugins: Plugins  # who brings the retriever that hard negatives are mined by

    @property
    def compute(self) -> Compute:
        """The machine. Raises `PluginError` where there is none."""
        if self.system.compute is None:
            raise PluginError(f"method {self.system.method.name} has no encoder")
        return self.system.compute

    @property
    def notes(self) -> dict[str, Json]:
        """What is kept with every artefact."""
        return self.system.notes

    def final(self, tunings: Sequence[Tuning]) -> EncoderStage:
        """Return the encoder after pretraining and all tunings; raises as `tuned` does."""
        return self.tuned(self.pretrained(), tunings)

    def pretrained(self) -> EncoderStage:
        """Return the encoder before any tuning: `train`, or `init` for one that is not trained."""
        start, pretraining, method = self.start(), self.system.pretraining, self.system.method
        if pretraining is None or method.trainer is None or self.system.untrained:
            return start
        return Train(
            start=start,
            shards=self.prepare(pretraining),
            method=method.name,
            version=method.version,
            config=self.system.resolved.method,
            tokens=pretraining.tokens,
            flops=pretraining.flops,
            steps=pretraining.steps,
            seed=self.seed,
            compute=self.compute,
            of=method,
            corpus=pretraining.corpus,
            notes=self.notes,
        )

    def start(self) -> Init:
        """Return the encoder before any training; the seed is of random weights."""
        pretraining, method = self.system.pretraining, self.system.method
        contract = method.contract(self.system.resolved.method) if method.contract else Contract()
        if pretraining is None or not pretraining.scratch:
            return self.backbone(backbone_of(self.system), contract)
        return Init(
            shards=self.prepare(pretraining),
            backbone=pretraining.backbone,
            contract=contract,
            seed=self.seed,
            place=pretraining.backbone,
            notes=self.notes,
        )

    def backbone(self, name: str, contract: Contract) -> Init:
        """Return a backbone that has weights and a tokenizer of its own, as an encoder."""
        new_pooler = contract.pooling == "pooler" and self.system.method.trainer is not None
        decided = weights(name, self.inputs, lambda place: [place, *poolers.modules(place)])
        init = Init(backbone=decided, contract=contract, new_pooler=new_pooler or None, place=name, notes=self.notes)
        commit = cached_commit(name)
        if commit is None or self.inputs.facts(init).get("revision") == commit:  # made from it before it was known
            return init
        return replace(init, revision=commit)

    def prepare(self, pretraining: Pretraining) -> Prepare:
        """Return the shards of a corpus; shared by every method on that corpus and tokenizer."""
        return Prepare(
            # The plain contract, so that methods which read the backbone in different ways share the shards.
            backbone=None if pretraining.scratch else self.backbone(pretraining.backbone, Contract()),
            corpus=pretraining.digest,
            settings=self.system.resolved.run.prepare,
            documents=pretraining.documents,
            of=pretraining.corpus,
            named=pretraining.named,
            notes=self.notes,
        )

    def tuned(self, encoder: EncoderStage, tunings: Sequence[Tuning]) -> EncoderStage:
        """Return an encoder after all tunings, itself where there is none; raises as `mined_by_retriever` does.

        Where an encoder mines for itself, it is tuned twice from the same start: on the pairs as they are, then on what
        the first tuning has mined (Contriever, section 4.2).
        """
        method, config = self.system.method, self.system.resolved.method
        contract = method.contract(config) if method.contract else Contract()
        for tuning in tunings:
            contract = tuning.config.contract(contract)
            pairs, miner = self.pairs(tuning), tuning.config.mine
            if miner == "none":
                learnt: StorePairs | Mine = pairs
            elif miner == "self":
                first = self._tune(encoder, tuning, pairs, " (before mining)")
                learnt = self._mined_by_encoder(first, contract, tuning, pairs)
            else:
                learnt = self.mined_by_retriever(miner, tuning)
            encoder = self._tune(encoder, tuning, learnt)
        return encoder

    def pairs(self, tuning: Tuning) -> StorePairs:
        """Return the pairs of a tuning."""
        return StorePairs(pairs=self.inputs.take(tuning.pairs))

    def _tune(self, start: EncoderStage, tuning: Tuning, pairs: StorePairs | Mine, note: str = "") -> Tune:
        return Tune(
            start=start,
            pairs=pairs,
            dev=None if tuning.dev is None else StorePairs(pairs=self.inputs.take(tuning.dev)),
            config=unmined(tuning.config),  # what was mined is in the pairs
            seed=self.seed,
            compute=self.compute,
            label=f"{self.system.label} on {tuning.name}, seed {self.seed}{note}",
            notes=self.notes,
        )

    def mined_by_retriever(self, name: str, tuning: Tuning) -> Mine:
        """Return pairs mined by a method that indexes and searches, with its default settings.

        Raises `PluginError` for a method that searches with an encoder, `UsageError` where nobody brings it.
        """
        method = self.plugins.method(name)
        if method.retriever is None or method.contract is not None:
            raise PluginError(
                where=f"tune.mine={name}",
                found=f"{name}, which needs an encoder of its own" if method.retriever else f"{name}, no retriever",
                expected="a method that indexes and searches by itself, e.g. bm25",
            )
        retriever = Sparse(name, method, resolve([method])[name])
        pairs = self.pairs(tuning)
        pool, notes = BuildPool(pairs=pairs, of=tuning.name), retriever.notes
        index = MineIndex(
            pool=pool,
            resolved=method.resolve(retriever.resolved.method, ""),
            method=method,
            config=retriever.resolved.method,
            notes=notes,
        )
        ranking = MineSearch(index=index, pool=pool, rules=_depth(tuning), tag=retriever.tag, notes=notes)
        return self._mine(tuning, pairs, pool, ranking, name, index=index)

    def _mined_by_encoder(self, encoder: EncoderStage, contract: Contract, tuning: Tuning, pairs: StorePairs) -> Mine:
        system, pool, notes = self.system, BuildPool(pairs=pairs, of=tuning.name), self.notes

        def encoded(role: Role) -> MineEncode:
            return MineEncode(encoder=encoder, role=role, contract=contract, pool=pool, **reading(system, self.compute))

        queries, passages = encoded("query"), encoded("passage")
        ranking = MineDenseSearch(
            queries=queries,
            passages=passages,
            leg=pool,
            rules=_depth(tuning),
            similarity=contract.similarity,
            tag=system.method.name,
            device=self.compute.device,
            who=system.label,
            notes=notes,
        )
        return self._mine(tuning, pairs, pool, ranking, system.label, queries=queries, passages=passages)

    def _mine(
        self,
        tuning: Tuning,
        pairs: StorePairs,
        pool: BuildPool,
        ranking: MineSearch | MineDenseSearch,
        miner: str,
        **scored: Any,
    ) -> Mine:
        """Return pairs with hard negatives from a ranking of their pool; `scored` are what scores further passages."""
        config = tuning.config
        rules = mining.MiningRules(config.mine_from, config.mine_to, config.mine_keep, config.mine_margin)
        return Mine(pairs=pairs, pool=pool, ranking=ranking, rules=rules, who=miner, notes=self.notes, **scored)


def reading(system: System, compute: Compute) -> dict[str, Any]:
    """Return what every `encode` of a system is given."""
    size = system.resolved.run.encode.batch_tokens
    return {"compute": compute, "batch_tokens": size, "who": system.label, "notes": system.notes}


def backbone_of(system: System) -> str:
    """Return where a dense system's encoder comes from: a folder, an id or `scratch:LxH`; empty where nothing says."""
    pretraining = system.pretraining
    return pretraining.backbone if pretraining else str(getattr(system.resolved.method, "model", ""))


def unmined(config: FineTuningConfig) -> FineTuningConfig:
    """Return a tuning on the pairs as they are: how negatives would be mined is as by default, and decides nothing."""
    fields = FineTuningConfig.model_fields
    plain = {name: fields[name].default for name in fields if name == "mine" or name.startswith("mine_")}
    return config.model_copy(update=plain)


def _depth(tuning: Tuning) -> Rules:
    return Rules(tuning.config.mine_to, TIE, drop_identical=False)
