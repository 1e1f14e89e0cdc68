"""Rows of the table of speeds: ours and its peers in one process, in turn, in seconds of a processor.

Neighbours on the machine slow all works of a round alike, so a ratio is the median over rounds of the ratio within a
round. Nothing here reads a wall clock.
"""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from threadpoolctl import threadpool_limits

Work = Callable[[], object]
LIMIT = "bare matrix products"
"""The peer that does only what the hardware must: its ratio is the share of the machine that ours reaches."""


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Args:
        works: makes "ours" and its peers, by name, in a folder; what they return is thrown away.
        unit: of `units`, e.g. texts.
        units: how many one call works on.
        reach: peer → the least ratio of its seconds to ours; the table names what is missed.
        rounds: how often each is run.
        holds: what keeps ours from being faster.
        bfloat16: only for processors that have a unit for bfloat16.
    """

    works: Callable[[Path], AbstractContextManager[Mapping[str, Work]]]
    unit: str
    units: int
    reach: Mapping[str, float]
    rounds: int = 5
    holds: str = ""
    bfloat16: bool = False


@dataclass(frozen=True)
class Measured:
    """What a row came to: seconds of a processor by work, and the peer's by ours, each the median of the rounds."""

    seconds: Mapping[str, float]
    ratios: Mapping[str, float]
    least: Mapping[str, float]  # ratio of any round


def measure(row: Row, folder: Path) -> Measured:
    """Run a row: each work once to warm up (caches, compiled code), then all in turn, the order rotated each round."""
    rounds: list[dict[str, float]] = []
    with one_thread(), row.works(folder) as works:
        names = list(works)
        for number in range(row.rounds + (row.rounds > 1)):
            turned = names[number % len(names) :] + names[: number % len(names)]
            rounds.append({name: _seconds(works[name]) for name in turned})
    measured_rounds = rounds[row.rounds > 1 :]
    ratios_of = {
        name: [timings["ours"] and timings[name] / timings["ours"] for timings in measured_rounds]
        for name in names
        if name != "ours"
    }
    return Measured(
        {name: float(np.median([timings[name] for timings in measured_rounds])) for name in names},
        {name: float(np.median(ratios)) for name, ratios in ratios_of.items()},
        {name: min(ratios) for name, ratios in ratios_of.items()},
    )


def _seconds(work: Work) -> float:
    """Return the seconds of a processor that a call takes, in this process and in those that it starts."""
    start = _processor_seconds()
    work()
    return _processor_seconds() - start


def _processor_seconds() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + spent.ru_utime + spent.ru_stime


@contextmanager
def one_thread() -> Iterator[None]:
    """Let every library compute on one thread."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)


def command(*typed: object, folder: Path) -> Work:
    """Return a call of a command, typed in a folder, in a process of its own; it must succeed."""

    def call() -> None:
        words = [sys.executable, *map(str, typed)]
        settings = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": ""}  # as it is installed
        completed = subprocess.run(words, cwd=folder, env=settings, capture_output=True, text=True, check=False)
        assert completed.returncode == 0, completed.stderr

    return call


def products(operations: float, tokens: int, width: int, dtype: torch.dtype = torch.float32) -> Work:
    """Return bare products of matrices, `[tokens, width] × [width, 4 width]`, of as many operations."""
    shapes = ((tokens, width), (width, 4 * width), (tokens, 4 * width))
    left, right, out = (torch.randn(shape).to(dtype) for shape in shapes)
    times = max(1, round(operations / (8 * tokens * width * width)))

    def multiply() -> None:
        for _ in range(times):
            torch.mm(left, right, out=out)

    return multiply
