"""The machine of encoders: device and threads, as far as they can change bytes."""

from __future__ import annotations

import os
from dataclasses import dataclass

from bench.config.profiles import Profile
from bench.config.request import Request
from bench.core.contract import TrainingJob
from bench.core.errors import UsageError
from bench.pipeline.settings import ComputeConfig
from bench.types import Json

LIBRARIES = ("torch", "transformers", "tokenizers", "numpy")
"""Whose versions can change weights and vectors."""
_MOST_THREADS = 8


@dataclass(frozen=True)
class Compute:
    """The machine, as far as it can change bytes."""

    device: str  # `cpu`, `cuda`, `cuda:N` or `mps`
    threads: int

    def identity(self) -> dict[str, Json]:
        """Return the class of device (not its number) and the threads."""
        return {"device": self.device.partition(":")[0], "threads": self.threads}

    def job(self, seed: int, tokens: int = 0, flops: float | None = None) -> TrainingJob:
        """Return a training on this machine."""
        return TrainingJob(tokens, seed, self.device, self.threads, flops)


def compute(request: Request, size: Profile, config: ComputeConfig) -> Compute:
    """Choose device and threads.

    Raises:
        UsageError: a device that is not there.
    """
    device = size.device if request.device == "auto" else request.device
    if device != "cpu":
        _check_available(device, request.device == "auto", size)
    return Compute(device, config.threads or min(os.cpu_count() or 1, _MOST_THREADS))


def _check_available(device: str, by_profile: bool, size: Profile) -> None:
    """Raise `UsageError` where torch sees no such device."""
    import torch

    kind, _, number = device.partition(":")
    there = torch.backends.mps.is_available() if kind == "mps" else torch.cuda.is_available()
    if there and int(number or 0) < (torch.cuda.device_count() if kind == "cuda" else 1):
        return
    asked = f"profile {size.name} wants device {device}" if by_profile else f"found --device {device}"
    raise UsageError(
        f"{asked}, but torch {torch.__version__} sees none here; type --device cpu, or look at `bench doctor`"
    )
