"""Damaged input of every kind: refused in words, or read right; never a traceback, a hang, a bomb or a wrong number.

A quick round of every fuzzer, and a short one in a slow test; `make fuzz` tries longer.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.__main__ import QUICK, TARGETS
from tests.fuzz.harness import Draw

ROOT = Path(__file__).parents[2]


def _round(*words: str) -> dict[str, dict[str, str]]:
    """Return faults by target and seed, of a process of its own."""
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    completed = subprocess.run(
        [sys.executable, "-m", "tests.fuzz", *words], cwd=ROOT, env=env, capture_output=True, text=True, check=False
    )
    assert completed.stdout, completed.stderr
    faults: dict[str, dict[str, str]] = json.loads(completed.stdout)
    return faults


@pytest.fixture(scope="module")
def faults() -> dict[str, dict[str, str]]:
    """Faults of a quick round."""
    return _round("quick")


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", QUICK)
def test_nothing_falls_over(name: str, faults: dict[str, dict[str, str]]) -> None:
    """A failure names its seed."""
    assert faults[name] == {}


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_nothing_falls_over_in_a_short_round() -> None:
    """Three times as many draws."""
    assert _round() == {name: {} for name in TARGETS}


def test_damage_is_that_of_the_seed() -> None:
    """And it is damage, mostly."""
    data, value = bytes(range(200)), {"a": [1, "b", {"c": None}], "d": 2.5}
    assert [Draw(at).damaged(data) for at in range(9)] == [Draw(at).damaged(data) for at in range(9)]
    assert repr([Draw(at).altered(value) for at in range(9)]) == repr([Draw(at).altered(value) for at in range(9)])
    assert sum(Draw(at).damaged(data) != data for at in range(50)) >= 45
    assert sum(repr(Draw(at).altered(value)) != repr(value) for at in range(50)) >= 40
