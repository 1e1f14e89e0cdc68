"""BERT's pooler: tanh of a dense layer over the first token's state, and where a folder keeps its weights.

A Hugging Face folder has it among the model's weights. A folder of sentence-transformers (LaBSE's, for instance) has
the same layer as a module `Dense` behind a pooling of the first token; there it is read from, and kept as the model's
own pooler from then on. Importing this module imports no torch.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.core.errors import UsageError
from bench.core.messages import first_line

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

_WEIGHTS = ("model.safetensors", "pytorch_model.bin")


def modules(folder: Path) -> list[Path]:
    """List the folders of a sentence-transformers folder's modules, without itself; none where it is a plain one."""
    places = dict.fromkeys(folder / str(module["path"]) for module in _listed(folder))
    return [place for place in places if place != folder and place.is_relative_to(folder) and place.is_dir()]


def dense_module(folder: Path) -> Path | None:
    """Find the module of a sentence-transformers folder that is BERT's pooler; None where it has no dense layer.

    Raises `UsageError` if it has a dense layer of another kind, or several.
    """
    found = [folder / str(one["path"]) for one in _listed(folder) if str(one["type"]).rpartition(".")[2] == "Dense"]
    if not found:
        return None
    said = model_json(found[0] / "config.json")
    activation = str(said.get("activation_function", "")).rpartition(".")[2]
    square, biased = said.get("in_features") == said.get("out_features"), said.get("bias", True)
    if len(found) > 1 or activation != "Tanh" or not square or not biased:
        sizes = f"{said.get('in_features')} to {said.get('out_features')} dimensions"
        bias = "" if biased else " without bias"
        more = f" and {len(found) - 1} more" if len(found) > 1 else ""
        raise UsageError(
            f"{folder}: found a dense layer of {sizes}{bias}, activation {activation or 'unknown'}{more}, expected "
            "one like BERT's pooler: as many dimensions out as in, a bias, Tanh"
        )
    return found[0]


def complete(model: PreTrainedModel, folder: Path, *, trained: bool, new: bool) -> None:
    """Give a model's pooler the weights that its folder has, where loading could not.

    Args:
        model: loaded with its pooler.
        folder: that it was loaded from.
        trained: the model's own weights had those of the pooler.
        new: random weights will do where there are no trained ones.

    Raises:
        UsageError: its architecture has no such pooler, or there are no weights of it.
    """
    import torch

    pooler: Any = getattr(model, "pooler", None)
    layer, activation = getattr(pooler, "dense", None), getattr(pooler, "activation", None)
    if not isinstance(layer, torch.nn.Linear) or not isinstance(activation, torch.nn.Tanh):
        raise UsageError(
            f"{folder}: found {type(model).__name__}, which has no pooler like BERT's (tanh over the first token), "
            "expected one; choose the pooling cls or mean"
        )
    module = dense_module(folder)
    if module is not None:
        _fill(layer, module)
    elif not trained and not new:
        raise UsageError(
            f"{folder}: found no weights of a pooler, expected pooler.dense.weight and pooler.dense.bias; "
            "choose the pooling cls or mean"
        )


def write_dense(weights: Sequence[Path], folder: Path) -> tuple[int, int]:
    """Write the pooler's dense layer into a module's folder of sentence-transformers; return its width in and out.

    `weights` are safetensors files of the encoder, one of which holds `pooler.dense`.
    """
    from safetensors import safe_open
    from safetensors.torch import save_file

    layer: dict[str, torch.Tensor] = {}
    for path in weights:
        with safe_open(path, "pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 (no mapping)
                if name.startswith("pooler.dense."):
                    layer[name.replace("pooler.dense.", "linear.")] = tensors.get_tensor(name)
    save_file(layer, folder / "model.safetensors", {"format": "pt"})
    wide, narrow = layer["linear.weight"].shape
    return narrow, wide


def _fill(layer: torch.nn.Linear, module: Path) -> None:
    import torch

    weights = _weights(module)
    named = {"weight": weights.get("linear.weight"), "bias": weights.get("linear.bias")}
    with torch.no_grad():
        for name, own in (("weight", layer.weight), ("bias", layer.bias)):
            given = named[name]
            if given is None or given.shape != own.shape:
                found = "none" if given is None else f"sizes {tuple(given.shape)}"
                raise UsageError(f"{module}: found {found} for linear.{name}, expected sizes {tuple(own.shape)}")
            own.copy_(given)


def _weights(module: Path) -> dict[str, torch.Tensor]:
    import pickle

    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    path = next((module / name for name in _WEIGHTS if (module / name).is_file()), None)
    if path is None:
        raise UsageError(f"{module}: found neither {' nor '.join(_WEIGHTS)}, expected the weights of a dense layer")
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        return dict(torch.load(path, map_location="cpu", weights_only=True))
    except (OSError, ValueError, RuntimeError, SafetensorError, pickle.UnpicklingError) as error:
        raise UsageError(f"{path}: found {first_line(error)}, expected the tensors of a dense layer") from error


def _listed(folder: Path) -> list[dict[str, Any]]:
    path = folder / "modules.json"
    return list(model_json(path)) if path.is_file() else []


def model_json(path: Path, wanted: str = "JSON of a model") -> Any:
    """Read a JSON file of a model. Raises `UsageError` where it is missing or broken."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: found {error}, expected {wanted}") from error
