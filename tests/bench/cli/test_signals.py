"""Signals that ask a command to end."""

import os
import signal
import time

import pytest

from bench.cli import _ended_by_signals


@pytest.mark.parametrize("name", ["SIGTERM", "SIGINT"])
def test_a_signal_in_a_finalizer_ends_a_command_all_the_same(name: str) -> None:
    """Python swallows what is raised there, such as in that of a lock; the signal comes again."""
    number = signal.Signals[name]

    class Freed:
        def __del__(self) -> None:
            os.kill(os.getpid(), number)
            for _ in range(1000):  # the handler is called between two steps of this loop
                pass

    def work() -> None:
        with _ended_by_signals():
            Freed()
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline:
                time.sleep(0.01)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            work()
    finally:
        signal.signal(signal.SIGINT, before)
