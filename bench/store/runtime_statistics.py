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
_LEAST_RATIO = 3
"""How many times larger work has to be to say what a unit takes; below, the start hides it."""


Medians = tuple[tuple[float, float], tuple[float, float]]
"""(units, seconds) of the smaller third of some work, and of its larger third."""


@dataclass(frozen=True)
class RuntimeStatistics:
    """Work of one kind that was done: the first of runs, which loaded what it needs, and other work."""

    first: Medians | None
    later: Medians | None

    def seconds(self, cost: Cost, begun: bool) -> float:
        """Return what such work takes, `begun` where the run has done some; beyond one size at the default rate."""
        (units, seconds), (more, longer) = self.later or self.first or ((1.0, cost.start), (1.0, cost.start))
        grows = more >= _LEAST_RATIO * units and longer > seconds
        loading = 0.0 if self.later else cost.start  # and units share the time of one size as expected
        per_unit = (
            (longer - seconds) / (more - units) if grows else min(1 / cost.rate, longer / (more + loading * cost.rate))
        )
        start = max(0.0, seconds - per_unit * units - loading * begun)
        if self.later and not begun:
            units, seconds = self.first[0] if self.first else (0.0, start + cost.start)
            start = max(start, seconds - per_unit * units)
        return start + per_unit * cost.work


def runtime_statistics(store: Store, work: Iterable[Stage]) -> Mapping[str, RuntimeStatistics]:
    """Return what the store knows, by the kind of work. Manifests are not proven: an estimate can do without."""
    kinds: dict[str, tuple[list[tuple[float, float]], list[tuple[float, float]]]] = {}
    for name in sorted({item.name for item in work}):
        for path in islice((store.root / "artefacts" / name).glob(f"*/{MANIFEST}"), _LOOKED_AT):
            try:
                manifest = json.loads(path.read_bytes())
                provenance, seconds = manifest["provenance"], manifest["seconds"]
                cost = provenance["cost"]
                if cost["units"] > 0 and seconds > 0:
                    samples = kinds.setdefault(cost["kind"], ([], []))
                    samples[not provenance.get("first")].append((cost["units"], seconds))
            except (OSError, ValueError, KeyError, TypeError):
                continue  # `bench verify` names it
    return {kind: RuntimeStatistics(*map(_experience, samples)) for kind, samples in kinds.items()}


def _experience(work: list[tuple[float, float]]) -> Medians | None:
    if not work:
        return None
    ordered, third = sorted(work), -(-len(work) // 3)
    small, large = (tuple(map(median, zip(*part, strict=True))) for part in (ordered[:third], ordered[-third:]))
    return (small[0], small[1]), (large[0], large[1])
