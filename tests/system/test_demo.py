"""The main job on a bare machine: three minutes for one seed, and training that is worth it, seed by seed."""

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

Bench = Callable[..., Any]
RunJson = Callable[..., dict[str, Any]]
SECONDS = 360
"""What the demo may take of a processor: three minutes of two cores."""
PATIENCE = 1800
"""Seconds on cores that others use at the same time."""
LEVEL = 0.01
ROOT = Path(__file__).parents[2]
(CUTS,) = re.findall(r"^SHORT := (.+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
SHORT = tuple(CUTS.split())
"""What `make demo` cuts; `make demo-seeds` cuts nothing."""


def _job(place: Path, *more: str) -> tuple[str | Path, ...]:
    places = ("--store", place / "store", "--results", place / "results")
    return ("run", "--method", "bm25,msm", "--suite", "mrtydi", *places, *more)


def _gain(outcome: dict[str, Any]) -> dict[str, Any]:
    """The command's own test of the trained system against its start."""
    gain: dict[str, Any]
    (gain,) = outcome["gains"]
    assert (gain["system"], gain["other"], gain["queries"]) == ("msm", "msm@init", 660)
    return gain


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
        row[0]: float(row[-1]) for row in rows if row[:1] in (["bm25"], ["msm"], ["msm@init"]) and row[1] != "msm@init"
    }
    assert averages["msm"] > averages["msm@init"]
    assert re.search(r"^msm +msm@init +\+[\d.]+ +— +1 +—$", completed.stdout, re.MULTILINE), "of one training no p"
    outcome = run_json(*_job(tmp_path), seconds=PATIENCE)
    assert {stage["state"] for stage in outcome["stages"]} == {"cached"}
    assert _gain(outcome)["low"] > 0


@pytest.mark.slow
@pytest.mark.timeout(2 * PATIENCE + 120)
def test_the_short_demo_with_three_seeds(tmp_path: Path, bench: Bench, run_json: RunJson) -> None:
    """What `make demo` types: BM25's row comes first, its stages are not run again; two more seeds reuse what there is.

    Training helps with every seed, and over all: by paired t tests (scipy's) of each query and of its mean over seeds.
    """
    first = bench(*(word if word != "bm25,msm" else "bm25" for word in _job(tmp_path)))
    assert re.search(r"^bm25 ", first.stdout, re.MULTILINE)
    before = getrusage(RUSAGE_CHILDREN)
    outcome = run_json(*_job(tmp_path, *SHORT), seconds=PATIENCE)
    after = getrusage(RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < SECONDS / 3
    assert "index" not in _ran(outcome)
    seeds = _job(tmp_path, *SHORT, "--seed", "0,1,2")
    outcome = run_json(*seeds, seconds=PATIENCE)
    assert _ran(outcome) == {"init", "train", "encode", "search", "score"}, "the corpus and its vocabulary were there"
    assert sum(stage["state"] == "ran" and stage["stage"] == "train" for stage in outcome["stages"]) == 2
    lines = bench(*seeds, seconds=PATIENCE).stdout.splitlines()
    for name, count in (("bm25", 1), ("msm", 3), ("msm@init", 3)):
        (line,) = (line for line in lines if re.match(rf"{name} +{count} ", line))
        assert line.count("±") == (12 if count > 1 else 0), "eleven languages and their average"
    assert not [line for line in lines if re.search(r"seed \d", line)]
    gain = _gain(outcome)
    assert gain["seeds"] == [0, 1, 2]
    assert gain["difference"] > 0
    trained, untrained = (_values(outcome, name) for name in ("msm", "msm@init"))
    assert trained.keys() == untrained.keys()
    assert {len(values) for values in (*trained.values(), *untrained.values())} == {3}
    differences = np.array([np.mean(trained[query]) - np.mean(untrained[query]) for query in trained])
    assert len(differences) == 660
    assert differences.mean() > 0
    assert stats.ttest_1samp(differences, 0).pvalue < LEVEL
    assert gain["difference"] == pytest.approx(_mean_of_languages(differences, [*trained]))
    for seed in range(3):
        of_seed = np.array([trained[query][seed] - untrained[query][seed] for query in trained])
        assert of_seed.mean() > 0
        assert stats.ttest_1samp(of_seed, 0).pvalue < LEVEL


def _mean_of_languages(values: npt.NDArray[np.float64], queries: list[tuple[str, str]]) -> float:
    """The unweighted mean over languages, which the suite's headline is."""
    languages = np.array([language for language, _ in queries])
    return float(np.mean([values[languages == language].mean() for language in np.unique(languages)]))
