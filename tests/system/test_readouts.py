"""Both readouts of one encoder as two rows, and the warning of forgotten prompts, from the command line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

RunJson = Callable[..., dict[str, Any]]
LAYERS = 3


@pytest.fixture
def encoder(tmp_path: Path) -> Path:
    """A folder that is called like an encoder of E5's: three blocks with random weights, which reads characters."""
    from bench.data.corpora import tokenizer
    from bench.retrieval.backbones import random_model, save, scratch

    folder, sizes = tmp_path / "e5-small-of-ours", scratch(f"scratch:{LAYERS}x32")
    assert sizes
    texts = [item.text for leg in _legs() for item in leg.queries.read()]
    tokenizer.save(tokenizer.train({"x": texts}, 700), folder, 512)
    words = tokenizer.load(folder)
    save(random_model(sizes, words, 0), words, folder)
    return folder


def _legs() -> tuple[Any, ...]:
    """Both directions of a mini pair of Tatoeba."""
    from bench.types import DataRequest
    from suites.tatoeba import SUITE

    return SUITE.load("swh-eng", DataRequest("mini")).legs


def _means(folder: Path, texts: list[str], layer: int) -> Any:
    """Means over the hidden states of a layer, one text at a time, as transformers gives them."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    words, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).train(False)
    found = []
    with torch.no_grad():
        for text in texts:
            states = model(**words(text, return_tensors="pt"), output_hidden_states=True).hidden_states
            assert len(states) == LAYERS + 1
            found.append(states[layer][0].mean(0).numpy())
    return np.stack(found)


@pytest.mark.slow
def test_two_readouts_are_two_rows(tmp_path: Path, encoder: Path, bench: Any, run_json: RunJson) -> None:
    """Each reads its own layer; the contract's row is what it is alone; prompts that its family wants are missed."""
    from bench.retrieval.vectors import Vectors

    places = ("--store", tmp_path / "store", "--results", tmp_path / "results", "--set", "compute.threads=1")
    own = ("--method", "pretrained", "--set", f"method.model={encoder}", "--label", "ours")
    given = ("run", *own, "--suite", "tatoeba", "--task", "swh-eng", *places)
    both = run_json(*given, "--readout", "both")
    files = {row["system"]: Path(row["result_file"]) for row in both["results"]}
    assert list(files) == ["ours", "ours+protocol"]
    bytes_of_both = files["ours"].read_bytes()
    contents = {label: json.loads(path.read_text()) for label, path in files.items()}
    assert contents["ours+protocol"]["system"]["read_by"] == "protocol"
    assert "read_by" not in contents["ours"]["system"]
    leg, texts = _legs()[0], [item.text for item in _legs()[0].queries.read()]
    for label, layer, read in (("ours", -1, -1), ("ours+protocol", 2, 2)):  # 2 of 3 as 8 of 12
        entry = contents[label]["tasks"]["mini/tatoeba/swh-eng"][leg.name]
        assert entry["resolved"]["layer"] == read
        assert (entry["resolved"]["pooling"], entry["resolved"]["similarity"]) == ("mean", "l2")  # Tatoeba fixes it
        made = Vectors(tmp_path / "store" / "artefacts" / "encode" / entry["keys"]["encode-2"])
        np.testing.assert_allclose(made.matrix, _means(encoder, texts, layer), atol=1e-5)
    done = bench(*given)  # the contract's row alone
    assert done.returncode == 0, done.stderr
    assert "0 stages run" in done.stdout
    assert files["ours"].read_bytes() == bytes_of_both
    warning, numbers = (line for line in done.stderr.splitlines() if "prompt" in line)
    assert "ours reads texts without the prompts that e5-small-of-ours wants ('query: ' before a query and" in warning
    assert "--set 'encode.passage_prompt=\"passage: \"'" in warning
    assert "ours: on eight texts the mean cosine of vectors with and without prompt is 0." in numbers
    assert "queries and passages differ in nothing (mean cosine 1.000, with prompts 0." in numbers
    prompts = ("--set", 'encode.query_prompt="query: "', "--set", 'encode.passage_prompt="passage: "')
    planned = bench("plan", *given[1:], *prompts)
    assert planned.returncode == 0, planned.stderr
    assert "prompt" not in planned.stderr
