"""Nothing happens early: what loads before a value is asked for, told by a fresh interpreter."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

HEAVY = ("torch", "transformers", "numba", "ir_datasets", "faiss", "pandas", "bm25s", "rank_bm25", "pytrec_eval", "ray")
PLUGINS = sorted(point.value for point in distribution("retrieval-bench").entry_points if point.group == "bench")
LIGHT = [
    "bench",
    "bench.types",
    "bench.errors",
    "bench.hookspecs",
    "bench.config",
    "bench.profiles",
    "bench.plugins",
    "bench.workspace",
    "bench.cli",
]


def loaded(code: str, folder: Path) -> set[str]:
    """Run code in a fresh interpreter and return the heavy libraries that it imported."""
    told = f"{code}\nimport sys\nprint('\\n'.join(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", told], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def test_there_are_plugins_to_look_at() -> None:
    """An empty list would make the tests below pass for nothing."""
    assert {"methods.bm25", "suites.beir"} <= set(PLUGINS)


@pytest.mark.parametrize("module", [*LIGHT, *PLUGINS])
def test_a_module_is_light(module: str, tmp_path: Path) -> None:
    """Importing it alone brings none of the heavy libraries."""
    assert loaded(f"import {module}", tmp_path) == set()


def test_all_plugins_together_are_light(tmp_path: Path) -> None:
    """Loading them through their entry points and asking what they bring stays light."""
    code = (
        "from bench.plugins import load\n"
        "found = load({'BENCH_PLUGINS': 'retrieval-bench'})\n"
        "assert found.methods and found.suites and not found.broken, found.broken\n"
        "[owned.value.config() for owned in found.methods.values()]"
    )
    assert loaded(code, tmp_path) == set()


def test_the_measurement_sees_a_heavy_import(tmp_path: Path) -> None:
    """Otherwise the tests above would prove nothing."""
    assert "pytrec_eval" in loaded("import pytrec_eval", tmp_path)
