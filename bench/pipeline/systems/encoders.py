"""Stages that make encoders: prepared corpora, starts, training pairs as they are or mined, fine-tunings.

Dev pairs, where a release has some, are stored like the others and enter the key of `tune`; they are never mined, and
nothing is mined for them.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from bench.core.encoder_config import EncoderConfig, Role
from bench.core.files import digest
from bench.data.pairs.mining import MiningRules
from bench.pipeline.compute import Compute
from bench.pipeline.fine_tunings import Tuning
from bench.pipeline.graph import GraphBuilder
from bench.pipeline.pretraining import PretrainingInputs
from bench.pipeline.settings import PrepareConfig, Variant, row_json
from bench.pipeline.stages.encode import MineEncode
from bench.pipeline.stages.index import MineIndex, method_identity
from bench.pipeline.stages.init import EncoderStage, Init, weights
from bench.pipeline.stages.mine import TIE, Mine
from bench.pipeline.stages.pairs import StorePairs
from bench.pipeline.stages.pool import BuildPool
from bench.pipeline.stages.prepare import Prepare
from bench.pipeline.stages.search import MineSearch, RankingOptions
from bench.pipeline.stages.search_dense import MineDenseSearch
from bench.pipeline.stages.tune import Tune
from bench.retrieval import poolers
from bench.retrieval.backbones import cached_commit
from bench.training.fine_tuning_config import FineTuningConfig
from bench.types import Json

Notes = Mapping[str, Json]
"""What is kept with an artefact and is no part of its key."""
Pairs = StorePairs | Mine
"""Training pairs as they are, or with mined hard negatives."""


def prepare(pretraining: PretrainingInputs, settings: PrepareConfig, notes: Notes, graph: GraphBuilder) -> Prepare:
    """Return the shards of a corpus; shared by every method on that corpus and tokenizer."""
    # The plain encoder config, so that methods which read the backbone in different ways share the shards.
    tokenizer = None if pretraining.scratch else backbone(pretraining.backbone, EncoderConfig(), notes, graph)
    stage = Prepare(
        backbone=tokenizer,
        corpus=pretraining.digest,
        settings=settings,
        documents=pretraining.documents,
        corpus_name=pretraining.corpus,
        named=pretraining.named,
        notes=notes,
    )
    return graph.intern(stage)


def scratch(
    pretraining: PretrainingInputs,
    encoder_config: EncoderConfig,
    seed: int,
    settings: PrepareConfig,
    notes: Notes,
    graph: GraphBuilder,
) -> Init:
    """Return an encoder with random weights, whose tokenizer is trained on the corpus."""
    stage = Init(
        shards=prepare(pretraining, settings, notes, graph),
        backbone=pretraining.backbone,
        encoder_config=encoder_config,
        seed=seed,
        place=pretraining.backbone,
        notes=notes,
    )
    return graph.intern(stage)


def backbone(
    name: str, encoder_config: EncoderConfig, notes: Notes, graph: GraphBuilder, *, new_pooler: bool = False
) -> Init:
    """Return a backbone that has weights and a tokenizer of its own, as an encoder.

    Args:
        name: a folder or a Hugging Face id.
        encoder_config: how it reads texts.
        notes: kept with the artefact.
        graph: what the stage is built with.
        new_pooler: a pooler is added that a training is to fill.

    Raises:
        UsageError: the folder cannot be read.
    """
    decided = weights(name, graph.inputs, lambda place: [place, *poolers.modules(place)])
    init = Init(backbone=decided, encoder_config=encoder_config, new_pooler=new_pooler or None, place=name, notes=notes)
    commit = cached_commit(name)
    if commit is not None and graph.inputs.metadata(init).get("revision") != commit:  # else made before it was known
        init = replace(init, revision=commit)
    return graph.intern(init)


def tuned(
    start: EncoderStage,
    tuning: Tuning,
    pairs: Pairs,
    seed: int,
    compute: Compute,
    label: str,
    notes: Notes,
    graph: GraphBuilder,
) -> Tune:
    """Return an encoder after a fine-tuning on pairs; `label` is for people."""
    dev = None if tuning.dev is None else graph.intern(StorePairs.of(tuning.dev, graph.inputs))
    config = without_mining(tuning.config)  # what was mined is in the pairs
    stage = Tune(start=start, pairs=pairs, dev=dev, config=config, seed=seed, compute=compute, label=label, notes=notes)
    return graph.intern(stage)


def without_mining(config: FineTuningConfig) -> FineTuningConfig:
    """Return a tuning on the pairs as they are: how negatives would be mined is as by default, and decides nothing."""
    return config.model_copy(update={"mine": FineTuningConfig.model_fields["mine"].default})


def store_pairs(tuning: Tuning, graph: GraphBuilder) -> StorePairs:
    """Return the pairs of a tuning as they are. Raises `UsageError` where a file cannot be read."""
    return graph.intern(StorePairs.of(tuning.pairs, graph.inputs))


def mined_by_retriever(tuning: Tuning, retriever: Variant, graph: GraphBuilder) -> Mine:
    """Return the pairs of a tuning with hard negatives mined by a method that indexes and searches by itself."""
    method, config, pairs = retriever.method, retriever.resolved.method, store_pairs(tuning, graph)
    notes: Notes = {"system": method.name, "settings": [row_json(row) for row in retriever.resolved.rows()]}
    pool = graph.intern(BuildPool(pairs=pairs, pairs_name=tuning.name))
    index = MineIndex(pool=pool, resolved=method.resolve(config, ""), method=method, config=config, notes=notes)
    tag = f"{method.name}-{digest(method_identity(method, config))[:8]}"
    ranking = MineSearch(index=index, pool=pool, rules=_depth(tuning), tag=tag, notes=notes)
    rules, name = _mining_rules(tuning), method.name
    return graph.intern(
        Mine(pairs=pairs, pool=pool, ranking=ranking, rules=rules, system_label=name, index=index, notes=notes)
    )


def mined_by_encoder(
    encoder: EncoderStage,
    encoder_config: EncoderConfig,
    tag: str,
    reading: Mapping[str, Any],
    tuning: Tuning,
    pairs: StorePairs,
    graph: GraphBuilder,
) -> Mine:
    """Return pairs with hard negatives mined by an encoder.

    Args:
        encoder: whose vectors rank the passages of the pairs.
        encoder_config: how it reads texts.
        tag: last column of the run.
        reading: what every stage is given that encodes by this encoder (`Dense.reading`).
        tuning: the fine-tuning that they are for.
        pairs: its pairs as they are.
        graph: what stages are built with.
    """
    pool = graph.intern(BuildPool(pairs=pairs, pairs_name=tuning.name))

    def encoded(role: Role) -> MineEncode:
        return MineEncode(encoder=encoder, role=role, encoder_config=encoder_config, pool=pool, **reading)

    queries, passages = encoded("query"), encoded("passage")
    label, notes = reading["system_label"], reading["notes"]
    ranking = MineDenseSearch(
        queries=queries,
        passages=passages,
        subset=pool,
        rules=_depth(tuning),
        similarity=encoder_config.similarity,
        tag=tag,
        device=reading["compute"].device,
        system_label=label,
        notes=notes,
    )
    return graph.intern(
        Mine(
            pairs=pairs,
            pool=pool,
            ranking=ranking,
            rules=_mining_rules(tuning),
            system_label=label,
            queries=queries,
            passages=passages,
            notes=notes,
        )
    )


def _depth(tuning: Tuning) -> RankingOptions:
    return RankingOptions(tuning.config.mine_to, TIE, drop_identical=False)


def _mining_rules(tuning: Tuning) -> MiningRules:
    config = tuning.config
    return MiningRules(config.mine_from, config.mine_to, config.mine_keep, config.mine_margin)
