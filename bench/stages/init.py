"""init: backbone → the encoder before training, a plain Hugging Face folder with tokenizer and contract."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from bench.data import tokenizer
from bench.dense import CONTRACT, Contract
from bench.encoding import backbones, lm_heads
from bench.errors import UsageError
from bench.fsio import canonical, write_bytes
from bench.types import Json
from bench.workspace import Workspace

VERSION = 2
_SNAPSHOTS = "snapshots"  # where the cache of the hub keeps a folder for each commit


def run(
    work: Workspace,
    backbone: str,
    tokenizer_folder: Path | None,
    contract: Contract,
    seed: int,
    *,
    new_pooler: bool = False,
) -> Mapping[str, Json]:
    """Write the encoder's folder: `config.json`, `model.safetensors`, the tokenizer's files and `contract.json`.

    A backbone that comes with the head of its masked language modelling has it written beside them
    (`bench.encoding.lm_heads`), where a training that models language goes on from it; no encoder reads it.

    Args:
        work: where to.
        backbone: `scratch:LxH`, a folder, or a Hugging Face id.
        tokenizer_folder: whose ids the encoder is to read; None takes the backbone's own.
        contract: how the encoder is to be read; the pooler comes along where it is read through it.
        seed: of random weights; without effect on what a backbone has weights of.
        new_pooler: a backbone that has no trained pooler gets a random one (it will be trained), instead of being
            refused.

    Returns:
        kind (`scratch` or `pretrained`), architecture, layers, width, vocabulary, parameters,
        mlm_head (whether one came with it), revision (the commit that was taken of a Hugging Face id).

    Raises:
        UsageError: the backbone cannot be found or loaded, no tokenizer is given for `scratch:LxH`, or the tokenizer
            has ids that the backbone does not know.
    """
    sizes, pooled, head, revision = backbones.scratch(backbone), contract.pooling == "pooler", None, None
    if sizes is not None:
        if tokenizer_folder is None:
            raise UsageError(f"backbone {backbone}: found no tokenizer, expected that of a prepared corpus (--corpus)")
        words = tokenizer.load(tokenizer_folder)
        model = backbones.random_model(sizes, words, seed, pooler=pooled)
    else:
        folder = backbones.locate(backbone)
        assert folder is not None  # noqa: S101 (only scratch has none)
        words = tokenizer.load(tokenizer_folder or folder)
        lacking: Literal["own", "new"] = "new" if new_pooler else "own"
        model = backbones.load_encoder(folder, lacking if pooled else "none", seed)
        head = lm_heads.find(folder)
        revision = folder.name if folder.parent.name == _SNAPSHOTS else None
    _fits(backbone, len(words), model.config.vocab_size)
    backbones.save(model, words, work.out)
    if head is not None:
        lm_heads.save(head, work.out)
    write_bytes(work.out / CONTRACT, canonical(contract.dump()))
    return {
        "kind": "pretrained" if sizes is None else "scratch",
        "architecture": type(model).__name__,
        "layers": model.config.num_hidden_layers,
        "width": model.config.hidden_size,
        "vocabulary": len(words),
        "parameters": sum(weights.numel() for weights in model.parameters()),
        "mlm_head": head is not None,
        "revision": revision,
    }


def _fits(backbone: str, vocabulary: int, known: int) -> None:
    """Refuse a tokenizer with ids that the model has no vector for (what the contract asks is checked on encoding)."""
    if vocabulary > known:
        raise UsageError(
            f"backbone {backbone}: found a tokenizer of {vocabulary:,} ids, expected at most its {known:,};"
            " prepare the corpus with the backbone's own tokenizer"
        )
