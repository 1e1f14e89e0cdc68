"""The nodes of mining: pairs → pool → its search by a retriever or an encoder → mine, and what enters their keys.

Their stages have names of their own, so that nobody takes the pool's vectors for those of a tested corpus. No node
rests on a task: judgements of tests cannot come near what is mined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from bench.config import resolve
from bench.data.mining import Rules
from bench.dense import Contract, Role
from bench.dense_keys import compute_of, encoder_folder, encoding, settings_of, versions
from bench.errors import PluginError
from bench.graph import Cost, Node, node
from bench.plugins import Plugins
from bench.stages import encode, index, mine, pool, read, search, search_dense
from bench.systems import System
from bench.tune import TuneConfig
from bench.tunings import Tuning
from bench.types import Json
from bench.workspace import Workspace

# Orders of magnitude on two cores of a server of 2023, for a store that has no experience yet.
_PAIRS, _PAIRS_POOLED, _TEXTS_ENCODED, _DOCUMENTS_INDEXED, _QUERIES_SEARCHED = 1e4, 1e4, 500.0, 5e3, 300.0
_PAIRS_MINED = 3e3


@dataclass(frozen=True)
class _Searched:
    """A search of the pool.

    Args:
        run: the node of its rankings.
        inputs: what scores further passages, by name.
        scores: (folders of those inputs) → what scores them.
    """

    run: Node
    inputs: Mapping[str, Node]
    scores: Callable[[Mapping[str, Path]], mine.Scores]


class MiningRecipes:
    """Makes the nodes between training pairs and the same pairs with mined negatives.

    Args:
        system: for whose tuning they are mined.
        tuning: says how.
        pairs: the node of the pairs.
    """

    def __init__(self, system: System, tuning: Tuning, pairs: Node) -> None:
        self._system, self._tuning, self._pairs = system, tuning, pairs

    def by_retriever(self, name: str, plugins: Plugins) -> Node:
        """Return the node of pairs mined by a method that indexes and searches, with its default settings.

        Args:
            name: of the method.
            plugins: who brings it.

        Raises:
            PluginError: the method searches with an encoder. UsageError: nobody brings it.
        """
        method = plugins.method(name)
        if method.retriever is None:
            raise PluginError(f"tune.mine={name}: {name} has no retriever, expected one that indexes and searches")
        retriever, config = method.retriever, resolve([method])[name]
        known = System(name, method, config)
        title, cost = f"{name} {self._name}", Cost(f"index {name}", _PAIRS, _DOCUMENTS_INDEXED)
        # The pool says its language when it is there; then version, libraries and pool decide what is resolved.
        identity = {"code": index.VERSION, **known.identity("")}
        pooled = self._pool()

        def indexed(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            return index.run(space, retriever(config.method), pool.corpus(folders["pool"], self._name))

        indexing = node("mine_index", title, identity, indexed, cost, {"pool": pooled}, settings_of(known))
        rules = self._rules

        def searched(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            given = retriever(config.method)
            return search.run(space, given, folders["index"], folders["pool"], rules, known.tag)

        identity = {"code": search.VERSION, **self._deep, "tag": known.tag}
        cost = Cost(f"search {name}", _PAIRS, _QUERIES_SEARCHED)
        inputs = {"index": indexing, "pool": pooled}
        run = node("mine_search", title, identity, searched, cost, inputs, settings_of(known))

        def scores(folders: Mapping[str, Path]) -> mine.Scores:
            return mine.by_retriever(retriever(config.method), folders["index"], folders["pairs"])

        return self._mine(name, pooled, _Searched(run, {"index": indexing}, scores))

    def by_encoder(self, encoder: Node, contract: Contract) -> Node:
        """Return the node of pairs mined by an encoder.

        Args:
            encoder: its node.
            contract: how it reads.
        """
        system, compute, pooled = self._system, compute_of(self._system), self._pool()
        passages = self._encoded(encoder, contract, pooled, "passage")
        queries = self._encoded(encoder, contract, pooled, "query")
        rules = self._rules
        identity: dict[str, Json] = {
            "code": [search.VERSION, search_dense.VERSION],
            **self._deep,
            "similarity": contract.similarity,
            "tag": system.method.name,
            "libraries": versions("numpy"),
        }

        def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            places = folders["queries"], folders["passages"], folders["pool"]
            return search_dense.run(space, *places, rules, contract.similarity, system.method.name, compute.device)

        vectors = {"queries": queries, "passages": passages}
        cost = Cost("search dense", _PAIRS, _QUERIES_SEARCHED)
        title, inputs = f"{system.label} {self._name}", {**vectors, "pool": pooled}
        run = node("mine_search", title, identity, work, cost, inputs, settings_of(system))

        def scores(folders: Mapping[str, Path]) -> mine.Scores:
            return mine.by_vectors(folders["queries"], folders["passages"], contract.similarity)

        return self._mine(system.label, pooled, _Searched(run, vectors, scores))

    @property
    def _name(self) -> str:
        """Of the pool."""
        return f"pool of {self._tuning.name}"

    @property
    def _rules(self) -> search.Rules:
        """How deep the pool is searched."""
        return search.Rules(self._tuning.config.mine_to, mine.TIE, drop_identical=False)

    @property
    def _deep(self) -> dict[str, Json]:
        """The same for a key."""
        return {"k": self._rules.k, "tie": self._rules.tie, "drop_identical": self._rules.drop_identical}

    def _pool(self) -> Node:
        """Pairs → their distinct passages; shared by every method."""

        def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            return pool.run(space, folders["pairs"])

        cost = Cost("pool", _PAIRS, _PAIRS_POOLED)
        return node("pool", self._tuning.name, {"code": pool.VERSION}, work, cost, {"pairs": self._pairs})

    def _encoded(self, encoder: Node, contract: Contract, pooled: Node, role: Role) -> Node:
        """The passages or the queries of the pool → vectors."""
        system, compute = self._system, compute_of(self._system)
        size = system.resolved.run.encode.batch_tokens

        def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            place, given = encoder_folder(encoder, folders["encoder"], role), folders["pool"]
            items = pool.corpus(given, self._name).items if role == "passage" else read.queries(given)
            return encode.run(space, items, place, contract, role, compute.device, compute.threads, size)

        cost = Cost("encode", _PAIRS, _TEXTS_ENCODED)
        title = f"{system.label} {'queries of the ' if role == 'query' else ''}{self._name}"
        inputs = {"encoder": encoder, "pool": pooled}
        return node("mine_encode", title, encoding(contract, role, compute), work, cost, inputs, settings_of(system))

    def _mine(self, who: str, pooled: Node, searched: _Searched) -> Node:
        """Rankings of the pool → pairs with hard negatives."""
        config = self._tuning.config
        rules = Rules(config.mine_from, config.mine_to, config.mine_keep, config.mine_margin)
        identity: dict[str, Json] = {
            "code": mine.VERSION,
            "from": rules.first,
            "to": rules.last,
            "keep": rules.keep,
            "margin": rules.margin,
        }

        def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            places = folders["pairs"], folders["pool"], folders["run"]
            return mine.run(space, *places, rules, searched.scores(folders))

        inputs = {"pairs": self._pairs, "pool": pooled, "run": searched.run, **searched.inputs}
        cost = Cost("mine", _PAIRS, _PAIRS_MINED)
        return node("mine", f"{who} {self._tuning.name}", identity, work, cost, inputs, settings_of(self._system))


def unmined(tuning: Tuning) -> Tuning:
    """Return a tuning on the pairs as they are: how negatives would be mined is as by default, and decides nothing."""
    fields = TuneConfig.model_fields
    plain = {name: fields[name].default for name in fields if name == "mine" or name.startswith("mine_")}
    return replace(tuning, config=tuning.config.model_copy(update=plain))
