"""From a cell of the grid to its nodes: which stages a leg takes, and everything that enters their keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.config import Row
from bench.dense_keys import chain, read_by
from bench.dense_recipes import DenseRecipes
from bench.fusion_recipes import FusionRecipes
from bench.graph import Cost, Node, node
from bench.plugins import Plugins
from bench.rerank_recipes import RerankRecipes
from bench.scoring.measures import parse
from bench.selection import Cell
from bench.stages import index, read, score, search, texts, validate
from bench.store import Store
from bench.systems import System, row_json
from bench.types import Corpus, Json, Leg, Retriever, Source, Task
from bench.workspace import Workspace

# Orders of magnitude on one core of a server of 2023, for a store that has no experience yet.
_DOCUMENTS_CHECKED, _JUDGEMENTS_READ, _DOCUMENTS_INDEXED, _QUERIES_SEARCHED, _QUERIES_SCORED = 1e5, 1e5, 5e3, 300.0, 1e4
_DOCUMENTS_COPIED = 1e5
_BYTES_A_DOCUMENT, _BYTES_A_QUERY = 800, 100


@dataclass(frozen=True)
class LegNodes:
    """The nodes of one leg for one system.

    Args:
        task: the task.
        leg: its leg.
        nodes: `validate`, `read`, `index`, `search`, `score`; `texts` before the search where answers are looked for.
        k: documents per query.
        depth: the deepest cut of the measures, None where one has no cut.
    """

    task: Task
    leg: Leg
    nodes: tuple[Node, ...]
    k: int
    depth: int | None

    @property
    def by_stage(self) -> dict[str, Node]:
        """Its nodes by verb; further ones of a verb (queries after passages, the other part's) get a number."""
        found: dict[str, Node] = {}
        for item in self.nodes:
            verb = item.recipe.stage
            again = sum(name.partition("-")[0] == verb for name in found)
            found[f"{verb}-{again + 1}" if again else verb] = item
        return found

    @property
    def libraries(self) -> dict[str, Json]:
        """Versions of every library that took part."""
        found: dict[str, Json] = {}
        for item in self.nodes:
            part = item.recipe.identity.get("libraries")
            found |= dict(part) if isinstance(part, Mapping) else {}
        return found

    @property
    def resolved(self) -> Json:
        """What the language or the task decided: an analyzer, or how texts became vectors."""
        made = self.by_stage
        if "index" in made:
            return made["index"].recipe.identity["resolved"]
        return read_by(next(item for item in self.nodes if "passages" in item.inputs and item.recipe.stage == "search"))

    @property
    def search(self) -> Node:
        """The node that writes the run."""
        return self.nodes[-2]

    @property
    def score(self) -> Node:
        """The node that writes the scores."""
        return self.nodes[-1]


class Recipes:
    """Makes nodes; the same question gives an equal node, so that cells share what they have in common.

    Args:
        store: for checksums of input files and what is known of corpora.
        plugins: for measures.
        own: the harness's own settings, kept beside the artefacts that no system has made.
    """

    def __init__(self, store: Store, plugins: Plugins, own: Sequence[Row]) -> None:
        """Remember them."""
        self._own: dict[str, Json] = {"settings": [row_json(row) for row in own]}
        self._store, self._measures, self.plugins = store, plugins.measures_by_name, plugins
        self._hashes: dict[Path, str] = {}

    def legs(self, cell: Cell) -> Iterator[LegNodes]:
        """Yield the nodes of every leg of a cell.

        Raises:
            UsageError: an input file that cannot be read; something that the method needs is not installed.
        """
        for task in cell.tasks:
            for leg in task.legs:
                yield self._leg(cell, task, leg)

    def validate(self, corpus: Corpus) -> Node:
        """Corpus → checked."""
        identity: dict[str, Json] = {
            "code": validate.VERSION,
            "corpus": self.source(corpus.items),
            "documents": corpus.documents,
        }
        cost = Cost("validate", self._size(corpus.items, _BYTES_A_DOCUMENT, corpus.documents), _DOCUMENTS_CHECKED)
        return node(
            "validate", corpus.id, identity, lambda work, _: validate.run(work, corpus), cost, provenance=self._own
        )

    def read(self, leg: Leg, title: str, unknown: str) -> Node:
        """Leg → queries and judgements, checked against the corpus."""
        corpus = self.validate(leg.corpus)
        identity: dict[str, Json] = {
            "code": read.VERSION,
            "queries": self.source(leg.queries),
            "qrels": None if leg.qrels is None else self.source(leg.qrels),
            "answers": None if leg.answers is None else self.source(leg.answers),
            "language": leg.language,
            "counts": dict(leg.counts),
            "unknown_ids": unknown,
            "candidates": None if leg.candidates is None else self.source(leg.candidates),
        }

        def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            return read.run(space, leg, folders["corpus"], unknown)

        judging = leg.qrels or leg.answers or leg.queries
        size = self._size(judging, _BYTES_A_QUERY, leg.counts.get("qrels" if leg.qrels else "queries"))
        cost = Cost("read", size, _JUDGEMENTS_READ)
        return node("read", title, identity, work, cost, {"corpus": corpus}, provenance=self._own)

    def texts(self, corpus: Corpus) -> Node:
        """Corpus → its passages' texts, to be looked up; shared by every task that looks for answers in it."""
        checked, source = self.validate(corpus), corpus.texts or corpus.items
        identity: dict[str, Json] = {"code": texts.VERSION, "corpus": self.source(source)}
        cost = Cost("texts", checked.cost.units, _DOCUMENTS_COPIED)
        return node(
            "texts",
            corpus.id,
            identity,
            lambda work, _: texts.run(work, corpus),
            cost,
            {"corpus": checked},
            provenance=self._own,
        )

    def _leg(self, cell: Cell, task: Task, leg: Leg) -> LegNodes:
        system, title = cell.system, f"{task.id}{' ' + leg.name if leg.name else ''}"
        k = system.resolved.run.search.k or task.depth
        before = self.before(cell, system, task, leg, title, k)
        searching, protocol = before[-1], self.protocol(task)
        reading = self.read(leg, title, system.resolved.run.data.unknown_ids)
        looked_up = self.texts(leg.corpus) if protocol.by_answers else None
        scoring = self._score(cell, title, protocol, searching, reading, looked_up)
        before = (*before[:-1], looked_up, searching) if looked_up else before
        return LegNodes(task, leg, (*before, scoring), k, protocol.depth)

    def before(self, cell: Cell, system: System, task: Task, leg: Leg, title: str, k: int) -> tuple[Node, ...]:
        """Return the nodes from the corpus's and the leg's checks to a system's run, the run last.

        Args:
            cell: says seed, tunings and dev questions.
            system: the cell's, or a part of it.
            task: the task.
            leg: its leg.
            title: of the leg.
            k: documents per query.
        """
        if system.reranker:
            nodes = self._reranked(cell, system, task, leg, title, k)
        elif system.parts:
            nodes = FusionRecipes(self, cell).fused(system, task, leg, title, k)
        elif system.method.retriever is None:
            nodes = DenseRecipes(self).search(system, cell.seed, task, leg, title, k, cell.tuned(task))
        else:
            nodes = self._sparse(system, system.method.retriever, task, leg, title, k)
        return nodes

    def _reranked(self, cell: Cell, system: System, task: Task, leg: Leg, title: str, k: int) -> tuple[Node, ...]:
        """The nodes of the run as it is without the re-ranker, which other rows share, then those of re-ranking."""
        nodes = self.before(cell, replace(system, reranker=None), task, leg, title, k)
        again = RerankRecipes(self, cell).reranked(system, nodes[-1], task, leg, title, k)
        model = chain(again.inputs["model"]) if "model" in again.inputs else ()
        return (*{one.key: one for one in (*nodes, *model, again.inputs["texts"], again)}.values(),)

    def protocol(self, task: Task) -> score.Protocol:
        """How a task is scored."""
        measures = tuple(parse(name, self._measures) for name in task.measures)
        return score.Protocol(measures, task.tie, task.drop_identical, task.official, self._measures)

    def _sparse(
        self, system: System, retriever: Callable[[Any], Retriever], task: Task, leg: Leg, title: str, k: int
    ) -> tuple[Node, ...]:
        """The nodes of a method that indexes and searches by itself, the run last."""
        corpus = self.validate(leg.corpus)
        reading = self.read(leg, title, system.resolved.run.data.unknown_ids)
        indexing = self._index(system, retriever, leg.corpus, corpus)
        rules = search.Rules(k, task.tie, task.drop_identical)
        return corpus, reading, indexing, self._search(system, retriever, title, rules, indexing, reading)

    def _index(self, system: System, retriever: Callable[[Any], Retriever], corpus: Corpus, checked: Node) -> Node:
        method = system.method
        identity = {"code": index.VERSION, **system.identity(corpus.language), "corpus": self.source(corpus.items)}

        def work(space: Workspace, _: Mapping[str, Path]) -> Mapping[str, Json]:
            return index.run(space, retriever(system.resolved.method), corpus)

        cost = Cost(f"index {method.name}", checked.cost.units, _DOCUMENTS_INDEXED)
        return node(
            "index",
            f"{method.name} {corpus.id}",
            identity,
            work,
            cost,
            {"corpus": checked},
            provenance=_settings(system),
        )

    def _search(
        self,
        system: System,
        retriever: Callable[[Any], Retriever],
        title: str,
        rules: search.Rules,
        indexing: Node,
        reading: Node,
    ) -> Node:
        method = system.method
        identity: dict[str, Json] = {
            "code": search.VERSION,
            "k": rules.k,
            "tie": rules.tie,
            "drop_identical": rules.drop_identical,
            "tag": system.tag,
        }

        def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            return search.run(
                space, retriever(system.resolved.method), folders["index"], folders["leg"], rules, system.tag
            )

        cost = Cost(f"search {method.name}", self._queries(reading), _QUERIES_SEARCHED)
        inputs = {"index": indexing, "leg": reading}
        return node("search", f"{method.name} {title}", identity, work, cost, inputs, provenance=_settings(system))

    def _score(
        self,
        cell: Cell,
        title: str,
        protocol: score.Protocol,
        searching: Node,
        reading: Node,
        looked_up: Node | None = None,
    ) -> Node:
        system, extra = cell.system, protocol.extra
        identity: dict[str, Json] = {
            "code": score.VERSION,
            "suite": {"name": cell.suite.name, "version": cell.suite.version},
            "measures": [str(measure) for measure in protocol.measures],
            "extra": {name: measure.summary for name, measure in sorted(extra.items())},
            "tie": protocol.tie,
            "drop_identical": protocol.drop_identical,
            "official": list(protocol.official),
            "libraries": protocol.libraries(),
        }

        def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            return score.run(space, folders["run"], folders["leg"], protocol, system.tag, folders.get("texts"))

        cost = Cost("score", searching.cost.units, _QUERIES_SCORED)
        inputs = {"run": searching, "leg": reading} | ({"texts": looked_up} if looked_up else {})
        return node(
            "score", f"{system.method.name} {title}", identity, work, cost, inputs, provenance=_settings(system)
        )

    def source(self, source: Source[Any]) -> dict[str, Json]:
        """What decides the records of a source: who reads it, and the bytes that are read."""
        if not all(path.exists() for path in source.files):
            next(iter(source.read()), None)  # its reader says best what is missing, and what to do about it
        return {"reader": source.reader, "files": [self.hash(path) for path in source.files]}

    def hash(self, path: Path) -> str:
        """Sha256 of an input file; asked of the store once a run."""
        if path not in self._hashes:
            self._hashes[path] = self._store.hash_input(path)
        return self._hashes[path]

    def _size(self, source: Source[Any], bytes_each: int, known: int | None) -> float:
        """How many records a source has, estimated from its files' size where nobody says."""
        if known is not None:
            return float(known)
        return max(1.0, sum(path.stat().st_size for path in source.files) / bytes_each)

    def _queries(self, reading: Node) -> float:
        """How many queries are judged: exact once they were read."""
        made = self._store.open(reading.recipe)
        return float(made.facts["queries"]) if made else reading.cost.units


def _settings(system: System) -> dict[str, Json]:
    """The resolved settings with their origins and sources, kept beside every artefact."""
    return {"system": system.label, "settings": [row_json(row) for row in system.resolved.rows()]}
