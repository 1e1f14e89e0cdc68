"""`bench plan` before anything is fetched: one screen with totals that are the sums of its stages."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from bench.cli import bench

Run = Callable[..., Any]
MSM = ("--profile", "small", "--method", "msm", "--suite", "mrtydi")
BM25 = ("--method", "bm25", "--suite", "mrtydi", "--data", "official")


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command with a store and a folder of data that hold nothing."""
    (tmp_path / "data").mkdir()
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("BENCH_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("BENCH_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))

    def run(*words: str) -> Any:
        completed = CliRunner().invoke(bench, ["plan", *words], catch_exceptions=False)
        assert completed.exit_code == 0, completed.output
        return json.loads(completed.stdout) if "--json" in words else completed.stdout

    return run


def test_a_screen_with_totals(plan: Run) -> None:
    """40 lines of 100 columns; every kind of stage, what is to be fetched, and what it all comes to."""
    screen = plan(*MSM, "--devices", "A100")
    lines = screen.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100
    stages = [line.split()[0] for line in lines[2 : lines.index("")]]
    assert {"validate", "read", "init", "prepare", "train", "encode", "search", "score"} == set(stages)
    assert len(stages) == len(set(stages)) + 3, "encode, search and score also of the start"
    for words in (
        "\nbound by arithmetic: train, encode\n",
        "mc4-small",
        "xlm-roberta-base",
        "to begin with: --suite mrtydi --task sw",
    ):
        assert words in screen
    assert 'fetch all of it: bench data fetch --for "run --method msm --suite mrtydi --profile small"' in screen


def test_totals_are_sums(plan: Run) -> None:
    """Of all stages; memory is that of the largest, since one runs at a time. `--stages` has a row for each."""
    whole = plan(*MSM, "--devices", "A100", "--json")
    stages, totals = whole["stages"], whole["totals"]
    assert totals["seconds"] == pytest.approx(3600 * sum(stage["hours"] for stage in stages))
    gpu = [stage for stage in stages if stage["work"] == "devices"]
    assert {stage["stage"] for stage in gpu} == {"train", "encode", "search"}
    assert totals["device_seconds"] == pytest.approx(3600 * sum(stage["hours"] for stage in gpu))
    assert totals["bound"] == {
        bound: pytest.approx(3600 * sum(stage["hours"] for stage in gpu if stage["bound"] == bound))
        for bound in ("arithmetic", "launches")
    }
    contriever = plan(*MSM, "--method", "contriever", "--devices", "A100")
    assert "\nbound by launches: train; by arithmetic: encode\n" in contriever
    assert "bound by" not in plan(*MSM, "--devices", "8xcpu")
    assert totals["disk"] == pytest.approx(sum(stage["disk"] for stage in stages))
    assert totals["memory"] == max(stage["main"] for stage in stages)
    assert totals["device_memory"] == max(stage["memory"] for stage in stages)
    assert totals["download"] == sum(row["bytes"] for row in whole["downloads"])
    assert {row["kind"] for row in whole["downloads"]} == {"suite", "corpus", "model"}
    each = plan(*MSM, "--devices", "A100", "--stages").splitlines()
    assert len(each[2 : each.index("")]) == len(stages) == totals["stages"]


@pytest.mark.parametrize("devices", [(), ("--devices", "8xcpu")])
def test_bm25_takes_hours_on_any_machine(plan: Run, devices: tuple[str, ...]) -> None:
    """At 3 µs each 58 million passages take some minutes, their words more; before a file is here, on any machine."""
    planned = plan(*BM25, *devices, "--json")
    assert planned["totals"]["seconds"] > 58e6 * 3e-6
    assert {"index", "search"} < {row["stage"] for row in planned["stages" if devices else "steps"]}
    assert [row["name"] for row in planned["downloads"]] == ["mrtydi"]
    assert "0 hours" not in plan(*BM25, *devices)
    assert planned["begin_with"][0]["task"] == "sw"
    assert planned["begin_with"][0]["questions"] == 670, "as published, not the 743 judgements"


def test_a_mistake_is_still_one(plan: Run, tmp_path: Path) -> None:
    """What is wrong besides is said as before; files that nobody can fetch are no reason to plan without them."""
    for words in (("--task", "xx"), ("--task", str(tmp_path / "nothing"))):
        completed = CliRunner().invoke(bench, ["plan", *BM25, *words])
        assert completed.exit_code != 0


def test_many_systems_share_rows(plan: Run) -> None:
    """More than a screen holds: one row for each kind of stage."""
    screen = plan(
        "--profile", "small", "--method", "msm,crop,contriever,ict,ccp", "--suite", "mrtydi", "--devices", "A100"
    )
    assert len(screen.splitlines()) <= 40
    stages = [line.split()[0] for line in screen.splitlines()[2 : screen.splitlines().index("")]]
    assert len(stages) == len(set(stages))
