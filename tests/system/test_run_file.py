"""`bench run FILE.toml`: its results are those of the commands that it stands for; `plan` and `compare` take it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import tree

RunJson = Callable[..., dict[str, Any]]
COMMON = (
    "--suite",
    "mrtydi",
    "--task",
    "sw",
    "--seed",
    "0,1",
    "--backbone",
    "scratch:1x16",
    "--set",
    "budget.tokens=2000",
    "--set",
    "prepare.vocabulary=800",
    "--set",
    "compute.threads=1",
)
VARIANTS = (
    ("--label", "first", "--set", "method.k1=1.5"),
    ("--set", "method.k1=1.2", "--set", "method.temperature=0.3"),
)
FILE = """
method = ["bm25", "crop"]
suite = "mrtydi"
task = "sw"
seed = [0, 1]
backbone = "scratch:1x16"
results = "../filed"
corpus = "CORPUS"
set.budget.tokens = 2000
set.prepare.vocabulary = 800
set.compute.threads = 1

[variants.first]
label = "first"
set.method.k1 = 1.5

[variants.second]
set = ["method.k1=1.2", "method.temperature=0.3"]
"""


def test_a_command_that_takes_no_file_says_so(bench: Any, tmp_path: Path) -> None:
    """As do those that take one for a second word; with what to type."""
    for words, message in (
        (("sweep", "a.toml"), "bench sweep takes no file; bench sweep --help"),
        (("few-shot", "a.toml"), "bench few-shot takes no file"),
        (("ablate", "a.toml"), "bench ablate takes no file"),
        (("sweep", "crop", "--suite", "mrtydi"), "--method crop for a method"),
        (("curve", "crop", "ict"), "found ict, expected one word besides options; several methods have commas"),
    ):
        assert message in bench(*words, status=2).stderr


@pytest.mark.slow
def test_a_file_is_the_commands_that_it_stands_for(tmp_path: Path, corpus: Path, bench: Any, run_json: RunJson) -> None:
    """Two methods, two seeds, two variants: the same result files, byte by byte, from the same stages."""
    (tmp_path / "exp").mkdir()
    (tmp_path / "exp" / "a.toml").write_text(FILE.replace("CORPUS", str(corpus)))
    common = (*COMMON, "--corpus", str(corpus))
    plan = run_json("plan", "exp/a.toml")
    filed = run_json("run", "exp/a.toml", "--quiet")
    assert {step["key"] for step in plan["steps"]} == {stage["key"] for stage in filed["stages"]}
    assert all(stage["state"] == "ran" for stage in filed["stages"])
    methods = ("--method", "bm25,crop")
    for words in VARIANTS:
        one = run_json("run", *methods, *common, *words, "--results", "typed", "--quiet")
        assert {stage["state"] for stage in one["stages"]} == {"cached"}
    files = tree(tmp_path / "filed")
    assert files == tree(tmp_path / "typed")
    assert len([name for name in files if name.endswith("result.json")]) == 2 * (1 + 2) + 2, "both have one start"
    assert {row["system"] for row in filed["results"]} == {
        *("bm25@first", "crop@first", "bm25@k1=1.2", "crop@temperature=0.3", "crop@init")
    }
    assert {gain["system"] for gain in filed["gains"]} == {"crop@first", "crop@temperature=0.3"}
    _compared(tmp_path, common, bench, run_json)


def _compared(tmp_path: Path, common: tuple[str, ...], bench: Any, run_json: RunJson) -> None:
    """`bench compare FILE` has the file's rows and no other of the folder, and says where some are missing."""
    run_json("run", "--method", "ict", *common, "--seed", "0", "--results", "filed", "--quiet")
    run_json("run", "--method", "bm25,crop", *common, *VARIANTS[0], "--seed", "2", "--results", "filed", "--quiet")
    assert len([*(tmp_path / "filed").rglob("crop@first-*/seed-*")]) == 3
    (compared,) = run_json("compare", "exp/a.toml")["comparisons"]
    assert {row["system"]: sorted(row["seeds"]) for row in compared["systems"]} == {
        **{name: [0] for name in ("bm25@first", "bm25@k1=1.2")},
        **{name: [0, 1] for name in ("crop@first", "crop@temperature=0.3", "crop@init")},
    }
    names = sorted(row["system"] for row in compared["systems"])
    typed = run_json("compare", *names, "--suite", "mrtydi", "--results", "typed")["comparisons"]
    assert sorted(gain["system"] for gain in compared["gains"]) == sorted(gain["system"] for gain in typed[0]["gains"])
    for gain in compared["gains"]:
        (other,) = [row for row in typed[0]["gains"] if row["system"] == gain["system"]]
        assert gain["difference"] == pytest.approx(other["difference"], abs=1e-12)
    for typed_words, found in (
        (["--suite", "mrtydi"], "--suite next to it"),
        (["--seed", "0"], "--seed next to it"),
        (["bm25"], "another system next to it"),
        (["--results", "none"], "no results of 8 of 8 rows (mini/mrtydi/unsupervised/bm25@first-"),
    ):
        completed = bench("compare", "exp/a.toml", *typed_words, "--json", status=2)
        assert found in json.loads(completed.stdout)["error"]["found"]
    missing = next((tmp_path / "filed").rglob("crop@first-*/seed-1/result.json"))
    missing.unlink()
    error = json.loads(bench("compare", "exp/a.toml", "--json", status=2).stdout)["error"]
    assert error["found"].startswith("no results of 1 of 8 rows (mini/mrtydi/unsupervised/crop@first-")


def test_a_saved_run_plans_the_same(tmp_path: Path, tiny: Path, bench: Any, run_json: RunJson) -> None:
    """From another folder too; nothing is written for what cannot be planned."""
    words: tuple[str, ...] = (
        "--method",
        "bm25,crop",
        *COMMON[4:],
        "--suite",
        "beir",
        "--task",
        tiny.name,
        "--rerank",
        "trained",
    )
    words += ("--regime", "english", "--set", "tune.data=pairs/p.tsv", "--readout", "both")
    (tmp_path / tiny.name).symlink_to(tiny)
    (tmp_path / "pairs").mkdir()
    (tmp_path / "pairs" / "p.tsv").write_text("what is it\tit is this\nwho is it\tit is him\n")
    typed = run_json("plan", *words, "--save", "exp/a.toml")
    (tmp_path / "exp" / "a.toml").rename(tmp_path / "b.toml")
    bench("plan", "b.toml", status=2)  # its paths are those next to it
    (tmp_path / "b.toml").rename(tmp_path / "exp" / "b.toml")
    filed = run_json("plan", "exp/b.toml")
    assert [step["key"] for step in filed["steps"]] == [step["key"] for step in typed["steps"]]
    assert len(typed["steps"]) > 20
    bench("plan", "--method", "bm52", *COMMON, "--save", "exp/c.toml", status=2)
    bench("run", *words, "--seed", "5", "--save", "exp/b.toml", status=2)
    assert [path.name for path in (tmp_path / "exp").iterdir()] == ["b.toml"]
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("text", "words", "found"),
    [
        ("methd = 'bm25'", (), "key methd"),
        ("method = []", (), "method = []"),
        ("seed = [0, 0]", (), "0 twice in seed"),
        ("seed = 0", ("--seed", "1"), "--seed 1 next to it"),
        ("method = 1", (), "method = 1"),
        ("method = ", (), "a fault"),
        ("[variants.a]\n[variants.b]\nset.method.k1 = 0.9", (), "no system that is not one of a.toml, variant a"),
    ],
)
def test_bad_files_are_refused_before_anything_is_written(
    tmp_path: Path, tiny: Path, bench: Any, text: str, words: tuple[str, ...], found: str
) -> None:
    """By `run`, `plan` and `compare`, each with the file's name."""
    (tmp_path / "a.toml").write_text(
        f"suite = 'beir'\ntask = '{tiny}'\n" + "method = 'bm25'\n" * ("method" not in text.partition("[")[0]) + text
    )
    for command in ("run", "plan", "compare"):
        if command == "compare" and words:
            continue
        error = json.loads(bench(command, "a.toml", *words, "--json", status=2).stdout)["error"]
        assert found in error["found"]
        assert error["where"].startswith("a.toml")
    assert {path.name for path in tmp_path.iterdir()} <= {"a.toml", "cache", "store"}
    assert not (tmp_path / "store" / "artefacts").exists()
