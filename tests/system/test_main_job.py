"""`bench run`: what it prints, reuses and refuses, on folders of the user's and on the whole embedded world."""

import gzip
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from suites.runs import MINI_GRID
from tests.conftest import released

RunJson = Callable[..., dict[str, Any]]
BM25 = ("run", "--method", "bm25", "--suite", "beir")


def _places(tmp_path: Path) -> tuple[str | Path, ...]:
    return "--store", tmp_path / "store", "--results", tmp_path / "results"


def _states(outcome: dict[str, Any]) -> dict[str, str]:
    return {stage["stage"]: stage["state"] for stage in outcome["stages"]}


def _seconds() -> float:
    """What processes that this one waited for took of a processor, whatever else the machine did meanwhile."""
    elapsed = os.times()
    return elapsed.children_user + elapsed.children_system


def test_a_run_and_what_a_second_one_reuses(
    tmp_path: Path, tiny: Path, bench: Callable[..., Any], run_json: RunJson
) -> None:
    """Every promised key and file; means are those of the values by query, the run is cut at the deepest measure."""
    options = (*BM25, "--task", tiny, *_places(tmp_path))
    first = run_json(*options)
    assert first["macro"] == []
    (row,) = first["results"]
    expected: dict[str, Any] = dict.fromkeys(("system", "method"), "bm25")
    expected |= {"suite": "beir", "task": "beir/tiny-beir", "subset": None}
    expected |= {"regime": "unsupervised", "data": "local", "profile": "mini", "seed": 0, "queries": 12}
    assert {key: row[key] for key in expected} == expected
    assert set(row["measures"]) == {"nDCG@10", "R@100", "Rcap@100", "RR@10"}
    assert all(0 <= value <= 1 for value in row["measures"].values())
    lines = Path(row["run_file"]).read_text().splitlines()
    assert {len(line.split()) for line in lines} == {6}
    content = Path(row["result_file"]).read_bytes()
    result, folder = json.loads(content), Path(row["result_file"]).parent
    assert result["schema"] == "retrieval-bench/result/2"
    assert result["tasks"]["beir/tiny-beir"][""]["measures"] == row["measures"]
    values = json.loads(gzip.decompress((folder / "per-query" / "beir" / "tiny-beir.json.gz").read_bytes()))
    assert len(values["queries"]) == 12
    for name, mean in row["measures"].items():
        assert sum(values["measures"][name]) / 12 == pytest.approx(mean, abs=1e-12)
    run = gzip.decompress((folder / "runs" / "beir" / "tiny-beir.trec.gz").read_bytes())
    assert run == Path(row["run_file"]).read_bytes()
    cards = json.loads((folder / "cards.json").read_text())
    assert "BEIR" in cards["suite"]
    assert "BM25" in cards["method"]
    # A second run takes little more than importing it, runs no stage and gives the same result file, byte for byte;
    # another k searches and scores alone; a label computes nothing.
    start = _seconds()
    subprocess.run([sys.executable, "-c", "import bench.cli.outcome, bench.pipeline.run"], check=True, timeout=240)
    imported = _seconds()
    second = run_json(*options, seconds=240)
    assert _seconds() - imported < 2.5 * (imported - start)
    assert set(_states(second).values()) == {"cached"}
    assert second["results"] == first["results"]
    assert Path(row["result_file"]).read_bytes() == content
    deep = run_json(*options, "--set", "search.k=2", "--results", tmp_path / "deep")
    assert {stage for stage, state in _states(deep).items() if state == "ran"} == {"search", "score"}
    depths = Counter(line.split()[0] for line in Path(deep["results"][0]["run_file"]).read_text().splitlines())
    assert max(depths.values()) == 2 < max(int(line.split()[3]) for line in lines)
    labelled = run_json(*options, "--label", "my-bm25")
    assert labelled["results"][0]["system"] == "my-bm25"
    assert set(_states(labelled).values()) == {"cached"}


def test_settings_presets_and_files_name_the_system(tmp_path: Path, tiny: Path, run_json: RunJson) -> None:
    """What is not as by default stands in the label; the layers go file below --set."""
    changed = run_json(*BM25, "--task", tiny, *_places(tmp_path), "--set", "method.k1=1.2")
    assert changed["results"][0]["system"] == "bm25@k1=1.2"
    preset = run_json(*BM25, "--task", tiny, *_places(tmp_path), "--preset", "bm25/elasticsearch")
    assert preset["results"][0]["system"] == "bm25@elasticsearch"
    (tmp_path / "mine.toml").write_text("[method]\nk1 = 1.2\nb = 0.1\n")
    layered = run_json(*BM25, "--task", tiny, *_places(tmp_path), "--config", "mine.toml", "--set", "method.b=0.75")
    assert layered["results"][0]["measures"] == preset["results"][0]["measures"]
    saved = json.loads(Path(layered["results"][0]["result_file"]).read_text())["system"]["settings"]
    origins = {row["key"]: row["origin"] for row in saved}
    assert (origins["method.k1"], origins["method.b"], origins["method.variant"]) == ("file", "--set", "default")


def test_what_does_not_apply_is_an_answer(tmp_path: Path, tiny: Path, bench: Any) -> None:
    """A deterministic method is run once, and says so; the cells that apply run, the others say why they do not."""
    completed = bench(*BM25, "--task", tiny, *_places(tmp_path), "--seed", "3,4", "--json")
    assert [row["seed"] for row in json.loads(completed.stdout)["results"]] == [0]
    assert "deterministic" in completed.stderr
    completed = bench(*BM25, "--task", tiny, *_places(tmp_path), "--regime", "unsupervised,multilingual", "--json")
    outcome = json.loads(completed.stdout)
    assert [row["regime"] for row in outcome["results"]] == ["unsupervised"]
    (refused,) = outcome["not_applicable"]
    assert refused["regime"] == "multilingual"
    assert "no recipe" in refused["reason"]


@pytest.mark.parametrize("command", ["run", "ablate"])
def test_a_run_of_nothing_has_failed(tmp_path: Path, bench: Any, command: str) -> None:
    """Where no cell applies the exit status is 2, and JSON is what it always is, so that CI does not stay green."""
    words = (command, "--method", "msm", "--suite", "lareqa", "--regime", "few-shot", "--task", "ar", "--json")
    completed = bench(*words, *_places(tmp_path), status=2)
    outcome = json.loads(completed.stdout)
    assert "error" not in outcome
    assert not outcome["results" if command == "run" else "ablations"]
    assert completed.stderr.splitlines()[-1] == (
        "bench: nothing was run: none of these methods applies to these suites in these regimes"
    )


def test_a_plan_names_each_systems_stages_and_says_what_is_guessed(tmp_path: Path, tiny: Path, bench: Any) -> None:
    """A label or `@init` from the first stage of a system to its score; a guess is called one, once."""
    words = ("plan", "--method", "crop", "--suite", "beir", "--task", tiny, *_places(tmp_path))
    lines = bench(*words, "--label", "mine").stdout.splitlines()
    scored = [line.split()[1] for line in lines if line.startswith("score ")]
    assert scored == [line.split()[1] for line in lines if line.startswith("search ")] == ["mine", "crop@init"]
    (last,) = [line for line in lines if line.startswith("in all: ")]
    assert last.startswith("in all: 13 of 13 stages to run, ")
    assert last.endswith("; a rough guess, since nothing like it has run in this store")
    bench(*BM25, "--task", tiny, *_places(tmp_path))
    (last,) = [line for line in bench(*words, "--method", "bm25,crop").stdout.splitlines() if "in all: " in line]
    head, part = last.removesuffix(" of it a rough guess, since nothing like it has run in this store").split("; ")
    assert head.startswith("in all: 11 of 16 stages to run, ")
    assert part == "nearly all" or part != head.split(", ")[1]
    assert "in all: 0 of 5 stages to run, 0 s" in bench(*words, "--method", "bm25").stdout.splitlines()


def test_tasks_merge_into_one_result_file(tmp_path: Path, tiny: Path, folder: Path, run_json: RunJson) -> None:
    """Two runs of one task each make the same result file as one run of both."""
    for task in (tiny, folder):
        separate = run_json(*BM25, "--task", task, *_places(tmp_path))
    both = run_json(*BM25, "--task", f"{tiny},{folder}", "--store", tmp_path / "store", "--results", tmp_path / "other")
    apart_file, both_file = (Path(outcome["results"][0]["result_file"]) for outcome in (separate, both))
    assert apart_file.read_bytes() == both_file.read_bytes()
    assert len(both["results"]) == 2


def test_plan_tells_what_run_would_do_and_gc_spares_what_results_rest_on(
    tmp_path: Path, tiny: Path, run_json: RunJson
) -> None:
    """Before: all five stages run, nothing is made. After: all are cached and cost nothing."""
    options = ("--method", "bm25", "--suite", "beir", "--task", tiny, *_places(tmp_path))
    before = run_json("plan", *options)
    assert [step["stage"] for step in before["steps"]] == ["validate", "read", "index", "search", "score"]
    assert all(step["runs"] and step["seconds"] > 0 for step in before["steps"])
    assert not (tmp_path / "store" / "artefacts").exists()
    run_json("run", *options)
    after = run_json("plan", *options)
    assert {step["state"] for step in after["steps"]} == {"cached"}
    assert after["seconds"] == 0
    # Artefacts of a superseded run go, those of the result stay, and the next run finds them all.
    run_json("run", *options, "--set", "method.k1=1.7", "--results", tmp_path / "thrown-away")
    assert run_json("gc", *_places(tmp_path))["garbage"] == []
    listed = run_json("gc", *_places(tmp_path), "--older-than", "0", "--dry-run")["garbage"]
    assert {Path(item["path"]).parent.name for item in listed} == {"index", "search", "score"}
    assert all(Path(item["path"]).exists() for item in listed)
    assert run_json("gc", *_places(tmp_path), "--older-than", "0")["removed"] == listed
    assert not any(Path(item["path"]).exists() for item in listed)
    assert set(_states(run_json("run", *options)).values()) == {"cached"}


def test_help_is_quick_and_light() -> None:
    """Under 0.3 s of a processor (the first of two may compile), and no heavy library is imported."""
    code = "import sys; from bench.cli import bench; bench(['--help'], standalone_mode=False); print(*sys.modules)"
    times = []
    for _ in range(2):
        start = _seconds()
        completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        times.append(_seconds() - start)
    modules = set(completed.stdout.splitlines()[-1].split())
    assert "run" in completed.stdout
    assert min(times) < 0.3
    assert not modules & {"torch", "transformers", "numpy", "numba", "pandas", "pydantic", "rich", "ir_datasets"}


@pytest.mark.slow
@pytest.mark.parametrize("task", ["scifact", "nfcorpus"])
def test_the_real_sets(tmp_path: Path, run_json: RunJson, task: str) -> None:
    """nDCG@10 within 0.01 of 0.679 and 0.322 (Anserini's BM25 with the English analyzer), counts as published."""
    expected = {"scifact": (0.679, 300), "nfcorpus": (0.322, 323)}[task]
    options = ("--task", task, "--data", "official", "--data-dir", released(f"beir/{task}"))
    (row,) = run_json(*BM25, *options, *_places(tmp_path))["results"]
    assert row["measures"]["nDCG@10"] == pytest.approx(expected[0], abs=0.01)
    assert row["queries"] == expected[1]
    assert (row["task"], row["data"]) == (f"beir/{task}", "official")


Bench = Callable[..., Any]
MEASURES = ("accuracy", "RR@100", "R@2kt", "AP@20", "AP@20", "answer-R@100", "nDCG@10", "AP")
EIGHT = dict(zip(MINI_GRID.suites, MEASURES, strict=True))
"""Suite → its headline measure."""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_methods_on_eight_suites(bench: Bench, tmp_path: Path) -> None:
    """Every suite has BM25, a trained encoder and its start; a second run reuses all; the site has a page of each."""
    settings = "budget.tokens=5000", "prepare.max_documents=100", "compute.threads=1"
    small = ("--backbone", "scratch:1x32", *(word for text in settings for word in ("--set", text)))
    grid = ("--preset", "mini-grid", "--method", "bm25,crop", "--seed", "0", *small)
    completed = bench("run", *grid, "--json", seconds=800)
    outcome = json.loads(completed.stdout)
    assert {(row["suite"], row["system"]) for row in outcome["results"]} == {
        (suite, system) for suite in EIGHT for system in ("bm25", "crop", "crop@init")
    }
    assert {(row["regime"], row["data"], row["seed"]) for row in outcome["results"]} == {("unsupervised", "mini", 0)}
    for row in outcome["results"]:
        assert EIGHT[row["suite"]] in row["measures"]
        assert row["task"].startswith(f"mini/{row['suite']}/")
        assert row["queries"] > 0
        assert all(0 <= value <= 1 for value in row["measures"].values())
    assert {macro["suite"] for macro in outcome["macro"] if EIGHT[macro["suite"]] in macro["measures"]} == EIGHT.keys()
    executed = [stage for stage in outcome["stages"] if stage["state"] == "ran"]
    for stage in ("prepare", "train", "init"):
        assert sum(executed_stage["stage"] == stage for executed_stage in executed) == 1
    planned = bench("plan", *grid, "--json")
    assert not any(step["runs"] for step in json.loads(planned.stdout)["steps"])
    bench("leaderboard", "build", "--out", "site")
    pages = {path.stem for path in (tmp_path / "site").rglob("*.html")}
    assert "index" in pages
    text = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "site").rglob("*.html"))
    assert all(suite in text for suite in EIGHT)


def _analyzer(row: dict[str, Any]) -> str:
    result = json.loads(Path(row["result_file"]).read_text())
    name: str = result["tasks"][row["task"]][""]["resolved"]["analyzer"]
    return name


def test_the_language_decides_the_analyzer_and_is_recorded(tmp_path: Path, tiny: Path, run_json: RunJson) -> None:
    """English by default, another by `data.language`; each has its own index."""
    places = ("--store", tmp_path / "store")
    english = run_json(*BM25, "--task", tiny, *places)["results"][0]
    assert _analyzer(english) == "en-porter"
    swahili = run_json(*BM25, "--task", tiny, *places, "--set", "data.language=sw")
    assert _analyzer(swahili["results"][0]) == "words"
    ran = {stage["stage"] for stage in swahili["stages"] if stage["state"] == "ran"}
    assert {"index", "search", "score"} <= ran
    assert "validate" not in ran


def test_doubtful_languages_and_names_of_folders(tmp_path: Path, tiny: Path, bench: Any) -> None:
    """Queries of another language than a corpus that has none: a notice with the remedy."""
    folder = Path(shutil.copytree(tiny, tmp_path / "copy"))
    rows = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
    text = "".join(json.dumps({**row, "metadata": {"lang": "sw"}}) + "\n" for row in rows)
    (folder / "queries.jsonl").write_text(text)
    completed = bench(*BM25, "--task", folder, "--store", tmp_path / "store")
    assert "the queries of beir/copy are in sw, its corpus is taken for en" in completed.stderr
    assert "--set data.language=sw" in completed.stderr
    # One row of a table cannot be of two folders with one name; the same folder twice is one task.
    namesake = Path(shutil.copytree(tiny, tmp_path / "other" / tiny.name))
    completed = bench("plan", *BM25[1:], "--task", f"{tiny},{namesake}", status=2)
    assert "would both be called beir/tiny-beir" in completed.stderr
    bench("plan", *BM25[1:], "--task", f"{tiny},{tiny}")
