"""Chance and threads: set for one training, saved with a checkpoint, put back afterwards."""

import base64
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from bench.core.encoder_config import TrainingJob
from bench.types import Json

_memory: Any = torch.utils.deterministic  # an attribute of it is a switch, which torch does not type


def seed_everything(seed: int) -> None:
    """Seed the global generators of torch (all devices), numpy and Python."""
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)


def rng_state(device: torch.device) -> dict[str, Json]:
    """Return the state of the global generators as JSON; `set_rng_state` takes it back."""
    kind, keys, *position = np.random.get_state(legacy=True)
    version, internal, gauss = random.getstate()
    state: dict[str, Json] = {
        "torch": _packed(torch.get_rng_state()),
        "numpy": [str(kind), np.asarray(keys).tolist(), *map(int, position[:-1]), float(position[-1])],
        "python": [version, list(internal), gauss],
    }
    if device.type == "cuda":
        state["cuda"] = _packed(torch.cuda.get_rng_state(device))
    return state


def set_rng_state(state: Mapping[str, Any], device: torch.device) -> None:
    """Put the global generators into a state that `rng_state` returned."""
    torch.set_rng_state(_unpacked(state["torch"]))
    kind, keys, *position = state["numpy"]
    np.random.set_state((kind, np.asarray(keys, np.uint32), *position))
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(_unpacked(state["cuda"]), device)


@contextmanager
def reproducible(job: TrainingJob) -> Iterator[None]:
    """Fix threads, seeds and, on the processor, deterministic algorithms; put everything back afterwards."""
    device = torch.device(job.device)
    threads, strict, warn, fill = (
        torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
        _memory.fill_uninitialized_memory,
    )
    before = rng_state(device)
    try:
        torch.set_num_threads(job.threads)
        torch.use_deterministic_algorithms(device.type == "cpu")
        _memory.fill_uninitialized_memory = False  # 5 % of the time, for memory that is never read
        seed_everything(job.seed)
        yield
    finally:
        set_rng_state(before, device)
        torch.use_deterministic_algorithms(strict, warn_only=warn)
        _memory.fill_uninitialized_memory = fill
        torch.set_num_threads(threads)


def _packed(state: torch.Tensor) -> str:
    return base64.b64encode(state.numpy(force=True).tobytes()).decode()


def _unpacked(text: str) -> torch.Tensor:
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.uint8)
