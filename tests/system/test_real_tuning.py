"""Fine-tuning on real English pairs as a user types it: one command, with the badge of the audit."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import released

RunJson = Callable[..., dict[str, Any]]
Bench = Callable[..., Any]

PAIRS = 18_944  # of the data kit's supervised/en, as its README counts them
HELD_OUT = 1_894  # a tenth, by lot, as they bring no dev pairs
QUESTIONS, GOLD = 456, 329  # of Swahili
TASK = ("--suite", "mrtydi-goldp", "--task", "sw", "--data", "official")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_english_pairs_before_a_test_in_swahili(bench: Bench, run_json: RunJson, tmp_path: Path) -> None:
    """The result knows pairs, recipe and what the audit found; the numbers are the run's; the output says it."""
    folder, *_ = (released(name) for name in ("supervised/en", "mrtydi-goldp", "pretrain-nonsoftware"))
    place = {"BENCH_DATA": str(folder)}
    store = ("--store", tmp_path / "store")
    bench("data", "audit", "--corpus", folder / "supervised" / "en", *TASK, *store, **place)
    # The beginning of the data kit's documents in the language: enough for a vocabulary and a few steps.
    corpus = tmp_path / "corpus" / "sw.jsonl"
    corpus.parent.mkdir()
    with (folder / "pretrain-nonsoftware" / "sw.jsonl").open(encoding="utf-8", newline="\n") as lines:
        corpus.write_text("".join(line for _, line in zip(range(200), lines, strict=False)), encoding="utf-8")
    sets = ("tune.recipe=supervised-en", "tune.steps=5", "budget.tokens=5000", "prepare.vocabulary=1500")
    typed = ["--method", "crop", "--backbone", "scratch:1x32", "--device", "cpu", "--regime", "english", *TASK]
    typed += [word for setting in sets for word in ("--set", setting)]
    ran = bench("run", "--corpus", corpus, *typed, *store, seconds=500, **place)
    assert f"audited: supervised-en holds 0 of {QUESTIONS} questions, 0 of {GOLD} gold passages of mrtydi-goldp" in (
        ran.stdout
    )
    results = [json.loads(path.read_text()) for path in (tmp_path / "results").rglob("result.json")]
    assert sorted(result["system"]["label"] for result in results) == ["crop", "crop@init"]
    for result in results:
        subset = result["tasks"]["mrtydi-goldp/sw"][""]
        (tuning,) = subset["tunings"]
        assert (tuning["pairs"], tuning["held_out"]) == ("supervised-en", "share of the pairs, by lot")
        assert tuning["source"].endswith("values of profile mini")
        assert subset["metadata"]["pairs"]["pairs"] == PAIRS
        tuned = subset["metadata"]["tune"]
        assert (tuned["training_pairs"], tuned["dev_pairs"], tuned["steps"]) == (PAIRS - HELD_OUT, HELD_OUT, 5)
        badge = next(badge for badge in subset["audits"] if badge["corpus"] == "supervised-en")
        assert badge["audited"] == f"0 of {QUESTIONS} queries, 0 of {GOLD} gold passages"
        assert subset["queries"] == QUESTIONS
        assert 0 < subset["measures"]["RR@100"] < subset["measures"]["R@100"] < 1
