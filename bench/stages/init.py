"""init: backbone → the encoder before training, a plain Hugging Face folder with tokenizer and contract."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bench.data import tokenizer
from bench.dense import CONTRACT, Contract
from bench.encoding import backbones
from bench.errors import UsageError
from bench.fsio import canonical, write_bytes
from bench.types import Json
from bench.workspace import Workspace

VERSION = 1


def run(
    work: Workspace, backbone: str, tokenizer_folder: Path | None, contract: Contract, seed: int
) -> Mapping[str, Json]:
    """Write the encoder's folder: `config.json`, `model.safetensors`, the tokenizer's files and `contract.json`.

    Args:
        work: where to.
        backbone: `scratch:LxH`, a folder, or a Hugging Face id.
        tokenizer_folder: whose ids the encoder is to read; None takes the backbone's own.
        contract: how the encoder is to be read.
        seed: of random weights; without effect on a backbone that has its own.

    Returns:
        kind (`scratch` or `pretrained`), architecture, layers, width, vocabulary, parameters.

    Raises:
        UsageError: the backbone cannot be found or loaded, no tokenizer is given for `scratch:LxH`, or the tokenizer
            has ids that the backbone does not know.
    """
    sizes = backbones.scratch(backbone)
    if sizes is not None:
        if tokenizer_folder is None:
            raise UsageError(f"backbone {backbone}: found no tokenizer, expected that of a prepared corpus (--corpus)")
        words = tokenizer.load(tokenizer_folder)
        model = backbones.random_model(sizes, words, seed)
    else:
        folder = backbones.locate(backbone)
        assert folder is not None  # noqa: S101 (only scratch has none)
        words = tokenizer.load(tokenizer_folder or folder)
        model = backbones.load_encoder(folder)
    _fits(backbone, len(words), model.config.vocab_size)
    backbones.save(model, words, work.out)
    write_bytes(work.out / CONTRACT, canonical(contract.dump()))
    return {
        "kind": "pretrained" if sizes is None else "scratch",
        "architecture": type(model).__name__,
        "layers": model.config.num_hidden_layers,
        "width": model.config.hidden_size,
        "vocabulary": len(words),
        "parameters": sum(weights.numel() for weights in model.parameters()),
    }


def _fits(backbone: str, vocabulary: int, known: int) -> None:
    """Refuse a tokenizer with ids that the model has no vector for (what the contract asks is checked on encoding)."""
    if vocabulary > known:
        raise UsageError(
            f"backbone {backbone}: found a tokenizer of {vocabulary:,} ids, expected at most its {known:,};"
            " prepare the corpus with the backbone's own tokenizer"
        )
