"""What a plugin does while it is loaded: held, named, and told from what the user does.

`tests/fuzz/plugins.py` types commands next to fifty plugins that misbehave.
"""

import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.core.errors import PluginError
from bench.plugin_guard import LONGEST, guarded, reason_of, traceback_of


def loop() -> None:
    while True:
        pass


@pytest.mark.parametrize("work", [loop, lambda: time.sleep(600)])
def test_what_does_not_end_is_ended(work: Callable[[], None]) -> None:
    """A loop in Python and a sleep, by a time that is given here and is 30 s for users."""
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(PluginError, match=r"^it did not end within 0\.2 seconds$"), guarded("late", seconds=0.2):
        work()
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_by_the_user_is_one() -> None:
    """The signal ends the command; the exception alone, which a plugin raises by itself, is the plugin's fault."""
    with pytest.raises(KeyboardInterrupt), guarded("slow"):
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(PluginError, match="it raised KeyboardInterrupt"), guarded("odd"):
        raise KeyboardInterrupt


def test_exits_are_exceptions_and_come_back() -> None:
    """`os._exit` is Python's own again afterwards."""
    exits = os._exit
    with pytest.raises(PluginError, match=r"it called os\._exit\(3\)"), guarded("ends"):
        os._exit(3)
    assert os._exit is exits


def test_noise_is_one_line(caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]) -> None:
    """Its beginning and its length, without control characters; nothing of it reaches standard output."""
    with caplog.at_level(logging.WARNING), guarded("loud"):
        sys.stdout.write("a\x1b[2J")
        sys.stderr.write("b" * 10_000)
        os.write(1, b"c" * 10_000)
    assert capfd.readouterr().out == ""
    (record,) = caplog.records
    line = record.getMessage()
    assert line.startswith("plugin loud printed 10,005 characters while it was loaded: a[U+001B][2Jbbb")
    assert len(line) < LONGEST + 100
    sys.stdout.write("afterwards\n")
    assert capfd.readouterr().out == "afterwards\n"


def test_the_working_folder_is_as_before(tmp_path: Path) -> None:
    """Relative paths that the user typed mean what they meant."""
    before = Path.cwd()
    with guarded("walks"):
        os.chdir(tmp_path)
    assert Path.cwd() == before


class OddError(Exception):
    """An exception that ends the process where it is printed."""

    __str__ = property(lambda _: os._exit(9))


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("a\n b"), "ValueError: a b"),
        (ValueError(), "ValueError"),
        (ValueError("\x1b]0;title\x07\u202e"), "ValueError: [U+001B]]0;title[U+0007][U+202E]"),
        (PluginError("a sentence of ours"), "a sentence of ours"),
        (SystemExit(4), "it called sys.exit(4)"),
        (OddError(), "OddError: a message that cannot be printed"),
        (ValueError("x" * 10_000), "ValueError: " + "x" * (LONGEST - 13) + "…"),
    ],
)
def test_a_reason_is_one_printable_line(error: BaseException, reason: str) -> None:
    """Whatever the message holds, and whatever happens where it is asked for."""
    assert reason_of(error) == reason
    assert traceback_of(error)
