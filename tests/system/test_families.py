"""A folder that says nothing of how it is read, through the command."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.methods.pretrained.test_conformance import Layout, plain

Bench = Callable[..., Any]


def test_a_guess_is_said_and_stands_on_the_row(tmp_path: Path, tiny: Path, bench: Bench) -> None:
    """Before the run, below its table and in its result; typing the pooling makes the same vectors nobody's guess."""
    model = plain(tmp_path / "bare", Layout())
    places = ("--store", tmp_path / "store", "--results", tmp_path / "results")
    command = ("run", "--method", "pretrained", "--set", f"method.model={model}", "--suite", "beir", "--task", tiny)
    outcome = bench(*command, *places)
    assert "how bare is read is our guess (it has no modules.json): mean, cos, 60 tokens" in outcome.stderr
    assert "read by the mean, cosine (our guess: it has no modules.json): pretrained" in outcome.stdout
    (guessed,) = (tmp_path / "results").rglob("result.json")
    ((subset,),) = (subsets.values() for subsets in json.loads(guessed.read_text())["tasks"].values())
    assert subset["resolved"]["guess"] == "it has no modules.json"
    typed = bench(*command, *places, "--set", "method.pooling=mean", "--label", "typed")
    assert "our guess" not in typed.stdout + typed.stderr
    (second,) = {*(tmp_path / "results").rglob("result.json")} - {guessed}
    ((same,),) = (subsets.values() for subsets in json.loads(second.read_text())["tasks"].values())
    assert "guess" not in same["resolved"]
    assert same["measures"] == subset["measures"]
    assert [same["keys"][stage] for stage in ("init", "encode")] == [
        subset["keys"][stage] for stage in ("init", "encode")
    ]
