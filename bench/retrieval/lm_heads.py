"""The head of a backbone's masked language modelling: a file next to the encoder, never part of it.

A pretrained backbone predicts hidden tokens by a dense layer, gelu, a LayerNorm and a decoder that shares the token
embeddings and has a bias. Encoders do without; a training that goes on modelling language goes on from it. Importing
this module imports no torch.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from bench.core.errors import UsageError
from bench.core.messages import first_line

if TYPE_CHECKING:
    import torch

FILE = "mlm_head.safetensors"
"""Name of the file: `dense.weight` `[d, d]`, `dense.bias`, `norm.weight`, `norm.bias` `[d]`, `bias` `[v]`."""

_NAMES = ("dense.weight", "dense.bias", "norm.weight", "norm.bias", "bias")
_FAMILIES = (
    # XLM-R and RoBERTa
    ("lm_head.dense.weight", "lm_head.dense.bias", "lm_head.layer_norm.weight", "lm_head.layer_norm.bias"),
    # BERT
    *(
        (
            "cls.predictions.transform.dense.weight",
            "cls.predictions.transform.dense.bias",
            f"cls.predictions.transform.LayerNorm.{scale}",
            f"cls.predictions.transform.LayerNorm.{shift}",
        )
        for scale, shift in (("weight", "bias"), ("gamma", "beta"))  # the latter in conversions of BERT's own files
    ),
)
_BIASES = {
    "lm_head": ("lm_head.bias", "lm_head.decoder.bias"),
    "cls": ("cls.predictions.bias", "cls.predictions.decoder.bias"),
}
_SAFE, _OLD = "model.safetensors", "pytorch_model.bin"


def find(backbone: Path) -> dict[str, torch.Tensor] | None:
    """Read the head from a backbone's folder, float32, tensors as in `FILE`.

    None where the folder has no whole head of the families of XLM-R or BERT. Raises `UsageError` if its weights cannot
    be read as tensors.
    """
    for family in _FAMILIES:
        for bias in _BIASES[family[0].partition(".")[0]]:
            keys = (*family, bias)
            found = _tensors(backbone, keys)
            if len(found) == len(keys):
                return {name: found[key].float() for name, key in zip(_NAMES, keys, strict=True)}
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
    from safetensors import SafetensorError, safe_open

    found: dict[str, torch.Tensor] = {}
    try:
        for path in _files(folder, _SAFE):
            with safe_open(path, framework="pt") as opened:
                there = set(opened.keys())
                found |= {key: opened.get_tensor(key) for key in keys if key in there}
        if not found and not any(_files(folder, _SAFE)):
            import torch

            for path in _files(folder, _OLD):
                read = torch.load(path, map_location="cpu", weights_only=True)
                found |= {key: read[key] for key in keys if key in read}
    except (OSError, ValueError, RuntimeError, SafetensorError, pickle.UnpicklingError) as error:
        raise UsageError(f"{folder}: found {first_line(error)}, expected weights as tensors") from error
    return found


def _files(folder: Path, name: str) -> Iterator[Path]:
    """Yield the files of a folder's weights: one, or those that an index names."""
    index = folder / f"{name}.index.json"
    if (folder / name).is_file():
        yield folder / name
    elif index.is_file():
        listed = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        yield from (folder / part for part in sorted(set(listed.values())))
