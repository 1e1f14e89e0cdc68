"""Stages that do not rest on each other, run at the same time: the order of work, whatever engine does it."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from graphlib import TopologicalSorter

from bench.core.errors import BenchError
from bench.core.network import offline
from bench.core.workspace import Advance, Log, noop
from bench.store.graph import Listener, Tolerates
from bench.store.stage import Stage
from bench.store.store import Store

Task = Future[tuple[str, float]]
"""A stage at work; its result is what became of it (`ran` or `cached`), and seconds."""
Start = Callable[[Sequence[Stage]], Mapping[str, Task]]
"""Begin what there is room for of the stages that are ready, and return the tasks by the keys of their stages."""

_POLL = 0.05  # seconds between two looks at progress


def short_of_memory(item: Stage, memory: float) -> str | None:
    """Return a sentence for a stage that takes more memory than there is, in GiB; None where it fits."""
    takes = item.resources.memory
    if takes <= memory:
        return None
    return (
        f"{item.name} of {item.title} takes about {takes:,.1f} GiB of memory, where {memory:,.1f} are free: it runs "
        "alone, and the system may end it"
    )


def drive(items: Sequence[Stage], listener: Listener, tolerates: Tolerates, start: Start) -> None:
    """Start every stage as soon as its inputs are there, and report it.

    `start` is asked again and again, also where nothing is ready. Raises what a stage raises, unless it is spared.
    """
    stages, place = {item.key: item for item in items}, {item.key: at for at, item in enumerate(items)}
    order = TopologicalSorter(
        {key: [before.key for before in stages[key].before if before.key in stages] for key in stages}
    )
    order.prepare()
    ready, running = set[str](), dict[Task, Stage]()
    while True:
        ready |= {*order.get_ready()}
        for key, task in start([stages[key] for key in sorted(ready, key=place.__getitem__)]).items():
            ready.discard(key)
            running[task] = stages[key]
            listener.started(stages[key])
        if not running:
            return
        for task in wait(running, _POLL, FIRST_COMPLETED).done:
            item = running.pop(task)
            try:
                state, seconds = task.result()
            except Exception as error:
                cause = getattr(error, "cause", None)  # of an error of Ray's
                failure = cause if isinstance(cause, BenchError) else error
                listener.finished(item, "failed", 0.0, failure)
                if not tolerates(item, failure):
                    raise failure from failure.__cause__
                continue  # what rests on it is never ready
            listener.finished(item, state, seconds)
            order.done(item.key)


def step(item: Stage, store: Store, alone: bool, advance: Advance = noop, log: Log = noop) -> tuple[str, float]:
    """Make one stage, whose inputs lie in the store, in another process; `alone` keeps it from any network."""
    with offline(alone):
        artefact, state = store.make(item, advance, log)
    return state, artefact.seconds if state == "ran" else 0.0
