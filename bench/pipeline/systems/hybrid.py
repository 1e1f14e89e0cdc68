"""Two systems whose runs are fused (`--method bm25+msm`)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from bench.config.base import Config
from bench.config.layers import dump
from bench.core.errors import UsageError
from bench.pipeline.fine_tunings import Recipes
from bench.pipeline.graph import GraphBuilder
from bench.pipeline.stages.fuse import Fuse
from bench.pipeline.stages.weigh import Weigh
from bench.pipeline.systems.system import System
from bench.types import Leg, Method, Task

JOINT = "+"
"""Between the names of two methods whose runs are fused."""
_TWO = 2


@dataclass(frozen=True)
class Hybrid(System):
    """Two systems whose runs are fused."""

    first: System
    second: System

    @classmethod
    def from_parts(cls, first: System, second: System) -> Self:
        """Return the fusion of two systems, called and described after both."""
        methods = first.method, second.method
        method = Method(
            name=JOINT.join(part.name for part in methods),
            version=JOINT.join(part.version for part in methods),
            summary=f"The runs of {methods[0].name} and {methods[1].name}, fused.",
            citation="; ".join(part.citation for part in methods),
            config=Config,
            deterministic=all(part.deterministic for part in methods),
            trains=False,
            settings=tuple(dict.fromkeys(name for part in methods for name in part.settings)),  # one may stay untuned
        )
        resolved = next((part.resolved for part in (first, second) if part.dense), first.resolved)
        return cls(f"{first.label}{JOINT}{second.label}", method, replace(resolved, method=Config()), first, second)

    def with_recipes(self, recipes: Recipes) -> Self:
        first, second = (part.with_recipes(recipes) for part in self.parts)
        return replace(self, recipes=recipes, first=first, second=second)

    @property
    def parts(self) -> tuple[System, ...]:
        return self.first, self.second

    @property
    def leaves(self) -> Iterator[System]:
        for part in self.parts:
            yield from part.leaves

    @property
    def public_names(self) -> Mapping[str, str]:
        """Those of both."""
        return {**self.first.public_names, **self.second.public_names}

    @property
    def sections(self) -> set[str]:
        return self.first.sections | self.second.sections | {"fuse"}

    @property
    def choices(self) -> dict[str, Any]:
        parts = [part.choices for part in self.parts]
        return {**super().choices, "parts": parts, "fuse": dump(self.resolved.run.fuse)}

    @property
    def chooses_weight(self) -> bool:
        return self.resolved.run.fuse.how == "interpolate" and self.resolved.run.fuse.weight is None

    def ranking(self, task: Task, leg: Leg, seed: int, graph: GraphBuilder) -> Fuse:
        """Return the fused ranking. Raises `UsageError` where a weight is to be chosen without dev questions."""
        return Fuse(
            first=self.first.ranking(task, leg, seed, graph),
            second=self.second.ranking(task, leg, seed, graph),
            leg=self.read(task, leg, graph),
            weight=self._weight(task, leg, seed, graph) if self.chooses_weight else None,
            rules=self.rules(task),
            fuse=self.resolved.run.fuse,
            tag=self.tag,
            who=self.label,
            notes=self.notes,
        )

    def _weight(self, task: Task, leg: Leg, seed: int, graph: GraphBuilder) -> Weigh:
        """Return the choice of the weight: both parts on the dev questions."""
        dev = self.recipes.dev.get(task.id)
        dev_leg = next((candidate for candidate in dev.legs if candidate.name == leg.name), None) if dev else None
        if dev is None or dev_leg is None:
            raise UsageError(
                f"{self.label}: found no dev questions of {task.id} to choose the weight by; type --set "
                "fuse.how=rrf, or a weight from 0 to 1: --set fuse.weight=0.5"
            )
        protocol = graph.protocol(dev)
        return Weigh(
            first=self.first.ranking(dev, dev_leg, seed, graph),
            second=self.second.ranking(dev, dev_leg, seed, graph),
            leg=self.read(dev, dev_leg, graph),
            texts=graph.texts(dev_leg.corpus) if protocol.by_answers else None,
            rules=self.rules(dev),
            scale=self.resolved.run.fuse.scale,
            protocol=protocol,
            who=self.label,
            notes=self.notes,
        )


def parts_of(name: str) -> tuple[str, ...]:
    """Split the name of a method as typed, `bm25+msm`. Raises `UsageError` for more than two parts, or equal ones."""
    parts = tuple(part.strip() for part in name.split(JOINT))
    if len(parts) > _TWO or not all(parts) or len(set(parts)) != len(parts):
        raise UsageError(f"found --method {name}, expected one method, or two different ones like bm25+msm")
    return parts


def hybrid(name: str, systems: Sequence[System]) -> Hybrid:
    """Return the fusion that a name like `bm25+msm` asks for.

    Raises `UsageError` where a method of the two is several systems.
    """
    first, second = (_only(part, name, systems) for part in parts_of(name))
    return Hybrid.from_parts(first, second)


def _only(method: str, name: str, systems: Sequence[System]) -> System:
    """The one system of a method, leaving out its untrained start and its twins (of two readouts, the protocol's)."""
    candidates = [
        system for system in systems if system.method.name == method and not system.untrained and system.post is None
    ]
    matches = [system for system in candidates if not system.protocol] or candidates
    if len(matches) != 1:
        labels = ", ".join(system.label for system in matches)
        raise UsageError(f"found --method {name}, where {method} stands for {len(matches)} systems ({labels}); run one")
    return matches[0]
