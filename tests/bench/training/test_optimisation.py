"""Schedule against golden values; groups of the optimiser; clipping."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from bench.training.config import TrainingConfig
from bench.training.optimisation import adamw, clip, warm_up_and_decay

CASES = [
    case
    for case in json.loads(
        (Path(__file__).parents[2] / "golden" / "methods" / "data_and_schedule.json").read_text(encoding="utf-8")
    )["cases"]
    if case["kind"] == "schedule"
]


def test_there_are_schedules_to_look_at() -> None:
    """An empty list would make the next test pass for nothing."""
    assert len(CASES) >= 10


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_schedule_golden(case: dict[str, Any]) -> None:
    """Warm-up, peak, decay, end."""
    rate = case["base_lr"] * warm_up_and_decay(case["step"], case["warmup"], case["total"])
    assert rate == pytest.approx(case["expected"], abs=1e-15)


def test_the_schedule_ends_at_zero_and_needs_no_warm_up() -> None:
    """Beyond the end it stays 0; without warm-up it begins at its peak."""
    assert warm_up_and_decay(11, 2, 10) == 0
    assert warm_up_and_decay(0, 0, 10) == 1


@pytest.mark.parametrize("scale", [1.0, 5000.0, 3e9])
def test_the_schedule_is_the_same_in_any_unit(scale: float) -> None:
    """Shares, steps or tokens: the peak is reached where the warm-up ends, half the way down is half of it."""
    at = [warm_up_and_decay(share * scale, 0.2 * scale, scale) for share in (0.1, 0.2, 0.6, 1.0)]
    assert at == pytest.approx([0.5, 1.0, 0.5, 0.0], abs=1e-12)


def test_only_matrices_decay() -> None:
    """Biases and normalisation do not; what needs no gradient is not the optimiser's."""
    modules = nn.Sequential(nn.Linear(3, 3), nn.LayerNorm(3), nn.Linear(3, 2))
    modules[2].requires_grad_(requires_grad=False)
    optimiser = adamw(modules, TrainingConfig(weight_decay=0.1, beta2=0.98, epsilon=1e-6))
    decay = {
        tuple(weight.shape): group["weight_decay"] for group in optimiser.param_groups for weight in group["params"]
    }
    assert decay == {(3, 3): 0.1, (3,): 0.0}
    assert sum(len(group["params"]) for group in optimiser.param_groups) == 4
    assert {(group["betas"], group["eps"]) for group in optimiser.param_groups} == {((0.9, 0.98), 1e-6)}
    with pytest.raises(ValueError, match="no trainable weight"):
        adamw(modules[2], TrainingConfig())


def test_clipping_keeps_the_direction() -> None:
    """The norm over all weights is told as it was, and bounded; without a bound nothing changes."""
    weights = [nn.Parameter(torch.zeros(1)), nn.Parameter(torch.zeros(1))]
    for weight, value in zip(weights, (3.0, 4.0), strict=True):
        weight.grad = torch.tensor([value])
    assert clip(weights, None) == pytest.approx(5)
    assert [float(weight.grad) for weight in weights if weight.grad is not None] == [3, 4]
    assert clip(weights, 1.0) == pytest.approx(5)
    assert [float(weight.grad) for weight in weights if weight.grad is not None] == pytest.approx([0.6, 0.8], abs=1e-5)
