"""Trainings on processes that a launcher has started: torchrun, accelerate launch or srun, on one machine or several.

The first process runs the command. The others wait, in the store where `torch.distributed` has them meet, for trainings
to take part in, and end with the first.
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import timedelta
from typing import Any

from bench.core.errors import BenchError, UsageError
from bench.core.files import canonical
from bench.core.machine import Launch, launch
from bench.core.scratch import scratch_folder
from bench.core.workspace import Advance, Log, noop
from bench.training.worker import raised, run_worker
from bench.types import Json

_POLL = 0.2  # seconds between two looks for a training; signals are handled in between
_PATIENCE = 20.0  # seconds that another process has to say why it failed, or that it is about to end
_MEETING = timedelta(minutes=10)
_READY = timedelta(minutes=5)  # for a training, among processes that have met: reading a checkpoint takes longest


class ProcessGroup:
    """The processes of a launcher, as one of them sees them."""

    def __init__(self, member: Launch) -> None:
        """Meet the others. Raises `UsageError` where the environment does not say where, or they do not come."""
        from torch.distributed.distributed_c10d import PrefixStore
        from torch.distributed.rendezvous import rendezvous

        try:
            store, _, _ = next(iter(rendezvous("env://", member.rank, 1, timeout=_MEETING)))  # the first waits for none
        except (ValueError, RuntimeError) as error:
            raise UsageError(
                where=f"process {member.rank} of the {member.world} that a launcher has started",
                found=str(error),
                expected="a place where all can meet",
                hint="set MASTER_ADDR to the machine of the first, MASTER_PORT to a free port of it",
            ) from error
        self.member, self._number = member, 0  # of the trainings so far
        self._store: Any = PrefixStore("bench", store)
        self._meet(_MEETING)

    def lead(self, request: Mapping[str, Any], advance: Advance, log: Log) -> dict[str, Json]:
        """Train with the others, as the first; return the metadata. Raises what any of them raised."""
        self._number += 1
        self._store.set(f"{self._number}", canonical(request).decode())
        try:
            return self._run_worker(request, advance, log)
        except RuntimeError as error:  # perhaps another has failed, and its connections broke
            self._wait(lambda: bool(self._ranks("failed")))
            self._raise_failed()
            raise BenchError(
                where=f"training on {self.member.world} processes",
                found=str(error),
                hint="if another process was lost, type the same command again: it resumes from the last checkpoint",
            ) from error

    def follow(self) -> None:
        """Take part in trainings until the first process ends. Raises `BenchError` where it is lost."""
        try:
            while True:
                self._number += 1
                while not self._store.check([f"{self._number}"]):
                    time.sleep(_POLL)
                request = json.loads(self._store.get(f"{self._number}"))
                if request is None:
                    self._mark("left")
                    return
                with suppress(Exception):  # the first process decides whether its command goes on
                    self._run_worker(request, noop, noop)
        except RuntimeError as error:
            raise BenchError(f"lost the process that runs the command: {error}") from error

    def end(self) -> None:
        """Let the others end, and wait for them, since all may have met in this process."""
        with suppress(RuntimeError):
            self._number += 1
            self._store.set(f"{self._number}", canonical(None).decode())
            self._wait(lambda: len(self._ranks("left")) == self.member.world - 1)

    def _run_worker(self, request: Mapping[str, Any], advance: Advance, log: Log) -> dict[str, Json]:
        with scratch_folder("process") as folder:
            try:
                member = self.member
                return run_worker(request, member.rank, member.local, folder, advance, log, self._store_of_all)
            except Exception as error:
                self._mark("failed", canonical([type(error).__name__, str(error)]).decode())
                raise

    def _store_of_all(self) -> dict[str, Any]:
        from torch.distributed.distributed_c10d import PrefixStore

        self._meet(_READY)
        return {"store": PrefixStore(f"training {self._number}", self._store)}

    def _meet(self, patience: timedelta) -> None:
        """Wait until all are ready. Raises what one has failed with, and `UsageError` where some do not come."""
        self._mark("ready")
        count = self.member.world - 1
        self._wait(lambda: len(self._ranks("ready")) == count or bool(self._ranks("failed")), patience.total_seconds())
        self._raise_failed()
        if missing := sorted({*range(self.member.world)} - {self.member.rank, *self._ranks("ready")}):
            raise UsageError(
                where=f"process {self.member.rank} of the {self.member.world} that a launcher has started",
                found=f"no sign of {', '.join(map(str, missing))} for {patience.total_seconds():g} seconds",
                expected="all of them, with one MASTER_ADDR and MASTER_PORT",
                hint="look at what the missing ones have printed, then type the same command again",
            )

    def _mark(self, state: str, value: str = "") -> None:
        """Let the others know the state of this process in the training at hand."""
        self._store.set(f"{self._number} {state} {self.member.rank}", value)

    def _ranks(self, state: str) -> list[int]:
        """Return which other processes are in a state."""
        ranks = (rank for rank in range(self.member.world) if rank != self.member.rank)
        return [rank for rank in ranks if self._store.check([f"{self._number} {state} {rank}"])]

    def _raise_failed(self) -> None:
        for rank in self._ranks("failed"):
            raise raised(*json.loads(self._store.get(f"{self._number} failed {rank}")))

    @staticmethod
    def _wait(until: Callable[[], bool], patience: float = _PATIENCE) -> None:
        late = time.monotonic() + patience
        while not until() and time.monotonic() < late:
            time.sleep(_POLL)


_GROUP: ContextVar[ProcessGroup | None] = ContextVar("process_group", default=None)


def process_group() -> ProcessGroup | None:
    """Return the processes that this one leads, None where no launcher has started it."""
    return _GROUP.get()


@contextmanager
def worker_group() -> Iterator[bool]:
    """Yield whether this process is to run the command: all others have taken part in what it trained by then.

    Raises what `ProcessGroup` raises.
    """
    member = launch()
    if member.world == 1:
        yield True
    elif member.rank:
        ProcessGroup(member).follow()
        yield False
    else:
        group = ProcessGroup(member)
        token = _GROUP.set(group)
        try:
            yield True
        finally:
            _GROUP.reset(token)
            group.end()
