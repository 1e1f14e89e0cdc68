"""What an encoder's folder holds, held against the architecture that its config names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModel

from bench.encoding import backbones


def strangers(folder: Path, weights: Sequence[Path], pooler: bool) -> list[str]:
    """Return the names of tensors that the plain encoder of that architecture does not have.

    Args:
        folder: with `config.json`.
        weights: its safetensors files.
        pooler: the encoder is read through its pooler, so that belongs to it.
    """
    config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    with torch.device("meta"):  # names alone: no memory is touched
        arguments = {} if pooler else backbones.without_pooler(type(config))
        known = set(AutoModel.from_config(config, **arguments).state_dict())
    found = set[str]()
    for path in weights:
        with safe_open(path, "pt") as tensors:
            found |= set(tensors.keys())
    return sorted(found - known)


def without_pooler(folder: Path) -> dict[str, Any]:
    """Return the loading argument that leaves out the pooler, whose weights are not there, where there is one."""
    config = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
    return dict(backbones.without_pooler(type(config)))


def write_dense(weights: Sequence[Path], folder: Path) -> tuple[int, int]:
    """Write the pooler's dense layer as sentence-transformers keeps one; return its width in and out.

    Args:
        weights: safetensors files of the encoder, one of which holds `pooler.dense`.
        folder: of the module, which is there.
    """
    layer: dict[str, torch.Tensor] = {}
    for path in weights:
        with safe_open(path, "pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 (no mapping)
                if name.startswith("pooler.dense."):
                    layer[name.replace("pooler.dense.", "linear.")] = tensors.get_tensor(name)
    save_file(layer, folder / "model.safetensors", {"format": "pt"})
    wide, narrow = layer["linear.weight"].shape
    return narrow, wide
