"""Results of the real pipeline, and copies of them that a test may spoil."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.cli import bench
from bench.cli.leaderboard_judges import SuiteJudges
from bench.plugins import load
from bench.store.store import Store
from leaderboard.submissions.validate import Verdict, validate
from tests.leaderboard.conftest import Bundle

TINY = Path(__file__).parents[2] / "fixtures" / "tiny-beir"


@dataclass(frozen=True)
class Ran:
    """What `bench run` left: results of BM25 on a folder of somebody's own, and on a task of the embedded world."""

    results: Path
    store: Path

    @property
    def local(self) -> Path:
        (path,) = self.results.glob("local/**/result.json")
        return path.parent

    @property
    def mini(self) -> Path:
        (path,) = self.results.glob("mini/**/result.json")
        return path.parent


@pytest.fixture(scope="session")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Run the pipeline once."""
    root = tmp_path_factory.mktemp("ran")
    result_folders = Ran(root / "results", root / "store")
    places = ["--store", str(result_folders.store), "--results", str(result_folders.results)]
    for suite, task in (("beir", str(TINY)), ("mrtydi", "en")):
        arguments = ["run", "--method", "bm25", "--suite", suite, "--task", task, *places]
        assert not bench.main(args=arguments, prog_name="bench", standalone_mode=False)
    return result_folders


@pytest.fixture(scope="session")
def judges(ran: Ran) -> SuiteJudges:
    """The suites' own judgements."""
    return SuiteJudges(load(), Store(ran.store), None, (TINY,))


@pytest.fixture
def bundle(ran: Ran, tmp_path: Path) -> Bundle:
    return Bundle(Path(shutil.copytree(ran.local, tmp_path / "handed-in")))


@pytest.fixture
def mini(ran: Ran, tmp_path: Path) -> Bundle:
    return Bundle(Path(shutil.copytree(ran.mini, tmp_path / "mini-in")))


Look = Callable[[Bundle], Verdict]


@pytest.fixture
def look(judges: SuiteJudges) -> Look:
    """Look at a bundle as the commands do; messages call it `it`."""
    return lambda bundle: validate(bundle.folder, "it", judges)
