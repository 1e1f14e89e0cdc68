"""A graph of stages: what depends on what, what the store lacks, in which order it runs, what it will cost."""

import heapq
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from statistics import median
from typing import Any, Protocol

from bench.store.stage import Cost, Stage
from bench.store.store import MANIFEST, Artefact, Store

CHECKS = ("validate", "read")
"""The stages that read the user's input; they run before all others, so that bad input never costs work done."""
_LOOKED_AT = 200
"""Artefacts of a stage; keys are hashes, so the first ones are as good a sample as any."""
_LEAST_RATIO = 3
"""How many times larger work has to be to say what a unit takes; below, the start hides it."""
Medians = tuple[tuple[float, float], tuple[float, float]]
"""(units, seconds) of the smaller third of some work, and of its larger third."""


def closure(targets: Iterable[Stage]) -> list[Stage]:
    """Return every stage that the targets rest on, once each: inputs before users, checks before all other work."""
    stages: dict[str, Stage] = {}
    users: dict[str, list[str]] = {}
    stack = list(targets)[::-1]
    while stack:
        current = stack.pop()
        if current.key in stages:
            continue
        stages[current.key] = current
        for dependency in current.before:
            users.setdefault(dependency.key, []).append(current.key)
            stack.append(dependency)
    place = {key: number for number, key in enumerate(stages)}
    waiting = {key: len({dependency.key for dependency in stages[key].before}) for key in stages}
    ready = [_priority(stages[key], place[key]) for key in stages if not waiting[key]]
    heapq.heapify(ready)
    ordered = []
    while ready:
        key = heapq.heappop(ready)[-1]
        ordered.append(stages[key])
        for user in dict.fromkeys(users.get(key, ())):
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, _priority(stages[user], place[user]))
    return ordered


def _priority(item: Stage, place: int) -> tuple[bool, int, str]:
    return item.name not in CHECKS, place, item.key


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
    """Return what the store knows, by the kind of work, of stages that one attempt made.

    Manifests are not proven: an estimate can do without.
    """
    kinds: dict[str, tuple[list[tuple[float, float]], list[tuple[float, float]]]] = {}
    for name in sorted({item.name for item in work}):
        for path in islice((store.root / "artefacts" / name).glob(f"*/{MANIFEST}"), _LOOKED_AT):
            try:
                manifest = json.loads(path.read_bytes())
                provenance, seconds = manifest["provenance"], manifest["seconds"]
                cost = provenance["cost"]
                if cost["units"] > 0 and seconds > 0 and not provenance.get("resumed"):
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


@dataclass(frozen=True)
class Step:
    """A stage of a plan and what will become of it."""

    stage: Stage
    state: str  # of its artefact: `cached`, `missing` or `corrupt`
    runs: bool  # it will be run. A missing artefact that nobody needs any more is not made again
    seconds: float  # estimated, 0 where it does not run
    guessed: bool = False  # nothing like it has run in this store

    @property
    def unknown(self) -> bool:
        """Whether nobody can say how much there is to do."""
        return self.runs and not self.stage.cost.units


def steps(targets: Sequence[Stage], store: Store, again: Collection[str] = ()) -> list[Step]:
    """Compare the graph with the store. A corrupt artefact is made again even where nobody needs it now.

    Args:
        targets: what is to be made.
        store: where artefacts are kept.
        again: keys of stages that are made again though the store holds them.
    """
    ordered = closure(targets)
    states = {item.key: "missing" if item.key in again else store.state(item) for item in ordered}
    to_run = {item.key for item in targets if states[item.key] != "cached"}
    to_run |= {key for key, state in states.items() if state == "corrupt" or key in again}
    for item in reversed(ordered):  # users come after their inputs
        if item.key in to_run:
            to_run |= {dependency.key for dependency in item.before if states[dependency.key] != "cached"}
    statistics_by_kind = runtime_statistics(store, [item for item in ordered if item.key in to_run])
    started_kinds: set[str] = set()  # kinds of which the run has done some before
    return [_step(item, states[item.key], item.key in to_run, statistics_by_kind, started_kinds) for item in ordered]


def _step(
    item: Stage, state: str, runs: bool, statistics_by_kind: Mapping[str, RuntimeStatistics], started_kinds: set[str]
) -> Step:
    if not runs:
        return Step(item, state, runs, 0.0)
    cost = item.cost
    measured = statistics_by_kind.get(cost.kind)
    warm = cost.kind in started_kinds
    seconds = measured.seconds(cost, warm) if measured else cost.work / cost.rate + cost.start * (not warm)
    started_kinds.add(cost.kind)
    return Step(item, state, runs, seconds, measured is None)


class Listener(Protocol):
    """Receives events of stages."""

    def started(self, item: Stage) -> None:
        """A stage begins."""

    def advanced(self, item: Stage, units: float) -> None:
        """A stage has done so many more units of its cost."""

    def logged(self, item: Stage, line: Mapping[str, Any]) -> None:
        """A training has written a line of its log; those of Ray tasks and SLURM jobs do not arrive."""

    def finished(self, item: Stage, state: str, seconds: float, error: BaseException | None = None) -> None:
        """A stage has ended: `ran`, `cached` (another run made it meanwhile, or it was there) or `failed`."""


class NullListener:
    """Ignores all events."""

    def started(self, *event: object, **fields: object) -> None:
        """Ignore it."""

    advanced = logged = finished = started


Tolerates = Callable[[Stage, Exception], bool]
"""Whether the failure of a stage ends only what rests on it, and not the run."""


def fail_always(_item: Stage, _error: Exception) -> bool:
    """Spare no failure."""
    return False


class Executor(Protocol):
    """Where stages run."""

    def run(self, items: Sequence[Stage], store: Store, listener: Listener, tolerates: Tolerates = fail_always) -> None:
        """Make every stage, given in an order in which inputs come before their users."""


def make(item: Stage, store: Store, listener: Listener) -> Artefact:
    """Run one stage whose inputs are there, and report to the listener."""
    listener.started(item)
    try:
        artefact, state = store.make(item, partial(listener.advanced, item), partial(listener.logged, item))
    except BaseException as error:
        listener.finished(item, "failed", 0.0, error)
        raise
    listener.finished(item, state, artefact.seconds if state == "ran" else 0.0)
    return artefact
