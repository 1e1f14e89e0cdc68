"""What a process may take of the machine that it runs on."""

import time
from pathlib import Path

import psutil
import pytest
import torch

from bench.core.machine import bfloat16_speed, memory


@pytest.mark.parametrize(
    ("limit", "current", "expected"),
    [(2 << 30, 1 << 29, 1.5), (1 << 30, 2 << 30, 0.0), ("max", 1 << 30, 4.0), (64 << 30, 0, 4.0), (None, None, 4.0)],
)
def test_memory_is_bounded_by_the_control_group(
    limit: int | str | None, current: int | None, expected: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 4 GiB that the machine has available: what the group has left, where it has a limit below that."""
    available = psutil.virtual_memory()._replace(available=4 << 30)
    monkeypatch.setattr("psutil.virtual_memory", lambda: available)
    for name, value in (("max", limit), ("current", current)):
        if value is not None:
            (tmp_path / f"memory.{name}").write_text(f"{value}\n")
    assert memory(tmp_path) == expected


@pytest.mark.parametrize(("float32", "bfloat16", "expected"), [(1.0, 0.25, 4.0), (0.25, 1.5, 1 / 6)])
def test_bfloat16_is_tried(float32: float, bfloat16: float, expected: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the seconds of this thread that a product takes, here a pause of so many ms; torch's threads stay as set."""
    threads = torch.get_num_threads()

    def product(left: torch.Tensor, right: torch.Tensor) -> None:
        assert left.dtype == right.dtype
        assert torch.get_num_threads() == 1
        ended = time.thread_time() + {torch.float32: float32, torch.bfloat16: bfloat16}[left.dtype] / 1000
        while time.thread_time() < ended:
            pass

    monkeypatch.setattr(torch, "mm", product)
    assert bfloat16_speed.__wrapped__() == pytest.approx(expected, rel=0.2)
    assert torch.get_num_threads() == threads
