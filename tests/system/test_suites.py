"""Each of the eight suites in one command: on mini data, and on the official data that are at hand."""

import os
from pathlib import Path
from typing import Any

import pytest

EIGHT = {
    "tatoeba": "accuracy",
    "mrtydi": "RR@100",
    "xor-retrieve": "R@2kt",
    "mewsli-x": "AP@20",
    "lareqa": "AP@20",
    "mkqa": "answer-R@100",
    "beir": "nDCG@10",
    "askubuntu": "AP",
}
"""Suite → its headline measure."""


@pytest.mark.slow
@pytest.mark.parametrize("suite", EIGHT)
def test_every_suite_answers_on_mini_data(tmp_path: Path, run_json: Any, suite: str) -> None:
    """A row a task and leg, the headline among its measures, and the average of the embedded world's tasks."""
    places = ("--store", tmp_path / "store", "--results", tmp_path / "results")
    outcome = run_json("run", "--method", "bm25", "--suite", suite, *places)
    assert all(EIGHT[suite] in row["measures"] for row in outcome["results"])
    assert all(row["task"].startswith(f"mini/{suite}/") and row["queries"] > 0 for row in outcome["results"])
    assert all(0 <= value <= 1 for row in outcome["results"] for value in row["measures"].values())
    assert any(EIGHT[suite] in one["measures"] for one in outcome["macro"])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_all_pairs_of_tatoeba_both_ways(tmp_path: Path, run_json: Any) -> None:
    """112 pairs and both directions, 88,877 sentences each way, and every average that papers print."""
    folder = os.environ.get("BENCH_DATA")
    if not folder or not (Path(folder) / "tatoeba").is_dir():
        pytest.skip("BENCH_DATA is not set, or holds no tatoeba/: no real data")
    places = ("--store", tmp_path / "store", "--results", tmp_path / "results", "--data-dir", folder)
    outcome = run_json("run", "--method", "bm25", "--suite", "tatoeba", "--data", "official", *places, seconds=850)
    rows = outcome["results"]
    assert len({row["task"] for row in rows}) == 112
    for direction in (True, False):
        there = [row for row in rows if (row["leg"] == row["task"].removeprefix("tatoeba/")) is direction]
        assert (len(there), sum(row["queries"] for row in there)) == (112, 88_877)
    names = {one["name"] for one in outcome["macro"]}
    assert names >= {"Avg. (14)", "Avg. (112)", "Avg. (36)", "Avg. (41)", "XTREME (36)", "XTREME-R (41)"}
    assert "Avg. (13)" not in names  # of the embedded world's languages
    by_leg = {row["leg"]: row["measures"]["accuracy"] for row in rows}
    xtreme = next(one for one in outcome["macro"] if one["name"] == "XTREME (36)")["measures"]["accuracy"]
    codes = (
        "ara heb vie ind jav tgl eus mal tam tel afr nld deu ell ben hin mar urd pes fra ita por spa bul rus jpn kat"
    )
    every = f"{codes} kor tha swh cmn kaz tur est fin hun".split()
    assert xtreme == pytest.approx(sum(by_leg[f"eng-{code}"] for code in every) / 36)
