"""The nodes of re-ranking: pairs (→ mine) → train_cross, where a cross-encoder is trained; then rerank: run → run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from bench.config import identity as decisive
from bench.data.titled import titled
from bench.dense import TrainingJob
from bench.dense_keys import LIBRARIES, settings_of, versions
from bench.dense_recipes import DenseRecipes
from bench.errors import PluginError, UsageError
from bench.graph import Cost, Node, node
from bench.mining_recipes import MiningRecipes
from bench.reranking import Reranker
from bench.stages import rerank, train_cross
from bench.stages.search import Rules
from bench.systems import System
from bench.training.cross_config import MODEL
from bench.tune_recipes import TuneRecipes
from bench.tunings import Tuning
from bench.types import Json, Leg, Task
from bench.workspace import Workspace

if TYPE_CHECKING:
    from bench.recipes import Recipes
    from bench.selection import Cell

# Orders of magnitude on one core of a server of 2023, for a store that has no experience yet.
_PAIRS_SCORED, _PAIRS, _QUESTIONS_LEARNT = 50.0, 1e4, 30.0


class RerankRecipes:
    """Makes the nodes between a run and the same run re-ranked.

    Args:
        recipes: the common ones.
        cell: whose system it is.
    """

    def __init__(self, recipes: Recipes, cell: Cell) -> None:
        self._recipes, self._cell = recipes, cell

    def reranked(self, system: System, run: Node, task: Task, leg: Leg, title: str, k: int) -> Node:
        """Return the node that re-ranks a run; `model` of its inputs is the training, where there is one.

        Raises:
            UsageError: the folder of the cross-encoder is not there.
            PluginError: nothing re-ranks the system.
        """
        given, settings = system.reranker, system.resolved.run
        if given is None:
            raise PluginError(f"{system.label} has no re-ranker")
        reading = self._recipes.read(leg, title, settings.data.unknown_ids)
        depth, rules, compute = settings.rerank.depth, Rules(k, task.tie, task.drop_identical), given.compute
        inputs = {"run": run, "leg": reading, "texts": self._recipes.texts(titled(leg.corpus))}
        if given.trained:
            inputs["model"] = self._trained(system, given, self._cell.lessons(task))
        identity: dict[str, Json] = {
            "code": rerank.VERSION,
            "k": rules.k,
            "tie": rules.tie,
            "drop_identical": rules.drop_identical,
            "model": None if given.trained else self._weights(given.model),
            "depth": depth,
            "tag": system.tag,
            "compute": compute.identity(),
            "libraries": versions(*LIBRARIES),
        }

        def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            model = folders["model"] / MODEL if given.trained else _located(given.model)
            places = folders["run"], folders["leg"], folders["texts"]
            return rerank.run(space, model, *places, rules, depth, system.tag, compute.device, compute.threads)

        cost = Cost("rerank", reading.cost.units * depth, _PAIRS_SCORED)
        return node("rerank", f"{system.label} {title}", identity, work, cost, inputs, settings_of(system))

    def _trained(self, system: System, given: Reranker, lessons: Sequence[Tuning]) -> Node:
        """The node of the cross-encoder after the last of the recipe's trainings, each going on from the one before.

        Raises:
            PluginError: there is nothing to learn from.
        """
        if not lessons:
            raise PluginError(f"{system.label} has no pairs to train a cross-encoder on")
        first, *others = lessons
        made = self._lesson(system, given, first, None)
        for lesson in others:
            made = self._lesson(system, given, lesson, made)
        return made

    def _lesson(self, system: System, given: Reranker, lesson: Tuning, before: Node | None) -> Node:
        """Pairs and a start → cross-encoder.

        Args:
            system: whose runs it is to re-rank.
            given: from what, where.
            lesson: on what.
            before: the training that it goes on from; None at the first.
        """
        config, compute, seed = system.resolved.run.rerank.train, given.compute, self._cell.seed
        start = before or self._scratch(system, given)
        identity: dict[str, Json] = {
            "code": train_cross.VERSION,
            "config": decisive(config),
            "start": None if start else self._weights(given.backbone),
            "seed": seed,
            "compute": compute.identity(),
            "libraries": versions(*LIBRARIES),
        }
        job = TrainingJob(0, seed, compute.device, compute.threads)

        def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            place = folders["start"] if "start" in folders else _located(given.backbone)
            return train_cross.run(space, place / MODEL if before else place, folders["pairs"], config, job)

        inputs = {"pairs": self._learnt_from(system, lesson), **({"start": start} if start else {})}
        cost = Cost("train_cross", (config.steps or 0) * config.queries or config.epochs * _PAIRS, _QUESTIONS_LEARNT)
        title = f"{given.backbone} on {lesson.name}, seed {seed}"
        return node("train_cross", title, identity, work, cost, inputs, settings_of(system))

    def _learnt_from(self, system: System, lesson: Tuning) -> Node:
        """The pairs as they are, or with hard negatives mined from them."""
        plugins, miner = self._recipes.plugins, system.resolved.run.rerank.mine
        pairs = TuneRecipes(self._recipes, system, self._cell.seed, plugins).pairs(lesson)
        return pairs if miner == "none" else MiningRecipes(system, lesson, pairs).by_retriever(miner, plugins)

    def _scratch(self, system: System, given: Reranker) -> Node | None:
        """The encoder with random weights that is to become a cross-encoder; None where the backbone has weights."""
        if given.corpus is None:
            return None
        plain = replace(system.method, contract=None, trainer=None)  # shared, however the system's own encoder reads
        start = replace(system, method=plain, pretraining=given.corpus, untrained=True)
        return DenseRecipes(self._recipes).encoder(start, self._cell.seed)

    def _weights(self, model: str) -> Json:
        """What decides weights: the hashes of a folder's files, else the name.

        Raises:
            UsageError: the folder is not there.
        """
        folder = Path(model).expanduser()
        if model.startswith(("/", ".", "~")) and not folder.is_dir():
            raise UsageError(
                f"{folder}: found no such folder, expected a cross-encoder: a folder of a sequence classifier, or a "
                "Hugging Face id"
            )
        files = sorted(path for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []
        return {path.name: self._recipes.hash(path) for path in files} or model


def _located(model: str) -> Path:
    """The folder of a model, fetched where it is an id."""
    from bench.encoding.backbones import locate

    return locate(model) or Path(model)
