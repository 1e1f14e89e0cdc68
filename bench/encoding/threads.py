"""The processor's threads while something is computed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def on_threads(count: int | None) -> Iterator[None]:
    """Set torch's threads and put them back: sums over other numbers of threads round otherwise.

    Args:
        count: how many; None leaves them as they are.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)
