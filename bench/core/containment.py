"""Running a plugin's code costs nobody but the plugin: its noise, its exits, its exceptions and its loops stay here.

`survived` says how a call ended, whatever it raised and however it tried to end this process. `contained` bounds its
time as well, keeps its output away, and puts back what it took from this process.

Not contained are a process that C code or a signal ends, a loop in C that never comes back to Python, limits of the
system that it lowers, changes inside modules (`json.dumps = None`), and what threads do that outlive the call. Signals
and the bound on time need the main thread. `bench` prints Python's stack for a crash, which names the plugin's file.
"""

from __future__ import annotations

import builtins
import locale
import os
import signal
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from io import TextIOWrapper
from operator import is_
from tempfile import TemporaryFile
from time import monotonic
from types import FrameType
from typing import IO, Any, Generic, TypeVar

from bench.core.errors import BenchError
from bench.core.messages import visible

T = TypeVar("T")

SECONDS = 30.0
"""A plugin may take so long to load; those of ours take milliseconds."""
MOST_OUTPUT = 64 << 20
"""Bytes that it may print meanwhile."""
LONGEST = 300
"""Characters of a message of others that are shown."""
_LONGEST_TRACEBACK = 10_000
_LISTED = 5  # changes that are named
_TICK = 0.1  # seconds between two looks at the clock
_PATIENCE = 50  # how often code may go on after it was stopped
_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGALRM") if hasattr(signal, name))
_ENDS = {name: getattr(os, name) for name in ("_exit", "abort", "execv", "execve")}
"""What ends a process, or puts another program in its place, without a word."""
_LOCK = threading.RLock()  # there is one standard output
_KEPT: list[int] = []
"""The descriptor of the streams that code sees; what keeps one, as loggers do, writes to stderr afterwards."""


class StoppedError(BaseException):
    """Code was stopped: it would have ended this process, or exceeds a bound. No `except Exception` catches it."""


@dataclass(frozen=True)
class Ending(Generic[T]):
    """How a call ended."""

    value: T | None = None  # what it returned
    reason: str = ""  # why it failed, on one printable line of at most `LONGEST` characters; empty where it did not
    traceback: str = ""  # where it failed
    remarks: tuple[str, ...] = ()  # what else it did, each a sentence without its subject


def survived(call: Callable[[], T]) -> Ending[T]:
    """Call; whatever is raised, `KeyboardInterrupt` and `SystemExit` included, is the reason of a failure.

    `os._exit` and its like raise instead, and a child that the call forks never comes back from it. Raises what the
    handler of a signal raises, as for Ctrl-C, and nothing else.
    """
    with _Signals() as signals:
        return _ending(call, signals)


def contained(title: str, call: Callable[[], T]) -> Ending[T]:
    """Call as `survived` does, for at most `SECONDS` and `MOST_OUTPUT`; what is printed becomes a remark.

    Folder, locale, recursion limit, handlers of signals, and what was removed or replaced of variables, modules,
    builtins and import paths are put back. `title` names the code where this process must end, because the code goes on
    however often it is stopped.
    """
    changes: dict[str, None] = {}
    with _nameless() as output:
        with (
            _LOCK,
            _output_aside(output),
            _Signals(title, lambda: _size(output), SECONDS, partial(_put_back, changes)) as signals,
        ):
            ending = _ending(call, signals)
        output.seek(0)
        size, beginning = _size(output), output.read(4 * LONGEST).decode("utf-8", "replace")
    names = [*changes][:_LISTED] + [f"{len(changes) - _LISTED} more"] * (len(changes) > _LISTED)
    remarks = [f"changed {', '.join(names)}; that was put back"] if changes else []
    remarks += [f"printed {size:,} bytes: {beginning}"] if size else []
    return replace(ending, remarks=tuple(map(one_line, remarks)))


def _ending(call: Callable[[], T], signals: _Signals) -> Ending[T]:
    value, error = signals.bounded(call)
    if error is None:
        return Ending(value)
    # What follows calls methods of the error, which are code of the plugin, too.
    reason, _ = signals.bounded(lambda: _reason_of(error))
    if reason is None:
        reason = f"{type.__dict__['__name__'].__get__(type(error))}: a message that cannot be printed"
    trace, _ = signals.bounded(lambda: "".join(traceback.format_exception(error, limit=20)))
    return Ending(None, one_line(reason), visible((trace or "")[-_LONGEST_TRACEBACK:]))


def _reason_of(error: BaseException) -> str:
    """Return what is wrong; our own sentences come without their class."""
    if isinstance(error, SystemExit):
        return f"it called sys.exit({error.code!r})"
    text = str.__str__(str(error))  # str() may return a subclass, with methods of its own
    name = type(error).__name__
    return name if not text.strip() else text if isinstance(error, BenchError | StoppedError) else f"{name}: {text}"


def one_line(text: str) -> str:
    """Return a text of others on one printable line of at most `LONGEST` characters."""
    line = visible(" ".join(text[: 4 * LONGEST].split()))  # a text may have any size
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


class _Signals:
    """Distinguishes what a handler of a signal raises from what code raises itself, and stops code by a timer.

    Both in the main thread only.

    Args:
        title: of the code, for the last words.
        size: → bytes that it has printed.
        seconds: bound on a call; none where it is 0.
        around: → what a call is made within.
    """

    def __init__(
        self,
        title: str = "",
        size: Callable[[], int] = int,
        seconds: float = 0,
        around: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self._title, self._size, self._seconds, self._around = title, size, seconds, around
        self._handlers: dict[int, Any] = {}
        self._raised: BaseException | None = None  # by a handler
        self._timed, self._armed, self._until, self._stops = False, False, 0.0, 0

    def __enter__(self) -> _Signals:
        if threading.current_thread() is threading.main_thread():
            self._handlers = {number: signal.getsignal(number) for number in _SIGNALS}
            for number, handler in self._handlers.items():
                if callable(handler):
                    signal.signal(number, self._hear)
            # Where a timer runs it is somebody else's, as pytest's is, and left alone.
            has_timer = hasattr(signal, "setitimer") and not any(signal.getitimer(signal.ITIMER_REAL))
            self._timed = self._seconds > 0 and has_timer
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            if handler is not None:  # None: set by C
                signal.signal(number, handler)
        if self._raised is not None:  # even where the code swallowed it
            raise self._raised

    def bounded(self, call: Callable[[], T]) -> tuple[T | None, BaseException | None]:
        """Return what a call returns, or None and what it raises."""
        process = os.getpid()
        try:
            try:
                if self._timed:
                    self._armed, self._until, self._stops = True, monotonic() + self._seconds, 0
                    signal.signal(signal.SIGALRM, self._tick)
                    signal.setitimer(signal.ITIMER_REAL, _TICK, _TICK)
                with self._around(), _ends_refused(process):
                    try:
                        return call(), None
                    finally:
                        self._armed = False
            finally:
                if os.getpid() != process:  # the call forked, and this is the child, which nobody waits for
                    _ENDS["_exit"](0)
                if self._timed:
                    signal.setitimer(signal.ITIMER_REAL, 0)
        except BaseException as error:
            return None, error

    def _hear(self, number: int, frame: FrameType | None) -> None:
        try:
            self._handlers[number](number, frame)
        except BaseException as error:
            self._raised = error
            raise

    def _tick(self, _: int, __: FrameType | None) -> None:
        is_late, is_loud = monotonic() > self._until, self._size() > MOST_OUTPUT
        if not self._armed or not (is_late or is_loud):
            return
        self._stops += 1
        fault = f"did not end within {self._seconds:g} seconds" if is_late else f"printed {MOST_OUTPUT:,} bytes"
        if self._stops > _PATIENCE:
            words = f"bench: {self._title} {fault} and goes on whenever it is stopped, so this process ends\n"
            os.write(2, words.encode("utf-8", "replace"))
            _ENDS["_exit"](1)
        raise StoppedError(f"it {fault}")


@contextmanager
def _ends_refused(process: int) -> Iterator[None]:
    """Let `os._exit` and its like raise in this process, but for threads that were here before."""
    active = [True]
    others = {thread.ident for thread in threading.enumerate()} - {threading.get_ident()}

    def refused(name: str) -> Callable[..., None]:
        def refuse(*arguments: Any) -> None:
            # Inactive where somebody kept the function; in a child, or a thread of ours, it is meant.
            if not active or os.getpid() != process or threading.get_ident() in others:
                _ENDS[name](*arguments)
            raise StoppedError(f"it called os.{name}")

        return refuse

    modules = (os, import_module(os.name))
    for module in modules:
        for name in _ENDS:
            setattr(module, name, refused(name))
    try:
        yield
    finally:
        active.clear()
        for module in modules:
            for name, function in _ENDS.items():
                setattr(module, name, function)


def _nameless() -> IO[bytes]:
    """Open a file without a name, in memory where the system has such."""
    return os.fdopen(os.memfd_create("output"), "w+b") if hasattr(os, "memfd_create") else TemporaryFile()


@contextmanager
def _output_aside(output: IO[bytes]) -> Iterator[None]:
    """Lead what Python prints, and standard output of C and of processes, into a file."""
    streams = sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__
    saved = {number: _copied(number) for number in (1, 2)}
    os.dup2(output.fileno(), 1)
    stream = _stream(output.fileno())
    sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = stream  # type: ignore[misc]  # code finds these two too
    try:
        yield
    finally:
        sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__ = streams  # type: ignore[misc]
        with suppress(OSError, ValueError):  # it may be closed
            stream.flush()
        for number, copy in saved.items():
            if copy is not None:
                os.dup2(copy, number)
                os.close(copy)
            elif number == 1:
                os.close(number)
        with suppress(OSError):
            os.dup2(2, _KEPT[0], inheritable=False)


def _stream(target: int) -> TextIOWrapper:
    if not _KEPT:
        _KEPT.append(os.dup(target))
    os.dup2(target, _KEPT[0], inheritable=False)
    return open(_KEPT[0], "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)


def _copied(descriptor: int) -> int | None:
    """Return a copy of a descriptor; None where it is closed."""
    with suppress(OSError):
        return os.dup(descriptor)
    return None


def _size(output: IO[bytes]) -> int:
    return os.fstat(output.fileno()).st_size


@contextmanager
def _put_back(changes: dict[str, None]) -> Iterator[None]:
    """Put back what code removes from this process or replaces in it, and name it in `changes`; additions stay."""
    tables = (("sys.modules ", sys.modules, {**sys.modules}), ("builtins.", vars(builtins), {**vars(builtins)}))
    lists = [(name, getattr(sys, name), [*getattr(sys, name)]) for name in ("path", "meta_path")]
    variables, filters, depth = {**os.environ}, [*warnings.filters], sys.getrecursionlimit()
    conventions, folder = locale.setlocale(locale.LC_ALL), _cwd()
    try:
        yield
    finally:
        if sys.getrecursionlimit() != depth:  # first, since little can be called below a low one
            sys.setrecursionlimit(depth)
            changes["the recursion limit"] = None
        for prefix, table, start in tables:
            if not all(map(is_, map(table.get, start), start.values())):
                names = [name for name in start if table.get(name) is not start[name]]
                table.update((name, start[name]) for name in names)
                changes.update((f"{prefix}{name}", None) for name in names)
        for name, original, first in lists:
            live = getattr(sys, name, None)  # code may have put another list in its place, or none
            items = live if isinstance(live, list) else []
            if any(item not in items for item in first):
                items = [*first, *(item for item in items if item not in first)]
                changes[f"sys.{name}"] = None
            if live is not original or items != original:
                original[:] = items
                setattr(sys, name, original)
        if (after := {**os.environ}) != variables:
            names = [name for name in variables if after.get(name) != variables[name]]
            os.environ.update((name, variables[name]) for name in names)
            changes.update((name, None) for name in names)
        if strict := [kind for kind in warnings.filters if kind[0] == "error" and kind not in filters]:
            warnings.filters[:] = [kind for kind in warnings.filters if kind not in strict]  # type: ignore[index]  # a list
            changes["warnings into errors"] = None
        if locale.setlocale(locale.LC_ALL) != conventions:
            locale.setlocale(locale.LC_ALL, conventions)
            changes["the locale"] = None
        if folder and _cwd() != folder:
            os.chdir(folder)
            changes["the working folder"] = None


def _cwd() -> str:
    """Return the working folder; empty where somebody has removed it."""
    try:
        return os.getcwd()  # noqa: PTH109 (a text)
    except OSError:
        return ""
