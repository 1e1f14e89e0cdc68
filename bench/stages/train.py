"""train: start + prepared corpus → encoder, held to what a trainer promises."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from bench.dense import CONTRACT, Contract, Trainer, TrainingJob
from bench.errors import PluginError, UsageError
from bench.training import ENCODER, LOG
from bench.types import Json
from bench.workspace import Workspace

VERSION = 2
_CONFIG, _WEIGHTS = "config.json", "model.safetensors"
_PICKLED = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt")


def run(work: Workspace, trainer: Trainer, start: Path, shards: Path, job: TrainingJob) -> Mapping[str, Json]:
    """Let the trainer write `encoder/` and `log.jsonl`, under the job's seed, threads and deterministic algorithms.

    Args:
        work: where to.
        trainer: of the method.
        start: the encoder before training.
        shards: the prepared corpus.
        job: budget, seed, device, threads.

    Raises:
        UsageError: the device is not there, or the training ran into numbers that are none.
        PluginError: what the trainer wrote is not what it promised.
    """
    from bench.training.determinism import reproducible

    _mind_device(job.device)
    with reproducible(job):
        facts = trainer.train(start, shards, job, work)
    faults = [*_encoder_faults(work.out / ENCODER, start), *_log_faults(work.out / LOG)]
    if faults:
        raise PluginError("the trainer broke its promise:\n" + "\n".join(f"  {fault}" for fault in faults))
    return facts


def _mind_device(device: str) -> None:
    """Raise `UsageError` where torch has no such device."""
    import torch

    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UsageError(f"device {device}: {str(error).splitlines()[0]}; type --device cpu") from error


def _encoder_faults(folder: Path, start: Path) -> list[str]:
    """Say what is wrong with an exported encoder: it holds what its start held, with other values, and no more."""
    missing = [name for name in (_CONFIG, _WEIGHTS, CONTRACT) if not (folder / name).is_file()]
    if missing:
        return [f"{ENCODER}/ has no {name}, expected a plain Hugging Face folder and contract" for name in missing]
    faults = [
        f"{ENCODER}/{path.name} may hold pickled code, expected safetensors"
        for path in sorted(folder.iterdir())
        if path.suffix in _PICKLED
    ]
    try:
        Contract.load(folder)
    except UsageError as error:
        faults.append(str(error))
    return faults + _weight_faults(folder / _WEIGHTS, start / _WEIGHTS)


def _weight_faults(found: Path, start: Path) -> list[str]:
    """Compare names, shapes and finiteness of weights, tensor by tensor."""
    import torch
    from safetensors import SafetensorError, safe_open

    faults = []
    try:
        with safe_open(found, "pt") as new, safe_open(start, "pt") as old:
            names, known = set(new.keys()), set(old.keys())
            strangers, lost = sorted(names - known), sorted(known - names)
            if strangers:
                faults.append(f"{_few(strangers)} only the training needs (heads, queues, copies); leave them out")
            if lost:
                faults.append(f"{_few(lost)} of the start are missing, expected all of them")
            for name in sorted(names & known):
                shape, wanted = new.get_slice(name).get_shape(), old.get_slice(name).get_shape()
                if shape != wanted:
                    faults.append(f"{name} has shape {shape}, expected {wanted} as at the start")
                elif not bool(torch.isfinite(new.get_tensor(name)).all()):
                    faults.append(f"{name} holds values that are no numbers, expected finite ones")
    except SafetensorError as error:
        faults.append(f"{_WEIGHTS}: found {error}, expected safetensors")
    return faults


def _log_faults(path: Path) -> list[str]:
    """Say what is wrong with a log: each line is a JSON object."""
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


def _few(names: list[str]) -> str:
    """The first three of some names."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
