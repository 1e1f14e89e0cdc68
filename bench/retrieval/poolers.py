"""BERT's pooler: tanh of a dense layer over the first token's state, and where a folder keeps its weights.

A Hugging Face folder has it among the model's weights. A folder of sentence-transformers (LaBSE's, for instance) has
the same layer as a module `Dense` behind a pooling of the first token; there it is read from, and kept as the model's
own pooler from then on. Importing this module imports no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.core.errors import UsageError
from bench.retrieval.model_files import OLD, SAFE, listed_modules, model_json, tensors

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel


def modules(folder: Path) -> list[Path]:
    """List the folders of a sentence-transformers folder's modules, without itself; none where it is a plain one."""
    places = dict.fromkeys(folder / module.path for module in listed_modules(folder))
    return [place for place in places if place != folder and place.is_dir()]


def dense_module(folder: Path) -> Path | None:
    """Find the module of a folder that is BERT's pooler, if any. Raises `UsageError` for other dense layers."""
    dense = [folder / module.path for module in listed_modules(folder) if module.type.rpartition(".")[2] == "Dense"]
    if not dense:
        return None
    config = model_json(dense[0] / "config.json")
    activation = str(config.get("activation_function", "")).rpartition(".")[2]
    square, biased = config.get("in_features") == config.get("out_features"), config.get("bias", True)
    if len(dense) > 1 or activation != "Tanh" or not square or not biased:
        sizes = f"{config.get('in_features')} to {config.get('out_features')} dimensions"
        bias = "" if biased else " without bias"
        more = f" and {len(dense) - 1} more" if len(dense) > 1 else ""
        raise UsageError(
            f"{folder}: found a dense layer of {sizes}{bias}, activation {activation or 'unknown'}{more}, expected "
            "one like BERT's pooler: as many dimensions out as in, a bias, Tanh"
        )
    return dense[0]


def is_pooler(folder: Path) -> bool:
    """Return whether a folder of sentence-transformers has one dense layer that is BERT's pooler, and no other."""
    with suppress(UsageError):
        return dense_module(folder) is not None
    return False


def complete(model: PreTrainedModel, folder: Path, *, trained: bool, new: bool) -> None:
    """Give a model's pooler the weights that its folder has, where loading could not.

    Args:
        model: as transformers loaded it.
        folder: whence; a module `Dense` of sentence-transformers there is the pooler.
        trained: whether the model's own weights had those of the pooler.
        new: whether random weights will do without trained ones.

    Raises:
        UsageError: the architecture has no such pooler, or there are no weights of it.
    """
    import torch

    pooler: Any = getattr(model, "pooler", None)
    layer, activation = getattr(pooler, "dense", None), getattr(pooler, "activation", None)
    if not isinstance(layer, torch.nn.Linear) or not isinstance(activation, torch.nn.Tanh):
        raise UsageError(
            f"{folder}: found {type(model).__name__}, which has no pooler like BERT's (tanh over the first token), "
            "expected one; choose the pooling cls or mean"
        )
    if (module := dense_module(folder)) is not None:
        _fill(layer, module)
    elif not trained and not new:
        raise UsageError(
            f"{folder}: found no weights of a pooler, expected pooler.dense.weight and pooler.dense.bias; "
            "choose the pooling cls or mean"
        )


def write_dense(weights: Sequence[Path], folder: Path) -> tuple[int, int]:
    """Write the dense layer `pooler.dense` of weight files as a module's folder; return its width in and out."""
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

    path = next((module / name for name in (SAFE, OLD) if (module / name).is_file()), None)
    if path is None:
        raise UsageError(f"{module}: found neither {SAFE} nor {OLD}, expected the weights of a dense layer")
    weights = tensors(path, "the tensors of a dense layer")
    tensors_by_name = {"weight": weights.get("linear.weight"), "bias": weights.get("linear.bias")}
    with torch.no_grad():
        for name, target in (("weight", layer.weight), ("bias", layer.bias)):
            source = tensors_by_name[name]
            if source is None or source.shape != target.shape:
                sizes = "none" if source is None else f"sizes {tuple(source.shape)}"
                raise UsageError(f"{module}: found {sizes} for linear.{name}, expected sizes {tuple(target.shape)}")
            target.copy_(source)
