"""What the commands print: tables on stdout for people, one JSON object for machines, the rest on stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from bench.graph import Node, Step

json_option: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object on stdout and nothing else there."
)


def print_json(value: Mapping[str, Any]) -> None:
    """Print one object on stdout."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False))


def notice(sentence: str) -> None:
    """Tell a person something on stderr."""
    click.echo(f"bench: {sentence}", err=True)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[str] = ()) -> None:
    """Print a table on stdout; the columns named in `numbers` are aligned to the right.

    Where stdout is not a terminal nothing is cut or wrapped: the table is as wide as its content.
    """
    right = set(numbers)
    if title:
        click.echo(title)
    sheet = Table(box=None, pad_edge=False, header_style="bold")
    for name in columns:
        sheet.add_column(Text(name), justify="right" if name in right else "left", overflow="fold")
    for row in rows:
        sheet.add_row(*(Text(cell) for cell in row))
    console().print(sheet)


def console() -> Console:
    """The console of stdout."""
    wide = None if sys.stdout.isatty() else 10_000
    return Console(width=wide, highlight=False)


def percent(value: float) -> str:
    """A fraction as the tables of the field print it: percent with one decimal."""
    return f"{100 * value:.1f}"


def duration(seconds: float) -> str:
    """Seconds in words that a person reads at a glance."""
    minute, hour = 60, 3600
    if seconds < minute:
        return f"{seconds:.1f} s" if seconds else "0 s"
    if seconds < hour:
        return f"{seconds / minute:.0f} min"
    return f"{seconds / hour:.1f} h"


class Lines:
    """A listener that shows a bar for the stage at work, with rate and time left; silent without a terminal."""

    def __init__(self, plan: Sequence[Step]) -> None:
        """Know how many stages there are to run."""
        self._total = sum(step.runs for step in plan)
        self._done = 0
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f}% {task.fields[rate]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
            disable=not sys.stderr.isatty(),
        )
        self._tasks: dict[str, TaskID] = {}
        self.outcomes: list[dict[str, Any]] = []

    def __enter__(self) -> Lines:
        """Take the terminal's last lines."""
        self._bar.start()
        return self

    def __exit__(self, *failure: object) -> None:
        """Give them back."""
        self._bar.stop()

    def started(self, item: Node) -> None:
        """Open a bar."""
        text = f"[{self._done + 1}/{self._total}] {item.recipe.stage} {item.recipe.title}".replace("[", r"\[")
        self._tasks[item.key] = self._bar.add_task(text, total=item.cost.units or None, rate="")

    def advanced(self, item: Node, units: float) -> None:
        """Move the bar; where none is drawn, millions of calls would cost minutes."""
        if self._bar.disable:
            return
        number = self._tasks[item.key]
        self._bar.advance(number, units)
        speed = self._bar.tasks[self._bar.task_ids.index(number)].speed
        self._bar.update(number, rate=f"{speed:,.0f}/s" if speed else "")

    def finished(self, item: Node, state: str, seconds: float, error: BaseException | None = None) -> None:
        """Close the bar and remember how it ended."""
        self._done += 1
        self._bar.remove_task(self._tasks.pop(item.key))
        about = {"stage": item.recipe.stage, "title": item.recipe.title, "key": item.key}
        self.outcomes.append({**about, "state": state, "seconds": seconds})
        if sys.stderr.isatty():
            ending = f": {error}" if error else f" {duration(seconds)}"
            self._bar.console.print(
                Text(f"{item.recipe.stage:<9} {item.recipe.title:<40} {state}{ending}"), style="dim"
            )
