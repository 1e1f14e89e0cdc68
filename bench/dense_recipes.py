"""The nodes of a dense method: prepare → init → train → encode → search, and everything that enters their keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from bench.config import dump
from bench.config import identity as decisive
from bench.dense import Contract, TrainingJob
from bench.errors import PluginError
from bench.graph import Cost, Node, node
from bench.stages import search
from bench.systems import System, row_json
from bench.types import Corpus, Json, Leg, Task
from bench.workspace import Workspace

if TYPE_CHECKING:
    from bench.pretraining import Compute, Pretraining
    from bench.recipes import Recipes

# Orders of magnitude on two cores of a server of 2023, for a store that has no experience yet.
_DOCUMENTS_PREPARED, _TOKENS_TRAINED, _TEXTS_ENCODED, _QUERIES_SEARCHED = 2e3, 3e4, 500.0, 500.0
_DOCUMENTS = 20_000.0
_INIT = Cost("init", 1.0, 0.2)
_LIBRARIES = ("torch", "transformers", "tokenizers", "numpy")


class DenseRecipes:
    """Makes the nodes of systems that have an encoder.

    Args:
        recipes: the common ones.
    """

    def __init__(self, recipes: Recipes) -> None:
        self._recipes = recipes

    def search(self, system: System, seed: int, task: Task, leg: Leg, title: str, k: int) -> tuple[Node, ...]:
        """Return the nodes from the corpus's and the leg's checks to the run, the run last.

        Raises:
            PluginError: the method has no encoder.
        """
        encoder = self._encoder(system, seed)
        contract = self.contract(system, task)
        checked = self._recipes.validate(leg.corpus)
        reading = self._recipes.read(leg, title, system.resolved.run.data.unknown_ids)
        passages = self._passages(system, encoder, contract, leg.corpus, checked)
        queries = self._queries(system, encoder, contract, title, reading)
        rules = search.Rules(k, task.tie, task.drop_identical)
        identity: dict[str, Json] = {
            "code": search.VERSION,
            "k": k,
            "tie": task.tie,
            "drop_identical": task.drop_identical,
            "similarity": contract.similarity,
            "tag": system.tag,
            "libraries": _versions("numpy"),
        }

        def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            from bench.stages import search_dense

            places = folders["queries"], folders["passages"], folders["leg"]
            return search_dense.run(space, *places, rules, contract.similarity, system.tag, compute.device)

        compute = _compute(system)
        cost = Cost("search dense", reading.cost.units, _QUERIES_SEARCHED)
        inputs = {"queries": queries, "passages": passages, "leg": reading}
        label = f"{system.label} {title}"
        return (
            *_chain(encoder),
            checked,
            reading,
            passages,
            queries,
            node("search", label, identity, work, cost, inputs, _settings(system)),
        )

    def contract(self, system: System, task: Task) -> Contract:
        """How texts are read for a task: the method's contract, what the settings say over it, what the task fixes."""
        if system.method.contract is None:
            raise PluginError(f"method {system.method.name} has neither a retriever nor an encoder's contract")
        contract = replace(system.method.contract(system.resolved.method), **system.readout)
        return replace(contract, similarity=task.similarity) if task.similarity else contract

    def _encoder(self, system: System, seed: int) -> Node:
        """The node whose artefact is the encoder: `train`, or `init` for one that is not trained."""
        start = self._init(system, seed)
        given, trainer = system.pretraining, system.method.trainer
        if given is None or trainer is None or system.untrained:
            return start
        compute = _compute(system)
        job = TrainingJob(given.tokens, seed, compute.device, compute.threads)
        method = system.method
        identity: dict[str, Json] = {
            "method": method.name,
            "version": method.version,
            "config": decisive(system.resolved.method),
            "tokens": given.tokens,
            "seed": seed,
            "compute": compute.identity(),
            "libraries": _versions(*_LIBRARIES, *method.libraries),
        }

        def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            from bench.stages import train

            return train.run(space, trainer(system.resolved.method), folders["start"], folders["shards"], job)

        cost = Cost(f"train {method.name}", float(given.tokens), _TOKENS_TRAINED)
        inputs = {"start": start, "shards": self._prepare(system, given)}
        return node(
            "train", f"{method.name} on {given.corpus}, seed {seed}", identity, work, cost, inputs, _settings(system)
        )

    def _init(self, system: System, seed: int) -> Node:
        """Backbone → encoder folder, before any training."""
        given, method = system.pretraining, system.method
        contract = method.contract(system.resolved.method) if method.contract else Contract()
        if given is None:
            return self._start(system, str(getattr(system.resolved.method, "model", "")), contract)
        if not given.scratch:
            return self._start(system, given.backbone, contract)
        identity: dict[str, Json] = {
            "backbone": given.backbone,
            "contract": contract.dump(),
            "seed": seed,
            "libraries": _versions(*_LIBRARIES),
        }

        def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            from bench.stages import init

            return init.run(space, given.backbone, folders["shards"] / "tokenizer", contract, seed)

        inputs = {"shards": self._prepare(system, given)}
        return node("init", f"{given.backbone}, seed {seed}", identity, work, _INIT, inputs, _settings(system))

    def _start(self, system: System, backbone: str, contract: Contract) -> Node:
        """A backbone that has weights and a tokenizer of its own → encoder folder."""
        identity = {
            "backbone": self._backbone(backbone),
            "contract": contract.dump(),
            "libraries": _versions(*_LIBRARIES),
        }

        def work(space: Workspace, _: Mapping[str, Path]) -> Mapping[str, Json]:
            from bench.stages import init

            return init.run(space, backbone, None, contract, 0)

        return node("init", Path(backbone).name, identity, work, _INIT, provenance=_settings(system))

    def _prepare(self, system: System, given: Pretraining) -> Node:
        """Documents → shards; shared by every method on that corpus and tokenizer."""
        settings = system.resolved.run.prepare
        # The plain contract, so that methods which read the backbone in different ways share the shards.
        inputs = {} if given.scratch else {"backbone": self._start(system, given.backbone, Contract())}
        identity: dict[str, Json] = {
            "corpus": given.digest,
            "settings": dump(settings),
            "libraries": _versions("tokenizers", "sentencex", "numpy"),
        }

        def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            from bench.stages import prepare

            return prepare.run(space, given.documents, folders.get("backbone"), settings)

        cost = Cost("prepare", _DOCUMENTS, _DOCUMENTS_PREPARED)
        return node("prepare", given.corpus, identity, work, cost, inputs, _settings(system))

    def _backbone(self, name: str) -> Json:
        """What decides a backbone's weights: its files' hashes where it is a folder, else its name."""
        folder = Path(name).expanduser()
        if not folder.is_dir():
            return name
        return {path.name: self._recipes.hash(path) for path in sorted(folder.iterdir()) if path.is_file()}

    def _passages(self, system: System, encoder: Node, contract: Contract, corpus: Corpus, checked: Node) -> Node:
        """Corpus → vectors."""
        compute, size = _compute(system), system.resolved.run.encode.batch_tokens
        identity = {**_encoding(contract, "passage", compute), "corpus": self._recipes.source(corpus.items)}

        def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            from bench.stages import encode

            place = encoder_folder(encoder, folders["encoder"])
            return encode.run(space, corpus.items, place, contract, "passage", compute.device, compute.threads, size)

        cost = Cost("encode", checked.cost.units, _TEXTS_ENCODED)
        inputs = {"encoder": encoder, "corpus": checked}
        return node("encode", f"{system.label} {corpus.id}", identity, work, cost, inputs, _settings(system))

    def _queries(self, system: System, encoder: Node, contract: Contract, title: str, reading: Node) -> Node:
        """Judged queries of a leg → vectors."""
        compute, size = _compute(system), system.resolved.run.encode.batch_tokens

        def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            from bench.stages import encode, read

            place, queries = encoder_folder(encoder, folders["encoder"]), read.queries(folders["leg"])
            return encode.run(space, queries, place, contract, "query", compute.device, compute.threads, size)

        identity = _encoding(contract, "query", compute)
        cost = Cost("encode", reading.cost.units, _TEXTS_ENCODED)
        inputs = {"encoder": encoder, "leg": reading}
        return node("encode", f"{system.label} queries of {title}", identity, work, cost, inputs, _settings(system))


def encoder_folder(item: Node, folder: Path) -> Path:
    """Where the encoder lies in the artefact of `train` or `init`."""
    return folder / "encoder" if item.recipe.stage == "train" else folder


def _encoding(contract: Contract, role: str, compute: Compute) -> dict[str, Json]:
    """What can change vectors; the similarity cannot, and neither can the other role's prompt and length."""
    other = "passage" if role == "query" else "query"
    read = {key: value for key, value in contract.dump().items() if not key.startswith(other) and key != "similarity"}
    return {"role": role, "contract": read, "compute": compute.identity(), "libraries": _versions(*_LIBRARIES)}


def _chain(encoder: Node) -> tuple[Node, ...]:
    """The encoder's node with what stands before it, first things first."""
    before = [part for given in encoder.inputs.values() for part in _chain(given)]
    return (*{part.key: part for part in before}.values(), encoder)


def _compute(system: System) -> Compute:
    if system.compute is None:
        raise PluginError(f"method {system.method.name} has no encoder")
    return system.compute


def _versions(*names: str) -> dict[str, Json]:
    return {name: version(name) for name in sorted(set(names))}


def _settings(system: System) -> dict[str, Json]:
    """The resolved settings with their origins and sources, kept beside every artefact."""
    return {"system": system.label, "settings": [row_json(row) for row in system.resolved.rows()]}
