"""A folder that says nothing of how it is read, through the command."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoModel

from tests.methods.pretrained.test_conformance import Layout, bare, plain

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


@pytest.mark.parametrize(
    ("method", "typed", "found"),
    [
        ("crop", (), "read by mean, a guess: method.pooling is that of the default"),
        ("crop", ("method.pooling=cls",), "read by cls, the first token, the same for all texts"),
        ("msm", (), "read by mean, a guess: method.pooling is that of profile mini"),
        ("crop", ("method.pooling=mean",), ""),
    ],
)
def test_a_causal_backbone(
    tmp_path: Path, corpus: Path, tiny: Path, bench: Bench, method: str, typed: tuple[str, ...], found: str
) -> None:
    """It starts a training by a mean that somebody typed, by no other and never by its first token."""
    backbone = bare(tmp_path / "decoder", AutoModel, "qwen3", max_position_embeddings=512)
    sets = [word for name in ("budget.tokens=2000", "compute.threads=1", *typed) for word in ("--set", name)]
    places = ("--store", tmp_path / "store", "--results", tmp_path / "results", "--corpus", corpus)
    command = ("run", "--method", method, "--backbone", backbone, "--suite", "beir", "--task", tiny, *sets, *places)
    outcome = bench(*command, status=None)
    assert (outcome.returncode == 0) == (not found), outcome.stderr
    assert found in outcome.stderr
    assert not found or "--set method.pooling=mean" in outcome.stderr
