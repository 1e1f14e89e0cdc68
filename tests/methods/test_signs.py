"""Signs of failure in what the methods log: each shows by itself, and a healthy training shows none."""

import json
from pathlib import Path

import pytest

from bench.training.probes import signs

SIGNS = json.loads((Path(__file__).parents[1] / "fixtures" / "methods" / "signs.json").read_text(encoding="utf-8"))
"""Healthy values by name, and (them or their name, what is changed of them, what the sign says, a note)."""


@pytest.mark.parametrize(("healthy", "changed", "sentence", "note"), SIGNS["cases"])
def test_signs(healthy: str | dict[str, float], changed: dict[str, float], sentence: str, note: str) -> None:
    """Each value shows by itself; healthy ones say nothing."""
    values = SIGNS["healthy"][healthy] if isinstance(healthy, str) else healthy
    assert signs(values) == []
    warnings = signs({**values, **changed})
    assert len(warnings) == bool(sentence)
    assert all(sentence in warning for warning in warnings)
