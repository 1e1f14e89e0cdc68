"""Stages on this machine: one after the other in this process, or side by side in workers."""

import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from pickle import loads
from typing import Any

import cloudpickle
from threadpoolctl import threadpool_limits

from bench.core.errors import BenchError
from bench.core.machine import cores, gpus, memory
from bench.core.network import is_offline
from bench.store.executors.side_by_side import Task, drive, short_of_memory, step
from bench.store.graph import Listener, Tolerates, fail_always, make
from bench.store.stage import Resources, Stage
from bench.store.store import Store

_News = float | str | Mapping[str, Any]
"""Of a stage: units that it has done, a sentence for people, a line of its log."""
_REPORT_INTERVAL = 0.5  # seconds between two reports of a worker
_SIGNALS = {getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)}
_PATIENCE = 5.0  # seconds that a worker has to end


class LocalExecutor:
    """One stage at a time in this process, each free to use all cores."""

    def run(self, items: Sequence[Stage], store: Store, listener: Listener, tolerates: Tolerates = fail_always) -> None:
        """Make every stage in the order given; stop at the first failure, with all finished stages kept."""
        lost = set[str]()
        for item in items:
            try:
                if lost.isdisjoint(input_stage.key for input_stage in item.before):
                    if sentence := short_of_memory(item, memory()):
                        store.notice(sentence)
                    make(item, store, listener)
                    continue
            except Exception as error:
                if not tolerates(item, error):
                    raise
            lost.add(item.key)


@dataclass(frozen=True)
class WorkersExecutor:
    """At most `workers` stages at a time, each in a process, within the cores, the memory and the GPUs of this machine.

    A stage whose threads are part of its key has so many cores; the others share what is free. A GPU serves one stage
    at a time. A stage that needs more than there is runs alone, and a sentence says so.
    """

    workers: int

    def run(self, items: Sequence[Stage], store: Store, listener: Listener, tolerates: Tolerates = fail_always) -> None:
        """Make every stage as soon as its inputs are there; the first failure ends the run, finished stages are kept.

        Raises `BenchError` where a worker was killed, and what a stage raises.
        """
        machine = _Machine(self.workers, store, listener)
        try:
            drive(items, listener, tolerates, machine.start)
        except BrokenProcessPool as error:
            raise BenchError(
                "a worker ended before its stage (was it killed, or is memory short?); finished stages are kept: "
                "type the same command to resume, with --workers 1 where memory is short"
            ) from error
        finally:
            machine.end()


class _Machine:
    """What is free of this machine, and the processes that work on it."""

    def __init__(self, workers: int, store: Store, listener: Listener) -> None:
        self._workers, self._store, self._listener = workers, store, listener
        self._others = set(multiprocessing.active_children())
        self._context = multiprocessing.get_context("spawn")
        self._events: SimpleQueue[tuple[str, _News]] = self._context.SimpleQueue()
        self._cores, self._memory = cores(), memory()
        self._gpus: list[str] | None = None  # asked for once a stage wants one
        self._busy: dict[Task, tuple[Stage, Resources, tuple[str, ...]]] = {}
        self._pools: dict[tuple[str, ...], ProcessPoolExecutor] = {}

    def start(self, ready: Sequence[Stage]) -> Mapping[str, Task]:
        """Start what fits of the stages that are ready, after reporting what workers have sent."""
        self._busy = {task: job for task, job in self._busy.items() if not task.done()}
        self._report({job[0].key: job[0] for job in self._busy.values()})
        started = {}
        for number, item in enumerate(ready):
            granted = self._grant(item.resources, len(ready) - number)
            if granted is not None:
                resources, devices = granted
                if sentence := short_of_memory(item, self._memory):
                    self._store.notice(sentence)
                started[item.key] = task = self._submit(item, resources.cores, devices)
                self._busy[task] = item, resources, devices
        return started

    def end(self) -> None:
        """End all workers; the stage that one is at continues from its parts another time."""
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)
        workers = set(multiprocessing.active_children()) - self._others
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.join(_PATIENCE)
            worker.kill()

    def _report(self, running: Mapping[str, Stage]) -> None:
        while not self._events.empty():
            key, value = self._events.get()
            if isinstance(value, str):
                self._store.notice(value)
            elif key not in running:
                continue
            elif isinstance(value, Mapping):
                self._listener.logged(running[key], value)
            else:
                self._listener.advanced(running[key], value)

    def _grant(self, resources: Resources, waiting: int) -> tuple[Resources, tuple[str, ...]] | None:
        """Return what a stage gets, with its GPUs, or None where there is no room now."""
        occupied = [granted for _, granted, _ in self._busy.values()]
        free = self._cores - sum(granted.cores for granted in occupied)
        busy_gpus = {name for *_, names in self._busy.values() for name in names}
        share = resources.cores or max(1, free // max(1, min(waiting, self._workers - len(occupied))))
        fits = share <= free and resources.memory <= self._memory - sum(granted.memory for granted in occupied)
        if occupied and not (fits and len(occupied) < self._workers):
            return None
        devices = self._devices(resources, busy_gpus)
        return None if devices is None else (Resources(share, resources.memory), devices)

    def _devices(self, resources: Resources, busy_gpus: set[str]) -> tuple[str, ...] | None:
        """Choose GPUs that nobody has; None where too few are free."""
        if resources.device == "cpu":
            return ()
        if resources.device != "cuda":  # one that the user has named
            return None if busy_gpus else (resources.device,)
        self._gpus = gpus() if self._gpus is None else self._gpus
        free = [name for name in self._gpus if name not in busy_gpus]
        return tuple(free[: resources.gpus]) if len(free) >= resources.gpus else None

    def _submit(self, item: Stage, threads: int, devices: tuple[str, ...]) -> Task:
        """Hand a stage to a worker: those with GPUs keep to them, the others take any stage."""
        if devices not in self._pools:
            visible = ",".join(devices) if item.resources.device == "cuda" else None
            count = 1 if devices else self._workers
            self._pools[devices] = ProcessPoolExecutor(count, self._context, _begin, (self._events, visible))
        packed, root = cloudpickle.dumps(item), self._store.root.resolve()
        with _signals_held():
            return self._pools[devices].submit(_work, packed, root, is_offline(), threads)


@contextmanager
def _signals_held() -> Iterator[None]:
    """Let no signal interrupt the start of a worker, which begins with them held back."""
    if sys.platform == "win32":
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_SEND: Callable[[tuple[str, _News]], None]


def _send(key: str, news: _News) -> None:
    _SEND((key, dict(news) if isinstance(news, Mapping) else news))


def _begin(events: "SimpleQueue[tuple[str, _News]]", visible: str | None) -> None:
    """Prepare a worker: it ends when the process that started it asks for it or is gone, and at no other signal."""
    global _SEND  # noqa: PLW0603 (what a pool's initializer prepares for its tasks)
    _SEND = events.put
    for number in _SIGNALS - {signal.SIGTERM}:  # a terminal sends them to all
        signal.signal(number, signal.SIG_IGN)
    if sys.platform != "win32":
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if visible is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = visible


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent:
        parent.join()
        os._exit(1)


def _work(packed: bytes, root: Path, alone: bool, threads: int) -> tuple[str, float]:
    item: Stage = loads(packed)  # noqa: S301 (from the process that started this one)
    units_done, sent = 0.0, time.monotonic()

    def advance(units: float) -> None:
        nonlocal units_done, sent
        units_done += units
        if time.monotonic() - sent > _REPORT_INTERVAL:
            _send(item.key, units_done)
            units_done, sent = 0.0, time.monotonic()

    os.environ["OMP_NUM_THREADS"] = str(threads)  # for libraries that are loaded later
    with threadpool_limits(threads):
        try:
            send = partial(_send, item.key)
            return step(item, Store(root, send), alone, advance, send)
        except SystemExit:  # by SIGTERM, which somebody else has sent where the run goes on
            raise BenchError(f"SIGTERM ended the worker at {item.name} of {item.title}") from None
        finally:
            torch = sys.modules.get("torch")
            if torch and torch.cuda.is_initialized():
                torch.cuda.empty_cache()  # another stage may have this GPU next, in another worker
