"""A result and its label call a model by its own name and a digest: nothing says where it lay, or whose it is."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bench.config.request import Request
from bench.core.system_graph import system_hash
from bench.pipeline.plan import plan
from bench.pipeline.public_names import public, public_names
from bench.plugins import load
from bench.store.input_hashes import InputHashes
from bench.store.store import Store

RunJson = Callable[..., dict[str, Any]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The folder of somebody's models."""
    folder = tmp_path / "home" / "somebody"
    folder.mkdir(parents=True)
    return folder


def model(folder: Path, content: str = "weights") -> str:
    """A folder with the files of a model, none of which is loaded."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_text(content)
    return str(folder)


def test_names_of_folders(tmp_path: Path, home: Path) -> None:
    """The same files have one name wherever they lie, other files another; ids, and bare names, are as they are."""
    inputs = InputHashes(Store(tmp_path / "store"))

    def name(value: str) -> str | None:
        return public_names([value, None, "", "owner/name", "encoder"], inputs).get(value)

    first = name(model(home / "all-MiniLM-L6-v2"))
    assert first is not None
    assert first.startswith("./all-MiniLM-L6-v2-")
    assert len(first) == len("./all-MiniLM-L6-v2-1a2b3c4d")
    assert name(model(tmp_path / "elsewhere" / "all-MiniLM-L6-v2")) == first
    assert name(model(tmp_path / "other" / "all-MiniLM-L6-v2", "other weights")) != first
    commit = home / "hub" / "models--owner--labse" / "snapshots" / ("c" * 40)
    assert str(name(model(commit))).startswith("./labse-")
    assert name("owner/name") is None
    text = {"pairs": f"{home}/a (b)", "list": [str(home), 1], "none": None}
    assert public(text, {str(home): "./x"}) == {"pairs": "./x/a (b)", "list": ["./x", 1], "none": None}


def test_no_place_is_published(tmp_path: Path, home: Path, corpus: Path, tiny: Path, run_json: RunJson) -> None:
    """Of a model, of training pairs and of a folder: results hold no path, and their hash is that of what they say."""
    small = ("--set", "prepare.vocabulary=512", "--set", "budget.tokens=500", "--set", "compute.threads=1")
    task = ("--suite", "beir", "--task", tiny, "--store", tmp_path / "store", "--device", "cpu")
    trained = ("run", "--method", "crop", "--backbone", "scratch:1x16", "--corpus", corpus, *small, *task)
    run_json(*trained, "--results", tmp_path / "first")
    (encoder,) = (tmp_path / "store" / "artefacts" / "train").glob("*/encoder")
    shutil.copytree(encoder, home / "tiny-encoder")
    (home / "pairs.tsv").write_text("".join(f"asked {at}\ttold {at}\n" for at in range(9)))
    tuned = ("--regime", "english", "--set", f"tune.data={home / 'pairs.tsv'}", "--set", "tune.steps=1")
    sets = ("--set", "method.learning_rate=1e-4")
    places = ("--results", home / "results")
    pretrained = run_json(
        "run", "--method", "pretrained", "--set", f"method.model={home / 'tiny-encoder'}", *task, *places
    )
    run_json("run", "--method", "crop", "--backbone", home / "tiny-encoder", *tuned, *sets, *trained[5:], *places)
    (label,) = {row["system"] for row in pretrained["results"]}
    assert label.startswith("pretrained@model=tiny-encoder-")
    assert len(label) == len("pretrained@model=tiny-encoder-1a2b3c4d")
    contents = [json.loads(path.read_text()) for path in (home / "results").rglob("result.json")]
    assert sorted(content["system"]["label"] for content in contents) == [
        "crop@init",
        "crop@learning_rate=0.0001",
        label,
    ]
    for path in (home / "results").rglob("*"):
        assert not path.is_file() or str(tmp_path).encode() not in path.read_bytes(), path.name
    (system,) = (content["system"] for content in contents if content["system"]["label"] == label)
    assert system["hash"] == system_hash(system["method"], system["version"], system["graph"])
    assert system["config"]["model"] == f"./{label.partition('=')[2]}"
    shutil.move(home / "tiny-encoder", tmp_path / "moved" / "tiny-encoder")
    sets_moved = (f"method.model={tmp_path}/moved/tiny-encoder",)
    request = Request(("pretrained",), ("beir",), tasks=(str(tiny),), sets=sets_moved, device="cpu")
    moved = plan(request, load(), Store(tmp_path / "store"))
    assert (moved.cells[0].system.label, moved.cells[0].identity.hash) == (label, system["hash"])
