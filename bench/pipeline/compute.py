"""The machine of encoders: device and threads, as far as they can change bytes."""

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

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
    processes: int = 1  # of a training

    def identity(self) -> dict[str, Json]:
        """Return the class of device (not its number) and the threads; processes change trainings alone."""
        return {"device": self.device.partition(":")[0], "threads": self.threads}

    def job(self, seed: int, tokens: int = 0, flops: float | None = None) -> TrainingJob:
        """Return a training on this machine."""
        return TrainingJob(tokens, seed, self.device, self.threads, flops)


def several(identity: dict[str, Json], machine: Compute) -> dict[str, Json]:
    """Return the identity of a training, with the number of its processes where it is not 1."""
    return identity if machine.processes == 1 else {**identity, "processes": machine.processes}


def compute(request: Request, size: Profile, config: ComputeConfig) -> Compute:
    """Choose device and threads.

    Raises:
        UsageError: a device that is not there, or fewer of them than processes.
    """
    device = size.device if request.device == "auto" else request.device
    if device != "cpu":
        _check_available(device, request.device == "auto", size)
    if device.startswith("cuda") and config.processes > 1:
        _check_enough(device, config.processes)
    return Compute(device, config.threads or min(cores(), _MOST_THREADS), config.processes)


def cores(own: Path = Path("/proc/self/cgroup"), groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return how many processors this process may use at once: of its affinity, and of its control group's quota."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([usable, *_quotas(own, groups)]))


def _quotas(own: Path, groups: Path) -> Iterator[int]:
    """Yield the processors, rounded up, that each control group above this process grants it (cgroup 2, then 1)."""
    try:
        lines = [line.split(":", 2) for line in own.read_text(encoding="utf-8").splitlines()]
        placed = {names: path for _, names, path in lines}
    except (OSError, ValueError):
        return
    folder = PurePosixPath(placed.get("", "/").lstrip("/"))
    controllers = (path for names, path in placed.items() if "cpu" in names.split(","))
    legacy = PurePosixPath("cpu", next(controllers, "/").lstrip("/"))
    for place in (folder, *folder.parents):
        with suppress(OSError, ValueError):
            quota, period = (groups / place / "cpu.max").read_text().split()
            if quota != "max":
                yield math.ceil(int(quota) / int(period))
    for place in (legacy, *legacy.parents[:-1]):
        with suppress(OSError, ValueError):
            quota_us = int((groups / place / "cpu.cfs_quota_us").read_text())
            if quota_us > 0:
                yield math.ceil(quota_us / int((groups / place / "cpu.cfs_period_us").read_text()))


def _check_enough(device: str, processes: int) -> None:
    """Raise `UsageError` where several processes cannot have a GPU each."""
    import torch

    if device != "cuda" or torch.cuda.device_count() < processes:
        raise UsageError(
            where="--processes",
            found=f"{processes} with device {device}, where torch sees {torch.cuda.device_count()} GPUs",
            expected="a GPU for each process",
            hint="type --device cuda and at most as many processes as there are GPUs",
        )


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
