"""How long work will take: what work of its kind took in this store, as a start and so much for each unit."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from statistics import median

from bench.store.stage import Cost, Stage
from bench.store.store import MANIFEST, Store

_LOOKED_AT = 200
"""Artefacts of a stage; keys are hashes, so the first ones are as good a sample as any."""
_APART = 3
"""How many times larger work has to be to say what a unit takes; below, the start hides it."""


@dataclass(frozen=True)
class Experience:
    """Work of one kind that was done: medians of its smaller third and of its larger third."""

    small: tuple[float, float]  # units, seconds
    large: tuple[float, float]  # units, seconds

    def seconds(self, cost: Cost) -> float:
        """Return what such work takes; where all was of one size, units beyond it go at the default rate."""
        (units, seconds), (more, longer) = self.small, self.large
        grows = more >= _APART * units and longer > seconds
        each = (longer - seconds) / (more - units) if grows else min(1 / cost.rate, longer / more)
        return max(0.0, seconds - each * units) + each * cost.units


def experience(store: Store, work: Iterable[Stage]) -> Mapping[str, Experience]:
    """Return what the store knows, by the kind of work. Manifests are not proven: an estimate can do without."""
    kinds: dict[str, list[tuple[float, float]]] = {}
    for name in sorted({item.name for item in work}):
        for path in islice((store.root / "artefacts" / name).glob(f"*/{MANIFEST}"), _LOOKED_AT):
            try:
                manifest = json.loads(path.read_bytes())
                cost, seconds = manifest["provenance"]["cost"], manifest["seconds"]
                if cost["units"] > 0 and seconds > 0:
                    kinds.setdefault(cost["kind"], []).append((cost["units"], seconds))
            except (OSError, ValueError, KeyError, TypeError):
                continue  # `bench verify` names it
    return {kind: _experience(sorted(done)) for kind, done in kinds.items()}


def _experience(done: list[tuple[float, float]]) -> Experience:
    third = -(-len(done) // 3)
    small, large = (tuple(map(median, zip(*part, strict=True))) for part in (done[:third], done[-third:]))
    return Experience((small[0], small[1]), (large[0], large[1]))
