"""The command of a row is one that the command line takes, with everything that was chosen."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import pytest

from bench.cli import bench
from bench.config import parse_set
from leaderboard.commands import command
from leaderboard.read import results as read_results

Publisher = Callable[..., Path]


def words(results: Path, *, whole: bool) -> list[str]:
    """The command of the only system, as a shell would split it."""
    return shlex.split(command([one.content for one in read_results(results)], whole=whole))


def setting(key: str, value: Any, origin: str) -> dict[str, Any]:
    """A setting as a result holds it."""
    return {"key": key, "value": value, "origin": origin, "default": None, "source": ""}


def test_tasks_seeds_and_settings(made: Publisher, results: Path) -> None:
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
        made("bm25@x", {"made/b": {"": [0.5]}, "made/a": {"": [0.5]}}, seed=seed, about={"settings": settings})
    found = words(results, whole=False)
    assert " ".join(found).startswith(
        "bench run --method bm25 --suite made --task a,b --setting unsupervised --data official --profile mini "
        "--seed 0,3 --preset bm25/lucene --set "
    )
    assert found.count("--preset") == 1
    given = [parse_set(value) for option, value in pairwise(found) if option == "--set"]
    assert given == [
        (("method", "name"), "1.5"),
        (("method", "words"), ["a b", "ไทย"]),
        (("method", "plain"), "it's"),
        (("method", "none"), None),
    ]
    parsed = bench.get_command(click.Context(bench), "run")
    assert parsed is not None
    parsed.make_context("run", found[2:], resilient_parsing=True)


def test_the_whole_suite_names_no_task(made: Publisher, results: Path) -> None:
    """Nothing to name where every task ran; mini data are asked for by their name."""
    made("bm25", {"mini/made/a": {"": [0.5]}}, data="mini")
    found = words(results, whole=True)
    assert "--task" not in found
    assert found[found.index("--data") + 1] == "mini"


def test_another_world(made: Publisher, results: Path) -> None:
    """Its name becomes a setting; the corpus keeps its own name, which the command takes."""
    about = {"method": "crop", "backbone": "scratch:2x128", "corpus": {"name": "mini-few-names", "digest": {}}}
    made("crop", {"mini-few-names/made/a": {"": [0.5]}}, data="mini-few-names", about=about)
    line = " ".join(words(results, whole=False))
    assert "--task a --setting unsupervised --data mini --profile" in line
    assert "--corpus mini-few-names --set mini.world=few-names" in line


def test_a_folder_of_the_users(made: Publisher, results: Path) -> None:
    """Results do not say where it was."""
    made("bm25", {"made/mine": {"": [0.5]}}, data="local")
    found = words(results, whole=False)
    assert found[found.index("--task") + 1] == "path/to/mine"
    assert "--data" not in found


def test_a_dense_system(made: Publisher, results: Path) -> None:
    """Backbone, corpus, budget, readout and a label of the user's own."""
    about = {
        "method": "crop",
        "backbone": "scratch:2x128",
        "corpus": {"name": "mini", "digest": {"reader": "x"}},
        "budget": 2_000_000,
        "readout": {"layer": -2},
    }
    made("mine", {"mini/made/a": {"": [0.5]}}, data="mini", about=about)
    found = " ".join(words(results, whole=True))
    assert "--backbone scratch:2x128 --corpus mini" in found
    assert "--set encode.layer=-2 --set budget.tokens=2000000 --label mine" in found


@pytest.mark.parametrize("label", ["$(touch x)", "; rm -rf ~", "a\nb"])
def test_a_hostile_label_stays_one_word(made: Publisher, results: Path, label: str) -> None:
    """Whoever pastes the command into a shell runs `bench` and nothing else."""
    made("x", {"made/a": {"": [0.5]}}, about={"label": label})
    line = command([one.content for one in read_results(results)], whole=True)
    assert "\n" not in line
    assert shlex.split(line)[:2] == ["bench", "run"]
    assert len(shlex.split(line)) == 16
