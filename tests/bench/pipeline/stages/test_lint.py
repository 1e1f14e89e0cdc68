"""The lint: numbers on eight texts, worked out apart from it; nothing else rests on them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.core.contract import Contract
from bench.core.errors import UsageError
from bench.core.workspace import Parts, Workspace
from bench.data.corpora import tokenizer
from bench.pipeline.compute import Compute
from bench.pipeline.stages import lint
from bench.retrieval.backbones import random_model, save, scratch
from bench.retrieval.encoder import load
from bench.retrieval.prompts import WantedPrompts
from bench.types import Item
from tests.bench.pipeline.stages.conftest import GIVEN

PLAIN = Contract(query_length=32, passage_length=48)


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    folder, sizes = tmp_path / "encoder", scratch("scratch:2x16")
    assert sizes
    tokenizer.save(tokenizer.train({"x": [*lint.TEXTS, "query: passage: "]}, 512), folder, 64)
    words = tokenizer.load(folder)
    save(random_model(sizes, words, 0), words, folder)
    return folder


def measured(tmp_path: Path, encoder: Path, contract: Contract, wanted: WantedPrompts) -> dict[str, float]:
    """Run the stage; what it writes is what it says."""
    out = tmp_path / "out"
    out.mkdir(exist_ok=True)
    stage = lint.Lint(encoder=GIVEN, wanted=wanted, contract=contract, compute=Compute("cpu", 1), who="")
    facts = stage.run(Workspace(out, Parts(tmp_path / "parts")), {"encoder": encoder})
    assert json.loads((out / lint.FILE).read_text()) == facts
    return {key: float(value) for key, value in facts.items() if isinstance(value, int | float)}


def test_cosines_of_eight_texts(tmp_path: Path, encoder: Path) -> None:
    """Of each role with and without its prompt, and of the roles with each other; to four digits."""
    wanted = WantedPrompts("query: ", "passage: ", "")
    items = [Item(str(at), text) for at, text in enumerate(lint.TEXTS)]
    assert len(items) == 8
    prompted = replace(PLAIN, query_prompt="query: ", passage_prompt="passage: ")
    sides: dict[tuple[str, str], Any] = {}
    for name, contract in (("plain", PLAIN), ("prompted", prompted)):
        read = load(encoder, "cpu", 1, contract)
        sides |= {("query", name): read.encode(items, "query"), ("passage", name): read.encode(items, "passage")}

    def cosine(one: tuple[str, str], other: tuple[str, str]) -> float:
        pairs = zip(sides[one], sides[other], strict=True)
        return float(np.mean([np.dot(a, b) / np.linalg.norm(a) / np.linalg.norm(b) for a, b in pairs]))

    found = measured(tmp_path, encoder, PLAIN, wanted)
    assert found["query"] == pytest.approx(cosine(("query", "plain"), ("query", "prompted")), abs=1e-4)
    assert found["passage"] == pytest.approx(cosine(("passage", "plain"), ("passage", "prompted")), abs=1e-4)
    assert found["alike"] == pytest.approx(cosine(("query", "plain"), ("passage", "plain")), abs=1e-4)
    assert found["alike_prompted"] == pytest.approx(cosine(("query", "prompted"), ("passage", "prompted")), abs=1e-4)
    assert found["query"] < 0.999


def test_what_is_read_alike_is_one(tmp_path: Path, encoder: Path) -> None:
    """Roles of one length and without prompts differ in nothing; a prompt that is there changes nothing."""
    same = replace(PLAIN, passage_length=32, passage_prompt="passage: ")
    found = measured(tmp_path, encoder, replace(same, passage_prompt=""), WantedPrompts("query: ", "", ""))
    assert found["alike"] == found["passage"] == 1.0
    assert measured(tmp_path, encoder, same, WantedPrompts("", "passage: ", ""))["passage"] == 1.0
    with pytest.raises(UsageError, match=r"found no tokenizer\.json"):
        measured(tmp_path, tmp_path / "nowhere", PLAIN, WantedPrompts("x", "", ""))
