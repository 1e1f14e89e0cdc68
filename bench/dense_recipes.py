"""The nodes of a dense method: prepare → init → train → encode → search, and everything that enters their keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.config import dump
from bench.config import identity as decisive
from bench.dense import Contract, TrainingJob
from bench.dense_keys import (
    LIBRARIES,
    backbone_of,
    chain,
    compute_of,
    encoder_folder,
    encoding,
    settings_of,
    versions,
)
from bench.encoding import poolers
from bench.errors import PluginError
from bench.graph import Cost, Node, node
from bench.post_recipes import PostRecipes
from bench.readouts import fixed
from bench.stages import encode, init, prepare, read, search, search_dense, train
from bench.systems import System
from bench.tune_recipes import TuneRecipes
from bench.types import Corpus, Json, Leg, Task
from bench.workspace import Workspace

if TYPE_CHECKING:
    from bench.pretraining import Pretraining
    from bench.recipes import Recipes
    from bench.tunings import Tuning

# Orders of magnitude on two cores of a server of 2023, for a store that has no experience yet.
_DOCUMENTS_PREPARED, _TOKENS_TRAINED, _TEXTS_ENCODED, _QUERIES_SEARCHED = 2e3, 3e4, 500.0, 500.0
_DOCUMENTS = 20_000.0
_FLOPS_A_TOKEN = 2.5e6  # of scratch:2x128
_INIT = Cost("init", 1.0, 0.2)


class DenseRecipes:
    """Makes the nodes of systems that have an encoder.

    Args:
        recipes: the common ones.
    """

    def __init__(self, recipes: Recipes) -> None:
        self._recipes = recipes

    def search(
        self,
        system: System,
        seed: int,
        task: Task,
        leg: Leg,
        title: str,
        k: int,
        tunings: Sequence[Tuning] = (),
    ) -> tuple[Node, ...]:
        """Return the nodes from the corpus's and the leg's checks to the run, the run last.

        Raises:
            PluginError: the method has no encoder.
        """
        tuning = TuneRecipes(self._recipes, system, seed, self._recipes.plugins)
        encoder = tuning.tuned(self.encoder(system, seed), tunings)
        contract = self.contract(system, task, tunings)
        checked = self._recipes.validate(leg.corpus)
        reading = self._recipes.read(leg, title, system.resolved.run.data.unknown_ids)
        passages = self._passages(system, encoder, contract, leg.corpus, checked)
        queries = self._queries(system, encoder, contract, title, reading)
        rules = search.Rules(k, task.tie, task.drop_identical)
        identity: dict[str, Json] = {
            "code": [search.VERSION, search_dense.VERSION],
            "k": k,
            "tie": task.tie,
            "drop_identical": task.drop_identical,
            "similarity": contract.similarity,
            "tag": system.tag,
            "libraries": versions("numpy"),
        }

        def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            places = folders["queries"], folders["passages"], folders["leg"]
            return search_dense.run(space, *places, rules, contract.similarity, system.tag, compute.device)

        compute = compute_of(system)
        cost = Cost("search dense", reading.cost.units, _QUERIES_SEARCHED)
        inputs = {"queries": queries, "passages": passages, "leg": reading}
        processed: Sequence[Node] = ()
        if system.post is not None:
            shards = self._prepare(system, system.post)
            processed = PostRecipes(system, seed, encoder, contract, shards, leg).nodes(passages, queries, reading)
            inputs |= {"passages": processed[-2], "queries": processed[-1]}
        label = f"{system.label} {title}"
        return (
            *chain(encoder),
            checked,
            reading,
            passages,
            queries,
            *processed,
            node("search", label, identity, work, cost, inputs, settings_of(system)),
        )

    def contract(self, system: System, task: Task, tunings: Sequence[Tuning] = ()) -> Contract:
        """How texts are read for a task: the method's contract, tunings, what the task fixes, what the settings say.

        A system that reads as the protocol says takes what the task's readout says over its tunings. No setting changes
        a similarity that the task fixes. Post-processed vectors are compared by cosine where neither the protocol nor
        a setting says otherwise.

        Raises:
            PluginError: the method has no encoder.
            UsageError: the protocol's layer goes by the number of layers, and nothing says how many there are.
        """
        if system.method.contract is None:
            raise PluginError(f"method {system.method.name} has neither a retriever nor an encoder's contract")
        contract = system.method.contract(system.resolved.method)
        for tuning in tunings:
            contract = tuning.config.contract(contract)
        said: dict[str, Any] = {}
        if system.protocol and task.readout:
            said |= fixed(task.readout, backbone_of(system))
        if task.lengths:
            said |= {"query_length": task.lengths[0], "passage_length": task.lengths[1]}
        said |= system.readout
        contract = replace(contract, **said)
        processed = system.post is not None and "similarity" not in said
        if processed and system.resolved.run.post.similarity == "cos":
            contract = replace(contract, similarity="cos")
        return replace(contract, similarity=task.similarity) if task.similarity else contract

    def encoder(self, system: System, seed: int) -> Node:
        """Return the node whose artefact is the encoder: `train`, or `init` for one that is not trained."""
        start = self.start(system, seed)
        given, trainer = system.pretraining, system.method.trainer
        if given is None or trainer is None or system.untrained:
            return start
        compute = compute_of(system)
        job = TrainingJob(given.tokens, seed, compute.device, compute.threads, given.flops)
        method = system.method
        identity: dict[str, Json] = {
            "code": train.VERSION,
            "method": method.name,
            "version": method.version,
            "config": decisive(system.resolved.method),
            "tokens": given.tokens,
            "flops": given.flops,
            "seed": seed,
            "compute": compute.identity(),
            "libraries": versions(*LIBRARIES, *method.libraries),
        }

        def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            return train.run(space, trainer(system.resolved.method), folders["start"], folders["shards"], job)

        cost = Cost(f"train {method.name}", given.tokens or (given.flops or 0) / _FLOPS_A_TOKEN, _TOKENS_TRAINED)
        inputs = {"start": start, "shards": self._prepare(system, given)}
        return node(
            "train", f"{method.name} on {given.corpus}, seed {seed}", identity, work, cost, inputs, settings_of(system)
        )

    def start(self, system: System, seed: int = 0) -> Node:
        """Backbone → encoder folder, before any training; the seed is of random weights."""
        given, method = system.pretraining, system.method
        contract = method.contract(system.resolved.method) if method.contract else Contract()
        if given is None or not given.scratch:
            return self._start(system, backbone_of(system), contract)
        identity: dict[str, Json] = {
            "code": init.VERSION,
            "backbone": given.backbone,
            "contract": contract.dump(),
            "seed": seed,
            "libraries": versions(*LIBRARIES),
        }

        def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            return init.run(space, given.backbone, folders["shards"] / "tokenizer", contract, seed)

        inputs = {"shards": self._prepare(system, given)}
        return node("init", f"{given.backbone}, seed {seed}", identity, work, _INIT, inputs, settings_of(system))

    def _start(self, system: System, backbone: str, contract: Contract) -> Node:
        """A backbone that has weights and a tokenizer of its own → encoder folder."""
        identity = {
            "code": init.VERSION,
            "backbone": self._backbone(backbone),
            "contract": contract.dump(),
            "libraries": versions(*LIBRARIES),
        }
        new_pooler = contract.pooling == "pooler" and system.method.trainer is not None
        if new_pooler:  # random, where the backbone has none; no other system may take it for a trained one
            identity["new_pooler"] = True

        def work(space: Workspace, _: Mapping[str, Path]) -> Mapping[str, Json]:
            return init.run(space, backbone, None, contract, 0, new_pooler=new_pooler)

        return node("init", Path(backbone).name, identity, work, _INIT, provenance=settings_of(system))

    def _prepare(self, system: System, given: Pretraining) -> Node:
        """Documents → shards; shared by every method on that corpus and tokenizer."""
        settings = system.resolved.run.prepare
        # The plain contract, so that methods which read the backbone in different ways share the shards.
        inputs = {} if given.scratch else {"backbone": self._start(system, given.backbone, Contract())}
        identity: dict[str, Json] = {
            "code": prepare.VERSION,
            "corpus": given.digest,
            "settings": dump(settings),
            "libraries": versions("tokenizers", "sentencex", "numpy"),
        }

        def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            return prepare.run(space, given.documents, folders.get("backbone"), settings)

        cost = Cost("prepare", _DOCUMENTS, _DOCUMENTS_PREPARED)
        return node("prepare", given.corpus, identity, work, cost, inputs, settings_of(system))

    def _backbone(self, name: str) -> Json:
        """What decides a backbone's weights: its files' hashes where it is a folder, else its name."""
        folder = Path(name).expanduser()
        if not folder.is_dir():
            return name
        places = [folder, *poolers.modules(folder)]
        files = [path for place in places for path in sorted(place.iterdir()) if path.is_file()]
        return {path.relative_to(folder).as_posix(): self._recipes.hash(path) for path in files}

    def _passages(self, system: System, encoder: Node, contract: Contract, corpus: Corpus, checked: Node) -> Node:
        """Corpus → vectors."""
        compute, size = compute_of(system), system.resolved.run.encode.batch_tokens
        identity = {**encoding(contract, "passage", compute), "corpus": self._recipes.source(corpus.items)}

        def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            place = encoder_folder(encoder, folders["encoder"], "passage")
            return encode.run(space, corpus.items, place, contract, "passage", compute.device, compute.threads, size)

        cost = Cost("encode", checked.cost.units, _TEXTS_ENCODED)
        inputs = {"encoder": encoder, "corpus": checked}
        return node("encode", f"{system.label} {corpus.id}", identity, work, cost, inputs, settings_of(system))

    def _queries(self, system: System, encoder: Node, contract: Contract, title: str, reading: Node) -> Node:
        """Judged queries of a leg → vectors."""
        compute, size = compute_of(system), system.resolved.run.encode.batch_tokens

        def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            place, queries = encoder_folder(encoder, folders["encoder"]), read.queries(folders["leg"])
            return encode.run(space, queries, place, contract, "query", compute.device, compute.threads, size)

        identity = encoding(contract, "query", compute)
        cost = Cost("encode", reading.cost.units, _TEXTS_ENCODED)
        inputs = {"encoder": encoder, "leg": reading}
        return node("encode", f"{system.label} queries of {title}", identity, work, cost, inputs, settings_of(system))
