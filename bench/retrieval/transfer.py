"""Copies to a device that do not wait for it.

A processor gives a GPU work faster than this can do it, as long as it asks for nothing back. A copy from ordinary
memory waits until the device has done all that it was given before; one from pinned memory takes its turn.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch

_UNPINNED = ("cpu", "mps")  # share the processor's memory


def to_device(values: npt.NDArray[np.generic] | torch.Tensor | Sequence[int], device: torch.device) -> torch.Tensor:
    """Return values as a tensor on a device, copied from pinned memory and asynchronously where they have to be.

    Example:
        >>> to_device([0, 2], torch.device("cpu"))
        tensor([0, 2])
    """
    tensor = torch.as_tensor(values)
    if tensor.device.type != "cpu" or device.type in _UNPINNED:
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)
