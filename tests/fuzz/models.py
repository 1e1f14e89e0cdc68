"""Model folders: both configs, tokenizer, weights and the small files of sentence-transformers, each damaged."""

import json
import pickle
import shutil
import struct
from functools import cache
from pathlib import Path
from typing import Any

from tests.fuzz.harness import Case, Draw, scratch

SIZES: dict[str, Any] = {
    "vocab_size": 20,
    "hidden_size": 8,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 16,
}
MARKS = {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "unk_token": "[UNK]", "mask_token": "[MASK]"}
WAYS = 6
KINDS = ("Transformer", "Pooling", "Normalize")
SMALL: dict[str, Any] = {
    "modules.json": [
        {"idx": at, "path": f"{at}_{kind}" if at else "", "type": f"models.{kind}"} for at, kind in enumerate(KINDS)
    ],
    "1_Pooling/config.json": {"word_embedding_dimension": 8, "pooling_mode_mean_tokens": True},
    "sentence_bert_config.json": {"max_seq_length": 16, "do_lower_case": False},
    "config_sentence_transformers.json": {"prompts": {"query": "q: "}, "similarity_fn_name": "cosine"},
}


@cache
def sound() -> Path:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    from bench.core.encoder_config import ENCODER_CONFIG, EncoderConfig
    from bench.retrieval import backbones

    folder = scratch()
    words = Tokenizer(models.WordLevel({name: at for at, name in enumerate([*MARKS.values(), "a", "b"])}, "[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=[("[CLS]", 0), ("[SEP]", 1)])
    model = BertModel(BertConfig(**SIZES, max_position_embeddings=24, pad_token_id=2))
    backbones.save(model, PreTrainedTokenizerFast(tokenizer_object=words, **MARKS), folder)
    encoder_config = EncoderConfig(similarity="cos", query_length=8, passage_length=16)
    for name, content in {**SMALL, ENCODER_CONFIG: encoder_config.dump()}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content))
    for reader in range(WAYS):  # what is imported here, no child imports again
        read(folder, reader)
    return folder


def _weights(draw: Draw, data: bytes) -> bytes:
    """Damage the header of a safetensors file, keep its length right or not."""
    (size,) = struct.unpack("<Q", data[:8])
    header = draw.altered(json.loads(data[8 : 8 + size]))
    written = json.dumps(header).encode()
    return struct.pack("<Q", draw.choice((len(written), len(written) + 9, 1 << 40, 0))) + written + data[8 + size :]


def read(folder: Path, reader: int) -> str:
    from bench.core.encoder_config import EncoderConfig
    from bench.retrieval import cross_encoder, encoder, lm_heads, prompts, readouts
    from bench.types import Item
    from methods.pretrained import described

    if reader == 0:
        cross_encoder.load_classifier(folder, new_head=1)
    elif reader == 1:
        lm_heads.find(folder)
        prompts.wanted(str(folder), [])
        readouts.depth_of(str(folder))
    else:
        encoder_config = (
            described.encoder_config(str(folder))
            if reader < 5
            else EncoderConfig(pooling="pooler", query_length=8, passage_length=16)
        )
        vectors = encoder.load(folder, encoder_config=encoder_config).encode([Item("q", "a b"), Item("r", "")], "query")
        assert vectors.shape[0] == 2
    return "read"


def case(draw: Draw, folder: Path) -> Case:
    place = folder / "model"
    shutil.copytree(sound(), place)
    if draw.random() < 0.5:
        (place / "encoder_config.json").unlink()
    files = sorted(path for path in place.rglob("*") if path.is_file())
    for path in draw.sample(files, draw.choice((1, 1, 2))):
        data = path.read_bytes()
        change = draw.random()
        if change < 0.05:
            path.unlink()
        elif change < 0.1:
            path.write_bytes(pickle.dumps({"weight": draw.choice((print, 1))}))
        elif path.suffix == ".safetensors" and change < 0.7:
            path.write_bytes(_weights(draw, data))
        elif path.suffix == ".json" and change < 0.8:
            path.write_text(json.dumps(draw.altered(json.loads(data))))
        else:
            path.write_bytes(draw.damaged(data))
    reader = draw.randrange(WAYS)
    return Case(lambda: read(place, reader))
