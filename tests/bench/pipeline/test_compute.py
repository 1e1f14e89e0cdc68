"""How many threads a run takes: those that the process may use, and all where nobody limits it."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from bench.config.profiles import profile
from bench.config.request import Request
from bench.core.machine import cores
from bench.pipeline.compute import compute
from bench.pipeline.settings import ComputeConfig
from tests.conftest import cases


@pytest.mark.parametrize(("own", "files", "expected"), cases("processors-of-control-groups"))
def test_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str, files: Mapping[str, str], expected: int
) -> None:
    """Affinity, here 8 of 16, then the quotas of the group and of those above it, in the files of the kernel."""
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    (tmp_path / "own").write_text(own)
    for name, content in files.items():
        path = tmp_path / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    assert cores(tmp_path / "own", tmp_path / "groups") == expected


def test_without_limits_all_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As before there were limits to look at, so that keys are what they were; the user's number holds over all."""
    monkeypatch.setattr(os, "cpu_count", lambda: 6)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    assert cores(tmp_path / "none", tmp_path / "none") == 6
    monkeypatch.setattr("bench.pipeline.compute.cores", lambda: 6)
    assert compute(Request((), ()), profile(), ComputeConfig()).threads == 6
    assert compute(Request((), ()), profile(), ComputeConfig(threads=11)).threads == 11
    monkeypatch.setattr("bench.pipeline.compute.cores", lambda: 64)
    assert compute(Request((), ()), profile(), ComputeConfig()).threads == 8
