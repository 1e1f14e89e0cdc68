"""The settings of every training keep the promises of configs, and refuse what cannot be meant."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from bench.config import check_config
from bench.training.config import TrainingConfig


def test_it_keeps_the_promises_of_every_config() -> None:
    """Frozen, strict, closed; each default with source and help."""
    assert check_config(TrainingConfig) == []


@pytest.mark.parametrize(
    "bad",
    [
        {"learning_rate": 0.0},
        {"learning_rate": "1e-3"},
        {"warm_up": 1.0},
        {"warm_up": -0.1},
        {"weight_decay": -1.0},
        {"beta1": 1.0},
        {"clip": 0.0},
        {"pairs": 1},
        {"accumulate": 0},
        {"temperature": 0.0},
        {"sentence_tokens": 2},
        {"language_exponent": 1.5},
        {"precision": "float16"},
        {"probe_pairs": 1},
        {"checkpoint_seconds": 0.0},
        {"beta1": 0.9, "beta2": 0.5},
        {"leraning_rate": 1e-3},
    ],
)
def test_bad_values_are_refused(bad: dict[str, Any]) -> None:
    """Out of range, of another type, or unknown."""
    with pytest.raises(ValidationError):
        TrainingConfig(**bad)
