"""Dense layers behind the pooling: what a folder of sentence-transformers says of them, their weights, how they act.

EmbeddingGemma has two behind a mean, distiluse one that makes vectors smaller. An encoder's folder keeps the weights of
all in one file next to the model's, for the model itself has no place for them. Importing this module imports no torch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bench.core.errors import UsageError
from bench.core.files import canonical, write_bytes
from bench.retrieval.model_files import OLD, SAFE, listed_modules, model_json, tensors

if TYPE_CHECKING:
    import torch

FILE = "dense_layers.safetensors"
"""Name of the file: `N.weight` `[out, in]` and perhaps `N.bias` `[out]` of layer N, from 0 on, in their order."""

_ACTIVATIONS = {"Identity": "identity", "Tanh": "tanh", "ReLU": "relu", "GELU": "gelu"}


def declared(folder: Path) -> tuple[str, ...]:
    """Return the activations of the layers that a folder of sentence-transformers lists, in their order.

    Raises `UsageError` for a layer that cannot be read: of another activation, around which a residual goes, or of
    token vectors.
    """
    activations = []
    for place in _places(folder):
        config = model_json(place / "config.json")
        activation = str(config.get("activation_function", "torch.nn.modules.activation.Tanh"))
        name = activation.rpartition(".")[2]
        fault = ""
        if not activation.startswith("torch.") or name not in _ACTIVATIONS:
            fault = f"activation {activation:.80}"
        elif config.get("use_residual"):
            fault = "a residual around it"
        elif config.get("module_input_name", "sentence_embedding") != "sentence_embedding":
            fault = f"input {config['module_input_name']!s:.80}"
        if fault:
            expected = f"one over the pooled vector, with {', '.join(_ACTIVATIONS)}"
            raise UsageError(where=place, found=f"a dense layer with {fault}", expected=expected)
        activations.append(_ACTIVATIONS[name])
    return tuple(activations)


def copy(source: Path, folder: Path) -> None:
    """Write the weights of a folder's layers into an encoder's. Raises `UsageError` where they cannot be read."""
    from safetensors.torch import save

    if (source / FILE).is_file():  # an encoder that was exported
        write_bytes(folder / FILE, (source / FILE).read_bytes())
        return
    layers: dict[str, torch.Tensor] = {}
    for at, place in enumerate(_places(source)):
        path = next((place / name for name in (SAFE, OLD) if (place / name).is_file()), None)
        if path is None:
            raise UsageError(where=place, found=f"neither {SAFE} nor {OLD}", expected="the weights of a dense layer")
        weights = tensors(path, "the tensors of a dense layer")
        config = model_json(place / "config.json")
        wide, narrow = config.get("out_features"), config.get("in_features")
        shapes = {"weight": (wide, narrow)} | ({"bias": (wide,)} if config.get("bias", True) else {})
        for name, shape in shapes.items():
            tensor = weights.get(f"linear.{name}")
            if tensor is None or tuple(tensor.shape) != shape:
                found = "none" if tensor is None else f"sizes {tuple(tensor.shape)}"
                raise UsageError(where=path, found=f"{found} for linear.{name}", expected=f"sizes {shape}")
            layers[f"{at}.{name}"] = tensor.float().contiguous()
    write_bytes(folder / FILE, save(layers))


def load(folder: Path, activations: Sequence[str], device: str) -> torch.nn.Sequential | None:
    """Return the layers of an encoder's folder, None for no activation. Raises `UsageError` where they are missing."""
    if not activations:
        return None
    import torch

    weights = tensors(folder / FILE, "the tensors of dense layers")
    modules: list[torch.nn.Module] = []
    kinds: Mapping[str, type[torch.nn.Module]] = {name: getattr(torch.nn, kind) for kind, name in _ACTIVATIONS.items()}
    for at, activation in enumerate(activations):
        weight, bias = weights.get(f"{at}.weight"), weights.get(f"{at}.bias")
        if weight is None or activation not in kinds:
            found = f"no layer {at} with activation {activation:.80}"
            raise UsageError(where=folder / FILE, found=found, expected="the layers that the encoder's config names")
        layer = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
        layer.load_state_dict({"weight": weight} | ({} if bias is None else {"bias": bias}))
        modules += [layer, kinds[activation]()]
    return torch.nn.Sequential(*modules).to(device).requires_grad_(requires_grad=False)


def export(source: Path, activations: Sequence[str], places: Sequence[Path]) -> None:
    """Write the layers of an encoder's folder as modules of sentence-transformers, a folder each.

    Raises `UsageError` where they are missing.
    """
    import torch
    from safetensors.torch import save

    layers = load(source, activations, "cpu")
    linear = [module for module in layers or () if isinstance(module, torch.nn.Linear)]
    for place, layer, activation in zip(places, linear, activations, strict=True):
        wide, narrow = layer.weight.shape
        module = "torch.nn.modules." + ("linear" if activation == "identity" else "activation")
        kind = next(kind for kind, name in _ACTIVATIONS.items() if name == activation)
        config = {"in_features": narrow, "out_features": wide, "bias": layer.bias is not None}
        write_bytes(place / "config.json", canonical({**config, "activation_function": f"{module}.{kind}"}))
        tensors_by_name = {f"linear.{name}": tensor.contiguous() for name, tensor in layer.state_dict().items()}
        write_bytes(place / SAFE, save(tensors_by_name, {"format": "pt"}))


def _places(folder: Path) -> list[Path]:
    return [folder / module.path for module in listed_modules(folder) if module.type.rpartition(".")[2] == "Dense"]
