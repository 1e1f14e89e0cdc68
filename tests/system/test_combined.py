"""Fused and re-ranked systems, from the command line to their rows."""

import json
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def places(tmp_path: Path) -> tuple[str, ...]:
    """A store and a results folder of the test's own."""
    return ("--store", str(tmp_path / "store"), "--results", str(tmp_path / "results"))


@pytest.fixture
def small(corpus: Path) -> tuple[str | Path, ...]:
    """A training of no time."""
    settings = "--set", "budget.tokens=10", "--set", "prepare.max_documents=20", "--set", "compute.threads=1"
    return ("--backbone", "scratch:1x16", "--corpus", corpus, *settings)


def test_a_weight_of_an_end_point_is_that_system(places: Any, small: Any, run_json: Any) -> None:
    """Weight 0 is BM25's own row, 1 the encoder's; the fused row has a name of both."""
    given = ("run", "--method", "bm25+crop", "--suite", "mrtydi", "--task", "sw", *places, *small)
    for weight, alone in (("0", "bm25"), ("1", "crop")):
        outcome = run_json(*given, "--set", f"fuse.weight={weight}")
        values = {row["system"]: row["measures"] for row in outcome["results"]}
        assert values["bm25+crop"] == values[alone]
        assert set(values) == {"bm25", "crop", "crop@init", "bm25+crop"}


def test_the_weight_is_chosen_on_dev_questions(places: Any, small: Any, run_json: Any, tmp_path: Path) -> None:
    """A stage reads the dev questions, never those of the test; BM25 outweighs an encoder that has learnt nothing."""
    outcome = run_json("run", "--method", "bm25+crop", "--suite", "mrtydi", "--task", "sw", *places, *small)
    (stage,) = (one for one in outcome["stages"] if one["stage"] == "weigh")
    assert "sw@dev" in stage["title"]
    row = next(one for one in outcome["results"] if one["system"] == "bm25+crop")
    content = json.loads(Path(row["result_file"]).read_text())
    chosen = content["tasks"]["mini/mrtydi/sw"][""]["facts"]["weigh"]
    assert chosen["measure"] == "RR@100"
    assert chosen["values"][str(chosen["weight"])] == max(chosen["values"].values())
    assert {"0.0", "1.0"} <= set(chosen["values"])
    assert chosen["weight"] < 0.5


@pytest.mark.slow
def test_a_cross_encoder_of_our_own(places: Any, run_json: Any, bench: Any) -> None:
    """Pairs, mined negatives, training and re-ranking are stages of one command; the next one finds them all."""
    given = ("--method", "bm25", "--suite", "mrtydi", "--task", "en", "--setting", "unsupervised,english", *places)
    small = ("--set", "rerank.train.steps=30", "--set", "rerank.depth=10", "--set", "prepare.max_documents=100")
    outcome = run_json("run", *given, "--rerank", "trained", *small)
    ran = {stage["stage"] for stage in outcome["stages"] if stage["state"] == "ran"}
    assert {"pairs", "pool", "mine_index", "mine_search", "mine", "prepare", "init", "train_cross", "rerank"} <= ran
    rows = {(row["system"], row["setting"]): row for row in outcome["results"]}
    assert set(rows) == {("bm25", "unsupervised"), ("bm25+rerank", "english")}
    plain, again = (row["measures"] for row in rows.values())
    assert plain["R@100"] == again["R@100"]
    content = json.loads(Path(rows["bm25+rerank", "english"]["result_file"]).read_text())
    (leg,) = content["tasks"]["mini/mrtydi/en"].values()
    assert leg["facts"]["train_cross"]["steps"] == 30
    assert leg["facts"]["rerank"]["pairs"] == 10 * leg["queries"]
    assert {leg["facts"]["mine"]["pairs"], leg["facts"]["pairs"]["pairs"]} == {leg["facts"]["pairs"]["pairs"]}
    planned = bench("plan", *given, "--rerank", "trained", *small)
    assert "train_cross" in planned.stdout
    assert " 0 of " in planned.stdout.splitlines()[-1]
