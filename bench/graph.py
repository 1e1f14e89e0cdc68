"""A graph of stages: what depends on what, what the store lacks, in which order it runs, what it will cost."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Protocol

from bench.fsio import read_sealed
from bench.store import MANIFEST, Artefact, Recipe, Store
from bench.types import Json
from bench.workspace import Workspace

CHECKS = ("validate", "read")
"""The stages that read the user's input; they run before all others, so that bad input never costs work done."""

Work = Callable[[Workspace, Mapping[str, Path]], Mapping[str, Json]]
"""A stage: (workspace, folders of the inputs by name) → facts. Pure: equal input files give equal output files."""


@dataclass(frozen=True)
class Cost:
    """How large a piece of work is, and how fast such work goes.

    Args:
        kind: work of one kind goes at one rate, e.g. `index bm25`.
        units: the size, e.g. bytes of corpus or number of queries.
        rate: units per second on one core where this store has no experience yet (order of magnitude).
    """

    kind: str
    units: float
    rate: float


@dataclass(frozen=True)
class Node:
    """One stage to be run: its recipe (whose identity holds the keys of the inputs), its inputs, its work."""

    recipe: Recipe
    inputs: Mapping[str, Node]
    work: Work
    cost: Cost

    @property
    def key(self) -> str:
        """The recipe's key."""
        return self.recipe.key

    def about(self) -> dict[str, Any]:
        """What hooks, plans and messages are told."""
        recipe = self.recipe
        return {"stage": recipe.stage, "title": recipe.title, "key": recipe.key, "identity": dict(recipe.identity)}


def node(
    stage: str,
    title: str,
    identity: Mapping[str, Json],
    work: Work,
    cost: Cost,
    inputs: Mapping[str, Node] | None = None,
    provenance: Mapping[str, Json] | None = None,
) -> Node:
    """Make a node; the keys of its inputs enter its identity."""
    inputs = inputs or {}
    whole: dict[str, Json] = {**identity, "inputs": {name: given.key for name, given in sorted(inputs.items())}}
    kept: dict[str, Json] = {**(provenance or {}), "cost": {"kind": cost.kind, "units": cost.units}}
    return Node(Recipe(stage, title, whole, kept), inputs, work, cost)


def closure(targets: Iterable[Node]) -> list[Node]:
    """Every node that the targets rest on, once each: inputs before users, checks before all other work."""
    found: dict[str, Node] = {}
    users: dict[str, list[str]] = {}
    stack = list(targets)[::-1]
    while stack:
        current = stack.pop()
        if current.key in found:
            continue
        found[current.key] = current
        for given in current.inputs.values():
            users.setdefault(given.key, []).append(current.key)
            stack.append(given)
    place = {key: number for number, key in enumerate(found)}
    waiting = {key: len({given.key for given in found[key].inputs.values()}) for key in found}
    ready = [_priority(found[key], place[key]) for key in found if not waiting[key]]
    heapq.heapify(ready)
    ordered = []
    while ready:
        key = heapq.heappop(ready)[-1]
        ordered.append(found[key])
        for user in dict.fromkeys(users.get(key, ())):
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, _priority(found[user], place[user]))
    return ordered


def _priority(item: Node, place: int) -> tuple[bool, int, str]:
    return item.recipe.stage not in CHECKS, place, item.key


@dataclass(frozen=True)
class Step:
    """A node of a plan and what will become of it.

    Args:
        node: the stage.
        state: of its artefact: `cached`, `missing` or `corrupt`.
        runs: it will be run. A missing artefact that nobody needs any more is not made again.
        seconds: estimated, 0 where it does not run.
    """

    node: Node
    state: str
    runs: bool
    seconds: float


def steps(targets: Sequence[Node], store: Store) -> list[Step]:
    """Hold the graph against the store. A corrupt artefact is made again even where nobody needs it now."""
    nodes = closure(targets)
    states = {item.key: store.state(item.recipe) for item in nodes}
    wanted = {item.key for item in targets if states[item.key] != "cached"}
    wanted |= {key for key, state in states.items() if state == "corrupt"}
    for item in reversed(nodes):  # users stand after their inputs
        if item.key in wanted:
            wanted |= {given.key for given in item.inputs.values() if states[given.key] != "cached"}
    rates = _experience(store, {item.cost.kind for item in nodes if item.key in wanted})
    return [
        Step(item, states[item.key], item.key in wanted, _seconds(item.cost, rates) if item.key in wanted else 0.0)
        for item in nodes
    ]


def _seconds(cost: Cost, rates: Mapping[str, float]) -> float:
    return cost.units / rates.get(cost.kind, cost.rate)


def _experience(store: Store, kinds: set[str]) -> dict[str, float]:
    """Units per second by kind of work: the median over the artefacts of this store."""
    seen: dict[str, list[float]] = {}
    for folder in store.artefacts() if kinds else []:
        try:
            manifest = read_sealed(folder / MANIFEST)
        except (OSError, ValueError):
            continue  # `bench verify` names it; an estimate can do without
        cost = manifest["provenance"].get("cost", {})
        if cost.get("kind") in kinds and manifest["seconds"] > 0:
            seen.setdefault(cost["kind"], []).append(cost["units"] / manifest["seconds"])
    return {kind: median(rates) for kind, rates in seen.items() if median(rates) > 0}


class Listener(Protocol):
    """Hears of stages as they begin, go on and end."""

    def started(self, item: Node) -> None:
        """A stage begins."""

    def advanced(self, item: Node, units: float) -> None:
        """A stage has done so many more units of its cost."""

    def finished(self, item: Node, state: str, seconds: float, error: BaseException | None = None) -> None:
        """A stage has ended: `ran`, `cached` (another run made it meanwhile, or it was there) or `failed`."""


class Quiet:
    """A listener that tells nobody."""

    def started(self, item: Node) -> None:
        """Say nothing."""

    def advanced(self, item: Node, units: float) -> None:
        """Say nothing."""

    def finished(self, item: Node, state: str, seconds: float, error: BaseException | None = None) -> None:
        """Say nothing."""


class Executor(Protocol):
    """Where stages run."""

    def run(self, items: Sequence[Node], store: Store, listener: Listener) -> None:
        """Make every node, given in an order in which inputs stand before their users."""


def make(item: Node, store: Store, listener: Listener) -> Artefact:
    """Run one node whose inputs are there, and tell the listener."""
    listener.started(item)
    folders = {name: store.folder(given.recipe) for name, given in item.inputs.items()}
    try:
        artefact, state = store.make(
            item.recipe, lambda work: item.work(work, folders), lambda units: listener.advanced(item, units)
        )
    except BaseException as error:
        listener.finished(item, "failed", 0.0, error)
        raise
    listener.finished(item, state, artefact.seconds if state == "ran" else 0.0)
    return artefact
