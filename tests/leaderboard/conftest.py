"""Results as a run publishes them, with values that a test chooses."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from bench.core.files import canonical, digest
from bench.evaluation.measures.aggregate import mean
from bench.evaluation.results import Entry, Heading, publish
from bench.evaluation.results import results as read_results
from bench.types import Macro
from leaderboard import build
from leaderboard.build import files
from leaderboard.pages import index, suites
from leaderboard.site.boards import boards
from leaderboard.site.site import Site

Legs = Mapping[str, Sequence[float]]
CARD = "# Made-up suite\n\nOne *measure*.\n\n| a | b |\n|---|---:|\n| 1 | 2 |\n\n[paper](https://example.org/paper)\n"


@dataclass(frozen=True)
class Made:
    """A result to publish.

    Args:
        label: of the system.
        tasks: values of the first measure, a query each, by task and leg.
        suite: name.
        data: `official`, `mini` or `local`.
        seed: of the run.
        macros: of the suite.
        about: keys of the system over the usual ones.
        heading: keys of the heading over the usual ones.
        card: of the suite.
        ids: what query ids begin with.
    """

    label: str
    tasks: Mapping[str, Legs]
    suite: str = "made"
    data: str = "official"
    seed: int = 0
    macros: Sequence[Macro] = ()
    about: Mapping[str, Any] = field(default_factory=dict)
    heading: Mapping[str, Any] = field(default_factory=dict)
    card: str = CARD
    ids: str = "q"


Publisher = Callable[..., Path]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """The results folder."""
    return tmp_path / "results"


@pytest.fixture
def made(tmp_path: Path, results: Path) -> Publisher:
    """Publish a result through the real store of results; returns the result file."""

    def call(label: str, tasks: Mapping[str, Legs], **given: Any) -> Path:
        return _publish(tmp_path, results, Made(label, tasks, **given))

    return call


@pytest.fixture
def site(results: Path) -> Callable[[], dict[str, bytes]]:
    """Build every file of the results folder's site, as the folder is at the call."""

    def call() -> dict[str, bytes]:
        found = tuple(read_results(results)) if results.exists() else ()
        return files(Site(found, tuple(boards(found))))

    return call


@pytest.fixture
def board_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build the pages of boards and the first pages alone; other families have tests of their own."""
    monkeypatch.setattr(build, "FAMILIES", (index.files, suites.files))


def _publish(tmp_path: Path, results: Path, one: Made) -> Path:
    about = {
        "label": one.label,
        "hash": digest(one.label),
        "method": one.label.partition("@")[0],
        "version": "1",
        "settings": [],
        **one.about,
    }
    heading: dict[str, Any] = {
        "system": about,
        "suite": {"name": one.suite, "version": "1", "title": one.suite.title()},
        "setting": "unsupervised",
        "data": one.data,
        "profile": "mini",
        "seed": one.seed,
        "cards": {"method": "# m\n", "suite": one.card},
        **one.heading,
    }
    entries = [
        _entry(tmp_path / "scratch", task, leg, values, one)
        for task, legs in one.tasks.items()
        for leg, values in legs.items()
    ]
    return publish(results, Heading(**heading), entries, one.macros).path


def _entry(scratch: Path, task: str, leg: str, values: Sequence[float], one: Made) -> Entry:
    scratch.mkdir(exist_ok=True)
    run, table = scratch / "run.gz", scratch / f"{digest([one.label, one.seed, task, leg])}.gz"
    run.write_bytes(gzip.compress(b"", mtime=0))
    columns = {"RR@100": list(values), "R@100": [min(1.0, 2 * value) for value in values]}
    queries = [f"{one.ids}{number:05}" for number in range(len(values))]
    table.write_bytes(gzip.compress(canonical({"queries": queries, "measures": columns}), mtime=0))
    content = {
        "measures": {name: mean(column) for name, column in columns.items()},
        "official": {},
        "queries": len(values),
        "protocol": {"tie": "trec", "k": 100, "drop_identical": False},
        "libraries": {"numpy": "2.0"},
        "keys": {},
    }
    return Entry(task, leg, content, run, table)
