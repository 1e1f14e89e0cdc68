"""What a training costs beside tokens: time and memory."""

from __future__ import annotations

import sys
import time

import torch


class Costs:
    """Measures wall time, device time and peak memory.

    Args:
        device: where the weights lie.
        seconds: spent by earlier attempts.
        device_seconds: spent by earlier attempts.
    """

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

    def peak_memory(self) -> int:
        """Return bytes: allocated on the GPU, or resident in this process since it began."""
        if self._device.type == "cuda":
            return int(torch.cuda.max_memory_allocated(self._device))
        import resource

        unit = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
