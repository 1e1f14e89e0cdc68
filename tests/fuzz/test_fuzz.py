"""Damaged input of every kind: refused in words, or read right; never a traceback, a hang, a bomb or a wrong number.

A short round of every fuzzer in a slow test; `make fuzz` tries longer.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.__main__ import TARGETS
from tests.fuzz.harness import Draw

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_nothing_falls_over() -> None:
    """In a short round of every fuzzer, in a process of its own; a failure names its target and seed."""
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-m", "tests.fuzz"]
    completed = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert completed.stdout, completed.stderr
    assert json.loads(completed.stdout) == {name: {} for name in TARGETS}


def test_damage_is_that_of_the_seed() -> None:
    """And it is damage, mostly."""
    data, value = bytes(range(200)), {"a": [1, "b", {"c": None}], "d": 2.5}
    assert [Draw(at).damaged(data) for at in range(9)] == [Draw(at).damaged(data) for at in range(9)]
    assert repr([Draw(at).altered(value) for at in range(9)]) == repr([Draw(at).altered(value) for at in range(9)])
    assert sum(Draw(at).damaged(data) != data for at in range(50)) >= 45
    assert sum(repr(Draw(at).altered(value)) != repr(value) for at in range(50)) >= 40
