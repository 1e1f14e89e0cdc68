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
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.core.errors import BenchError, UsageError
from bench.core.files import canonical
from bench.core.machine import Launch, launch
from bench.core.workspace import Advance, Log, noop
from bench.training.member import raised, take_part
from bench.types import Json

_POLL = 0.2  # seconds between two looks for a training; signals are heard in between
_PATIENCE = 20.0  # seconds that another process has to say why it failed, or that it is about to end
_MEETING = timedelta(minutes=10)
_READY = timedelta(minutes=5)  # for a training, among processes that have met: reading a checkpoint takes longest


class Team:
    """The processes of a launcher, as one of them sees them."""

    def __init__(self, own: Launch) -> None:
        """Meet the others. Raises `UsageError` where the environment does not say where, or they do not come."""
        from torch.distributed.distributed_c10d import PrefixStore
        from torch.distributed.rendezvous import rendezvous

        try:
            store, _, _ = next(iter(rendezvous("env://", own.rank, 1, timeout=_MEETING)))  # the first waits for none
        except (ValueError, RuntimeError) as error:
            raise UsageError(
                where=f"process {own.rank} of the {own.world} that a launcher has started",
                found=str(error),
                expected="a place where all can meet",
                hint="set MASTER_ADDR to the machine of the first, MASTER_PORT to a free port of it",
            ) from error
        self.own, self._number = own, 0
        self._store: Any = PrefixStore("bench", store)
        self._meet(_MEETING)

    def lead(self, asked: Mapping[str, Any], advance: Advance, log: Log) -> dict[str, Json]:
        """Train with the others, as the first; return the facts. Raises what any of them raised."""
        self._ask(asked)
        try:
            return self._take_part(asked, advance, log)
        except RuntimeError as error:  # perhaps another has failed, and its connections broke
            self._wait(lambda: bool(self._others("failed")))
            self._raise_failed()
            raise BenchError(
                where=f"training on {self.own.world} processes",
                found=str(error),
                hint="if another process was lost, type the same command again: it goes on from the last checkpoint",
            ) from error

    def follow(self) -> None:
        """Take part in trainings until the first process ends. Raises `BenchError` where it is lost."""
        try:
            while (asked := self._asked()) is not None:
                with suppress(Exception):  # the first process decides whether its command goes on
                    self._take_part(asked, noop, noop)
            self._store.set(f"left {self.own.rank}", "")
        except RuntimeError as error:
            raise BenchError(f"lost the process that runs the command: {error}") from error

    def end(self) -> None:
        """Let the others end, and wait for them, since all may have met in this process."""
        with suppress(RuntimeError):
            self._ask(None)
            self._wait(lambda: all(self._there(f"left {rank}") for rank in range(1, self.own.world)))

    def _ask(self, asked: Mapping[str, Any] | None) -> None:
        self._number += 1
        self._store.set(f"{self._number}", canonical(asked).decode())

    def _asked(self) -> Any:
        self._number += 1
        while not self._there(f"{self._number}"):
            time.sleep(_POLL)
        return json.loads(self._store.get(f"{self._number}"))

    def _there(self, key: str) -> bool:
        return bool(self._store.check([key]))

    def _take_part(self, asked: Mapping[str, Any], advance: Advance, log: Log) -> dict[str, Json]:
        with TemporaryDirectory(prefix="bench-process-") as folder:
            try:
                return take_part(asked, self.own.rank, self.own.local, Path(folder), advance, log, self._store_of_all)
            except Exception as error:
                said = canonical([type(error).__name__, str(error)]).decode()
                self._store.set(f"{self._number} failed {self.own.rank}", said)
                raise

    def _store_of_all(self) -> dict[str, Any]:
        from torch.distributed.distributed_c10d import PrefixStore

        self._meet(_READY)
        return {"store": PrefixStore(f"training {self._number}", self._store)}

    def _meet(self, patience: timedelta) -> None:
        """Wait until all are ready. Raises what one has failed with, and `UsageError` where some say nothing."""
        self._store.set(f"{self._number} ready {self.own.rank}", "")
        several = self.own.world - 1
        self._wait(
            lambda: len(self._others("ready")) == several or bool(self._others("failed")), patience.total_seconds()
        )
        self._raise_failed()
        if missing := sorted({*range(self.own.world)} - {self.own.rank, *self._others("ready")}):
            raise UsageError(
                where=f"process {self.own.rank} of the {self.own.world} that a launcher has started",
                found=f"no sign of {', '.join(map(str, missing))} for {patience.total_seconds():g} seconds",
                expected="all of them, with one MASTER_ADDR and MASTER_PORT",
                hint="look at what the missing ones have printed, then type the same command again",
            )

    def _others(self, word: str) -> list[int]:
        """Return which others have said a word about the training at hand."""
        every = (rank for rank in range(self.own.world) if rank != self.own.rank)
        return [rank for rank in every if self._there(f"{self._number} {word} {rank}")]

    def _raise_failed(self) -> None:
        for rank in self._others("failed"):
            raise raised(*json.loads(self._store.get(f"{self._number} failed {rank}")))

    @staticmethod
    def _wait(until: Callable[[], bool], patience: float = _PATIENCE) -> None:
        late = time.monotonic() + patience
        while not until() and time.monotonic() < late:
            time.sleep(_POLL)


_TEAM: ContextVar[Team | None] = ContextVar("team", default=None)


def team() -> Team | None:
    """Return the processes that this one leads, None where no launcher has started it."""
    return _TEAM.get()


@contextmanager
def together() -> Iterator[bool]:
    """Yield whether this process is to run the command: all others have taken part in what it trained by then.

    Raises what `Team` raises.
    """
    own = launch()
    if own.world == 1:
        yield True
    elif own.rank:
        Team(own).follow()
        yield False
    else:
        leading = Team(own)
        before = _TEAM.set(leading)
        try:
            yield True
        finally:
            _TEAM.reset(before)
            leading.end()
