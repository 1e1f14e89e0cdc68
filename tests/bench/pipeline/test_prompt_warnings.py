"""Who is warned of a forgotten prompt or of a guess, and what is said of it."""

import json
from pathlib import Path

import pytest

from bench.pipeline.cells import ExperimentCell, guess_warnings, prompt_warnings
from bench.pipeline.compute import Compute
from bench.pipeline.identity import SystemIdentity
from bench.pipeline.settings import resolve
from bench.pipeline.systems.dense import Dense
from bench.plugins import Plugins
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


def cells(plugins: Plugins, model: Path, *sets: str) -> list[ExperimentCell]:
    """Return the cells of a run on two tasks that are read alike."""
    method = plugins.method("pretrained")
    resolved = resolve([method], sets=(f"method.model={model}", *sets))["pretrained"]
    rows = Dense("ours", method, resolved, Compute("cpu", 1)).variants()
    identity, suite = SystemIdentity("", "", {}), plugins.suite("mrtydi")
    return [ExperimentCell(row, identity, suite, "unsupervised", "official", 0, (TASK, TASK)) for row in rows]


def warnings(plugins: Plugins, model: Path, *sets: str) -> list[str]:
    """Return what is said of prompts."""
    return prompt_warnings(cells(plugins, model, *sets), [owned.value for owned in plugins.methods.values()])


def test_a_guess_is_called_one(plugins: Plugins, model: Path) -> None:
    """Once, with what was guessed; who says how the model pools, by setting or by protocol, hears nothing."""
    read = "how model is read is our guess (it has no modules.json): mean, cos, 512 tokens"
    expected = f"ours: {read}; type --set method.pooling=mean to make it yours"
    assert guess_warnings(cells(plugins, model)) == [expected]
    assert guess_warnings(cells(plugins, model, "encode.readout=both")) == [expected]
    assert guess_warnings(cells(plugins, model, "method.pooling=mean")) == []
    assert guess_warnings(cells(plugins, model, "encode.pooling=cls")) == []


def test_each_reading_is_warned_of_once(plugins: Plugins, model: Path) -> None:
    """Two tasks that are read alike are one; another readout is another; with the prompts there is none."""
    (sentence,) = warnings(plugins, model)
    assert sentence == (
        "ours reads texts without the prompts that model needs ('ask: ' before a query and 'read: ' before a passage: "
        "its config_sentence_transformers.json declares them); if they were forgotten, type "
        "--set 'encode.query_prompt=\"ask: \"' --set 'encode.passage_prompt=\"read: \"'"
    )
    both = warnings(plugins, model, "encode.readout=both")
    assert [sentence.partition(" ")[0] for sentence in both] == ["ours", "ours+protocol"]
    (half,) = warnings(plugins, model, 'encode.query_prompt="ask: "')
    assert "('read: ' before a passage: " in half
    assert half.endswith("type --set 'encode.passage_prompt=\"read: \"'")
    prompts = ('encode.query_prompt="ask: "', 'encode.passage_prompt="read: "')
    assert warnings(plugins, model, *prompts) == []
