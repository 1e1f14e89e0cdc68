"""Results of the real pipeline, and copies of them that a test may spoil."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bench.cli import bench
from bench.cli.leaderboard_judges import SuiteJudges
from bench.core.files import canonical, read_sealed, sha256_file, write_sealed
from bench.plugins import load
from bench.store.store import Store
from leaderboard.submissions.validate import Verdict, validate

TINY = Path(__file__).parents[2] / "fixtures" / "tiny-beir"


@dataclass(frozen=True)
class Bundle:
    """A bundle that a test may spoil as someone who means harm can: seals and checksums are made to fit.

    Args:
        folder: where it lies.
    """

    folder: Path

    @property
    def path(self) -> Path:
        """Its result file."""
        return self.folder / "result.json"

    @property
    def content(self) -> dict[str, Any]:
        """What is in it."""
        return read_sealed(self.path)

    def rewrite(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the result and seal it again."""
        content = self.content
        change(content)
        write_sealed(self.path, content)

    def put(self, name: str, data: bytes) -> None:
        """Exchange a file, with its checksum."""
        (self.folder / name).write_bytes(data)
        self.rewrite(lambda content: content["files"].update({name: sha256_file(self.folder / name)}))

    @property
    def task(self) -> str:
        """Its first task."""
        return str(next(iter(self.content["tasks"])))

    @property
    def leg(self) -> dict[str, Any]:
        """What it says of that task's only leg."""
        found: dict[str, Any] = self.content["tasks"][self.task][""]
        return found

    @property
    def run_name(self) -> str:
        """Where that task's run lies."""
        return f"runs/{self.task}.trec.gz"

    @property
    def values_name(self) -> str:
        """Where that task's values lie."""
        return f"per-query/{self.task}.json.gz"

    def edit_run(self, change: Callable[[list[str]], list[str]]) -> None:
        """Change the lines of the run."""
        lines = gzip.decompress((self.folder / self.run_name).read_bytes()).decode().splitlines(keepends=True)
        self.put(self.run_name, gzip.compress("".join(change(lines)).encode(), mtime=0))

    def edit_values(self, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the values per query."""
        table = json.loads(gzip.decompress((self.folder / self.values_name).read_bytes()))
        change(table)
        self.put(self.values_name, gzip.compress(canonical(table), mtime=0))


@dataclass(frozen=True)
class Ran:
    """What `bench run` left.

    Args:
        results: the folder of results: BM25 on a folder of somebody's own, and on a task of the embedded world.
        store: its stages.
    """

    results: Path
    store: Path

    @property
    def local(self) -> Path:
        """The bundle on the folder."""
        (path,) = self.results.glob("local/**/result.json")
        return path.parent

    @property
    def mini(self) -> Path:
        """The bundle on the embedded world."""
        (path,) = self.results.glob("mini/**/result.json")
        return path.parent


@pytest.fixture(scope="session")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Run the pipeline once."""
    root = tmp_path_factory.mktemp("ran")
    found = Ran(root / "results", root / "store")
    places = ["--store", str(found.store), "--results", str(found.results)]
    for suite, task in (("beir", str(TINY)), ("mrtydi", "en")):
        given = ["run", "--method", "bm25", "--suite", suite, "--task", task, *places]
        assert not bench.main(args=given, prog_name="bench", standalone_mode=False)
    return found


@pytest.fixture(scope="session")
def judges(ran: Ran) -> SuiteJudges:
    """The suites' own judgements."""
    return SuiteJudges(load(), Store(ran.store), None, (TINY,))


@pytest.fixture
def bundle(ran: Ran, tmp_path: Path) -> Bundle:
    """A copy of the bundle on the folder."""
    return Bundle(Path(shutil.copytree(ran.local, tmp_path / "handed-in")))


@pytest.fixture
def mini(ran: Ran, tmp_path: Path) -> Bundle:
    """A copy of the bundle on the embedded world."""
    return Bundle(Path(shutil.copytree(ran.mini, tmp_path / "mini-in")))


@pytest.fixture
def bundle_of() -> type[Bundle]:
    """The class, for other folders."""
    return Bundle


Look = Callable[[Bundle], Verdict]


@pytest.fixture
def look(judges: SuiteJudges) -> Look:
    """Look at a bundle as the commands do; messages call it `it`."""
    return lambda bundle: validate(bundle.folder, "it", judges)
