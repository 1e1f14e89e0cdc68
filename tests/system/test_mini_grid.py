"""The named run of the whole embedded world, narrowed to two methods, and the site that is built from it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from suites.runs import MINI_GRID

Bench = Callable[..., Any]
MEASURES = ("accuracy", "RR@100", "R@2kt", "AP@20", "AP@20", "answer-R@100", "nDCG@10", "AP")
EIGHT = dict(zip(MINI_GRID.suites, MEASURES, strict=True))
"""Suite → its headline measure."""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_methods_on_eight_suites(bench: Bench, tmp_path: Path) -> None:
    """Every suite has BM25, a trained encoder and its start; a second run reuses all; the site has a page of each."""
    grid = ("--preset", "mini-grid", "--method", "bm25,crop", "--seed", "0", "--set", "budget.tokens=5000")
    done = bench("run", *grid, "--json", seconds=800)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {(row["suite"], row["system"]) for row in found["results"]} == {
        (suite, system) for suite in EIGHT for system in ("bm25", "crop", "crop@init")
    }
    assert {(row["setting"], row["data"], row["seed"]) for row in found["results"]} == {("unsupervised", "mini", 0)}
    for row in found["results"]:
        assert EIGHT[row["suite"]] in row["measures"]
        assert row["task"].startswith(f"mini/{row['suite']}/")
        assert row["queries"] > 0
        assert all(0 <= value <= 1 for value in row["measures"].values())
    assert {one["suite"] for one in found["macro"] if EIGHT[one["suite"]] in one["measures"]} == EIGHT.keys()
    made = [stage for stage in found["stages"] if stage["state"] == "ran"]
    for stage in ("prepare", "train", "init"):
        assert sum(one["stage"] == stage for one in made) == 1
    planned = bench("plan", *grid, "--json")
    assert not any(step["runs"] for step in json.loads(planned.stdout)["steps"])
    built = bench("leaderboard", "build", "--out", "site")
    assert built.returncode == 0, built.stderr
    pages = {path.stem for path in (tmp_path / "site").rglob("*.html")}
    assert "index" in pages
    text = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "site").rglob("*.html"))
    assert all(suite in text for suite in EIGHT)
