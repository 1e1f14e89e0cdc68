"""Bars of bytes from several threads."""

import io
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from bench.cli.byte_bars import ByteBars
from tests.terminal import displayed

FILES = 60


class Terminal(io.StringIO):
    """A terminal that keeps what it was sent."""

    def isatty(self) -> bool:
        """Return True, so that bars are drawn."""
        return True


def test_nothing_of_a_bar_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where threads add bars, print sentences and take bars away, the sentences alone are left, each once."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads meet in the middle of what they do

    def fetch(number: int) -> None:
        with bars.bar(f"file {number}", 10) as bar:
            bar.at(10, 10)
            bar.notice(f"file {number} is there")

    try:
        with ByteBars() as bars, ThreadPoolExecutor(8) as threads:
            list(threads.map(fetch, range(FILES)))
    finally:
        sys.setswitchinterval(interval)
    left = [line for line in displayed(terminal.getvalue()) if line]
    assert sorted(left) == sorted(f"bench: file {number} is there" for number in range(FILES))


def test_a_sentence_without_bars(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Where bars were not started, or there is no terminal, a sentence is one line on stderr."""
    ByteBars().notice("it is there")
    with ByteBars() as bars:
        bars.notice("it is still there")
    assert capsys.readouterr().err == "bench: it is there\nbench: it is still there\n"
