"""What a system is, whatever it is tested on and with whatever seed: its graph on a placeholder subset, and the hash.

Nothing is listed here that stages know: what a stage chooses is in its key and in the hash of every system that the
stage belongs to. Outside the hash, by declaration, are what stages mark `bench.store.stage.ENVIRONMENT`, and the
address of a result: data, tasks, seeds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

from bench.core.files import digest
from bench.core.system_graph import DIGITS, Graph, system_hash
from bench.pipeline.fine_tunings import PLACEHOLDER, Recipes, Tuning
from bench.pipeline.graph import GraphBuilder
from bench.pipeline.public_names import public
from bench.pipeline.systems.system import System
from bench.store.stage import Stage
from bench.training.fine_tuning_config import FineTuningConfig
from bench.types import Corpus, Json, Readout, Source, Subset, Task

PASSAGE_LANGUAGE, QUERY_LANGUAGE = "qaa", "qab"
"""Codes that ISO 639-2 reserves for local use. They differ, since what is done to one side alone must be seen."""

SEED = 0


@dataclass(frozen=True)
class SystemIdentity:
    """What makes a system with its fine-tunings this one and no other."""

    hash: str  # of the graph, with the method's name and version, 64 hexadecimal digits
    untuned_hash: str  # the same without fine-tunings: pages over several suites group by it
    graph: dict[str, dict[str, Json]]


def identify(system: System, builder: GraphBuilder) -> SystemIdentity:
    """Return the identity of a system, with what precedes the test on the placeholder task."""
    graph = _graph(system, builder)
    recipes = system.recipes
    tuned = recipes.encoder.get(PLACEHOLDER.id) or recipes.reranker.get(PLACEHOLDER.id)
    return SystemIdentity(
        hash_of(system, graph), hash_of(system, untuned_graph(system, builder) if tuned else graph), graph
    )


def hash_of(system: System, graph: Graph) -> str:
    """Return the hash of a system with that graph."""
    return system_hash(system.method.name, system.method.version, graph)


def untuned_graph(system: System, builder: GraphBuilder) -> dict[str, dict[str, Json]]:
    """Return the graph of a system without fine-tunings; a re-ranker that is trained here is trained on some pairs."""
    some_pairs = (Tuning("", source("pairs"), FineTuningConfig(), ""),) if system.reranker_training else ()
    recipes = Recipes(reranker={PLACEHOLDER.id: some_pairs}, dev=system.recipes.dev)
    return _graph(system.with_recipes(recipes), builder)


def _graph(system: System, builder: GraphBuilder) -> dict[str, dict[str, Json]]:
    language = system.resolved.run.data.language
    task, dev = placeholder("test", language), placeholder("dev", language)
    prepared = system.with_recipes(replace(system.recipes, dev={**system.recipes.dev, PLACEHOLDER.id: dev}))
    ranking = prepared.ranking(task, task.subsets[0], SEED, builder)
    return system_graph(ranking, partial(public, names=system.public_names))


def system_graph(ranking: Stage, public: Callable[[Any], Any] = lambda choices: choices) -> dict[str, dict[str, Json]]:
    """Return the graph of a system, inputs before what rests on them.

    Args:
        ranking: the stage that writes the run, on the placeholder subset.
        public: turns choices into what results may show, e.g. the name of a folder in place of its path.
    """
    digests: dict[str, str] = {}
    nodes: dict[str, dict[str, Json]] = {}
    for stage in ranking.chain():
        inputs: dict[str, Json] = {name: digests[producer.key] for name, producer in stage.key_inputs.items()}
        node: dict[str, Json] = {"stage": stage.name, "choices": public(stage.choices()), "inputs": inputs}
        digests[stage.key] = digest(node)[:DIGITS]
        nodes[digests[stage.key]] = node
    return nodes


def source(name: str) -> Source[Any]:
    """Return records that are never read."""
    return Source(f"<{name}>", f"<{name}>", (), lambda: iter(()))


@cache
def placeholder(split: str, language: str | None) -> Task:
    """Return the task that represents any task, on its `test` or `dev` questions.

    It is sharp: where a protocol may fix how texts are read it has a mark that equals no value, so that a setting over
    the protocol shows whatever the method's own value is; its languages differ, unless the user has named the language
    of his folder; its depth is 0, which no user's is.
    """
    marks: dict[str, Any] = dict.fromkeys(
        ("pooling", "layer", "normalise", "similarity", "title", "lowercase", "question_mark"), "<protocol>"
    )
    lengths: Any = ("<query length>", "<passage length>")
    corpus = Corpus("<corpus>", source("passages"), language or PASSAGE_LANGUAGE)
    queries, qrels = source(f"{split} queries"), source(f"{split} judgements")
    subset = Subset("", queries, qrels, corpus, language or QUERY_LANGUAGE)
    task = Task(PLACEHOLDER.id, "official", (subset,), ("nDCG@10",), depth=0)
    readout = replace(Readout("placeholder", lengths=lengths), **marks)
    prompts = {role: f"<{role} prompt of the suite>" for role in ("query", "passage")}
    return replace(task, readout=readout, lengths=lengths, prompts=prompts)
