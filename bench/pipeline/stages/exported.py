"""What a training wrote, compared with what it promised: encoders as their start was, and a log."""

import json
from collections.abc import Sequence
from pathlib import Path

from bench.core.encoder_config import ENCODER_CONFIG, EncoderConfig
from bench.core.errors import PluginError, UsageError
from bench.training.config import LOG

_CONFIG, _WEIGHTS = "config.json", "model.safetensors"
_PICKLED = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt")
_POOLER = "pooler."  # begins the names of its weights


def validate_encoders(out: Path, encoders: Sequence[tuple[str, Path]]) -> None:
    """Raise `PluginError` where a trainer broke its promise; `encoders` are folders in `out` and their starts."""
    faults = [fault for name, start in encoders for fault in _encoder_faults(out / name, start)]
    faults += _log_faults(out / LOG)
    if faults:
        raise PluginError("the trainer broke its promise:\n" + "\n".join(f"  {fault}" for fault in faults))


def check_device(device: str) -> None:
    """Raise `UsageError` where torch has no such device."""
    import torch

    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"device {device}: {str(error).splitlines()[0]}; type --device cpu") from error


def _encoder_faults(folder: Path, start: Path) -> list[str]:
    """Say what is wrong with an exported encoder: it holds what its start held, with other values, and no more."""
    missing = [name for name in (_CONFIG, _WEIGHTS, ENCODER_CONFIG) if not (folder / name).is_file()]
    if missing:
        return [
            f"{folder.name}/ has no {name}, expected a plain Hugging Face folder and encoder config" for name in missing
        ]
    faults = [
        f"{folder.name}/{path.name} may hold pickled code, expected safetensors"
        for path in sorted(folder.iterdir())
        if path.suffix in _PICKLED
    ]
    pooled = False
    try:
        pooled = EncoderConfig.load(folder).pooling == "pooler"
    except UsageError as error:
        faults.append(str(error))
    return faults + _weight_faults(folder / _WEIGHTS, start / _WEIGHTS, pooled)


def _weight_faults(found: Path, start: Path, pooled: bool) -> list[str]:
    """Compare names, shapes and finiteness of weights, tensor by tensor; a pooler is there where it is read."""
    import torch
    from safetensors import SafetensorError, safe_open

    faults = []
    try:
        with safe_open(found, "pt") as new, safe_open(start, "pt") as old:
            names, expected_names = set(new.keys()), set(old.keys())
            unexpected = sorted(name for name in names - expected_names if not (pooled and name.startswith(_POOLER)))
            lost = sorted(name for name in expected_names - names if pooled or not name.startswith(_POOLER))
            if unexpected:
                faults.append(
                    f"{_shortened(unexpected)} only the training needs (heads, queues, copies); leave them out"
                )
            if lost:
                faults.append(f"{_shortened(lost)} of the start are missing, expected all of them")
            for name in sorted(names & expected_names):
                shape, expected_shape = new.get_slice(name).get_shape(), old.get_slice(name).get_shape()
                if shape != expected_shape:
                    faults.append(f"{name} has shape {shape}, expected {expected_shape} as at the start")
            broken = (name for name in sorted(names) if not bool(torch.isfinite(new.get_tensor(name)).all()))
            faults.extend(f"{name} holds values that are no numbers, expected finite ones" for name in broken)
    except SafetensorError as error:
        faults.append(f"{_WEIGHTS}: found {error}, expected safetensors")
    return faults


def _log_faults(path: Path) -> list[str]:
    if not path.is_file():
        return [f"there is no {LOG}, expected one JSON object a line"]
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            sound = isinstance(json.loads(line), dict)
        except ValueError:
            sound = False
        if not sound:
            return [f"{LOG}:{number} is no JSON object"]
    return []


def _shortened(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
