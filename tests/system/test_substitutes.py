"""Substitutes as a user runs them: one command each, on real data, marked wherever a number shows."""

import csv
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import cases, released

Bench = Callable[..., "subprocess.CompletedProcess[str]"]

STANDS_FOR: dict[str, str] = dict(cases("suites-that-stand-for-others"))
# RR@100 of BM25 with the plain analyzer, made elsewhere: of tasks, and of all questions of a suite's languages. Those
# of smaller tasks are in tests/methods/bm25/test_plain.py.
FIGURES = {
    "mrtydi-goldp": {"ar": 0.832, "bn": 0.813, "en": 0.761, "fi": 0.790, "id": 0.735, "ru": 0.757, "te": 0.773},
    "wikiqa-native": {"ja": 0.858},
    "xor-mlqa-en": {"all": 0.173, "zh": 0.021, "ar": 0.038, "english": 0.722},
    "xor-afriqa-en": {"all": 0.358, "english": 0.628},
}


def notice(suite: str) -> str:
    return f"substitute for {STANDS_FOR[suite]}: not comparable with published numbers"


@pytest.mark.parametrize("suite", STANDS_FOR)
@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_one_command(bench: Bench, suite: str) -> None:
    """BM25 over the whole suite: every task in every measure, the average, and check figures where there are some."""
    completed = bench(
        *("run", "--preset", "bm25/plain", "--suite", suite, "--data", "official", "--json"),
        seconds=1100,
        BENCH_DATA=str(released(suite)),
    )
    outcome = json.loads(completed.stdout)
    rows = {row["task"].partition("/")[2]: row for row in outcome["results"]}
    assert len({frozenset(row["measures"]) for row in rows.values()}) == 1
    (average,) = outcome["macro"]
    task_rows = [row for name, row in rows.items() if name != "english"]
    for measure, value in average["measures"].items():
        assert value == pytest.approx(sum(row["measures"][measure] for row in task_rows) / len(task_rows), abs=1e-12)
        assert 0 < value < 1
    for task, figure in FIGURES.get(suite, {}).items():
        over = task_rows if task == "all" else [rows[task]]
        mean = sum(row["queries"] * row["measures"]["RR@100"] for row in over) / sum(row["queries"] for row in over)
        assert mean == pytest.approx(figure, abs=0.02), task
    if "english" in rows:  # an upper bound
        assert rows["english"]["measures"]["R@2kt"] > average["measures"]["R@2kt"] + 0.2
        assert all(row["measures"]["R@5kt"] >= row["measures"]["R@2kt"] for row in rows.values())


def test_marked_wherever_it_shows(tmp_path: Path, bench: Bench) -> None:
    """The table of a run, the lists, the result file as it is shown, the pages and the files beside them."""
    suite = "stackfaq-threads"
    place = {"BENCH_DATA": str(released(suite))}
    ran = bench("run", "--preset", "bm25/plain", "--suite", suite, "--data", "official", **place)
    assert ran.stdout.startswith(f"{suite} · unsupervised · {notice(suite)} · percent\n")
    result = next((tmp_path / "results").rglob("result.json"))
    assert json.loads(result.read_text())["suite"]["proxy_for"] == "askubuntu"
    assert notice(suite) in bench("list", "results").stdout
    assert notice(suite) in bench("show", result).stderr
    bench("leaderboard", "build", "--results", "results", "--out", "site")
    page = (tmp_path / "site" / "substitutes" / "suites" / suite / "unsupervised.html").read_text()
    assert f"{notice(suite).capitalize()}." in page
    lines = (tmp_path / "site" / "substitutes" / "suites" / suite / "unsupervised.csv").read_text().splitlines()
    assert lines[0] == f"# {notice(suite)}"
    assert [row["proxy_for"] for row in csv.DictReader(lines[1:])] == ["askubuntu"]
    assert notice(suite) in (tmp_path / "site" / "index.html").read_text()


def test_marked_where_suites_are_listed_and_shown(bench: Bench) -> None:
    """In tables for people and in JSON; a benchmark is not marked."""
    listed: list[dict[str, Any]] = json.loads(bench("list", "suites", "--json").stdout)["suites"]
    notes = {row["name"]: (row["proxy_for"], row["note"]) for row in listed}
    for suite, real in STANDS_FOR.items():
        assert notes[suite] == (real, notice(suite))
        assert notes[real] == (None, None)
    lines = {line.split()[0]: line for line in bench("list", "suites").stdout.splitlines() if line.strip()}
    assert all(notice(suite) in lines[suite] for suite in STANDS_FOR)
    assert "not comparable" not in lines["mrtydi"]
    shown = bench("show", "mrtydi-goldp").stdout
    assert f"\n{notice('mrtydi-goldp')}\n" in shown
    task = bench("show", "mrtydi-goldp/sw")
    assert notice("mrtydi-goldp") in task.stdout
    assert json.loads(bench("show", "mrtydi-goldp/sw", "--json").stdout)["proxy_for"] == "mrtydi"
    assert json.loads(bench("show", "mrtydi/sw", "--json").stdout)["note"] is None
    tasks = bench("list", "tasks").stdout.splitlines()
    assert all(("not comparable" in line) == line.startswith("mrtydi-goldp/") for line in tasks if line[:6] == "mrtydi")
