"""Rows of unlike encoders never share a file or an average, whatever setting it is that differs."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.core.errors import StoreError
from bench.core.files import read_sealed, write_sealed
from bench.evaluation.results import results as read_results
from bench.evaluation.results.identity import encoder_error, identity_error
from tests.system.conftest import Bench

TRAINING = ("--set", "budget.tokens=500", "--set", "prepare.vocabulary=1500", "--backbone", "scratch:1x16")
CROP = ("run", "--method", "crop", "--suite", "mrtydi", *TRAINING, "--set", "compute.threads=1")
SHORT = ("--set", "prepare.max_documents=3", "--set", "prepare.max_tokens=5")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where stages are made once for this module; every test has results of its own."""
    return tmp_path_factory.mktemp("store")


@pytest.fixture
def crop(corpus: Path, tmp_path: Path, store: Path) -> tuple[str | Path, ...]:
    """The words that train `crop` on a small corpus and test it on Mr. TyDi."""
    return (*CROP, "--corpus", corpus, "--results", tmp_path / "results", "--store", store)


@pytest.fixture
def train(bench: Bench, crop: tuple[str | Path, ...]) -> Callable[..., list[dict[str, Any]]]:
    """Run `crop` with a small budget; return the rows of the trained encoder."""

    def run(*more: str) -> list[dict[str, Any]]:
        completed = bench(*crop, *more, "--json")
        rows = json.loads(completed.stdout)["results"]
        return [row for row in rows if "@init" not in row["system"]]

    return run


def test_settings_of_any_section_make_rows_of_their_own(
    train: Callable[..., list[dict[str, Any]]], bench: Bench, tmp_path: Path
) -> None:
    """Other documents for pretraining: neither the same file, nor a second seed of one system, nor a task of it."""
    (plain,) = train("--task", "sw")
    (short,) = train("--task", "sw", *SHORT)
    assert plain["result_file"] != short["result_file"]
    (second,) = train("--task", "sw", "--seed", "1")
    (other_task,) = train("--task", "te", "--seed", "0")
    assert Path(second["result_file"]).parents[1] == Path(plain["result_file"]).parents[1]
    assert other_task["result_file"] == plain["result_file"]
    assert set(read_sealed(Path(plain["result_file"]))["tasks"]) == {"mini/mrtydi/sw", "mini/mrtydi/te"}
    assert set(read_sealed(Path(short["result_file"]))["tasks"]) == {"mini/mrtydi/sw"}
    completed = bench("compare", "crop", "crop@init", "--suite", "mrtydi", "--results", tmp_path / "results", status=2)
    assert "crop: found the label of 2 systems (prepare.settings.max_tokens is " in completed.stderr
    assert "name one of them: crop-" in completed.stderr


def test_an_encoder_of_another_machine_does_not_join_a_result(
    train: Callable[..., list[dict[str, Any]]], bench: Bench, crop: tuple[str | Path, ...], store: Path
) -> None:
    """Two numbers of threads may give two encoders: the second run is refused before it trains, nothing is changed."""
    (row,) = train("--task", "sw")
    trainings = {*(store / "artefacts" / "train").iterdir()}
    path = Path(row["result_file"])
    before = path.read_bytes()
    completed = bench(*crop, "--task", "te", "--set", "compute.threads=2", status=2)
    assert "mini/mrtydi/sw and mini/mrtydi/te, which rest on two encoders" in completed.stderr
    assert "threads 1 and 2" in completed.stderr
    assert "name all its tasks" in completed.stderr
    assert path.read_bytes() == before
    assert {*(store / "artefacts" / "train").iterdir()} == trainings


def test_a_result_of_two_encoders_is_refused_everywhere(
    train: Callable[..., list[dict[str, Any]]], bench: Bench, crop: tuple[str | Path, ...], tmp_path: Path
) -> None:
    """By run, compare, the board and its check: here with a seal and a graph that fit."""
    (row, _) = train("--task", "sw,te")
    path, results = Path(row["result_file"]), tmp_path / "results"
    content = read_sealed(path)
    assert identity_error(content) == ""
    content["tasks"]["mini/mrtydi/te"][""]["keys"]["train"] = "0" * 32
    write_sealed(path, content)
    assert "rest on two encoders (their keys of train are " in identity_error(content)
    places = ("--results", results)
    for command in (
        (*crop, "--task", "sw"),
        ("compare", "crop", "crop@init", "--suite", "mrtydi", *places),
        ("leaderboard", "build", *places, "--out", tmp_path / "site"),
        ("leaderboard", "check", path.parent),
    ):
        completed = bench(*command, status=None)
        assert (completed.returncode != 0) != ("build" in command)  # a board is built without it, and says so
        assert "rest on two encoders" in " ".join((completed.stdout + completed.stderr).split()), command
    pages = [page.name for page in (tmp_path / "site").rglob("mrtydi-unsupervised-crop*.html")]
    assert pages
    assert all("crop-init" in page for page in pages)
    with pytest.raises(StoreError) as caught:
        read_results(results)
    assert caught.value.expected == "one system, with one encoder for all its tasks"


def test_a_result_of_another_version_is_refused_everywhere(bench: Bench, tmp_path: Path) -> None:
    """By each command that reads results, before anything is run; the file stays as it is."""
    places = ("--results", tmp_path / "results", "--store", tmp_path / "store")
    run = ("run", "--method", "bm25", "--suite", "mrtydi", "--task", "sw", *places)
    (row,) = json.loads(bench(*run, "--json").stdout)["results"]
    path = Path(row["result_file"])
    write_sealed(path, {**read_sealed(path), "schema": "retrieval-bench/result/1"})
    before = {file: file.read_bytes() for file in path.parent.rglob("*") if file.is_file()}
    results = ("--results", tmp_path / "results")
    for command in (
        (*run, "--task", "te"),
        ("compare", "bm25", "crop", "--suite", "mrtydi", *results),
        ("leaderboard", "build", *results, "--out", tmp_path / "site"),
        ("leaderboard", "check", path.parent),
        ("leaderboard", "pack", path.parent, "--out", tmp_path / "packed"),
        ("reproduce", path),
        ("export", path, "--runs", "--out", tmp_path / "runs"),
        ("show", path),
        ("list", "results", *results),
        ("gc", *places),
        ("verify", *places),
    ):
        completed = bench(*command, status=None)
        printed = " ".join((completed.stdout + completed.stderr).split())
        assert completed.returncode != 0, command
        assert "found schema 'retrieval-bench/result/1', expected 'retrieval-bench/result/2'" in printed, command
        assert "run its command again, or use that version" in printed, command
    assert {file: file.read_bytes() for file in path.parent.rglob("*") if file.is_file()} == before
    assert not (tmp_path / "site").exists()


def test_a_graph_that_does_not_give_the_hash_is_refused(
    train: Callable[..., list[dict[str, Any]]], tmp_path: Path
) -> None:
    """A setting changed in the graph, in the hash, or in what is stated beside the graph."""
    (row,) = train("--task", "sw")
    honest = read_sealed(Path(row["result_file"]))

    def changed(change: Callable[[dict[str, Any]], object]) -> str:
        content = json.loads(json.dumps(honest))
        change(content["system"])
        return identity_error(content)

    node = next(name for name, fields in honest["system"]["graph"].items() if fields["stage"] == "prepare")
    assert "of stage prepare that does not have the digest" in changed(
        lambda system: system["graph"][node]["choices"]["settings"].update(max_tokens=5)
    )
    assert "whose graph gives" in changed(lambda system: system.update(hash="0" * 64))
    assert "lacks stages" in changed(lambda system: system["graph"].pop(node))
    assert changed(lambda system: system.update(budget=10**9)).startswith("budget 1000000000 of the system")
    assert changed(lambda system: system["config"].update(temperature=9.0)).startswith("config ")
    assert changed(lambda system: system.update(label="other name")) == ""
    assert "without fine-tunings, of a system that has none" in changed(
        lambda system: system.update(untuned_hash="0" * 64)
    )


def test_pairs_of_tasks_give_each_task_an_encoder() -> None:
    """The fine-tuned encoders of a recipe by task differ and are one system; all else must be one encoder."""
    tasks = {
        name: {"": {"keys": {"train": "a" * 32, "tune": key * 32, "encode": key * 32}}}
        for name, key in (("t/1", "b"), ("t/2", "c"))
    }
    assert encoder_error(tasks, by_task=True) == ""
    assert encoder_error(tasks, by_task=False).startswith("t/1 and t/2, which rest on two encoders")


NESTED: Any = {}
for _ in range(5_000):
    NESTED = {"a": NESTED}


@pytest.mark.parametrize(
    "graph",
    [
        None,
        {},
        {"a": 1},
        {"a": {"stage": "train", "choices": {}, "inputs": []}},
        {"a": {"stage": ["train"], "choices": {}, "inputs": {}}},
        {"a": {"stage": "train", "choices": 3, "inputs": {}}},
        {"a": {"stage": "train", "choices": {}, "inputs": {"x": {}}}},
        {"a": {"stage": "train", "choices": NESTED, "inputs": {}}},
    ],
    ids=range(8),
)
def test_a_graph_of_whoever_hands_it_in_is_a_sentence(graph: Any) -> None:
    """Whatever its types and however deep, it is refused in words."""
    system = {"label": "x", "hash": "0" * 64, "method": "x", "version": "1", "graph": graph}
    assert identity_error({"system": system, "tasks": {}})
