"""What a plugin does while its code runs: held, named, put back, and told from what the user does.

`tests/fuzz/plugins.py` types commands next to some eighty plugins that misbehave.
"""

import builtins
import json
import locale
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bench.core import containment
from bench.core.containment import LONGEST, StoppedError, contained, survived
from bench.core.errors import PluginError
from tests.fuzz.harness import Case, carried_out


def loop() -> str:
    while True:
        pass


def endless_text() -> None:
    class OddError(Exception):
        def __str__(self) -> str:
            return loop()

    raise OddError


def loud() -> None:
    while True:
        os.write(1, b"x" * (1 << 16))


def stubborn() -> None:
    while True:
        try:
            loop()
        except BaseException:  # noqa: S112 (that is its fault)
            continue


def outside(call: Callable[[], Any], seconds: float = 0.2) -> Callable[[], Any]:
    """Make a call in a process without timers of pytest, where a plugin may take so long and print 1 MiB."""

    def limited() -> Any:
        containment.SECONDS, containment.MOST_OUTPUT, containment._PATIENCE = seconds, 1 << 20, 5
        before = signal.getsignal(signal.SIGALRM)
        ending = contained("plugin late", call)
        return [ending.reason, signal.getitimer(signal.ITIMER_REAL)[0], signal.getsignal(signal.SIGALRM) is before]

    return limited


@pytest.mark.parametrize(
    ("work", "seconds", "reason"),
    [
        (loop, 0.2, "it did not end within 0.2 seconds"),
        (partial(time.sleep, 600), 0.2, "it did not end within 0.2 seconds"),
        (endless_text, 0.2, "OddError: a message that cannot be printed"),
        (loud, 60, "it printed 1,048,576 bytes"),
    ],
)
def test_what_does_not_end_is_ended(work: Callable[[], object], seconds: float, reason: str) -> None:
    """A loop in Python, a sleep, the text of an exception, output; no timer runs on, no handler stays."""
    outcome = carried_out(Case(outside(work, seconds)))
    assert outcome.value == [reason, 0.0, True], outcome.stderr
    assert outcome.out == ""


def test_what_goes_on_ends_the_process_by_name() -> None:
    """Code that catches whatever stops it leaves a line with its name, and status 1."""
    outcome = carried_out(Case(outside(stubborn)))
    assert (outcome.code, outcome.value) == (1, None)
    assert outcome.stderr.startswith("bench: plugin late did not end within 0.2 seconds and goes on")


class TerminatedError(KeyboardInterrupt):
    """What the command raises for SIGTERM."""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("guard", [survived, partial(contained, "slow")])
@pytest.mark.parametrize("swallowed", [False, True])
def test_a_signal_is_the_users(
    number: signal.Signals, guard: Callable[[Callable[[], None]], Any], *, swallowed: bool
) -> None:
    """It ends the command by what its own handler raises, even where the plugin catches that."""

    def end(*_: object) -> None:
        raise TerminatedError

    def work() -> None:
        try:
            signal.raise_signal(number)
        except BaseException:
            if not swallowed:
                raise

    before = signal.signal(number, end)
    try:
        with pytest.raises(TerminatedError):
            guard(work)
        assert signal.getsignal(number) is end
    finally:
        signal.signal(number, before)


def raises(error: BaseException) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work


class OddError(Exception):
    """An exception that cannot be printed."""

    def __str__(self) -> str:  # noqa: D105, PLE0307 (it ends the process)
        os._exit(9)


REASONS: list[tuple[Callable[[], object], str]] = [
    (raises(ValueError("a\n b")), "ValueError: a b"),
    (raises(ValueError()), "ValueError"),
    (raises(ValueError("\x1b]0;title\x07\u202e")), "ValueError: [U+001B]]0;title[U+0007][U+202E]"),
    (raises(PluginError("a sentence of ours")), "a sentence of ours"),
    (raises(PluginError()), "PluginError"),
    (raises(SystemExit(4)), "it called sys.exit(4)"),
    (raises(KeyboardInterrupt()), "KeyboardInterrupt"),
    (raises(OddError()), "OddError: a message that cannot be printed"),
    (raises(ValueError("x" * 10_000)), "ValueError: " + "x" * (LONGEST - 13) + "…"),
    (lambda: os._exit(3), "it called os._exit"),
    (lambda: sys.modules["posix"]._exit(3), "it called os._exit"),
    (lambda: os.execl(sys.executable, sys.executable, "-c", ""), "it called os.execv"),  # noqa: S606 (it never starts)
    (os.abort, "it called os.abort"),
]


@pytest.mark.parametrize("guard", [survived, partial(contained, "odd")])
@pytest.mark.parametrize(("work", "reason"), REASONS, ids=[reason[:40] for _, reason in REASONS])
def test_a_reason_is_one_printable_line(guard: Any, work: Callable[[], object], reason: str) -> None:
    """Whatever is raised, whatever its message holds, and whatever happens where that is asked for."""
    if work is os.abort:
        work = lambda: os.abort()  # noqa: E731, PLW0108 (looked up when it is called, as a plugin does)
    ends = os._exit, os.abort, os.execv
    ending = guard(work)
    assert ending.reason == reason
    assert ending.traceback
    assert (os._exit, os.abort, os.execv) == ends


def test_a_kept_exit_is_the_systems_again() -> None:
    """What a plugin keeps of `os._exit` ends a process afterwards, and a fork of it never comes back."""

    def call() -> str:
        ending = contained("keeps", lambda: os._exit)
        if not os.fork():
            ending.value and ending.value(3)
        return str(os.waitstatus_to_exitcode(os.wait()[1]))

    assert carried_out(Case(call)).value == "3"
    assert carried_out(Case(lambda: contained("forks", lambda: bool(os.fork())).value)).value is True


def test_a_thread_of_ours_may_end_the_process() -> None:
    """One that waits for the end of its parent, say, whatever is loaded meanwhile; one of the plugin's may not."""

    def ends_meanwhile(*, ours: bool) -> str:
        end, reasons = threading.Event(), list[str]()

        def work() -> None:
            end.wait(60)
            try:
                os._exit(7)
            except StoppedError as error:
                reasons.append(str(error))

        thread = threading.Thread(target=work)
        if ours:
            thread.start()

        def load() -> None:
            if not ours:
                thread.start()
            end.set()
            thread.join()

        contained("loads", load)
        return reasons[0]

    assert carried_out(Case(lambda: ends_meanwhile(ours=True), allowed=(7,))).code == 7
    assert carried_out(Case(lambda: ends_meanwhile(ours=False))).value == "it called os._exit"


def test_noise_is_one_line(capfd: pytest.CaptureFixture[str]) -> None:
    """Its beginning and its length, without control characters; nothing of it reaches the user."""

    def work() -> None:
        sys.stdout.write("a\x1b[2J")
        sys.stderr.write("b" * 10_000)
        print("b", end="", file=sys.__stdout__)
        sys.stdout.flush()
        os.write(1, b"c" * 10_000)
        sys.stdout.close()

    (remark,) = contained("loud", work).remarks
    assert remark.startswith("printed 20,006 bytes: a[U+001B][2Jbbb")
    assert len(remark) == LONGEST
    assert capfd.readouterr() == ("", "")
    sys.stdout.write("afterwards\n")
    assert capfd.readouterr().out == "afterwards\n"


def test_a_logger_of_a_plugin_speaks_on_stderr_afterwards(capfd: pytest.CaptureFixture[str]) -> None:
    """A stream that it took for standard output or for stderr stays open, and is stderr."""
    handlers: list[logging.Handler] = []
    contained("logs", lambda: handlers.append(logging.StreamHandler(sys.stdout)))
    contained("logs", lambda: handlers.append(logging.StreamHandler(sys.stderr)))
    for handler in handlers:
        handler.handle(logging.LogRecord("theirs", logging.WARNING, "", 0, "said later", (), None))
    assert capfd.readouterr() == ("", "said later\n" * 2)


def test_without_standard_output() -> None:
    """Where it is closed, it still is afterwards; nothing that is opened later gets its number."""

    def call() -> list[str]:
        os.close(1)
        sys.stdout = None
        ending = contained("loud", lambda: os.write(1, b"noise"))
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(1)
        return [ending.reason, *ending.remarks]

    assert carried_out(Case(call)).value == ["", "printed 5 bytes: noise"]


def _replace_builtins() -> None:
    builtins.print = builtins.len = None  # type: ignore[assignment]
    raise ValueError


CHANGES: dict[str, Callable[[], object]] = {
    "the working folder": lambda: os.chdir("/"),
    "HOME": lambda: os.environ.pop("HOME"),
    "sys.modules json": lambda: sys.modules.pop("json"),
    "builtins.len": lambda: setattr(builtins, "len", None),
    "builtins.len, builtins.print": _replace_builtins,
    "sys.path": lambda: sys.path.clear(),  # noqa: PLW0108 (whichever list it is by then)
    "sys.meta_path": lambda: sys.meta_path.clear(),  # noqa: PLW0108
    "the recursion limit": lambda: sys.setrecursionlimit(200),
    "warnings into errors": lambda: warnings.simplefilter("error", UnicodeWarning),
    "the locale": lambda: locale.setlocale(locale.LC_ALL, "C"),
}


REPLACED: dict[str, Callable[[], object]] = {
    "sys.path": lambda: setattr(sys, "path", []),
    "sys.meta_path": lambda: delattr(sys, "meta_path"),
}
"""Lists that are not emptied but replaced or deleted."""


@pytest.mark.parametrize(("name", "change"), [*CHANGES.items(), *REPLACED.items()])
def test_what_is_taken_away_is_put_back(
    name: str, change: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And named; relative paths that the user typed mean what they meant, and what is imported later is found."""
    monkeypatch.setenv("HOME", "/nonexistent")
    state: list[Callable[[], object]] = [
        Path.cwd,
        lambda: dict(os.environ),
        lambda: dict(sys.modules),
        lambda: dict(vars(builtins)),
        lambda: [*sys.path],
        lambda: [*sys.meta_path],
        sys.getrecursionlimit,
        lambda: [*warnings.filters],
        lambda: locale.setlocale(locale.LC_ALL),
    ]
    words = locale.setlocale(locale.LC_ALL)
    locale.setlocale(locale.LC_ALL, "C.UTF-8")
    try:
        before = [part() for part in state]
        assert contained("changes", change).remarks == (f"changed {name}; that was put back",)
        assert [part() for part in state] == before
    finally:
        locale.setlocale(locale.LC_ALL, words)


def test_what_is_added_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Variables, modules and paths that a plugin needs for its own libraries; nothing is said of them."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delenv("THEIR_LIBRARY", raising=False)

    def work() -> None:
        os.environ["THEIR_LIBRARY"] = "1"
        sys.path.insert(0, "/nonexistent")

    assert contained("adds", work).remarks == ()
    assert (os.environ.pop("THEIR_LIBRARY"), sys.path[0]) == ("1", "/nonexistent")

    paths = sys.path
    assert contained("adds", lambda: setattr(sys, "path", ["/first", *sys.path, "/last"])).remarks == ()
    assert sys.path is paths, "who kept the list sees what is added"
    assert paths[:2] + paths[-1:] == ["/first", "/nonexistent", "/last"]


def test_beside_the_main_thread() -> None:
    """Signals are Python's there, and all else is as in the main thread."""
    endings = []
    thread = threading.Thread(target=lambda: endings.append(contained("loud", lambda: sys.stdout.write("noise\n"))))
    thread.start()
    thread.join()
    assert [(ending.reason, ending.remarks) for ending in endings] == [("", ("printed 6 bytes: noise",))]


LATE = """
import atexit, ctypes, threading, time, bench
def talk():
    while True:
        print("noise")
        time.sleep(0.001)
threading.Thread(target=talk, daemon=True).start()
atexit.register(print, "noise")
ctypes.CDLL(None).printf(b"noise")
@bench.hookimpl
def bench_methods(): return []
"""


@pytest.mark.parametrize(("words", "status"), [("list", 0), ("show nothing-of-that-name", 2)])
def test_json_is_alone_on_standard_output(tmp_path: Path, words: str, status: int) -> None:
    """Threads, exit functions and C buffers of a plugin print to the end of the process: on stderr."""
    info = tmp_path / "evil-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[bench]\nevil = evil_plugin\n")
    (tmp_path / "evil_plugin.py").write_text(LATE)
    path = os.pathsep.join([str(tmp_path), *sys.path])
    command = [sys.executable, "-P", "-m", "bench", *words.split(), "--json"]
    environment = {**os.environ, "PYTHONPATH": path, "BENCH_PLUGINS": "evil"}
    completed = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert completed.returncode == status, completed.stderr
    assert isinstance(json.loads(completed.stdout), dict)
    assert "noise" in completed.stderr


def test_stopping_is_no_exception_that_code_expects() -> None:
    """`except Exception` around an import, as optional libraries have it, does not catch it."""
    assert not issubclass(StoppedError, Exception)
