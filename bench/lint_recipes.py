"""Forgotten prompts: which systems of a run read texts without the prompts that their encoder wants, and by how much.

A suspicion costs a look at small files; the numbers behind it are a stage of their own (`bench.stages.lint`), on eight
texts and before any corpus is encoded. Nothing else depends on either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bench.dense import Contract
from bench.dense_keys import LIBRARIES, backbone_of, compute_of, encoding, settings_of, versions
from bench.dense_recipes import DenseRecipes
from bench.encoding.backbones import SCRATCH
from bench.errors import BenchError
from bench.fsio import digest
from bench.graph import Cost, Node, Quiet, make, node, steps
from bench.prompts import Wanted, wanted
from bench.stages import lint
from bench.store import Store
from bench.systems import System
from bench.types import Json
from bench.workspace import Workspace

if TYPE_CHECKING:
    from bench.recipes import Recipes
    from bench.selection import Cell

_TEXTS_ENCODED = 20.0  # a second, with the loading of a model; an order of magnitude


@dataclass(frozen=True)
class Suspicion:
    """A system that reads texts without the prompts that its encoder wants.

    Args:
        system: which one.
        wanted: the prompts.
        roles: whose texts lack theirs.
        measured: the node that measures what they change.
    """

    system: System
    wanted: Wanted
    roles: tuple[str, ...]
    measured: Node

    @property
    def sentence(self) -> str:
        """What a person is told before anything is run."""
        prompts = " and ".join(f"{getattr(self.wanted, role)!r} before a {role}" for role in self.roles)
        # As TOML in quotation marks, for a blank at the end would be lost.
        sets = " ".join(f"--set 'encode.{role}_prompt=\"{getattr(self.wanted, role)}\"'" for role in self.roles)
        name = Path(backbone_of(self.system)).name
        return (
            f"{self.system.label} reads texts without the prompts that {name} wants ({prompts}: {self.wanted.source}); "
            f"if they were forgotten, type {sets}"
        )

    def numbers(self, facts: Mapping[str, Json]) -> str:
        """What a person is told when it was measured.

        Args:
            facts: of `bench.stages.lint`.
        """
        changes = ", ".join(f"{_places(facts[role])} for a {role}" for role in self.roles)
        told = f"{self.system.label}: on eight texts the mean cosine of vectors with and without prompt is {changes}"
        alike = "in nothing" if facts["alike"] == 1 else "little"
        return (
            f"{told}; queries and passages differ {alike} (mean cosine {_places(facts['alike'])}, with prompts "
            f"{_places(facts['alike_prompted'])})"
        )


def suspicions(recipes: Recipes, cells: Sequence[Cell]) -> list[Suspicion]:
    """Find the systems of a run that read texts without the prompts that their encoders want, each reading once.

    Args:
        recipes: the common ones.
        cells: of the run.

    Raises:
        UsageError: a file that declares prompts cannot be read.
    """
    found: dict[str, Suspicion] = {}
    methods = [owned.value for owned in recipes.plugins.methods.values()]
    for cell in cells:
        for system in _leaves(cell.system):
            backbone = backbone_of(system)
            if system.untrained or not backbone or backbone.startswith(SCRATCH):
                continue
            known = wanted(backbone, methods)
            if known is None:
                continue
            for task in cell.tasks:
                contract = DenseRecipes(recipes).contract(system, task, cell.tuned(task))
                roles = known.missing(contract)
                if roles:
                    measured = _measured(recipes, system, contract, known)
                    found.setdefault(measured.key, Suspicion(system, known, roles, measured))
    return [*found.values()]


def measure(found: Sequence[Suspicion], store: Store) -> list[str]:
    """Measure what the prompts change, where the store does not know yet; return a sentence each.

    Whatever keeps an encoder from being read is the run's to tell; here it only leaves the number out.
    """
    told = []
    for one in found:
        try:
            for step in steps([one.measured], store):
                if step.runs:
                    make(step.node, store, Quiet())
        except BenchError as error:
            told.append(f"{one.system.label}: what prompts change could not be measured: {error}")
            continue
        made = store.open(one.measured.recipe)
        told += [one.numbers(made.facts)] if made else []
    return told


def _leaves(system: System) -> Iterator[System]:
    """The dense systems that a system is made of, itself where it is one."""
    for part in system.parts:
        yield from _leaves(part)
    if system.method.contract is not None:
        yield system


def _measured(recipes: Recipes, system: System, contract: Contract, known: Wanted) -> Node:
    """The encoder before any training of ours, on eight texts with and without prompts."""
    compute = compute_of(system)
    identity: dict[str, Json] = {
        "code": lint.VERSION,
        "read": [encoding(contract, role, compute) for role in ("query", "passage")],
        "wanted": {role: value for role, value in asdict(known).items() if role != "source"},
        "texts": digest(list(lint.TEXTS)),
        "libraries": versions(*LIBRARIES),
    }

    def work(space: Workspace, folders: Mapping[str, Path]) -> Mapping[str, Json]:
        return lint.run(space, folders["encoder"], contract, known, compute.device, compute.threads)

    cost = Cost("lint", 4.0 * len(lint.TEXTS), _TEXTS_ENCODED)
    inputs = {"encoder": DenseRecipes(recipes).start(system)}
    return node("lint", system.label, identity, work, cost, inputs, settings_of(system))


def _places(value: Json) -> str:
    """A cosine with three places."""
    return f"{value:.3f}" if isinstance(value, int | float) else "unknown"
