"""Who is suspected of a forgotten prompt, what is said of it, and that a lint stops nothing."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from bench.pipeline.compute import Compute
from bench.pipeline.dense import Pretrained
from bench.pipeline.forgotten_prompts import Suspicion, measure, suspicions
from bench.pipeline.legs import Legs
from bench.pipeline.selection import Cell
from bench.pipeline.settings import resolve
from bench.plugins import Plugins
from bench.retrieval.prompts import WantedPrompts
from bench.store.store import Store
from bench.types import Readout, Task

TASK = Task("s/t", "official", (), ("RR@10",), readout=Readout("a script", pooling="cls"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder whose files declare prompts; nothing is read of the model itself."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 512, "num_hidden_layers": 12}))
    declared = {"prompts": {"query": "ask: ", "document": "read: "}}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(declared))
    return folder


def cells(plugins: Plugins, model: Path, *sets: str) -> list[Cell]:
    method = plugins.method("pretrained")
    resolved = resolve([method], sets=(f"method.model={model}", *sets))["pretrained"]
    rows = Pretrained("ours", method, resolved, Compute("cpu", 1)).readings()
    suite = plugins.suite("mrtydi")
    return [Cell(row, suite, "unsupervised", "official", 0, (TASK, TASK)) for row in rows]


def suspected(tmp_path: Path, plugins: Plugins, model: Path, *sets: str) -> list[Suspicion]:
    return suspicions(Legs(Store(tmp_path / "store"), plugins, []), cells(plugins, model, *sets))


def test_each_reading_is_looked_at_once(tmp_path: Path, plugins: Plugins, model: Path) -> None:
    """Two tasks that are read alike are one; another readout is another; with the prompts there is none."""
    (suspicion,) = suspected(tmp_path, plugins, model)
    assert suspicion.roles == ("query", "passage")
    both = suspected(tmp_path, plugins, model, "encode.readout=both")
    assert [item.system.label for item in both] == ["ours", "ours+protocol"]
    half = suspected(tmp_path, plugins, model, 'encode.query_prompt="ask: "')
    assert [item.roles for item in half] == [("passage",)]
    prompts = ('encode.query_prompt="ask: "', 'encode.passage_prompt="read: "')
    assert suspected(tmp_path, plugins, model, *prompts) == []
    assert suspicion.sentence == (
        "ours reads texts without the prompts that model wants ('ask: ' before a query and 'read: ' before a passage: "
        "its config_sentence_transformers.json declares them); if they were forgotten, type "
        "--set 'encode.query_prompt=\"ask: \"' --set 'encode.passage_prompt=\"read: \"'"
    )
    facts = {"query": 0.93, "passage": 0.951, "alike": 1.0, "alike_prompted": 0.8}
    assert suspicion.numbers(facts) == (
        "ours: on eight texts the mean cosine of vectors with and without prompt is 0.930 for a query, 0.951 for a "
        "passage; queries and passages differ in nothing (mean cosine 1.000, with prompts 0.800)"
    )


def test_a_model_that_cannot_be_read_stops_nothing(tmp_path: Path, plugins: Plugins, model: Path) -> None:
    """The run will say so itself."""
    (suspicion,) = suspected(tmp_path, plugins, model)
    store = Store(tmp_path / "store")
    elsewhere = replace(suspicion.measured.encoder, backbone="gone", place=str(tmp_path / "gone"))
    failing = Suspicion(
        suspicion.system, WantedPrompts("x", "", ""), ("query",), replace(suspicion.measured, encoder=elsewhere)
    )
    (sentence,) = measure([failing], store)
    assert sentence.startswith("ours: what prompts change could not be measured: ")
    assert "gone" in sentence
    (sentence,) = measure([suspicion], store)
    assert "could not be measured" in sentence
