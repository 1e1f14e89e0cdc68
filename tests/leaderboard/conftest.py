"""Results with values that a test chooses, and the site that they give."""

import gzip
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.config.base import Config
from bench.core.files import canonical, read_sealed, sha256_file, write_sealed
from bench.evaluation.results import results as read_results
from bench.types import Method, Preset, Suite
from leaderboard import build
from leaderboard.build import files
from leaderboard.pages import index, suites
from leaderboard.site.boards import boards
from leaderboard.site.site import Catalogue, Site
from tests.published import Subsets, SyntheticResult

Publisher = Callable[..., Path]
Build = Callable[[], dict[str, bytes]]


def values(level: float, seed: int, n: int = 40) -> list[float]:
    """Values of n queries about a level; the same seed gives queries of the same difficulty."""
    draw = np.random.default_rng(seed)
    return [float(value) for value in np.clip(level + draw.normal(0, 0.15, n), 0, 1).round(4)]


def method_of(name: str, presets: Mapping[str, Preset] = {}, **shown: Any) -> Method:
    """A method of which only what pages show matters."""
    return Method(name, "1", shown.pop("summary", ""), shown.pop("citation", ""), Config, presets=presets, **shown)


def suite_of(name: str, title: str, *, card: str = "", **shown: Any) -> Suite:
    """A suite of which only what pages show matters."""
    about = {"summary": "", "citation": "", "licence": "", "primary": "RR@100"} | shown
    nothing: dict[str, Any] = {
        "regimes": (),
        "data": (),
        "task_names": tuple,
        "load": str,
        "folder": None,
        "macros": (),
    }
    return Suite(name=name, version="1", title=title, card=lambda: card, **(nothing | about))


def site_of(results: Path, shown: Catalogue | None = None) -> Site:
    """The site of a results folder, which may be absent."""
    checked_results = tuple(read_results(results)) if results.exists() else ()
    shown = shown or Catalogue()
    return Site(checked_results, tuple(boards(checked_results, suites=shown.suites)), shown)


@dataclass(frozen=True)
class Bundle:
    """A bundle that a test may spoil as someone who means harm can: seals and checksums are made to fit."""

    folder: Path

    @property
    def path(self) -> Path:
        return self.folder / "result.json"

    @property
    def content(self) -> dict[str, Any]:
        return read_sealed(self.path)

    def rewrite(self, change: Callable[[dict[str, Any]], object]) -> None:
        content = self.content
        change(content)
        write_sealed(self.path, content)

    def replace_file(self, name: str, data: bytes) -> None:
        (self.folder / name).write_bytes(data)
        self.rewrite(lambda content: content["files"].update({name: sha256_file(self.folder / name)}))

    @property
    def task(self) -> str:
        return str(next(iter(self.content["tasks"])))

    @property
    def subset(self) -> dict[str, Any]:
        subset: dict[str, Any] = self.content["tasks"][self.task][""]
        return subset

    @property
    def run_name(self) -> str:
        """Where that task's run lies."""
        return f"runs/{self.task}.trec.gz"

    @property
    def values_name(self) -> str:
        """Where that task's values lie."""
        return f"per-query/{self.task}.json.gz"

    def edit_run(self, change: Callable[[list[str]], list[str]]) -> None:
        lines = gzip.decompress((self.folder / self.run_name).read_bytes()).decode().splitlines(keepends=True)
        self.replace_file(self.run_name, gzip.compress("".join(change(lines)).encode(), mtime=0))

    def edit_values(self, change: Callable[[dict[str, Any]], object]) -> None:
        table = json.loads(gzip.decompress((self.folder / self.values_name).read_bytes()))
        change(table)
        self.replace_file(self.values_name, gzip.compress(canonical(table), mtime=0))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


@pytest.fixture
def publish_result(tmp_path: Path, results: Path) -> Publisher:
    """Publish a result through the real store of results; returns the result file."""

    def call(label: str, tasks: Mapping[str, Subsets], **options: Any) -> Path:
        return SyntheticResult(label, tasks, **options).publish(tmp_path / "scratch", results)

    return call


@pytest.fixture
def site(results: Path) -> Build:
    """Build every file of the results folder's site, as the folder is at the call."""
    return lambda: files(site_of(results))


@pytest.fixture
def board_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Build the pages of boards and the first pages alone; other families have tests of their own."""
    monkeypatch.setattr(build, "FAMILIES", (index.files, suites.files))
