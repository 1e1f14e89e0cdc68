"""What the commands print: tables on stdout for people, one JSON object for machines, the rest on stderr."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from importlib import import_module
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any

import click
from rich.cells import cell_len
from rich.filesize import decimal

from bench.cli import result_stream
from bench.core.errors import UsageError
from bench.core.files import explain
from bench.core.installed import faiss_conflict
from bench.core.messages import visible
from bench.evaluation.tables import MISSING, Column, Table, duration

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress, TaskID

    from bench.data.corpora.named import CorpusPart
    from bench.store.graph import Step
    from bench.store.stage import Stage

_GAP = 2
"""Blanks between two columns of a table."""

json_option: Callable[[Callable[..., Any]], Callable[..., Any]] = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object on stdout, and nothing else."
)


def print_json(value: Mapping[str, Any]) -> None:
    """Print one object on stdout; halves of surrogate pairs, which no encoding has, are escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    click.echo(text.encode("utf-8", "backslashreplace").decode(), file=result_stream())


def notice(*sentences: str) -> None:
    """Print sentences on stderr, one a line."""
    for sentence in sentences:
        click.echo(f"bench: {sentence}", err=True)


def size_text(count: int | None) -> str:
    """Return a number of bytes as people read it: `1.2 MB`, or `unknown`."""
    return "unknown" if count is None else decimal(count)


def sizes_text(count: int, unknown: int) -> str:
    """Return bytes as people read them, and how many more files there are whose size is unknown."""
    amounts = [size_text(count)] if count or not unknown else []
    return " and ".join([*amounts, *([f"{unknown} of unknown size"] if unknown else [])])


def about_size(parts: Sequence[CorpusPart]) -> str:
    """Return about how many bytes the files of a corpus have."""
    from bench.data.corpora.named import fetched_bytes

    count, unknown = fetched_bytes(parts)
    return f"about {size_text(int(count))}" + f" and {file_count(unknown)} of unknown size" * bool(unknown)


def file_count(number: int) -> str:
    """Return a number of files: `1 file`, `2,000 files`."""
    return f"{number:,} file{'s' * (number != 1)}"


def stage_count(number: int) -> str:
    """Return a number of stages: `1 stage`, `20 stages`."""
    return f"{number} stage{'s' * (number != 1)}"


def warn_of_faiss() -> None:
    """Print what to do about two installed distributions of faiss, where there are two."""
    notice(*filter(None, [faiss_conflict()]))


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], numbers: Iterable[str] = ()) -> None:
    """Print a table of text on stdout; the columns named in `numbers` are aligned to the right."""
    right = set(numbers)
    listed = tuple(Column(name, number=name in right) for name in columns)
    print_table(Table(title, listed, tuple(map(tuple, rows))))


def print_table(content: Table) -> None:
    """Print a table on stdout, its caption above and its notes below.

    Where stdout is not a terminal nothing is cut or wrapped: the table is plain text, as wide as its content. On a
    terminal lines break between words; where it is too narrow for the longest word of every column, each row becomes
    a block of lines.
    """
    from rich.table import Table as Grid
    from rich.text import Text

    titles, cells = [column.title for column in content.columns], [[*map(visible, row)] for row in content.shown()]
    if content.caption:
        click.echo(content.caption)
    columns = list(zip(titles, *cells, strict=True))
    widths = [max((cell_len(word) for text in texts for word in text.split()), default=0) for texts in columns]
    spare = line_width() - sum(widths) - _GAP * (len(widths) - 1)
    if spare >= 0:
        full = [max(cell_len(line) for text in texts for line in text.split("\n")) for texts in columns]
        by_need = sorted(range(len(widths)), key=lambda column: full[column] - widths[column])
        for position, column in enumerate(by_need):  # those that lack little get it; the others share the rest evenly
            extra = min(full[column] - widths[column], spare // (len(widths) - position))
            widths[column], spare = widths[column] + extra, spare - extra
        grid = Grid(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
        for title, width, number in zip(titles, widths, content.numeric, strict=True):
            grid.add_column(Text(title), width=width, justify="right" if number else "left", overflow="fold")
        for row in cells:
            grid.add_row(*map(Text, row))
        _print_rich(grid)
    else:
        for first, *values in cells:
            _print_rich(Text(first, "bold"))
            block = Grid.grid(padding=(0, _GAP))
            block.add_column(no_wrap=True)
            block.add_column(overflow="fold")
            for title, cell in zip(titles[1:], values, strict=True):
                if cell not in ("", MISSING):
                    block.add_row(Text(f"  {title}"), Text(cell))
            _print_rich(block)
    for note in content.notes:
        click.echo(note)


def print_text(text: str) -> None:
    """Print a text on stdout; on a terminal its lines break between words."""
    from rich.text import Text

    _print_rich(Text(text))


def _print_rich(content: RenderableType) -> None:
    """Print on stdout: with styles on a terminal, plain elsewhere; never with blanks at the end of a line."""
    from rich.console import Console

    console = Console(width=line_width(), force_terminal=sys.stdout.isatty(), force_jupyter=False, legacy_windows=False)
    with console.capture() as capture:
        console.print(content)
    click.echo("\n".join(line.rstrip() for line in capture.get().removesuffix("\n").split("\n")))


def line_width() -> int:
    """Return the cells of a line of stdout, more than anything takes where it is no terminal."""
    return get_terminal_size().columns if sys.stdout.isatty() else 1_000_000


class Lines:
    """A listener that shows the stage at work with its rate and time left: as a bar, or as lines (in a cell, one)."""

    INTERVAL, IN_CELL = 60.0, 1.0
    """Seconds between two lines where there is no terminal; in a notebook, where a line takes the last one's place."""

    def __init__(self, plan: Sequence[Step], *, quiet: bool = False, log: Path | None = None) -> None:
        self._waiting = {step.stage.key: step.seconds for step in plan if step.runs}
        self._guessed = {step.stage.key for step in plan if step.guessed}
        self._total = len(self._waiting)
        self._began: dict[str, float] = {}
        self._reached: dict[str, float] = {}
        self._first: dict[str, tuple[float, float]] = {}  # clock and units of a stage's first report
        self._sizes: dict[str, float] = {}
        self._printed = time.monotonic()
        self._quiet = quiet
        try:
            self._log = log.open("a", encoding="utf-8") if log else None
        except OSError as error:
            raise UsageError(
                where=str(log), found=explain(error), expected="a file that can be written (--log)"
            ) from error
        self._cell = None if quiet else _cell()
        self._bar = _bar() if sys.stderr.isatty() and not quiet and not self._cell else None
        self._tasks: dict[str, TaskID] = {}
        self._whole: TaskID | None = None  # the bar of all stages
        self._estimated = sum(self._waiting.values())
        self._loss: dict[str, float] = {}
        self._signs: dict[str, str] = {}
        self.outcomes: list[dict[str, Any]] = []

    def __enter__(self) -> Lines:
        """Take the terminal's last lines."""
        if self._bar:
            self._bar.start()
            if self._total > 1:
                self._whole = self._bar.add_task("whole run", total=None, rate="")
                self._show_whole()
        return self

    def __exit__(self, *failure: object) -> None:
        """Give them back."""
        if self._bar:
            self._bar.stop()
        if self._log:
            self._log.close()
        if self._cell and self.outcomes:
            seconds = [outcome["seconds"] for outcome in self.outcomes if outcome["state"] == "ran"]
            self._cell(f"{stage_count(len(seconds))} run in {duration(sum(seconds))}")

    def started(self, item: Stage) -> None:
        """Open a bar."""
        self._began[item.key], self._reached[item.key] = time.monotonic(), 0.0
        self._sizes[item.key] = item.cost.units
        if self._bar:
            text = self._heading(item).replace("[", r"\[")
            self._tasks[item.key] = self._bar.add_task(text, total=item.cost.units or None, rate="")

    def advanced(self, item: Stage, units: float) -> None:
        """Move the bar, and print a line if the last one is a minute old."""
        self._reached[item.key] += units
        if self._bar is None or self._log:
            clock = time.monotonic()
            self._first.setdefault(item.key, (clock, self._reached[item.key]))
            if clock - self._printed >= (self.INTERVAL if self._cell is None else self.IN_CELL):
                self._printed = clock
                self._log_line(line := self._line(item, clock))
                if self._bar is None and not self._quiet:
                    (self._cell or notice)(line)
        if self._bar is None:
            return
        number = self._tasks[item.key]
        self._bar.advance(number, units)
        speed = self._bar.tasks[self._bar.task_ids.index(number)].speed
        loss = f" loss {self._loss[item.key]:.4g}" if item.key in self._loss else ""
        self._bar.update(number, rate=f"{_speed(speed)} {item.unit}/s{loss}" if speed else "")
        self._show_whole()

    def _show_whole(self) -> None:
        """Move the bar of all stages; it shows the time that is left as long as no stage to come is guessed."""
        if self._bar is None or self._whole is None:
            return
        left = sum(self._waiting.values())
        for key, size in self._sizes.items():
            left -= self._waiting.get(key, 0.0) * min(1.0, self._reached[key] / size) if size else 0.0
        self._bar.update(
            self._whole,
            total=None if self._guessed & self._waiting.keys() else self._estimated,
            completed=self._estimated - left,
            rate=f"{self._total - len(self._waiting)} of {self._total} stages",
        )

    def logged(self, item: Stage, line: Mapping[str, Any]) -> None:
        """Remember the loss, to be shown with the progress; say each sign of failure when it is first seen."""
        if isinstance(line.get("loss"), float):
            self._loss[item.key] = line["loss"]
        for sign in line.get("warnings", ()):
            sentence = f"{item.name} {item.title}, step {line['step']}: {sign}"
            if self._signs.setdefault(f"{item.key} {sign.split()[1:4]}", sentence) is sentence:  # words without numbers
                self._log_line(sentence)
                notice(sentence)

    def _log_line(self, line: str) -> None:
        """Add a line to the log, if there is one."""
        if self._log:
            self._log.write(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} {line}\n")
            self._log.flush()

    def _heading(self, item: Stage) -> str:
        return f"[{[*self._began].index(item.key) + 1}/{self._total}] {item.name} {item.title}"

    def _line(self, item: Stage, clock: float) -> str:
        """Return how far a stage is, how fast it goes, and how long it and the run will take.

        It goes as fast as since its first report, which may be of what an attempt before this one has done.
        """
        reached, size, (since, before) = self._reached[item.key], item.cost.units, self._first[item.key]
        rate = (reached - before) / (clock - since) if clock > since else 0.0
        parts = [f"{_speed(rate)} {item.unit}/s"] if rate else []
        if 0 < reached <= size:  # sizes are estimates: some stages do more
            parts = [f"{reached / size:.0%}", *parts]
        if rate and reached <= size:
            remaining = (size - reached) / rate
            later = sum(seconds for key, seconds in self._waiting.items() if key != item.key)
            run_remaining = max(
                remaining, (remaining + later) / len(self._began.keys() & self._waiting)
            )  # stages at work share the rest
            measured = not self._guessed & (self._waiting.keys() - {item.key})  # guesses are out by orders of magnitude
            parts += [f"{duration(remaining)} left"]
            parts += [f"{duration(run_remaining)} left of the run"] if measured else []
        parts += [f"loss {self._loss[item.key]:.4g}"] if item.key in self._loss else []
        return ": ".join([self._heading(item), *filter(None, [", ".join(parts)])])

    def finished(self, item: Stage, state: str, seconds: float, error: BaseException | None = None) -> None:
        """Close the bar and remember how it ended."""
        self._waiting.pop(item.key, None)
        self._sizes.pop(item.key, None)
        fields = {"stage": item.name, "title": item.title, "key": item.key}
        self.outcomes.append({**fields, "state": state, "seconds": seconds})
        ending = f": {error}" if error and str(error) else f" {duration(seconds)}"
        line = f"{item.name:<9} {item.title:<40} {state}{ending}"
        self._log_line(line)
        if self._bar:
            self._bar.remove_task(self._tasks.pop(item.key))
            self._show_whole()
            self._bar.console.print(line, style="dim", markup=False, highlight=False)


@dataclass(frozen=True)
class Reporter:
    """How a command shows its progress: as `--quiet` and `--log` say. Called with steps, it returns their listener."""

    quiet: bool = False
    log: Path | None = None

    def __call__(self, plan: Sequence[Step]) -> Lines:
        """Return what shows the progress of some steps, for a `with`."""
        return Lines(plan, quiet=self.quiet, log=self.log)

    def announce(self, seconds: float, more: str = "") -> None:
        """Say on a terminal, before the work, how long it may take."""
        if seconds > 1 and not self.quiet and sys.stderr.isatty():
            notice(f"about {duration(seconds)} of work{more}")


SHOWN = Reporter()
"""Progress as it is shown where nobody says anything."""


def progress_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command that may run long `--quiet` and `--log`, as its argument `progress`."""

    @wraps(command)
    def wrapped(quiet: bool, log: Path | None, **options: Any) -> Any:
        return command(progress=Reporter(quiet, log), **options)

    quiet = click.option("--quiet", is_flag=True, help="Show no progress; warnings and results are still printed.")
    log = click.option(
        "--log",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Append progress to this file: a line a minute, and one for each stage.",
    )
    return quiet(log(wrapped))


def _cell() -> Callable[[str], None] | None:
    """Return what shows a line in the cell of a notebook, in place of the one before; None elsewhere."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if not hasattr(shell, "kernel"):
        return None
    display = import_module("IPython.display").display
    handle = display({"text/plain": ""}, raw=True, display_id=True)
    return lambda line: handle.update({"text/plain": line}, raw=True)


def _bar() -> Progress:
    """Return bars on stderr, each with the time that it has taken and the time that is left, where that is known."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
    from rich.table import Column as Cells
    from rich.text import Text

    class Times(ProgressColumn):
        """`0:25 spent, 0:41 left`."""

        max_refresh = 0.5

        def render(self, task: Task) -> Text:
            """Return both times, by their names."""
            spent, left = f"{_clock(task.elapsed or 0)} spent", task.time_remaining
            return Text(spent if left is None else f"{spent}, {_clock(left)} left", "progress.elapsed")

    return Progress(
        TextColumn("{task.description}", table_column=Cells(no_wrap=True, overflow="ellipsis")),
        BarColumn(bar_width=12),
        TextColumn("{task.percentage:>3.0f}% {task.fields[rate]}", table_column=Cells(no_wrap=True)),
        Times(Cells(no_wrap=True)),
        console=Console(stderr=True),
        transient=True,
    )


def _clock(seconds: float) -> str:
    """Return a time as a watch shows it: `0:25`, `1:02:03`."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _speed(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"
