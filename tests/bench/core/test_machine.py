"""What a process may take of the machine that it runs on."""

from pathlib import Path

import psutil
import pytest

from bench.core.machine import memory


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
