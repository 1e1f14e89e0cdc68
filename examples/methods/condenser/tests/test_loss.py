"""The three parts of the loss, worked out on paper."""

import math
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from bench_condenser import CondenserConfig
from bench_condenser.trainer import CondenserTrainer
from torch import nn

from bench.training import Masked


class Head(nn.Module):
    """A prediction head that changes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(2))

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        return rows


class Early(nn.Module):
    """In place of Condenser's head: early states as they are."""

    def forward(self, early: torch.Tensor, late: torch.Tensor, packed: object) -> torch.Tensor:
        return early

    def operations(self, packed: object) -> int:
        return 0


LATE, HEAD, CONTRAST = math.log(4 / 3), math.log(5), math.log(1 + 2 * math.exp(-2))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {"late_mlm_loss": LATE, "head_mlm_loss": HEAD, "contrast": CONTRAST, "accuracy": 1.0}),
        ({"late_mlm": False}, {"head_mlm_loss": HEAD, "contrast": CONTRAST, "accuracy": 1.0}),
        ({"variant": "condenser"}, {"late_mlm_loss": LATE, "head_mlm_loss": HEAD}),
    ],
)
def test_the_parts_of_two_documents(settings: dict[str, object], expected: dict[str, float]) -> None:
    """Two spans each, [CLS] and a hidden 0, whose chance is 3/4 at the last layer and 1/5 after the head.

    Vectors are (1, 0) twice and (−1, 0) twice, so each span's partner has e against e⁻¹ twice.
    """
    tokens = torch.tensor([[math.log(3), 0.0]])
    late = torch.cat([row for sign in (1.0, 1.0, -1.0, -1.0) for row in (torch.tensor([[sign, 0.0]]), tokens)])
    early = torch.tensor([[0.0, math.log(4)]]).repeat(8, 1)
    packed = SimpleNamespace(first_rows=np.arange(0, 8, 2), starts=torch.arange(0, 8, 2))
    encode = SimpleNamespace(
        layers=lambda _inputs, _layers: ((early, late), packed),
        rows=lambda ids: ids,
        device=torch.device("cpu"),
        embeddings=torch.eye(2),
        meter=SimpleNamespace(multiplied=lambda _: None),
        autocast=nullcontext,
        model=SimpleNamespace(config=SimpleNamespace(num_hidden_layers=2)),
    )
    masked = Masked([np.array([9, 1])] * 4, np.arange(4), np.ones(4, int), np.zeros(4, int))
    trainer = CondenserTrainer(CondenserConfig.model_validate(settings))
    loss, values = trainer.loss(nn.ModuleDict({"mlm": Head(), "condenser": Early()}), encode, masked)
    assert values() == pytest.approx(expected, abs=1e-6)
    assert float(loss.detach()) == pytest.approx(
        sum(part for name, part in expected.items() if name != "accuracy"), abs=1e-6
    )
