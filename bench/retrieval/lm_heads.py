"""The head of a backbone's masked language modelling: a file next to the encoder, never part of it.

A pretrained backbone predicts hidden tokens by a dense layer, gelu, a LayerNorm and a decoder that shares the token
embeddings and has a bias. Encoders do without; a training that goes on modelling language goes on from it. Importing
this module imports no torch.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench.core.messages import foreign
from bench.retrieval.model_files import OLD, tensors, weight_files

if TYPE_CHECKING:
    import torch

FILE = "mlm_head.safetensors"
"""Name of the file: `dense.weight` `[d, d]`, `dense.bias`, `norm.weight`, `norm.bias` `[d]`, `bias` `[v]`."""

_NAMES = ("dense.weight", "dense.bias", "norm.weight", "norm.bias", "bias")
_BERT = "cls.predictions.transform"
_FAMILIES = (
    # XLM-R and RoBERTa
    ("lm_head.dense.weight", "lm_head.dense.bias", "lm_head.layer_norm.weight", "lm_head.layer_norm.bias"),
    # BERT
    *(
        (f"{_BERT}.dense.weight", f"{_BERT}.dense.bias", f"{_BERT}.LayerNorm.{scale}", f"{_BERT}.LayerNorm.{shift}")
        for scale, shift in (("weight", "bias"), ("gamma", "beta"))  # the latter in conversions of BERT's own files
    ),
)
_BIASES = {
    "lm_head": ("lm_head.bias", "lm_head.decoder.bias"),
    "cls": ("cls.predictions.bias", "cls.predictions.decoder.bias"),
}
_EXPECTED = "weights as tensors"


def find(backbone: Path) -> dict[str, torch.Tensor] | None:
    """Read the head from a backbone's folder, float32, tensors as in `FILE`.

    None where the folder has no whole head of the families of XLM-R or BERT. Raises `UsageError` if its weights cannot
    be read as tensors.
    """
    for family in _FAMILIES:
        for bias in _BIASES[family[0].partition(".")[0]]:
            keys = (*family, bias)
            weights = _tensors(backbone, keys)
            if len(weights) == len(keys):
                return {name: weights[key].float() for name, key in zip(_NAMES, keys, strict=True)}
    return None


def save(head: dict[str, torch.Tensor], folder: Path) -> None:
    """Write a head next to an encoder."""
    import safetensors.torch

    from bench.core.files import write_bytes

    write_bytes(folder / FILE, safetensors.torch.save(head))


def load(folder: Path) -> dict[str, torch.Tensor] | None:
    """Return the head next to an encoder; None where there is none."""
    from safetensors.torch import load_file

    return load_file(folder / FILE) if (folder / FILE).is_file() else None


def _tensors(folder: Path, keys: tuple[str, ...]) -> dict[str, torch.Tensor]:
    """Read those of some tensors that a folder has; whole files only in the old format."""
    from safetensors import safe_open

    weights: dict[str, torch.Tensor] = {}
    safe = weight_files(folder)
    for path in safe:
        with foreign(path, "no tensors", _EXPECTED), safe_open(path, framework="pt") as opened:
            names = set(opened.keys())
            weights |= {key: opened.get_tensor(key) for key in keys if key in names}
    for path in [] if safe else weight_files(folder, OLD):
        read = tensors(path, _EXPECTED)
        weights |= {key: read[key] for key in keys if key in read}
    return weights
