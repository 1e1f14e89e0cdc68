"""What a training costs: tokens, forward passes, floating-point operations, time and memory."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from transformers import PreTrainedModel

from bench.retrieval.packed import Packed

_BACKWARD = 2  # times the operations of the forward pass


@dataclass
class Meter:
    """Counts what the encoders and heads of a training do; they share one meter."""

    # non-padding tokens, once for each forward pass of an encoder, momentum and no-gradient ones included. Activations
    # computed again to save memory are not a pass.
    tokens: int = 0
    passes: int = 0  # forward passes of an encoder (batches of sequences)
    # operations of multiplications by weights and of attention, forward and backward, recomputation included; embedding
    # look-ups cost none
    flops: float = 0.0

    def encoded(self, model: PreTrainedModel, packed: Packed, *, gradients: bool, recomputed: bool = False) -> None:
        """Count a forward pass; with `gradients` a backward pass follows, with `recomputed` activations come twice."""
        forward = forward_flops(model, packed)
        self.tokens += len(packed.ids)
        self.passes += 1
        self.flops += forward * (1 + (_BACKWARD if gradients else 0) + (1 if recomputed else 0))

    def multiplied(self, operations: float, *, recomputed: bool = False) -> None:
        """Count a head.

        Args:
            operations: multiply-add pairs of its forward pass; the backward pass is added.
            recomputed: whether the forward pass is computed a second time, to save memory.
        """
        self.flops += 2 * operations * (1 + _BACKWARD + recomputed)

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Count nothing of what happens inside, e.g. probes."""
        before = (self.tokens, self.passes, self.flops)
        try:
            yield
        finally:
            self.tokens, self.passes, self.flops = before


def forward_flops(model: PreTrainedModel, packed: Packed) -> float:
    """Operations of a forward pass: `2·N·T + 4·L·H·Σ len²` (Kaplan et al. 2020, 2.1), N without embeddings."""
    weights = sum(weight.numel() for name, weight in model.named_parameters() if "embeddings" not in name)
    squares = sum(count * ((end - start) // count) ** 2 for start, end, count in packed.runs)
    attention = 4 * model.config.num_hidden_layers * model.config.hidden_size * squares
    return float(2 * weights * len(packed.ids) + attention)


class Costs:
    """Measures wall time, device time and peak memory; earlier attempts have spent `seconds` and `device_seconds`."""

    def __init__(self, device: torch.device, seconds: float = 0.0, device_seconds: float = 0.0) -> None:
        self._device = device
        self._before = (seconds, device_seconds)
        self._begun = (time.monotonic(), time.process_time())
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)

    def spent(self) -> tuple[float, float]:
        """Return seconds by the clock and by the device, earlier attempts included.

        By the device: processor time of all threads together; on a GPU, which does nothing else meanwhile, the
        clock's once its queue is empty.
        """
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        wall = time.monotonic() - self._begun[0]
        busy = time.process_time() - self._begun[1] if self._device.type == "cpu" else wall
        return self._before[0] + wall, self._before[1] + busy

    def metadata(self) -> dict[str, float]:
        """Return seconds, device_seconds and peak_memory_bytes: allocated on the GPU, or resident in this process."""
        seconds, busy = self.spent()
        if self._device.type == "cuda":
            peak = int(torch.cuda.max_memory_allocated(self._device))
        else:
            import resource

            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        return {"seconds": round(seconds, 3), "device_seconds": round(busy, 3), "peak_memory_bytes": peak}
