"""The head of masked language modelling in a backbone's folder, however it is kept."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from transformers import BertConfig, BertForMaskedLM, BertModel

from bench.core.errors import UsageError
from bench.retrieval import lm_heads
from tests.conftest import present

D, V = 8, 20


@pytest.fixture
def model() -> BertForMaskedLM:
    """A tiny language model whose biases are not zero."""
    torch.manual_seed(0)
    config = BertConfig(vocab_size=V, hidden_size=D, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8)
    language_model = BertForMaskedLM(config)
    with torch.no_grad():
        for weight in language_model.parameters():
            weight.add_(torch.randn_like(weight))
    return language_model


def assert_same(head: dict[str, torch.Tensor] | None, model: BertForMaskedLM) -> None:
    assert head is not None
    top = model.cls.predictions
    layers = {"dense": top.transform.dense, "norm": top.transform.LayerNorm}
    expected = {
        f"{key}.{name}": parameter for key, layer in layers.items() for name, parameter in layer.named_parameters()
    }
    expected["bias"] = top.bias
    assert set(head) == set(expected)
    for name, tensor in expected.items():
        torch.testing.assert_close(head[name], tensor.detach(), rtol=0, atol=0)


def test_one_file_or_several_old_ones_too(model: BertForMaskedLM, tmp_path: Path) -> None:
    """Safetensors whole, in shards, read back; `gamma` and `beta`, pickled tensors, and half precision, widened."""
    model.save_pretrained(tmp_path / "one")
    model.save_pretrained(tmp_path / "many", max_shard_size="1KB")
    assert len(list((tmp_path / "many").glob("*.safetensors"))) > 1
    for name in ("one", "many"):
        assert_same(lm_heads.find(tmp_path / name), model)
    head = present(lm_heads.find(tmp_path / "one"))
    lm_heads.save(head, tmp_path)
    assert_same(lm_heads.load(tmp_path), model)
    old = {
        key.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): weight
        for key, weight in model.state_dict().items()
    }
    torch.save(old, tmp_path / "pytorch_model.bin")
    assert_same(lm_heads.find(tmp_path), model)
    halves = tmp_path / "halves"
    halves.mkdir()
    save_file({key: weight.half().clone() for key, weight in old.items()}, halves / "model.safetensors")
    head = present(lm_heads.find(halves))
    assert {tensor.dtype for tensor in head.values()} == {torch.float32}


def test_none_or_half_a_head_is_none(model: BertForMaskedLM, tmp_path: Path) -> None:
    """An encoder alone, a head that lacks its bias, an empty folder; a broken file is refused."""
    BertModel(model.config).save_pretrained(tmp_path / "encoder")
    assert lm_heads.find(tmp_path / "encoder") is None
    (tmp_path / "half").mkdir()
    part = {key: weight.clone() for key, weight in model.state_dict().items() if not key.endswith("predictions.bias")}
    part = {key: weight for key, weight in part.items() if "decoder" not in key}
    save_file(part, tmp_path / "half/model.safetensors")
    assert lm_heads.find(tmp_path / "half") is None
    (tmp_path / "empty").mkdir()
    assert lm_heads.find(tmp_path / "empty") is None
    assert lm_heads.load(tmp_path / "empty") is None
    (tmp_path / "model.safetensors").write_bytes(b"no tensors")
    with pytest.raises(UsageError, match="expected weights as tensors"):
        lm_heads.find(tmp_path)
