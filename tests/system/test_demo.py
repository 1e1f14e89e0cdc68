"""The main job on a bare machine: three minutes for one seed, and training that is worth it, seed by seed."""

import gzip
import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

import numpy as np
import pytest
from scipy import stats

Bench = Callable[..., Any]
RunJson = Callable[..., dict[str, Any]]
SECONDS = 360
"""What the demo may take of a processor: three minutes of two cores."""
PATIENCE = 1800
"""Seconds on cores that others use at the same time."""
LEVEL = 0.01
QUARTER = ("--set", "budget.tokens=250000")
"""A quarter of the tokens of the demo; `make demo-seeds` has all."""


def _job(place: Path, *more: str) -> tuple[str | Path, ...]:
    places = ("--store", place / "store", "--results", place / "results")
    return ("run", "--method", "bm25,msm", "--suite", "mrtydi", *places, *more)


def _trained_beats_start(outcome: dict[str, Any], seed: int) -> None:
    """Hold the command's own test of a seed against the level."""
    (comparison,) = [
        row
        for row in outcome["comparisons"]
        if {row["system"], row["other"]} == {"msm", "msm@init"} and row["seed"] == seed
    ]
    assert (comparison["system"], comparison["queries"]) == ("msm", 660)
    assert comparison["p"] < LEVEL
    assert comparison["low"] > 0


def _values(outcome: dict[str, Any], system: str) -> dict[tuple[str, str], list[float]]:
    """RR@100 of every query of every language, one value a seed, from the bundles beside the result files."""
    values = defaultdict(list)
    for row in outcome["results"]:
        if row["system"] == system:
            path = Path(row["result_file"]).parent / "per-query" / f"{row['task']}.json.gz"
            table = json.loads(gzip.decompress(path.read_bytes()))
            for query, value in zip(table["queries"], table["measures"]["RR@100"], strict=True):
                values[row["task"], query].append(value)
    return values


def _ran(outcome: dict[str, Any]) -> set[str]:
    return {stage["stage"] for stage in outcome["stages"] if stage["state"] == "ran"}


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.timeout(PATIENCE + 120)
def test_one_seed_in_three_minutes(tmp_path: Path, bench: Bench, run_json: RunJson) -> None:
    """From nothing to the table, the untrained start in a row of its own; training helps; a second run reuses all."""
    before = getrusage(RUSAGE_CHILDREN)
    completed = bench(*_job(tmp_path), seconds=PATIENCE)
    after = getrusage(RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < SECONDS
    rows = [line.split() for line in completed.stdout.splitlines()]
    header = next(row for row in rows if row[:1] == ["system"])
    assert header[1:12] == ["ar", "bn", "en", "fi", "id", "ja", "ko", "ru", "sw", "te", "th"]
    averages = {
        row[0]: float(row[-1]) for row in rows if row[:1] in (["bm25"], ["msm"], ["msm@init"]) and row[1] != "−"
    }
    assert averages["msm"] > averages["msm@init"]
    assert "msm − msm@init: +" in completed.stdout
    outcome = run_json(*_job(tmp_path))
    assert {stage["state"] for stage in outcome["stages"]} == {"cached"}
    _trained_beats_start(outcome, 0)


@pytest.mark.slow
@pytest.mark.timeout(2 * PATIENCE + 120)
def test_three_seeds(tmp_path: Path, bench: Bench, run_json: RunJson) -> None:
    """Two more seeds, at a quarter of the tokens, reuse what there is.

    Training helps with every seed, and over all: a paired t test (scipy's) of each query's mean over the seeds.
    """
    run_json(*_job(tmp_path, *QUARTER), seconds=PATIENCE)
    outcome = run_json(*_job(tmp_path, *QUARTER, "--seed", "0,1,2"), seconds=PATIENCE)
    assert _ran(outcome) == {"init", "train", "encode", "search", "score"}, "the corpus and its vocabulary were there"
    assert sum(stage["state"] == "ran" and stage["stage"] == "train" for stage in outcome["stages"]) == 2
    completed = bench(*_job(tmp_path, *QUARTER, "--seed", "0,1,2"))
    for row in ("bm25 ", *(f"{name} (seed {seed}) " for name in ("msm", "msm@init") for seed in range(3))):
        assert any(line.startswith(row) for line in completed.stdout.splitlines()), f"{row}\n{completed.stdout}"
    for seed in range(3):
        _trained_beats_start(outcome, seed)
    trained, untrained = (_values(outcome, name) for name in ("msm", "msm@init"))
    assert trained.keys() == untrained.keys()
    assert {len(values) for values in (*trained.values(), *untrained.values())} == {3}
    differences = np.array([np.mean(trained[query]) - np.mean(untrained[query]) for query in trained])
    assert len(differences) == 660
    assert differences.mean() > 0
    assert stats.ttest_1samp(differences, 0).pvalue < LEVEL
