"""The nodes of systems made of two others: weigh → fuse, with everything that enters their keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.config import dump
from bench.dense_keys import settings_of
from bench.errors import UsageError
from bench.graph import Cost, Node, node
from bench.stages import fuse, score, weigh
from bench.stages.search import Rules
from bench.systems import System
from bench.types import Json, Leg, Task
from bench.workspace import Workspace

if TYPE_CHECKING:
    from bench.recipes import Recipes
    from bench.selection import Cell

# Orders of magnitude on one core of a server of 2023, for a store that has no experience yet.
_QUERIES_FUSED, _QUERIES_WEIGHED = 1e4, 1e2


class FusionRecipes:
    """Makes the nodes between the runs of two systems and their fused run.

    Args:
        recipes: the common ones.
        cell: whose system it is.
    """

    def __init__(self, recipes: Recipes, cell: Cell) -> None:
        self._recipes, self._cell = recipes, cell

    def fused(self, system: System, task: Task, leg: Leg, title: str, k: int) -> tuple[Node, ...]:
        """Return the nodes of both parts, the choice of the weight, and the fused run, which is last.

        Raises:
            UsageError: a weight is to be chosen and the suite has no dev questions of the task.
        """
        each = [self._recipes.before(self._cell, part, task, leg, title, k) for part in system.parts]
        reading = self._recipes.read(leg, title, system.resolved.run.data.unknown_ids)
        given, rules = system.resolved.run.fuse, Rules(k, task.tie, task.drop_identical)
        first, second = (nodes[-1] for nodes in each)
        inputs = {"first": first, "second": second, "leg": reading}
        weight: Node | None = None
        if given.how == "interpolate" and given.weight is None:
            weight = self._weight(system, task, leg, k)
            inputs["weight"] = weight
        identity: dict[str, Json] = {
            "code": fuse.VERSION,
            **_rules(rules),
            "fuse": dump(given),
            "tag": system.tag,
        }

        def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            share = folders.get("weight", given.weight)
            places = folders["first"], folders["second"], folders["leg"]
            return fuse.run(space, *places, given.how, share, rules, system.tag, given.scale)

        cost = Cost("fuse", reading.cost.units, _QUERIES_FUSED)
        run = node("fuse", f"{system.label} {title}", identity, work, cost, inputs, settings_of(system))
        return (*_all(*each, (weight,) if weight else ()), run)

    def _weight(self, system: System, task: Task, leg: Leg, k: int) -> Node:
        """Both parts on the dev questions → the best weight."""
        dev = self._cell.dev.get(task.id)
        own = next((one for one in dev.legs if one.name == leg.name), None) if dev else None
        if dev is None or own is None:
            raise UsageError(
                f"{system.label}: found no dev questions of {task.id} to choose the weight by; type --set "
                "fuse.how=rrf, or a weight from 0 to 1: --set fuse.weight=0.5"
            )
        title = f"{dev.id}{' ' + own.name if own.name else ''}"
        each = [self._recipes.before(self._cell, part, dev, own, title, k) for part in system.parts]
        reading = self._recipes.read(own, title, system.resolved.run.data.unknown_ids)
        protocol, rules = self._recipes.protocol(dev), Rules(k, dev.tie, dev.drop_identical)
        inputs = {"first": each[0][-1], "second": each[1][-1], "leg": reading}
        if protocol.by_answers:
            inputs["texts"] = self._recipes.texts(own.corpus)
        scale = system.resolved.run.fuse.scale
        identity: dict[str, Json] = {
            "code": [weigh.VERSION, score.VERSION],
            **_rules(rules),
            "grid": list(weigh.GRID),
            "scale": scale,
            "measure": str(protocol.measures[0]),
            "libraries": protocol.libraries(),
        }

        def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
            places = folders["first"], folders["second"], folders["leg"]
            return weigh.run(space, *places, protocol, rules, scale=scale, texts=folders.get("texts"))

        cost = Cost("weigh", reading.cost.units, _QUERIES_WEIGHED)
        return node("weigh", f"{system.label} {title}", identity, work, cost, inputs, settings_of(system))


def _rules(rules: Rules) -> dict[str, Json]:
    """What the task says about a run."""
    return {"k": rules.k, "tie": rules.tie, "drop_identical": rules.drop_identical}


def _all(*groups: Sequence[Node]) -> tuple[Node, ...]:
    """Nodes of several chains in their order, each once."""
    return tuple({one.key: one for group in groups for one in group}.values())
