"""A result lies where its fields say, and none lies in two places: a copy is not another seed."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.core.errors import StoreError
from bench.evaluation.compare.comparison import CompareOptions, compare
from bench.evaluation.results import read
from bench.evaluation.results.scores import load_results
from bench.plugins import load
from tests.published import SyntheticResult

TASKS = {"mrtydi/sw": {"": [0.5, 0.25, 1.0]}}
Reader = Callable[[Path], object]
READERS: list[Reader] = [
    read.results,
    load_results,
    lambda root: compare(["plain", "other"], root, load().suite("mrtydi"), CompareOptions()),
]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Results of two systems; the first has two seeds."""
    for label, seed in (("plain", 0), ("plain", 1), ("other", 0)):
        made = SyntheticResult(label, TASKS, suite="mrtydi", seed=seed, system={"deterministic": False})
        made.publish(tmp_path / "scratch", tmp_path / "results")
    return tmp_path / "results"


def bundle(results: Path, label: str = "plain", seed: int = 0) -> Path:
    (folder,) = results.glob(f"official/mrtydi/unsupervised/{label}-*/seed-{seed}")
    return folder


@pytest.mark.parametrize("reader", READERS)
def test_a_copied_seed_is_no_training(results: Path, reader: Reader) -> None:
    """The sentence names the file, where it belongs, and what to do; without the copy all is read."""
    shutil.copytree(bundle(results), bundle(results).with_name("seed-2"))
    with pytest.raises(StoreError) as caught:
        reader(results)
    assert str(caught.value.where).endswith("seed-2/result.json")
    assert str(caught.value.found).endswith(f"{bundle(results).parent.name}/seed-0")
    assert "not another seed" in str(caught.value.hint)
    shutil.rmtree(bundle(results).with_name("seed-2"))
    assert reader(results)


@pytest.mark.parametrize("reader", READERS)
def test_one_heading_has_one_file(results: Path, reader: Reader) -> None:
    """Two results folders in one hold a result each that is the same by all that names it."""
    shutil.copytree(results, results / "own-copy" / "results")
    with pytest.raises(StoreError) as caught:
        reader(results)
    assert "own-copy" in str(caught.value.where)
    assert "one result file of each" in str(caught.value)


@pytest.mark.parametrize("depth", range(6))
def test_a_folder_of_any_depth_is_read(results: Path, depth: int) -> None:
    """The results folder, any folder inside of it down to one result, and a folder that holds several of them."""
    folder = [bundle(results), *bundle(results).parents][depth]
    assert bundle(results) / "result.json" in [result.path for result in read.results(folder)]
    assert len(read.results(results.parent)) == 3
