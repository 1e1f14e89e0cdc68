"""Loading a plugin costs nobody but itself: its noise, its exits, its exceptions and its endless hooks are held here.

What runs while a plugin is imported or asked what it brings is somebody else's code. A crash of the interpreter itself
(a segmentation fault, `os.abort`) cannot be held; `bench` prints Python's stack for it, which names the plugin's file.
"""

from __future__ import annotations

import io
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from bench.core.errors import PluginError
from bench.core.messages import visible

SECONDS = 30.0
"""A plugin may take so long to load; those of ours take milliseconds."""
LONGEST = 300
"""Characters of a message of others that are shown."""
_LONGEST_TRACEBACK = 10_000
_LOG = logging.getLogger(__name__)


def reason_of(error: BaseException) -> str:
    """Return one printable line about an exception, at most `LONGEST` characters; ours come without their class."""
    kind = type(error).__name__[:LONGEST]
    if isinstance(error, SystemExit):
        return _line(f"it called sys.exit({_text(error.code, repr)})")
    text = _text(error, str)
    is_ours = isinstance(error, PluginError) or type(error).__module__.partition(".")[0] == "pluggy"
    return _line(text if is_ours else f"{kind}: {text}" if text else kind)


def traceback_of(error: BaseException) -> str:
    """Return a printable traceback, its last `_LONGEST_TRACEBACK` characters."""
    lines = _text(error, lambda _: "".join(traceback.format_exception(error, limit=20)))
    return visible(lines[-_LONGEST_TRACEBACK:])


def _text(value: object, form: Callable[[object], str]) -> str:
    """Return the text of a value, whatever its own methods do."""
    try:
        with _without_exit():
            return form(value)
    except BaseException:
        return "a message that cannot be printed"


def _line(text: str) -> str:
    text = visible(" ".join(text[: 2 * LONGEST].split()))
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


class _Noise(io.TextIOBase):
    """Takes what is printed and keeps its beginning."""

    def __init__(self) -> None:
        self.beginning, self.characters = "", 0

    def write(self, text: str, /) -> int:
        self.characters += len(text)
        self.beginning += text[: LONGEST - len(self.beginning)]
        return len(text)

    def writable(self) -> bool:
        return True


@contextmanager
def guarded(plugin: str, seconds: float = SECONDS) -> Iterator[None]:
    """Run the code of a plugin with standard output turned away, the process kept, and an end after some time.

    What it prints is logged as one line with its name. Where this is the main thread, an endless loop or a sleep is
    interrupted, and a real interrupt by the user stays one. The working folder is as before.

    Args:
        plugin: its name.
        seconds: until it is interrupted.

    Raises:
        PluginError: it ended the process, interrupted itself, or did not end.
        BaseException: whatever else it raises.
    """
    process, folder = os.getpid(), _working_folder()
    noise = _Noise()
    try:
        with _time_limit(seconds), _without_exit(), _without_output(noise):
            yield
    finally:
        if os.getpid() != process:  # it forked, and this is the child, which nobody waits for
            _EXIT(0)
        if folder is not None and _working_folder() != folder:
            os.chdir(folder)
        if noise.characters:
            _LOG.warning(
                "plugin %s printed %s characters while it was loaded: %s",
                plugin,
                f"{noise.characters:,}",
                _line(noise.beginning),
            )


_EXIT = os._exit


def _working_folder() -> str | None:
    """Return the working folder; None where it was removed."""
    try:
        return str(Path.cwd())
    except OSError:
        return None


@contextmanager
def _without_exit() -> Iterator[None]:
    """Turn `os._exit` into an exception."""

    def refuse(status: int = 0) -> NoReturn:
        raise PluginError(f"it called os._exit({status!r:.20})")

    os._exit = refuse
    try:
        yield
    finally:
        os._exit = _EXIT


@contextmanager
def _without_output(noise: _Noise) -> Iterator[None]:
    """Turn standard output away: what Python prints into `noise`, what is written to the file descriptor to nowhere."""
    streams, outside = (sys.stdout, sys.stderr), None
    with suppress(OSError, ValueError):  # closed, or a console of no file
        sys.stdout.flush()
        outside = os.dup(1)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)
    sys.stdout = sys.stderr = noise
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams
        if outside is not None:
            os.dup2(outside, 1)
            os.close(outside)


@contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Interrupt the main thread after some time; tell that interrupt, and one of the plugin's own, from a user's."""
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "pthread_kill"):
        yield
        return
    main, is_late, interrupts = threading.get_ident(), threading.Event(), list[int]()
    before = signal.getsignal(signal.SIGINT)

    def interrupt() -> None:
        is_late.set()
        signal.pthread_kill(main, signal.SIGINT)

    def remember(number: int, _: object) -> NoReturn:
        interrupts.append(number)
        raise KeyboardInterrupt

    timer = threading.Timer(seconds, interrupt)
    timer.daemon = True
    if before is not None:  # else somebody set it outside Python
        signal.signal(signal.SIGINT, remember)
    timer.start()
    try:
        yield
    except KeyboardInterrupt as error:
        if is_late.is_set():
            raise PluginError(f"it did not end within {seconds:g} seconds") from error
        if not interrupts:
            raise PluginError("it raised KeyboardInterrupt") from error
        raise
    finally:
        timer.cancel()
        if before is not None:
            signal.signal(signal.SIGINT, before)
