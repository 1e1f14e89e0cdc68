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
    wanted: WantedPrompts
    roles: tuple[str, ...]  # whose texts lack theirs
    measured: Lint  # the stage that measures what they change

    @property
    def sentence(self) -> str:
        """The warning before anything is run."""
        prompts = " and ".join(f"{getattr(self.wanted, role)!r} before a {role}" for role in self.roles)
        # As TOML in quotation marks, for a blank at the end would be lost.
        sets = " ".join(f"--set 'encode.{role}_prompt=\"{getattr(self.wanted, role)}\"'" for role in self.roles)
        name = Path(backbone_of(self.system)).name
        return (
            f"{self.system.label} reads texts without the prompts that {name} wants ({prompts}: {self.wanted.source}); "
            f"if they were forgotten, type {sets}"
        )

    def numbers(self, facts: Mapping[str, Json]) -> str:
        """Return the sentence about what was measured."""
        changes = ", ".join(f"{_places(facts[role])} for a {role}" for role in self.roles)
        said = f"{self.system.label}: on eight texts the mean cosine of vectors with and without prompt is {changes}"
        alike = "in nothing" if facts["alike"] == 1 else "little"
        return (
            f"{said}; queries and passages differ {alike} (mean cosine {_places(facts['alike'])}, with prompts "
            f"{_places(facts['alike_prompted'])})"
        )


def suspicions(legs: Legs, cells: Sequence[Cell]) -> list[Suspicion]:
    """Find the systems of a run that read texts without the prompts that their encoders want, each reading once."""
    found: dict[str, Suspicion] = {}
    methods = [owned.value for owned in legs.plugins.methods.values()]
    for cell in cells:
        for system in cell.system.leaves:
            if not isinstance(system, Dense):
                continue
            backbone = backbone_of(system)
            if system.untrained or not backbone or backbone.startswith(SCRATCH):
                continue
            known = wanted(backbone, methods)
            if known is None:
                continue
            for task in cell.tasks:
                contract = system.contract(task, cell.tuned(task))
                roles = known.missing(contract)
                if roles:
                    start = Encoders(system, 0, legs.inputs, legs.plugins).start()
                    measured = Lint(
                        encoder=start,
                        wanted=known,
                        contract=contract,
                        compute=system.machine,
                        who=system.label,
                        notes=system.notes,
                    )
                    found.setdefault(measured.key, Suspicion(system, known, roles, measured))
    return [*found.values()]


def measure(found: Sequence[Suspicion], store: Store) -> list[str]:
    """Measure what prompts change, where the store does not know yet, in a sentence each; no failure stops a run."""
    said = []
    for one in found:
        try:
            with leased(store, [item.key for item in closure([one.measured])]):
                for step in steps([one.measured], store):
                    if step.runs:
                        make(step.stage, store, NullListener())
        except BenchError as error:
            said.append(f"{one.system.label}: what prompts change could not be measured: {error}")
            continue
        made = store.open(one.measured)
        said += [one.numbers(made.facts)] if made else []
    return said


def _places(value: Json) -> str:
    """A cosine with three places."""
    return f"{value:.3f}" if isinstance(value, int | float) else "unknown"
