"""The cost of a row, counted once, and the command that reproduces it."""

import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import pytest

from bench.cli import bench
from bench.config.layers import parse_set
from bench.core.errors import StoreError
from bench.evaluation.results import results as read_results
from bench.evaluation.results.read import Result
from bench.testing import fields
from leaderboard.records import Basis, Verification
from leaderboard.site.systems import Cost, System, command_line, refuse_unlike, total_cost
from tests.conftest import cases
from tests.leaderboard.conftest import Publisher


def updated(result: Result, subsets: dict[str, dict[str, Any]]) -> Result:
    tasks = {
        task: {subset: subset_content.model_copy(update=subsets[task]) for subset, subset_content in parts.items()}
        for task, parts in result.content.tasks.items()
    }
    return type(result)(result.path, result.content.model_copy(update={"tasks": tasks}))


@pytest.fixture
def result(publish_result: Publisher, results: Path) -> Result:
    publish_result("crop", {"made/a": {"": [0.5]}, "made/b": {"": [0.5]}})
    (result,) = read_results(results)
    return result


def metadata(seconds: float, key: str, tuned: float, tune: str) -> dict[str, Any]:
    return {
        "metadata": {
            "train": {"seconds": seconds, "tokens": 100},
            "tune": {"seconds": tuned, "tokens": 10},
            "search": {},
        },
        "keys": {"train": key, "tune": tune},
    }


def test_shared_training_counts_once(result: Result) -> None:
    """One pretraining, two tunings: 60 + 5 + 7 seconds, 100 + 10 + 10 tokens; no operations. Then means over seeds."""
    first = updated(result, {"made/a": metadata(60, "k", 5, "t1"), "made/b": metadata(60, "k", 7, "t2")})
    assert total_cost([first]) == Cost(72.0, 120.0, None)
    first = updated(result, {task: metadata(60, "k", 5, "t") for task in ("made/a", "made/b")})
    second = updated(result, {task: metadata(80, "l", 5, "u") for task in ("made/a", "made/b")})
    assert total_cost([first, second]).seconds == 75.0
    assert total_cost([first, result]) == Cost()


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -1, True, "60", None, [1]])
def test_what_is_no_number_of_seconds_is_not_told(result: Result, wrong: Any) -> None:
    """Results are other people's words."""
    subsets = {
        task: {"metadata": {"train": {"seconds": wrong}}, "keys": {"train": "k"}} for task in ("made/a", "made/b")
    }
    assert total_cost([updated(result, subsets)]).seconds is None
    no_metadata = {task: {"metadata": {"train": "nonsense"}, "keys": {}} for task in ("made/a", "made/b")}
    assert total_cost([updated(result, no_metadata)]) == Cost()


@pytest.mark.parametrize(
    ("count", "shown"), [(0, 0), (2**53 - 1, 2**53 - 1), (2**53, None), (-1, None), (True, None), (1.5, None)]
)
def test_a_count_is_a_whole_number_that_scripts_can_hold(result: Result, count: Any, shown: int | None) -> None:
    """The numbers of floating point that have all whole ones below them; the largest of several encoders counts."""
    entry = {"metadata": {"init": {"parameters": count}}, "keys": {"init": "k"}}
    assert total_cost([updated(result, {"made/a": entry, "made/b": entry})]).parameters == shown
    other = {"metadata": {"init": {"parameters": 5}}, "keys": {"init": "l"}}
    expected = 5 if shown is None else max(5, shown)
    assert total_cost([updated(result, {"made/a": entry, "made/b": other})]).parameters == expected


def test_an_index_is_as_large_as_its_vectors(result: Result) -> None:
    """Four bytes a number, mean over seeds; one width or none."""
    subsets = {
        task: {"metadata": {"encode": {"vectors": vectors, "dimensions": width}}, "keys": {"encode": task}}
        for task, vectors, width in (("made/a", 10, 8), ("made/b", 5, 16))
    }
    cost = total_cost([updated(result, subsets)])
    assert (cost.index, cost.dimensions) == (4 * (80 + 80), None)
    cost = total_cost([updated(result, {**subsets, "made/b": subsets["made/a"]}), updated(result, subsets)])
    assert cost.index == 4 * (80 + 160) / 2
    assert total_cost([updated(result, dict.fromkeys(subsets, subsets["made/a"]))]).dimensions == 8


def words(results: Path, *, whole_suite: bool) -> list[str]:
    return shlex.split(command_line([result.content for result in read_results(results)], whole_suite=whole_suite))


def setting(key: str, value: Any, origin: str) -> dict[str, Any]:
    return {"key": key, "value": value, "origin": origin, "default": None, "source": ""}


def test_tasks_seeds_and_settings(publish_result: Publisher, results: Path) -> None:
    """Defaults are left out, a preset is named once, text that reads as a number is quoted."""
    settings = [
        setting("method.k1", 0.9, "default"),
        setting("method.b", 0.4, "preset lucene"),
        setting("method.title", False, "preset lucene"),
        setting("method.name", "1.5", "--set"),
        setting("method.words", ["a b", "ไทย"], "file"),
        setting("method.plain", "it's", "--set"),
        setting("method.none", None, "--set"),
    ]
    for seed in (0, 3):
        publish_result(
            "bm25@x", {"made/b": {"": [0.5]}, "made/a": {"": [0.5]}}, seed=seed, system={"settings": settings}
        )
    command = words(results, whole_suite=False)
    assert " ".join(command).startswith(
        "bench run --method bm25 --suite made --task a,b --regime unsupervised --data official --profile mini "
        "--seed 0,3 --preset bm25/lucene --set "
    )
    assert command.count("--preset") == 1
    settings_given = [parse_set(value) for option, value in pairwise(command) if option == "--set"]
    assert settings_given == [
        (("method", "name"), "1.5"),
        (("method", "words"), ["a b", "ไทย"]),
        (("method", "plain"), "it's"),
        (("method", "none"), None),
    ]
    parsed = bench.get_command(click.Context(bench), "run")
    assert parsed is not None
    parsed.make_context("run", command[2:], resilient_parsing=True)


@pytest.mark.parametrize(("data", "task", "system", "whole_suite", "expected"), cases("commands-of-data-and-systems"))
def test_kinds_of_data_and_systems(
    publish_result: Publisher,
    results: Path,
    data: str,
    task: str,
    system: dict[str, Any],
    whole_suite: bool,
    expected: str,
) -> None:
    """A whole suite names no task; a world is a setting; nobody knows where a user's folder was; a label is kept."""
    publish_result("mine", {task: {"": [0.5]}}, data=data, system=system)
    assert expected in " ".join(words(results, whole_suite=whole_suite))


@pytest.mark.parametrize("label", ["$(touch x)", "; rm -rf ~", "a\nb"])
def test_a_hostile_label_stays_one_word(publish_result: Publisher, results: Path, label: str) -> None:
    """Whoever pastes the command into a shell runs `bench` and nothing else."""
    publish_result("x", {"made/a": {"": [0.5]}}, system={"label": label})
    line = command_line([result.content for result in read_results(results)], whole_suite=True)
    assert "\n" not in line
    assert shlex.split(line)[:2] == ["bench", "run"]
    assert len(shlex.split(line)) == 16


def test_a_verified_system_stays_where_two_were_not_asked_alike(publish_result: Publisher, results: Path) -> None:
    """Whichever comes first: the error says of the unverified one that it does not fit."""
    for label, keys in (("a", {"validate": "1"}), ("b", {"validate": "2"})):
        publish_result(label, {"made/a": {"": [0.5]}}, subset={"keys": keys, "passport": None})
    first, second = read_results(results)
    systems = [System("a", (first,), Verification(Basis.SUBMITTED)), System("b", (second,), Verification())]
    for order in (systems, systems[::-1]):
        with pytest.raises(StoreError, check=fields(where=f"{second.path} and {first.path}")):
            refuse_unlike(order)
