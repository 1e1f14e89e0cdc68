"""Bars of bytes on stderr, one a file that is read or fetched; silent without a terminal."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
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
        self._sentences = deque[str]()
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
        """Print a sentence above the bars; may be called from several threads."""
        if self.live.is_started:
            self._sentences.append(sentence)
            self.refresh()
        else:
            notice(sentence)

    def stop(self) -> None:
        """Take the bars away, and print the sentences that came too late for them."""
        super().stop()
        while self._sentences:
            notice(self._sentences.popleft())

    def get_renderable(self) -> RenderableType:
        """Return the bars, once the sentences that wait are printed.

        `rich` asks for the bars under the lock of its display. Outside of it a print reads how many lines to erase
        while another thread draws another number of bars, and leaves some behind.
        """
        while self._sentences:
            self.console.print(f"bench: {self._sentences.popleft()}", markup=False, highlight=False)
        return super().get_renderable()
