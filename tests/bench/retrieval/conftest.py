"""Tiny encoders with random weights, one of each family, and a tokenizer of single letters."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import AutoConfig, AutoModel, PreTrainedModel, PreTrainedTokenizerFast

from tests.conftest import tiny

SIZES = tiny(16, 3, vocab_size=60, max_position_embeddings=80, pad_token_id=1)
SIZES["initializer_range"] = 0.3  # wide, so that attention is far from even and a fault would show
ENDS = {"bos_token_id": 2, "eos_token_id": 3, "cls_token_id": 2, "sep_token_id": 3}
FAMILIES: dict[str, dict[str, Any]] = {
    "bert": {},
    "xlm-roberta": {},
    # blocks 1 and 2 see four neighbours on each side
    "modernbert": {"local_attention": 8, "global_attn_every_n_layers": 3, **ENDS},
    # attention of its own
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 16},
    # takes the attention, and is causal
    "qwen3": {"num_key_value_heads": 1, "head_dim": 8},
    # what EmbeddingGemma is made of: it sees both ways, and shares keys
    "gemma3_text": {
        "num_key_value_heads": 1,
        "head_dim": 8,
        "sliding_window": 8,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
        "use_bidirectional_attention": True,
    },
}
MARKS = {**dict.fromkeys(("bos_token", "cls_token"), "<s>"), **dict.fromkeys(("eos_token", "sep_token"), "</s>")}
MARKS |= {f"{name}_token": f"<{name}>" for name in ("pad", "unk", "mask")}


Build = Callable[[str], PreTrainedModel]


@pytest.fixture
def sizes() -> dict[str, Any]:
    return SIZES


@pytest.fixture
def build() -> Build:
    """Return a maker of encoders by family: the same weights every time, evaluation mode, as transformers runs them."""

    def make(family: str) -> PreTrainedModel:
        torch.manual_seed(0)
        model: PreTrainedModel = AutoModel.from_config(AutoConfig.for_model(family, **SIZES, **FAMILIES[family])).train(
            False
        )
        return model

    return make


@pytest.fixture
def sequences() -> list[list[int]]:
    """Return token ids of 23 sequences of 1 to 41 tokens, some of equal length, in no order."""
    rng = torch.Generator().manual_seed(1)
    lengths = [7, 1, 41, 7, 12, 3, 12, 30, 7, 2, 19, 5, 12, 1, 8, 25, 3, 41, 6, 7, 9, 11, 4]
    return [torch.randint(2, 60, (length,), generator=rng).tolist() for length in lengths]


@pytest.fixture
def tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer: a token a letter, beginning and end marked."""
    names = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", *"abcdefghijklmnopqrstuvwxyz0123456789.:,-?!"]
    vocabulary = {name: at for at, name in enumerate(names)}
    letters = Tokenizer(models.WordLevel(vocabulary, MARKS["unk_token"]))
    letters.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Whitespace(), pre_tokenizers.Split("", "isolated")])
    letters.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=letters, **MARKS)


@pytest.fixture
def folder(tmp_path: Path, build: Build, tokenizer: PreTrainedTokenizerFast) -> Path:
    """Return the folder of a tiny XLM-R with its tokenizer, without encoder config."""
    path = tmp_path / "model"
    build("xlm-roberta").save_pretrained(path)
    tokenizer.save_pretrained(path)
    return path
