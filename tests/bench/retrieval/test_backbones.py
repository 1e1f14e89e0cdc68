"""Backbones: names, sizes, folders of every origin, and what is refused."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import load_file, save_file
from transformers import (
    BertConfig,
    BertModel,
    ModernBertConfig,
    ModernBertForMaskedLM,
    PreTrainedModel,
    T5Config,
    T5Model,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
)

from bench.core.errors import UsageError
from bench.core.network import offline
from bench.retrieval import backbones
from bench.retrieval.backbones import Scratch, load_encoder, locate, scratch
from tests.conftest import tiny

SIZES = tiny(8, 1, vocab_size=20, max_position_embeddings=16, pad_token_id=0)
IDS = torch.tensor([[2, 7, 9, 3]])


def saved(model: PreTrainedModel, folder: Path) -> PreTrainedModel:
    """Save a model without drawing bars."""
    with backbones.quiet():
        model.eval().save_pretrained(folder)
    return model


def test_scratch() -> None:
    """Sizes are read, heads follow the width; of one that does not divide, the nearest below is named."""
    assert scratch("scratch:2x128") == Scratch(2, 128)
    assert [Scratch(1, width).heads for width in (8, 32, 63, 128, 768)] == [1, 1, 1, 4, 24]
    assert scratch("xlm-roberta-base") is None
    with pytest.raises(UsageError, match=r"found width 100, expected a multiple of 32 .* type e.g. scratch:2x96$"):
        scratch("scratch:2x100")
    for misspelt in ("scratch:", "scratch:2", "scratch:0x8", "scratch:2x128x4", "scratch:2X128"):
        with pytest.raises(UsageError, match=r"expected scratch:LAYERSxWIDTH, e.g. scratch:2x128"):
            scratch(misspelt)


def test_locate_folders(tmp_path: Path) -> None:
    """A folder is taken as it is; one that holds no model, or is not there, is refused."""
    (tmp_path / "config.json").write_text("{}")
    assert locate(str(tmp_path)) == tmp_path
    assert locate("scratch:2x8") is None
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        UsageError, match=r"empty: found no config.json, expected a Hugging Face folder: config.json, m"
    ):
        locate(str(tmp_path / "empty"))
    with pytest.raises(
        UsageError, match=r"found no such folder, expected a folder, a Hugging Face id \(xlm-roberta-ba"
    ):
        locate(str(tmp_path / "none"))


def test_locate_in_the_cache_without_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An id that was fetched needs no network, its revision is part of it; else the id, the cache and both ways out."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    for commit, name in (("a" * 40, "main"), ("b" * 40, "v2")):
        folder = tmp_path / "models--owner--name" / "snapshots" / commit
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")
        (folder / "model.safetensors").write_bytes(b"x")
        refs = folder.parent.parent / "refs"
        refs.mkdir(exist_ok=True)
        (refs / name).write_text(commit)
    with offline():
        assert locate("owner/name") == tmp_path / "models--owner--name" / "snapshots" / ("a" * 40)
        assert locate("owner/name@v2") == tmp_path / "models--owner--name" / "snapshots" / ("b" * 40)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    with offline(), pytest.raises(UsageError) as caught:
        locate("owner/name@v3")
    message = str(caught.value)
    assert message.startswith(
        f"backbone 'owner/name@v3': found no such folder, and no model owner/name whole in the cache {tmp_path}, and"
        " no host may be contacted (offline), expected a folder, a Hugging Face id"
    )
    assert "hf download owner/name --revision v3 where there is a network, and set HF_HOME" in message
    assert message.endswith("--backbone FOLDER with a folder that holds config.json, model.safetensors, tokenizer.json")


def test_without_pooler(tmp_path: Path) -> None:
    """BERT's pooler stays behind, what the encoder gives is the same; weights in bfloat16 become float32."""
    model = saved(BertModel(BertConfig(**SIZES)), tmp_path)
    encoder = load_encoder(tmp_path)
    assert any("pooler" in name for name, _ in model.named_parameters())
    assert not any("pooler" in name for name, _ in encoder.named_parameters())
    with torch.no_grad():
        assert torch.equal(encoder.eval()(IDS).last_hidden_state, model(IDS).last_hidden_state)
    saved(BertModel(BertConfig(**SIZES), add_pooling_layer=False).bfloat16(), tmp_path)
    assert {weights.dtype for weights in load_encoder(tmp_path).parameters()} == {torch.float32}


@pytest.mark.parametrize(
    ("model", "base"),
    [
        (XLMRobertaForMaskedLM(XLMRobertaConfig(**SIZES | {"pad_token_id": 1})), "roberta"),
        (ModernBertForMaskedLM(ModernBertConfig(**SIZES)), "model"),
    ],
)
def test_without_head(tmp_path: Path, model: PreTrainedModel, base: str, capfd: pytest.CaptureFixture[str]) -> None:
    """The head of masked language modelling stays behind, in silence, also where no pooler can be asked away."""
    saved(model, tmp_path)
    encoder = load_encoder(tmp_path).eval()
    inner = getattr(model, base)
    assert {name for name, _ in encoder.named_parameters()} == {
        name for name, _ in inner.named_parameters() if "pooler" not in name
    }
    with torch.no_grad():
        assert torch.equal(encoder(IDS).last_hidden_state, inner(IDS).last_hidden_state)
    assert capfd.readouterr() == ("", "")


def test_weights_that_lack_or_are_cut_are_refused(tmp_path: Path) -> None:
    """An encoder whose weights are half random is worse than none; so is a download that broke off."""
    saved(BertModel(BertConfig(**SIZES)), tmp_path)
    path = tmp_path / "model.safetensors"
    weights = {name: tensor for name, tensor in load_file(path).items() if "query" not in name}
    save_file(weights, path, {"format": "pt"})
    with pytest.raises(UsageError, match=r"no weights for encoder.layer.0.attention.self.query.bias and 1 more, expec"):
        load_encoder(tmp_path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(UsageError, match="found a model that cannot be loaded"):
        load_encoder(tmp_path)


def test_old_checkpoints_are_tensors_or_refused(tmp_path: Path) -> None:
    """A `.bin` of tensors is read; one that would run code on loading is refused, and runs none."""
    model = saved(BertModel(BertConfig(**SIZES)), tmp_path)
    (tmp_path / "model.safetensors").unlink()
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    with torch.no_grad():
        states = load_encoder(tmp_path).eval()(IDS).last_hidden_state
        assert torch.equal(states, model(IDS).last_hidden_state)
    torch.save({"x": Trap(str(tmp_path / "sprung"))}, tmp_path / "pytorch_model.bin")
    with pytest.raises(UsageError, match=r"found pickled objects among the weights, expected tensors alone"):
        load_encoder(tmp_path)
    assert not (tmp_path / "sprung").exists()


class Trap:
    """Makes a folder when it is unpickled."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        """Unpickle by making a folder."""
        return os.mkdir, (self.path,)


def test_models_with_code_of_their_own_or_a_decoder_are_refused(tmp_path: Path) -> None:
    """Nobody is asked, the code is not run; models with a decoder give no vectors of a text by themselves."""
    names = {"AutoConfig": "code.Config", "AutoModel": "code.Model"}
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "strange", "auto_map": names}))
    (tmp_path / "code.py").write_text(f"import os\nos.mkdir({str(tmp_path / 'sprung')!r})\n")
    with pytest.raises(
        UsageError,
        match=r"an architecture with custom code \(auto_map: code.Config\), expected an architecture that tr",
    ):
        load_encoder(tmp_path)
    assert not (tmp_path / "sprung").exists()
    saved(T5Model(T5Config(vocab_size=20, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)), tmp_path)
    with pytest.raises(UsageError, match="found an encoder-decoder model, expected an encoder"):
        load_encoder(tmp_path)
