"""Forgotten prompts: which systems of a run read texts without the prompts that their encoder wants, and by how much.

A suspicion costs a look at small files; the numbers behind it are a stage of their own (`bench.pipeline.stages.lint`),
on eight texts and before any corpus is encoded. Nothing else depends on either.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.core.errors import BenchError
from bench.pipeline.dense import Dense
from bench.pipeline.encoders import Encoders, backbone_of
from bench.pipeline.legs import Legs
from bench.pipeline.selection import Cell
from bench.pipeline.stages.lint import Lint
from bench.pipeline.systems import System
from bench.retrieval.backbones import SCRATCH
from bench.retrieval.prompts import WantedPrompts, wanted
from bench.store.graph import NullListener, closure, make, steps
from bench.store.leases import leased
from bench.store.store import Store
from bench.types import Json


@dataclass(frozen=True)
class Suspicion:
    """A system that reads texts without the prompts that its encoder wants."""

    system: System
    prompts: WantedPrompts
    roles: tuple[str, ...]  # whose texts lack theirs
    measured: Lint  # the stage that measures what they change

    @property
    def sentence(self) -> str:
        """The warning before anything is run."""
        prompts = " and ".join(f"{getattr(self.prompts, role)!r} before a {role}" for role in self.roles)
        # As TOML in quotation marks, for a blank at the end would be lost.
        sets = " ".join(f"--set 'encode.{role}_prompt=\"{getattr(self.prompts, role)}\"'" for role in self.roles)
        name = Path(backbone_of(self.system)).name
        return (
            f"{self.system.label} reads texts without the prompts that {name} wants "
            f"({prompts}: {self.prompts.source}); "
            f"if they were forgotten, type {sets}"
        )

    def numbers(self, facts: Mapping[str, Json]) -> str:
        """Return the sentence about what was measured."""
        changes = ", ".join(f"{_places(facts[role])} for a {role}" for role in self.roles)
        change = f"{self.system.label}: on eight texts the mean cosine of vectors with and without prompt is {changes}"
        difference = "in nothing" if facts["alike"] == 1 else "little"
        return (
            f"{change}; queries and passages differ {difference} (mean cosine {_places(facts['alike'])}, with prompts "
            f"{_places(facts['alike_prompted'])})"
        )


def suspicions(legs: Legs, cells: Sequence[Cell]) -> list[Suspicion]:
    """Find the systems of a run that read texts without the prompts that their encoders want, each reading once."""
    by_key: dict[str, Suspicion] = {}
    methods = [owned.value for owned in legs.plugins.methods.values()]
    for cell in cells:
        for system in cell.system.leaves:
            if not isinstance(system, Dense):
                continue
            backbone = backbone_of(system)
            if system.untrained or not backbone or backbone.startswith(SCRATCH):
                continue
            prompts = wanted(backbone, methods)
            if prompts is None:
                continue
            for task in cell.tasks:
                contract = system.contract(task, cell.tuned(task))
                roles = prompts.missing(contract)
                if roles:
                    start = Encoders(system, 0, legs.inputs, legs.plugins).start()
                    measured = Lint(
                        encoder=start,
                        wanted=prompts,
                        contract=contract,
                        compute=system.machine,
                        who=system.label,
                        notes=system.notes,
                    )
                    by_key.setdefault(measured.key, Suspicion(system, prompts, roles, measured))
    return [*by_key.values()]


def measure(suspicions: Sequence[Suspicion], store: Store) -> list[str]:
    """Measure what prompts change, where the store does not know yet, in a sentence each; no failure stops a run."""
    sentences = []
    for suspicion in suspicions:
        try:
            with leased(store, [item.key for item in closure([suspicion.measured])]):
                for step in steps([suspicion.measured], store):
                    if step.runs:
                        make(step.stage, store, NullListener())
        except BenchError as error:
            sentences.append(f"{suspicion.system.label}: what prompts change could not be measured: {error}")
            continue
        artefact = store.open(suspicion.measured)
        sentences += [suspicion.numbers(artefact.facts)] if artefact else []
    return sentences


def _places(value: Json) -> str:
    """A cosine with three places."""
    return f"{value:.3f}" if isinstance(value, int | float) else "unknown"
