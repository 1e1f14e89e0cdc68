"""Bars of bytes on stderr, one a file that is read or fetched; silent without a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from bench.cli.output import notice


class ByteBar:
    """The bar of one file."""

    def __init__(self, bars: ByteBars, task: TaskID) -> None:
        self._bars, self._task = bars, task

    def read(self, count: float) -> None:
        """Add `count` bytes."""
        self._bars.advance(self._task, count)

    def at(self, count: int, total: int | None) -> None:
        """Set the bar to `count` bytes of `total`; None: the total is unknown."""
        self._bars.update(self._task, completed=count, total=total)

    def notice(self, sentence: str) -> None:
        """Print a sentence above all bars."""
        self._bars.notice(sentence)


class ByteBars(Progress):
    """Bars with rate and time left, below each other; a bar is there as long as its file is at work."""

    def __init__(self) -> None:
        super().__init__(
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=not sys.stderr.isatty(),
        )

    @contextmanager
    def bar(self, text: str, total: int | None) -> Iterator[ByteBar]:
        """Show a bar; may be called from several threads."""
        task = self.add_task(text, total=total)
        try:
            yield ByteBar(self, task)
        finally:
            self.remove_task(task)

    def notice(self, sentence: str) -> None:
        """Print a sentence above the bars."""
        if sys.stderr.isatty():
            self.console.print(f"bench: {sentence}", markup=False, highlight=False)
        else:
            notice(sentence)
