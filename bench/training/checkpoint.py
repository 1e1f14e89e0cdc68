"""Checkpoints as parts: tensors in safetensors, all else in JSON, nothing pickled; the last two are kept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import nn

from bench.fsio import canonical
from bench.types import Json
from bench.workspace import Parts

_KEPT = 2


def save(parts: Parts, step: int, tensors: Mapping[str, torch.Tensor], state: Mapping[str, Json]) -> None:
    """Write a checkpoint, the JSON last, then drop all but the last two.

    Args:
        parts: where to.
        step: its number.
        tensors: what is restored bit for bit; names unique, no two share memory.
        state: all else.
    """
    name = _name(step)
    whole = {key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}
    parts.write(f"{name}.safetensors", safetensors.torch.save(whole))
    parts.write(f"{name}.json", canonical(state))
    for old in _steps(parts)[_KEPT:]:
        for suffix in (".json", ".safetensors"):  # the JSON first: without it the other one is not looked at
            for end in ("", ".sha256"):
                (parts.folder / f"{_name(old)}{suffix}{end}").unlink(missing_ok=True)


def newest(parts: Parts) -> tuple[dict[str, torch.Tensor], dict[str, Any]] | None:
    """Return tensors and state of the newest checkpoint that is whole, or None."""
    for step in _steps(parts):
        tensors, state = parts.done(f"{_name(step)}.safetensors"), parts.done(f"{_name(step)}.json")
        if tensors and state:
            loaded = json.loads(state.read_bytes())
            if all(parts.done(name) for name in loaded["log"]):
                return safetensors.torch.load_file(tensors), loaded
    return None


def tensors_of(modules: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """Return all weights, buffers and the optimiser's memory by name."""
    names: dict[torch.Tensor, str] = {weight: name for name, weight in modules.named_parameters()}
    found: dict[str, torch.Tensor] = {f"weights/{name}": weight for weight, name in names.items()}
    found |= {f"buffers/{name}": buffer for name, buffer in modules.named_buffers()}
    for weight, memory in optimiser.state.items():
        found |= {f"optimiser/{names[weight]}/{key}": value for key, value in memory.items()}
    return found


def restore(modules: nn.Module, optimiser: torch.optim.Optimizer, tensors: Mapping[str, torch.Tensor]) -> None:
    """Put back what `tensors_of` returned, in place.

    Raises:
        KeyError: a weight or buffer is not among the tensors.
    """
    with torch.no_grad():
        for name, weight in modules.named_parameters():
            weight.copy_(tensors[f"weights/{name}"])
        for name, buffer in modules.named_buffers():
            buffer.copy_(tensors[f"buffers/{name}"])
    names = {weight: name for name, weight in modules.named_parameters()}
    weights = [weight for group in optimiser.param_groups for weight in group["params"]]
    fresh = optimiser.state_dict()
    fresh["state"] = {
        at: {key.rpartition("/")[2]: tensor for key, tensor in tensors.items() if _memory_of(key) == names[weight]}
        for at, weight in enumerate(weights)
        if f"optimiser/{names[weight]}/step" in tensors
    }
    optimiser.load_state_dict(fresh)


def _memory_of(key: str) -> str | None:
    """Name of the weight whose memory a tensor is, or None where it is none."""
    return key.removeprefix("optimiser/").rpartition("/")[0] if key.startswith("optimiser/") else None


def _name(step: int) -> str:
    """File name of a checkpoint, without its ending."""
    return f"checkpoint-{step:010d}"


def _steps(parts: Parts) -> list[int]:
    """Steps of the checkpoints that lie there, the newest first."""
    if not parts.folder.is_dir():
        return []
    return sorted((_step(path) for path in parts.folder.glob("checkpoint-*.json")), reverse=True)


def _step(path: Path) -> int:
    """The step in a file's name."""
    return int(path.stem.removeprefix("checkpoint-"))
