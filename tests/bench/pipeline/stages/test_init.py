"""init: the encoder before training, from random weights and from a folder."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModel, AutoTokenizer

from bench.core.encoder_config import EncoderConfig
from bench.core.errors import UsageError
from bench.core.workspace import Parts, Workspace
from bench.data.corpora import tokenizer
from bench.pipeline.stages import init
from bench.retrieval import backbones
from tests.conftest import tree

ENCODER_CONFIG = EncoderConfig(pooling="cls", query_prompt="query: ", passage_length=100)


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("words")
    tokenizer.save(tokenizer.train({"en": ["the quick brown fox", "a lazy dog"] * 2}, 512), folder, 512)
    return folder


def initialised(
    folder: Path,
    backbone: str,
    words: Path | None,
    seed: int = 1,
    encoder_config: EncoderConfig = ENCODER_CONFIG,
    **more: bool,
) -> dict[str, Any]:
    folder.mkdir()
    return dict(init.run(Workspace(folder, Parts(folder / "parts")), backbone, words, encoder_config, seed, **more))


def test_same_seed_same_bytes(tmp_path: Path, words: Path) -> None:
    """Another seed gives other weights and nothing else; the caller's own chance is not touched."""
    before = torch.random.get_rng_state()
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        initialised(tmp_path / name, "scratch:2x8", words, seed)
        torch.rand(3)  # the state of the caller does not decide the weights
    a, b, c = (tree(tmp_path / name) for name in "abc")
    assert a == b
    assert {name for name in a if a[name] != c[name]} == {"model.safetensors"}
    torch.random.set_rng_state(before)
    initialised(tmp_path / "d", "scratch:2x8", words)
    assert torch.equal(torch.random.get_rng_state(), before)


def test_scratch_is_a_plain_folder(tmp_path: Path, words: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Hugging Face loads it; sizes are those of the name, ids those of the tokenizer; the encoder config is there."""
    metadata = initialised(tmp_path / "a", "scratch:2x64", words)
    assert capfd.readouterr() == ("", "")
    model = AutoModel.from_pretrained(tmp_path / "a", add_pooling_layer=False)
    size = len(AutoTokenizer.from_pretrained(tmp_path / "a"))
    config = model.config
    assert (config.num_hidden_layers, config.hidden_size, config.num_attention_heads) == (2, 64, 2)
    assert (config.intermediate_size, config.max_position_embeddings, config.vocab_size) == (256, 512, size)
    # Embeddings (words, positions, one type, norm), then per layer 4 projections, feed-forward and 2 norms.
    layer = 4 * (64 * 64 + 64) + (64 * 256 + 256) + (256 * 64 + 64) + 2 * 128
    sizes = {"layers": 2, "width": 64, "vocabulary": size, "parameters": (size + 512 + 1 + 2) * 64 + 2 * layer}
    kind = {"kind": "scratch", "architecture": "BertModel", "mlm_head": False, "revision": None}
    assert metadata == {**kind, **sizes}
    assert EncoderConfig.load(tmp_path / "a") == ENCODER_CONFIG
    files = "config.json encoder_config.json model.safetensors tokenizer.json tokenizer_config.json"
    assert sorted(tree(tmp_path / "a")) == files.split()


def test_from_a_folder(tmp_path: Path, words: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights and tokenizer are its own, the encoder config is new; the hub's cache has a folder a commit."""
    initialised(tmp_path / "a", "scratch:1x8", words)
    mean_pooled = EncoderConfig(pooling="mean")
    metadata = initialised(tmp_path / "b", str(tmp_path / "a"), None, seed=5, encoder_config=mean_pooled)
    initialised(tmp_path / "c", str(tmp_path / "a"), words, seed=6, encoder_config=mean_pooled)
    a, b, c = (tree(tmp_path / name) for name in "abc")
    assert metadata["kind"] == "pretrained"
    assert b == c
    assert a["model.safetensors"] == b["model.safetensors"]
    assert a["tokenizer.json"] == b["tokenizer.json"]
    assert EncoderConfig.load(tmp_path / "b") == mean_pooled
    commit = "0123456789abcdef0123456789abcdef01234567"
    cached = tmp_path / "models--owner--name" / "snapshots" / commit
    cached.parent.mkdir(parents=True)
    initialised(cached, "scratch:2x8", words)
    monkeypatch.setattr(backbones, "locate", lambda _: cached)
    assert initialised(tmp_path / "out", "owner/name", None)["revision"] == commit


def test_the_pooler_comes_along_where_it_is_read(tmp_path: Path, words: Path) -> None:
    """Random from scratch; a backbone without one is refused, or given a random one by the seed, which stays."""
    pooled = EncoderConfig(pooling="pooler")
    initialised(tmp_path / "scratch", "scratch:1x8", words, encoder_config=pooled)
    assert "pooler.dense.weight" in load_file(tmp_path / "scratch" / "model.safetensors")
    initialised(tmp_path / "without", "scratch:1x8", words)
    bare = load_file(tmp_path / "without" / "model.safetensors")
    assert not [name for name in bare if "pooler" in name]
    with pytest.raises(UsageError, match="found no weights of a pooler"):
        initialised(tmp_path / "refused", str(tmp_path / "without"), None, encoder_config=pooled)
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        torch.rand(3)
        initialised(tmp_path / name, str(tmp_path / "without"), None, seed, pooled, new_pooler=True)
    a, b, c = (load_file(tmp_path / name / "model.safetensors") for name in "abc")
    assert tree(tmp_path / "a") == tree(tmp_path / "b")
    assert {name for name in a if not torch.equal(a[name], c[name])} == {"pooler.dense.weight"}
    assert all(torch.equal(a[name], tensor) for name, tensor in bare.items())
    initialised(tmp_path / "again", str(tmp_path / "a"), None, 5, pooled, new_pooler=True)
    assert tree(tmp_path / "again")["model.safetensors"] == tree(tmp_path / "a")["model.safetensors"]
    assert torch.equal(b["pooler.dense.weight"], a["pooler.dense.weight"])


def test_a_tokenizer_that_does_not_fit_is_refused(tmp_path: Path, words: Path) -> None:
    """Random weights have no words of their own; the last ids of a tokenizer that is too large would have no vector."""
    with pytest.raises(
        UsageError, match=r"scratch:1x8: found no tokenizer, expected that of a prepared corpus \(--cor"
    ):
        initialised(tmp_path / "none", "scratch:1x8", None)
    initialised(tmp_path / "a", "scratch:1x8", words)
    bigger = tokenizer.train({"en": ["pack my box with five dozen liquor jugs", "sphinx of black quartz"] * 9}, 900)
    tokenizer.save(bigger, tmp_path / "bigger", 512)
    vocabulary = json.loads((tmp_path / "a" / "config.json").read_text())["vocab_size"]
    sentence = f"found a tokenizer of {bigger.get_vocab_size()} ids, expected at most .* {vocabulary};"
    with pytest.raises(UsageError, match=sentence):
        initialised(tmp_path / "b", str(tmp_path / "a"), tmp_path / "bigger")
